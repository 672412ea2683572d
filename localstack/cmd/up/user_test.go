//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// The path of this command, as users name it.
const command = "github.com/lambdaidem/toolkit/localstack/cmd/up"

// usersModule makes a module of a user's own: the project of stack's testdata,
// with this checkout in place of a released version.
func usersModule(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	checkout, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "stack", "testdata", "shop"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, requirements, ours := strings.Cut(string(text), "module github.com/lambdaidem/toolkit\n"); ours {
			text = fmt.Appendf(nil, "module example.com/shop\n%s\nrequire github.com/lambdaidem/toolkit v0.0.0\n\n"+
				"replace github.com/lambdaidem/toolkit => %s\n", requirements, checkout)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// inModule returns a command that runs in a user's module. It fetches no modules unless env sets
// GOPROXY.
func inModule(folder string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, ddblocal.EndpointVariable) || strings.HasPrefix(v, "MAKE")
	}), "GOPROXY=off", "GOFLAGS=-mod=mod")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// order sends an order by the route that the guide names.
func order(t *testing.T, url string) (body string, replayed bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"pizzas":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "order-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("an order: %d %s, %v; want 201", resp.StatusCode, text, err)
	}
	return string(text), resp.Header.Get("X-Idempotency-Replayed") == "true"
}

// A new module takes the command from a checkout, by the lines of localstack/README.md.
func TestUsersModule_TakesTheCommandFromACheckout(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "```sh\ngo mod edit -require=")
	script, _, closed := strings.Cut(script, "```")
	if !found || !closed {
		t.Fatal("localstack/README.md has no such lines")
	}
	checkout, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	script = "set -e\ngo mod init example.com/new\ngo mod edit -require=" + strings.Replace(script, "=../toolkit", "="+checkout, 1) + "go tool idem --version\ngo tool up -h\n"
	// Tidying may fetch what the checkout itself has not needed yet.
	cmd := inModule(t.TempDir(), []string{"GOFLAGS=", "GOPROXY=" + os.Getenv("GOPROXY")}, "/bin/sh", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "usage: up") {
		t.Errorf("%v\n%s\n%s", err, script, out)
	}
}

// runGuidesIdem runs the lines of the guide that look for dead leases. They work where
// no release of the toolkit can be fetched.
func runGuidesIdem(t *testing.T, folder, guide string) {
	t.Helper()
	for paragraph := range strings.SplitSeq(guide, "\n\n") {
		if !strings.Contains(paragraph, "\n  idem leases ") {
			continue
		}
		cmd := inModule(folder, append(binFolder(t), "GOFLAGS="), "/bin/sh", "-c", "set -e\n"+paragraph)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, paragraph, out)
		}
		return
	}
	t.Errorf("the guide does not show how to look for dead leases:\n%s", guide)
}

