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

// shell is an operator's: with idem and aws in its path, and the environment that the
// page has set, and nothing else of AWS's.
type shell struct {
	t       *testing.T
	w       *world
	exports []string // that were typed so far
}

// tools makes a folder with the commands that the page names: idem as `go install`
// makes it, and this test as aws: see aws_test.go.
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

// longestCommand is more than any command of the page takes: one that does not end has
// no place on it.
const longestCommand = 20 * time.Second

// newShell opens a shell, in which what the page's beginning exports is set.
func (w *world) newShell(t *testing.T) *shell {
	t.Helper()
	return &shell{t: t, w: w, exports: w.exports}
}

// run runs a command to its end. On the page the table and the endpoint have names of
// their own: what is typed and what is printed is translated.
func (s *shell) run(command string) (code int, out string) {
	s.t.Helper()
	if strings.HasPrefix(command, "export ") {
		s.exports = append(s.exports[:len(s.exports):len(s.exports)], command)
	}
	script := strings.Join(append(s.exports[:len(s.exports):len(s.exports)], command), "\n")
	if moment := s.w.restoredTo; moment != "" {
		script = strings.ReplaceAll(script, pageMoment, moment)
	}
	ctx, end := context.WithTimeout(s.t.Context(), longestCommand)
	defer end()
	cmd := exec.CommandContext(ctx, "sh", "-c", s.w.toReal.Replace(script))
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.w.folder, s.w.env, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that it ends with the shell
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	ended := (*exec.ExitError)(nil)
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) || ctx.Err() != nil {
		s.t.Fatalf("%s: %v", command, errors.Join(err, ctx.Err()))
	}
	return cmd.ProcessState.ExitCode(), s.w.toPage.Replace(all.String())
}

// must runs a command that must end well.
func (s *shell) must(format string, args ...any) string {
	s.t.Helper()
	code, out := s.run(fmt.Sprintf(format, args...))
	if code != 0 {
		s.t.Fatalf("$ "+format+"\n%s%d", append(args, out, code)...)
	}
	return out
}

// clean is an environment without anything of AWS's or of idem's, so that what the page
// exports must be enough.
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

// script is a block of commands whose output is not on the page.
var script = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// setUp reads the page's beginning: what is installed, and what is exported.
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
