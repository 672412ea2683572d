package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

func TestPortMustBeANumber(t *testing.T) {
	for _, port := range []string{"http", "0", "-1", "65536", "3000 "} {
		t.Setenv("PORT", port)
		if err := run(t.Context(), io.Discard, stack.Options{}, quiet()); err == nil || !strings.Contains(err.Error(), "PORT is") {
			t.Errorf("with PORT=%q, run = %v; want an error that names PORT", port, err)
		}
	}
}

func TestUpAnswersUntilItIsStopped(t *testing.T) {
	t.Setenv(ddblocal.EndpointVariable, ddblocal.ForTest(t).Endpoint())
	port := freePort(t)
	t.Setenv("PORT", fmt.Sprint(port))
	base := fmt.Sprintf("http://127.0.0.1:%d", port)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	var said, log bytes.Buffer // read when run has ended
	report := reporter{w: &said, log: &log}
	go func() {
		err := run(ctx, writer, stack.Options{}, &report)
		ended <- err
		_ = writer.CloseWithError(err)
	}()

	guide := readGuide(t, bufio.NewScanner(reader))
	if !strings.Contains(guide, "curl -i "+base+"/payments ") {
		t.Fatalf("the guide has no curl line for %s:\n%s", base, guide)
	}
	pay(t, base, guide)
	runAWSCommands(t, guide, base)
	runIdem(t, guide)

	stop()
	if err := <-ended; err != nil {
		t.Errorf("run = %v; want a clean end", err)
	}
	// The payment's mail may be on its way, or sent: the functions behind it count too then.
	if want := regexp.MustCompile(`in all: (.*; )?PaymentsFunction 1 new`); !want.MatchString(said.String()) {
		t.Errorf("at the end it says %q, want %q", &said, want)
	}
	if strings.Contains(log.String(), `"_aws"`) {
		t.Errorf("the metrics are in the log:\n%s", &log)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
		t.Errorf("%s still answers", base)
		_ = c.Close()
	}
}

// readGuide reads what up says until it is up.
func readGuide(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	var guide strings.Builder
	for lines.Scan() {
		guide.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C stops") {
			return guide.String()
		}
	}
	t.Fatalf("up did not start: %v\n%s", lines.Err(), &guide)
	return ""
}

// pay makes a payment as the guide shows it.
func pay(t *testing.T, base, guide string) {
	t.Helper()
	token := regexp.MustCompile(`TOKEN=(\S+)`).FindStringSubmatch(guide)
	if token == nil {
		t.Fatalf("the guide names no token:\n%s", guide)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/payments", strings.NewReader(`{"amount":1250,"currency":"EUR"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token[1])
	req.Header.Set("Idempotency-Key", "order-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusCreated {
		t.Errorf("a payment as the guide shows it: %d, %v; want 201", resp.StatusCode, err)
	}
}

// runAWSCommands runs what the guide shows for the AWS CLI as a user without any AWS configuration would, with a command in
// the CLI's place that tells whether it could have worked.
func runAWSCommands(t *testing.T, guide, base string) {
	t.Helper()
	bin, work := t.TempDir(), t.TempDir()
	const aws = `#!/bin/sh
: "${AWS_DEFAULT_REGION:?}" "${AWS_ACCESS_KEY_ID:?}" "${AWS_SECRET_ACCESS_KEY:?}"
echo "$@" >>calls
case "$*" in *fileb:///dev/stdin*) cat >event ;; esac
for last; do :; done
case "$*" in *invoke*) echo '{}' >"$last" ;; esac
`
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(aws), 0o700); err != nil {
		t.Fatal(err)
	}
	for command := range strings.SplitSeq(guide, "\n\n") {
		if !strings.HasPrefix(command, "  ") || !regexp.MustCompile(`\baws `).MatchString(command) {
			continue
		}
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir = work
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s%v\n%s", command, err, out)
		}
	}
	calls, err := os.ReadFile(filepath.Join(work, "calls"))
	if err != nil {
		t.Errorf("the guide shows no aws command: %v", err)
	}
	for _, want := range []string{"lambda invoke --endpoint-url " + base + " --function-name PaymentsFunction ", "dynamodb scan --endpoint-url http://"} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("the guide's commands call aws so:\n%swant %q among them", calls, want)
		}
	}
	if event, err := os.ReadFile(filepath.Join(work, "event")); err != nil || !json.Valid(event) {
		t.Errorf("the event is %q, error %v; want JSON", event, err)
	}
}

// runIdem runs what the guide shows for the operator's command, in this checkout.
func runIdem(t *testing.T, guide string) {
	t.Helper()
	ran := 0
	for command := range strings.SplitSeq(guide, "\n\n") {
		if !strings.HasPrefix(command, "  ") || !strings.Contains(command, "/cmd/idem\n") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Dir = filepath.Join("..", "..", "..")
		for _, variable := range os.Environ() {
			if !strings.HasPrefix(variable, "AWS_") && !strings.HasPrefix(variable, "IDEM_") {
				cmd.Env = append(cmd.Env, variable)
			}
		}
		cmd.Env = append(cmd.Env, binFolder(t)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s%v\n%s", command, err, out)
		}
		ran++
	}
	if ran == 0 {
		t.Error("the guide shows no command of the operator's")
	}
}

// binFolder is the environment in which `go install` puts commands into a folder of
// this test alone, and a shell finds them there.
func binFolder(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	return []string{"GOBIN=" + folder, "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port
}
