//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// A write to a connection that a browser or a client has closed raises SIGPIPE. It is no reason
// to stop.
func TestUp_OutlivesClosedConnections(t *testing.T) {
	port, temporary := freePort(t), t.TempDir()
	cmd := exec.Command(os.Args[0], "-template", probeTemplate(t, "", ""))
	cmd.Env = append(os.Environ(), mainVariable+"=1", fmt.Sprintf("PORT=%d", port), "TMPDIR="+temporary,
		ddblocal.EndpointVariable+"="+ddblocal.ForTest(t).Endpoint())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, _ := start(t, cmd, false)
	lines := bufio.NewScanner(output)
	readGuide(t, lines)
	if err := cmd.Process.Signal(syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // it would stop within some of them
		status, text := call(t, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/2015-03-31/functions/None/invocations", port), "")
		if status != http.StatusNotFound {
			t.Fatalf("request %d after SIGPIPE: %d %s", i, status, text)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends by %v", err)
	}
}
