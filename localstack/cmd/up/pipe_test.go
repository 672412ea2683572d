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

// An output that nobody reads any more is a reason to stop, as for `up | head`.
func TestOutput_StopsUpWhenNobodyReads(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close() //nolint:errcheck // nobody reads it
	stopped := 0
	out := output{writer, func() { stopped++ }}
	if _, err := out.Write([]byte("a")); err != nil || stopped != 0 {
		t.Errorf("a write that is read: %v, stopped %d times", err, stopped)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write([]byte("b")); err == nil || stopped != 1 {
		t.Errorf("a write that nobody reads: %v, stopped %d times", err, stopped)
	}
}
