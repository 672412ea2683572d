//go:build unix

// Package scripts_test tests the scripts in this folder. It runs aws-try with stand-ins for aws, sam
// and go, which record what aws-try would do to an account.
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

// run is one run of the script, with the commands that it ran.
type run struct {
	status int
	out    string   // the standard output and standard error of the script
	asked  []string // command lines of the stand-ins
	left   []string // names of the stacks that still exist
	name   string   // name of the run's own stack
	fake   string   // folder of the stand-ins
}

var ownName = regexp.MustCompile(`lambdaidem-try-[0-9a-f]{8}`)

// try runs the script with arguments, an input, and environment variables for the stand-ins.
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

// deaf is an environment variable for try. With it, the script's output is closed when "sam deploy"
// begins, as with "| tee" after Ctrl-C has ended tee.
const deaf = "FAKE_WAIT=sam deploy"

// outputOf runs the script and returns its output, as far as somebody read it.
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
	if err := os.WriteFile(fifo, nil, 0o600); err != nil { // let the stand-in continue
		t.Fatal(err)
	}
	err = cmd.Wait()
	return out.Bytes(), err
}

// changes matches the commands that change something.
var changes = regexp.MustCompile(`^(aws [a-z0-9-]+ (create|delete|put|admin|rm|update)|sam deploy)`)

// expectOwnThingsOnly checks that every command that changes something concerns this run's own
// resources.
func (r run) expectOwnThingsOnly(t *testing.T) {
	t.Helper()
	known := []string{r.name, "thePool", "theUserPool", "theAccountsTableName", "file://"}
	for _, asked := range r.asked {
		if changes.MatchString(asked) && !slices.ContainsFunc(known, func(k string) bool { return k != "" && strings.Contains(asked, k) }) {
			t.Errorf("it is none of this run's things that this changes: %s", asked)
		}
	}
}

// expectNoFiles checks that the run leaves no temporary files, which could contain the password or
// a token.
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

// expectDown checks that stacks were created and that none of them is left.
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
