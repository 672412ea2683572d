//go:build unix

// Package scripts_test runs aws-try against stand-ins for aws, sam and go: what it does to
// an account is seen without one.
package scripts_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// run is one run of the script, and what it asked the stand-ins for.
type run struct {
	status int
	out    string   // both streams
	asked  []string // command lines
	left   []string // stacks that are still there
	name   string   // of its stack
	fake   string   // the stand-ins' folder
}

var ownName = regexp.MustCompile(`lambdaidem-try-[0-9a-f]{8}`)

// try runs the script with arguments, an input and variables of the stand-ins.
func try(t *testing.T, input string, env []string, args ...string) run {
	t.Helper()
	r := run{fake: t.TempDir()}
	stand, err := filepath.Abs("testdata/fake/aws")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(r.fake, "bin")
	for _, dir := range []string{bin, filepath.Join(r.fake, "stacks"), filepath.Join(r.fake, "tmp")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"aws", "sam", "go", "sleep"} {
		if err := os.Symlink(stand, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("./aws-try", args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "FAKE=" + r.fake, "TMPDIR=" + filepath.Join(r.fake, "tmp"), "AWS_REGION=eu-west-1"}, env...)
	out, err := outputOf(t, cmd, env, filepath.Join(r.fake, "wait"))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r.status, r.out = cmd.ProcessState.ExitCode(), string(out)
	log, err := os.ReadFile(filepath.Join(r.fake, "log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if len(log) > 0 {
		r.asked = strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	}
	stacks, err := os.ReadDir(filepath.Join(r.fake, "stacks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, stack := range stacks {
		r.left = append(r.left, stack.Name())
	}
	r.name = ownName.FindString(string(log))
	r.expectOwnThingsOnly(t)
	r.expectNoFiles(t)
	return r
}

// deaf makes a run one whose output nobody reads from "sam deploy" on, as under "| tee"
// when Ctrl-C has ended tee.
const deaf = "FAKE_WAIT=sam deploy"

// outputOf runs the script, and returns what it said to whoever listened.
func outputOf(t *testing.T, cmd *exec.Cmd, env []string, fifo string) ([]byte, error) {
	t.Helper()
	if !slices.Contains(env, deaf) {
		return cmd.CombinedOutput()
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stderr = &out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "+ sam deploy") {
	}
	if err := stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fifo, nil, 0o600); err != nil { // the stand-in goes on
		t.Fatal(err)
	}
	err = cmd.Wait()
	return out.Bytes(), err
}

// changes are the commands that change anything.
var changes = regexp.MustCompile(`^(aws [a-z0-9-]+ (create|delete|put|admin|rm|update)|sam deploy)`)

// expectOwnThingsOnly checks that whatever is changed is this run's.
func (r run) expectOwnThingsOnly(t *testing.T) {
	t.Helper()
	known := []string{r.name, "thePool", "theUserPool", "theAccountsTableName", "file://"}
	for _, asked := range r.asked {
		if changes.MatchString(asked) && !slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.Contains(asked, k) }) {
			t.Errorf("it is none of this run's things that this changes: %s", asked)
		}
	}
}

// expectNoFiles checks that neither password nor code stays on the disk.
func (r run) expectNoFiles(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(r.fake, "tmp"))
	if err != nil || len(files) > 0 {
		t.Errorf("files are left: %v, %v", files, err)
	}
}

func (r run) expect(t *testing.T, status int, says ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("exit status %d; want %d", r.status, status)
	}
	for _, want := range says {
		if !strings.Contains(r.out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(r.out)
	}
}

// expectDown checks that nothing is left, and that it was not because nothing was made.
func (r run) expectDown(t *testing.T) {
	t.Helper()
	if len(r.left) > 0 {
		t.Errorf("these stacks are left: %q\n%s", r.left, r.out)
	}
	if !r.did("create-stack") {
		t.Errorf("nothing was made\n%s", r.out)
	}
}

func (r run) did(part string) bool {
	return slices.ContainsFunc(r.asked, func(asked string) bool { return strings.Contains(asked, part) })
}