func TestUsersTemplateRunsFromTheirOwnModule(t *testing.T) {
	shared := ddblocal.EndpointVariable + "=" + ddblocal.ForTest(t).Endpoint()
	folder := usersModule(t)
	// go get reads go.mod files that no build of the checkout needs. Put them into the module cache.
	if out, err := inModule(folder, []string{"GOPROXY=" + os.Getenv("GOPROXY")}, "go", "list", "-m", "all").CombinedOutput(); err != nil {
		t.Fatalf("go list -m all: %v\n%s", err, out)
	}
	if out, err := inModule(folder, nil, "go", "get", "-tool", command).CombinedOutput(); err != nil {
		t.Fatalf("go get -tool: %v\n%s", err, out)
	}
	for name, test := range map[string]struct {
		args      []string
		env       string
		terminal  bool
		interrupt func(terminal *os.File, started *os.Process) error
		status    string // empty: go says which
	}{
		"go run, Ctrl-C on a terminal": {[]string{"run", command}, "", true, func(terminal *os.File, _ *os.Process) error {
			_, err := terminal.WriteString("\x03")
			return err
		}, "exit status 0"},
		"go run, SIGINT to the group": {[]string{"run", command}, shared, false, func(_ *os.File, started *os.Process) error {
			return syscall.Kill(-started.Pid, syscall.SIGINT)
		}, ""},
		"go tool, SIGINT": {[]string{"tool", "up"}, shared, false, func(_ *os.File, started *os.Process) error {
			return started.Signal(syscall.SIGINT)
		}, "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			port, temporary := freePort(t), t.TempDir()
			cmd := inModule(folder, []string{test.env, fmt.Sprintf("PORT=%d", port), "TMPDIR=" + temporary},
				"go", append(test.args, "-template", "template.yaml", "-parameter", "Shop=corner")...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			output, input := start(t, cmd, test.terminal)
			lines := bufio.NewScanner(output)
			guide := strings.ReplaceAll(readGuide(t, lines), "\r", "")
			url := fmt.Sprintf("http://127.0.0.1:%d/orders", port)
			if !strings.Contains(guide, "  POST   "+url+"  (OrdersFunction)\n") || !strings.Contains(guide, "with the tables: Table is ") {
				t.Errorf("the guide should name the route %s and the table:\n%s", url, guide)
			}
			for _, want := range []string{"\n  idem leases --scan\n", "\n  export IDEM_TABLE=", "/table/throttled"} {
				if !strings.Contains(guide, want) {
					t.Errorf("the guide has no %q:\n%s", want, guide)
				}
			}
			runGuidesIdem(t, folder, guide)
			first, again := order(t, url)
			second, replayed := order(t, url)
			if again || !replayed || first != second || !strings.Contains(first, `"shop":"corner","currency":"EUR"`) {
				t.Errorf("an order twice: %s (replayed: %t), then %s (replayed: %t)", first, again, second, replayed)
			}
			if len(running(t, temporary)) == 0 {
				t.Error("no process of a function was found, so none that is left behind would be")
			}
			if err := test.interrupt(input, cmd.Process); err != nil {
				t.Fatal(err)
			}
			var after strings.Builder
			stuck := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			for lines.Scan() { // to the end of all who could write
				after.WriteString(lines.Text() + "\n")
			}
			if !stuck.Stop() {
				t.Error("somebody ran on for a minute")
			}
			_ = cmd.Wait() // what it returns says less than the state
			if got := cmd.ProcessState.String(); test.status != "" && got != test.status {
				t.Errorf("it ended by %q, want %q; it said:\n%s", got, test.status, &after)
			}
			if !strings.Contains(after.String(), "stopping …") {
				t.Errorf("the last words are %q; want that it is stopping", &after)
			}
			if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				t.Errorf("%d still answers", port)
				_ = c.Close()
			}
			for deadline := time.Now().Add(10 * time.Second); len(running(t, temporary)) > 0; {
				if time.Now().After(deadline) {
					t.Fatalf("left running:\n%s", strings.Join(running(t, temporary), "\n"))
				}
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestUsersMistakesAreNamed(t *testing.T) {
	shared := ddblocal.EndpointVariable + "=" + ddblocal.ForTest(t).Endpoint()
	folder := usersModule(t)
	if err := os.WriteFile(filepath.Join(folder, "python.yaml"), []byte(`Resources:
  Orders:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: orders, Handler: app.handler, Runtime: python3.12}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"no such template":    {[]string{"-template", "tempalte.yaml"}, []string{"tempalte.yaml", "no such file"}},
		"a missing parameter": {[]string{"-template", "template.yaml"}, []string{"template.yaml:39:17", "parameter Shop", "-parameter Shop=VALUE"}},
		"no such parameter": {
			[]string{"-template", "template.yaml", "-parameter", "Shop=corner", "-parameter", "Shpo=x"},
			[]string{"parameter Shpo, which the template does not have"},
		},
		"an unknown runtime":   {[]string{"-template", "python.yaml"}, []string{"building Orders", `its runtime is "python3.12"`, "provided.al2023"}},
		"no template, outside": {nil, []string{"is not inside a checkout", "-template"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := inModule(folder, []string{shared, mainVariable + "=1"}, os.Args[0], test.args...)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("%v, want exit status 1", err)
			}
			for _, want := range test.says {
				if !strings.Contains(string(out), want) {
					t.Errorf("it said %q; want %q in it", out, want)
				}
			}
		})
	}
}
