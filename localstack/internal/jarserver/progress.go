package jarserver

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// say writes a line of progress. It ignores write errors, because progress is not essential.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...)
}

// output runs a command, calls tick every 10 seconds while it runs, and returns everything that it printed.
func output(cmd *exec.Cmd, tick func()) ([]byte, error) {
	// Children of a killed command may keep its output open. Don't wait for them.
	cmd.WaitDelay = time.Second
	done := make(chan struct{})
	var out []byte
	var err error
	go func() {
		defer close(done)
		out, err = cmd.CombinedOutput()
	}()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return out, err
		case <-ticker.C:
			tick()
		}
	}
}

// lastLines returns the end of a command's output, indented, for an error message.
func lastLines(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > 12 {
		lines = lines[len(lines)-12:]
	}
	return "\n       " + strings.Join(lines, "\n       ")
}
