//go:build unix

package scripts_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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

// gist returns the first three words of a command, and the word "setup" if the command concerns the
// setup stack.
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

// If the cost can't be estimated, everything is still taken down and the run succeeds.
func TestEstimateThatCantBeMadeFailsNothing(t *testing.T) {
	r := try(t, "", []string{"FAKE_FAIL=aws cloudwatch"}, "--yes")
	r.expect(t, 0, "CloudWatch knows of 0 of the 36 requests by now")
	r.expectDown(t)
}
