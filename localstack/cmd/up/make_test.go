//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

// Ctrl-C is how `make up` is meant to end, so on a terminal it ends well. A make that gets the signal itself, as it does
// without one, dies of it whatever its command does; then it has to do so without a word, and leave nothing behind either.
func TestMakeUpEndsInOrder(t *testing.T) {
	shared := ddblocal.EndpointVariable + "=" + ddblocal.ForTest(t).Endpoint()
	for name, test := range map[string]struct {
		env       string
		terminal  bool
		interrupt func(terminal *os.File, maker *os.Process) error
		status    string
	}{
		"Ctrl-C on a terminal": {"", true, func(terminal *os.File, _ *os.Process) error {
			_, err := terminal.WriteString("\x03")
			return err
		}, "exit status 0"},
		"SIGINT to the group": {shared, false, func(_ *os.File, maker *os.Process) error {
			return syscall.Kill(-maker.Pid, syscall.SIGINT)
		}, "signal: interrupt"},
		"SIGTERM to make": {shared, false, func(_ *os.File, maker *os.Process) error {
			return maker.Signal(syscall.SIGTERM)
		}, "signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			port, temporary := freePort(t), t.TempDir()
			cmd := exec.Command("make", "-C", filepath.Join("..", "..", ".."), "up")
			cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
				return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") || strings.HasPrefix(v, ddblocal.EndpointVariable)
			})
			cmd.Env = append(cmd.Env, test.env, fmt.Sprintf("PORT=%d", port), "TMPDIR="+temporary)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			output, input := start(t, cmd, test.terminal)

			base := fmt.Sprintf("http://127.0.0.1:%d", port)
			lines := bufio.NewScanner(output)
			guide := readGuide(t, lines)
			pay(t, base, guide) // so that there is a function to leave behind
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
			if got := cmd.ProcessState.String(); got != test.status {
				t.Errorf("make ended by %q, want %q; it said:\n%s", got, test.status, &after)
			}
			if strings.Contains(after.String(), "make: ***") || !strings.Contains(after.String(), "stopping …") {
				t.Errorf("the last words are %q; want that it is stopping, and no error of make", &after)
			}
			if c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://")); err == nil {
				t.Errorf("%s still answers", base)
				_ = c.Close()
			}
			for deadline := time.Now().Add(10 * time.Second); ; { // the watchers of processes die last, by themselves
				left := running(t, temporary)
				if len(left) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left running:\n%s", strings.Join(left, "\n"))
				}
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// start starts a command with its output on a pipe or, as on a terminal of its own, on a new one. What is written to input is
// typed there.
func start(t *testing.T, cmd *exec.Cmd, onTerminal bool) (output io.Reader, input *os.File) {
	t.Helper()
	output, child, err := os.Pipe()
	if onTerminal {
		input, child = terminal(t)
		output = input
		cmd.Stdin, cmd.SysProcAttr.Setctty = child, true
	} else if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = child, child
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = child.Close()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return output, input
}

// terminal opens a new pseudo-terminal (pty(7)): the side of the one who types, and the other.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	var number, unlock int32
	for request, argument := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		//nolint:gosec // that is how an ioctl takes its argument
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, ours.Fd(), request, uintptr(unsafe.Pointer(argument))); errno != 0 {
			t.Fatal(errno)
		}
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// running lists the command lines of the processes that name a folder.
func running(t *testing.T, folder string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range all {
		// Most of the processes that end meanwhile are others'.
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), folder) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