func TestDryRunPrintsTheCommandsAndRunsNone(t *testing.T) {
	want, err := os.ReadFile("testdata/dry-run.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := try(t, "", nil, "--dry-run")
	r.expect(t, 0)
	if len(r.asked) > 0 {
		t.Errorf("it ran %q", r.asked)
	}
	if !bytes.Equal([]byte(r.out), want) {
		t.Errorf("it printed\n%s\nIf that is right: AWS_REGION=eu-west-1 scripts/aws-try --dry-run >scripts/testdata/dry-run.txt", r.out)
	}
}

// gist is what a command does, to what of this run's.
func gist(command string) string {
	words := strings.Fields(strings.TrimPrefix(command, "+ "))
	gist := strings.Join(words[:min(3, len(words))], " ")
	if strings.Contains(command, "-setup") {
		gist += " setup"
	}
	return gist
}

func TestDryRunPrintsWhatARunDoes(t *testing.T) {
	dry, wet := try(t, "", nil, "--dry-run"), try(t, "", nil, "--yes")
	var printed, shown, done []string
	for line := range strings.Lines(dry.out) {
		if strings.HasPrefix(line, "+ ") {
			printed = append(printed, gist(line))
		}
	}
	for line := range strings.Lines(wet.out) {
		if strings.HasPrefix(line, "+ ") {
			shown = append(shown, gist(line))
		}
	}
	for _, asked := range wet.asked {
		done = append(done, gist(asked))
	}
	if !slices.Equal(printed, done) || !slices.Equal(shown, done) {
		t.Errorf("a dry run prints\n%s\na run prints\n%s\nand does\n%s", strings.Join(printed, "\n"), strings.Join(shown, "\n"), strings.Join(done, "\n"))
	}
}

func TestRunDeploysSendsAndTakesDown(t *testing.T) {
	r := try(t, "yes\n", nil)
	r.expect(t, 0, "in account 123456789012, Region eu-west-1", "the account has 95850, as the answers say", "An estimate of the cost, not a bill")
	r.expectDown(t)
	for _, want := range []string{
		"go run ./localstack/cmd/twice -url theApiUrl",
		"--s3-bucket theBucket",
		"JwtIssuer=https://cognito-idp.eu-west-1.amazonaws.com/theUserPool JwtAudience=theClientId",
		"delete-table --table-name " + r.name + "-Accounts-1",
		"delete-queue --queue-url https://sqs.example.com/1/" + r.name + "-Dead-1.fifo",
		"s3 rm s3://" + r.name + "-setup-thing --recursive",
		`"EUR https://cognito-idp.eu-west-1.amazonaws.com/theUserPool the-sub"`,
	} {
		if !r.did(want) {
			t.Errorf("it did not do %q:\n%s", want, strings.Join(r.asked, "\n"))
		}
	}
	if again := try(t, "yes\n", nil); again.name == r.name {
		t.Errorf("two runs have one name, %q", r.name)
	}
}

func TestSecretsAreInNoCommandAndNoOutput(t *testing.T) {
	r := try(t, "", nil, "--yes")
	secrets, err := os.ReadFile(filepath.Join(r.fake, "secrets"))
	if err != nil {
		t.Fatal(err)
	}
	password := regexp.MustCompile(`Aa1\.[0-9a-f]{16}`).FindString(string(secrets))
	token, err := os.ReadFile(filepath.Join(r.fake, "token"))
	if password == "" || string(token) != "the-secret-token" {
		t.Fatalf("the password is %q and the token %q, %v", password, token, err)
	}
	for _, secret := range []string{password, "the-secret-token"} {
		if strings.Contains(r.out, secret) || r.did(secret) {
			t.Errorf("%s is seen", secret)
		}
	}
}

func TestClearingHouseThatIsThereIsUsed(t *testing.T) {
	r := try(t, "", []string{"AWS_TRY_CLEARING_URL=https://clearing.example.com"}, "--yes")
	r.expect(t, 0)
	for _, want := range []string{"ClearingUrl=https://clearing.example.com", "-transfer-to recipient", `/theUserPool recipient"`} {
		if !r.did(want) {
			t.Errorf("it did not do %q:\n%s", want, strings.Join(r.asked, "\n"))
		}
	}
}

func TestNothingIsMadeUnlessToldTo(t *testing.T) {
	for name, tt := range map[string]struct {
		input  string
		env    []string
		args   []string
		status int
		says   string
	}{
		"no":                {"no\n", nil, nil, 1, "nothing was made"},
		"y":                 {"y\n", nil, nil, 1, "nothing was made"},
		"no answer":         {"", nil, nil, 1, "nothing was made"},
		"the name is taken": {"yes\n", []string{"FAKE_EXISTS=1"}, nil, 1, "which is not this run's"},
		"nobody can tell":   {"yes\n", []string{"FAKE_DENIED=1"}, nil, 1, "can't tell whether there is a stack"},
		"no account":        {"yes\n", []string{"FAKE_FAIL=sts"}, nil, 1, "made to fail"},
		"no Region":         {"yes\n", []string{"AWS_REGION="}, nil, 1, "no Region"},
		"plain http":        {"yes\n", []string{"AWS_TRY_CLEARING_URL=http://clearing.example.com"}, nil, 1, "must be an https URL"},
		"help":              {"yes\n", nil, []string{"--help"}, 0, "usage: aws-try"},
		"misspelt":          {"yes\n", nil, []string{"--dryrun"}, 2, "no such argument: --dryrun"},
		"no number":         {"yes\n", nil, []string{"--metrics-wait", "soon"}, 2, "must be seconds"},
		"no value":          {"yes\n", nil, []string{"--metrics-wait"}, 2, "must be seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, tt.input, tt.env, tt.args...)
			r.expect(t, tt.status, tt.says)
			if slices.ContainsFunc(r.asked, changes.MatchString) {
				t.Errorf("it did %q", r.asked)
			}
		})
	}
}

