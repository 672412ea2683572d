//go:build linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// A write to a connection that another program has closed raises SIGPIPE. It is no reason to stop,
// unlike an output that nobody reads any more.
func TestDemo_OutlivesClosedConnections(t *testing.T) {
	var stderr strings.Builder
	cmd := exec.Command(os.Args[0], "-soak", "1")
	cmd.Env = append(os.Environ(), mainVariable+"=1", ddblocal.EndpointVariable+"="+ddblocal.ForTest(t).Endpoint())
	cmd.Stderr = &stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for first := true; lines.Scan(); first = false {
		if !first {
			continue
		}
		if err := cmd.Process.Signal(syscall.SIGPIPE); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends by %v: %s", err, &stderr)
	}
}
