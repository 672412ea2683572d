package operate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell runs commands like an operator's: with idem and aws in the path, the variables that the
// page exports, and no other settings of AWS.
type shell struct {
	t       *testing.T
	w       *world
	exports []string // the export commands that were typed so far
}

// tools creates a folder with the commands that the page names: idem, built by `go install`, and
// this test's binary under the name aws, see awsCommand.
func tools(t *testing.T, install string) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", install)
	cmd.Env = append(os.Environ(), "GOBIN="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", install, err, out)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(folder, awsCommand))
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// longestCommand is the time limit for a command of the page. Every command of the page must end.
const longestCommand = 20 * time.Second

// newShell returns a shell with the variables that the page's first section exports.
func (w *world) newShell(t *testing.T) *shell {
	t.Helper()
	return &shell{t: t, w: w, exports: w.exports}
}

// run runs a command to its end. It replaces the page's names, such as those of the table and the
// endpoint, by the real ones in the command, and does the reverse in the output.
func (s *shell) run(command string) (code int, out string) {
	s.t.Helper()
	if strings.HasPrefix(command, "export ") {
		s.exports = append(s.exports[:len(s.exports):len(s.exports)], command)
	}
	script := strings.Join(append(s.exports[:len(s.exports):len(s.exports)], command), "\n")
	if s.w.moments != nil {
		script = s.w.moments.Replace(script)
	}
	ctx, end := context.WithTimeout(s.t.Context(), longestCommand)
	defer end()
	cmd := exec.CommandContext(ctx, "sh", "-c", s.w.toReal.Replace(script))
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.w.folder, s.w.env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a process group, so that Cancel also kills the processes that the shell has started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	ended := (*exec.ExitError)(nil)
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		s.t.Fatalf("%s: %v", command, errors.Join(err, ctx.Err()))
	}
	return cmd.ProcessState.ExitCode(), s.w.toPage.Replace(all.String())
}

// must runs a command and returns its output. The test fails if the command fails.
func (s *shell) must(format string, args ...any) string {
	s.t.Helper()
	code, out := s.run(fmt.Sprintf(format, args...))
	if code != 0 {
		s.t.Fatalf("$ "+format+"\n%s%d", append(args, out, code)...)
	}
	return out
}

// clean returns an environment without settings of AWS or idem, so that those that the page exports
// must be enough.
func clean(path string) []string {
	env := []string{"PATH=" + path + string(os.PathListSeparator) + os.Getenv("PATH"),
		"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true"}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); name != "PATH" && !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "IDEM_") {
			env = append(env, pair)
		}
	}
	return env
}

// script matches a block of commands whose output is not on the page.
var script = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// setUp returns the install command and the exports of the page's first section.
func setUp(t *testing.T, beginning string) (install string, exports []string) {
	t.Helper()
	for _, block := range script.FindAllStringSubmatch(beginning, -1) {
		for typed := range strings.Lines(block[1]) {
			typed = strings.TrimSpace(typed)
			switch command, rest, _ := strings.Cut(typed, " "); {
			case command == "export":
				exports = append(exports, typed)
			case strings.HasPrefix(typed, "go install "):
				install, _, _ = strings.Cut(strings.TrimPrefix(rest, "install "), "@")
			default:
				t.Errorf("nobody has run this line of the page: %s", typed)
			}
		}
	}
	if install == "" || len(exports) == 0 {
		t.Fatal("the page's beginning installs or exports nothing")
	}
	return install, exports
}