func TestWhateverFailsAllIsTakenDown(t *testing.T) {
	for _, step := range []string{
		"wait stack-create-complete", "OutputKey=='Bucket'", "sam build", "sam deploy", "admin-create-user",
		"admin-set-user-password", "initiate-auth", "put-item", "OutputKey=='ApiUrl'", "get-item",
	} {
		t.Run(step, func(t *testing.T) {
			r := try(t, "", []string{"FAKE_FAIL=" + step}, "--yes")
			r.expect(t, 1, "made to fail")
			r.expectDown(t)
			if r.did("get-metric-statistics") {
				t.Errorf("it went on:\n%s", r.out)
			}
		})
	}
}

func TestOutputThatIsMissingEndsIt(t *testing.T) {
	for _, output := range []string{"Bucket", "UserPool", "ClientId", "AccountsTableName", "ApiUrl"} {
		r := try(t, "", []string{"FAKE_NONE=" + output}, "--yes")
		r.expect(t, 1, "has no output "+output)
		r.expectDown(t)
	}
}

func TestCtrlCTakesDownToo(t *testing.T) {
	for _, at := range []string{"create-stack", "sam deploy", "go run", "put-item"} {
		t.Run(at, func(t *testing.T) {
			r := try(t, "", []string{"FAKE_INT=" + at}, "--yes")
			r.expect(t, 130)
			r.expectDown(t)
		})
	}
	for signal, status := range map[string]int{"TERM": 143, "HUP": 129} {
		t.Run("and SIG"+signal, func(t *testing.T) {
			r := try(t, "", []string{"FAKE_INT=sam deploy", "FAKE_SIGNAL=" + signal}, "--yes")
			r.expect(t, status)
			r.expectDown(t)
		})
	}
	t.Run("a second one changes nothing", func(t *testing.T) {
		r := try(t, "", []string{"FAKE_INT=delete-stack"}, "--yes")
		r.expect(t, 0)
		r.expectDown(t)
	})
}

