//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// awaitFile waits until a file is there.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s after 10 s", path)
		}
	}
}

// interrupted starts up with an invocation that runs until the gate is there, and
// interrupts it. It returns when up has said what it waits for.
func interrupted(t *testing.T) (cmd *exec.Cmd, ended <-chan error, gate, temporary string) {
	t.Helper()
	port, temporary := freePort(t), t.TempDir()
	gate = filepath.Join(t.TempDir(), "gate")
	cmd = exec.Command(os.Args[0], "-template", probeTemplate(t, "", ""))
	cmd.Env = append(os.Environ(), mainVariable+"=1", fmt.Sprintf("PORT=%d", port), "TMPDIR="+temporary,
		ddblocal.EndpointVariable+"="+ddblocal.ForTest(t).Endpoint())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, _ := start(t, cmd, false)
	lines := bufio.NewScanner(output)
	readGuide(t, lines)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		fmt.Sprintf("http://127.0.0.1:%d/2015-03-31/functions/Probe/invocations", port),
		strings.NewReader(fmt.Sprintf(`{"do":"until","file":%q}`, gate)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Invocation-Type", "Event")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("an invocation: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	awaitFile(t, gate+".begun")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	says := make(chan bool, 1)
	exit := make(chan error, 1)
	go func() {
		said := false
		for lines.Scan() {
			if !said && strings.Contains(lines.Text(), "waiting for invocations under way, up to 100 s; Ctrl-C again ends them at once") {
				said = true
				says <- true
			}
		}
		if !said {
			says <- false
		}
		exit <- cmd.Wait()
	}()
	select {
	case said := <-says:
		if !said {
			t.Fatal("it ended without a word of what it waits for")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it says not what it waits for")
	}
	return cmd, exit, gate, temporary
}

func TestSecondCtrlCEndsUpAtOnce(t *testing.T) {
	cmd, ended, _, temporary := interrupted(t)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline, over := time.After(10*time.Second), false; !over; {
		select {
		case err := <-ended:
			if over = true; err == nil {
				t.Error("it ended with status 0, as if all were done")
			}
		case <-again.C:
			_ = cmd.Process.Signal(syscall.SIGINT) // an error is that it has ended
		case <-deadline:
			t.Fatal("it goes on, whatever is asked of it")
		}
	}
	if got := cmd.ProcessState.String(); got != "signal: interrupt" {
		t.Errorf("it ended by %q, want that of the signal", got)
	}
	for deadline := time.Now().Add(10 * time.Second); len(running(t, temporary)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("left running:\n%s", strings.Join(running(t, temporary), "\n"))
		}
	}
}

// go tool passes on what its whole group gets: that is one Ctrl-C, and the
// invocation under way finishes.
func TestCtrlCThatComesTwiceIsOne(t *testing.T) {
	cmd, ended, gate, _ := interrupted(t)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended by %v, want status 0", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on, though nothing is under way")
	}
	awaitFile(t, gate+".done")
}