func TestOutputThatNobodyReadsKeepsNothingUp(t *testing.T) {
	r := try(t, "", []string{deaf}, "--yes")
	if r.status == 0 {
		t.Error("exit status 0, though nobody could be told")
	}
	r.expectDown(t)
}

func TestDifferencesAreAFailure(t *testing.T) {
	for name, tt := range map[string]struct{ env, says string }{
		"the answers":    {"FAKE_TWICE=1", "requests=36"},
		"the account":    {"FAKE_BALANCE=94600", "WRONG: the account has 94600; the answers say 95850"},
		"nothing at all": {"FAKE_REPORT=", "WRONG: the comparison did not come to its end"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, "", []string{tt.env}, "--yes")
			r.expect(t, 1, tt.says)
			r.expectDown(t)
		})
	}
}

func TestWhatIsLeftBehindIsSaid(t *testing.T) {
	for name, tt := range map[string]struct{ env, says string }{
		"a stack that can't be deleted":   {"FAKE_FAIL=delete-stack", "stack lambdaidem-try-"},
		"a stack that does not go":        {"FAKE_FAIL=wait stack-delete-complete", "stack lambdaidem-try-"},
		"a table":                         {"FAKE_FAIL=delete-table", "-Accounts-1"},
		"a queue":                         {"FAKE_FAIL=delete-queue", "-Dead-1.fifo"},
		"what a stack kept":               {"FAKE_FAIL=DELETE_SKIPPED", "what stack lambdaidem-try-"},
		"whether there is a stack":        {"FAKE_FAIL=StackId", "if it is there: made to fail"},
		"a table of another name":         {`FAKE_KEPT=AWS::DynamoDB::Table\tlambdaidem-prod-Accounts`, "AWS::DynamoDB::Table lambdaidem-prod-Accounts"},
		"a queue of another name":         {`FAKE_KEPT=AWS::SQS::Queue\thttps://sqs.example.com/1/prod`, "AWS::SQS::Queue https://sqs.example.com/1/prod"},
		"a thing of another kind":         {`FAKE_KEPT=AWS::S3::Bucket\tlambdaidem-try-x`, "AWS::S3::Bucket lambdaidem-try-x"},
		"a table whose name begins alike": {`FAKE_KEPT=AWS::DynamoDB::Table\tlambdaidem-try-`, "AWS::DynamoDB::Table lambdaidem-try-"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, "", []string{tt.env}, "--yes")
			r.expect(t, 1, "LEFT BEHIND, delete it by hand:", tt.says)
			if r.did("wait stack-delete-complete") == (tt.env == "FAKE_FAIL=delete-stack" || tt.env == "FAKE_FAIL=StackId") {
				t.Errorf("it waits for a deletion that was refused, or for none:\n%s", r.out)
			}
		})
	}
}

func TestEstimateIsOfWhatWasUsed(t *testing.T) {
	r := try(t, "", nil, "--yes")
	r.expect(t, 0,
		"requests to the HTTP API                           30.000   0.000030 USD",
		"GB-seconds (arm64, 256 MB, no init)                 0.007   0.000000 USD",
		"custom metrics, for an hour                        73.000   0.030000 USD",
		"metrics that alarms read, for an hour             146.000   0.020000 USD",
		"dashboard, for an hour                              1.000   0.004110 USD",
		"0.054168 USD\n",
		"CloudWatch knows of 30 of the 36 requests by now")
	if r := try(t, "", nil, "--yes", "--metrics-wait", "0"); r.did("cloudwatch") || strings.Contains(r.out, "estimate") {
		t.Errorf("there is an estimate without metrics:\n%s", r.out)
	}
}

// What costs money is taken down, however little can be said of it.
func TestEstimateThatCantBeMadeFailsNothing(t *testing.T) {
	r := try(t, "", []string{"FAKE_FAIL=aws cloudwatch"}, "--yes")
	r.expect(t, 0, "CloudWatch knows of 0 of the 36 requests by now")
	r.expectDown(t)
}
