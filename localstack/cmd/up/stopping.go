package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// sameSignal is how long after the first signal another one is taken for the same:
// go tool passes on what its whole process group gets, so one Ctrl-C may come twice.
const sameSignal = time.Second

// endBySecond gives SIGINT and SIGTERM their effect back when ctx has ended by the
// first of them, so that the next one ends the process whatever it waits for. What
// it started dies with it: watchers see to that. SIGHUP stays as it
// is, as the end of a terminal is no second wish.
func endBySecond(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		time.AfterFunc(sameSignal, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	})
}

// initTimeout is what a process that starts may take beside its function's
// timeout: emulator.Options.InitTimeout, which the stack leaves as it is.
const initTimeout = 10 * time.Second

// farewell says that everything stops, and what that has to wait for.
func farewell(w io.Writer, s *stack.Stack) {
	_, _ = fmt.Fprintln(w, "\nstopping …")
	var longest time.Duration
	for _, f := range s.Template().Functions {
		for _, p := range s.Emulator().Processes(f.LogicalID) {
			switch {
			case p.State == emulator.Starting:
				longest = max(longest, f.Timeout+initTimeout)
			case len(p.RequestIDs) > 0:
				longest = max(longest, f.Timeout)
			}
		}
	}
	if longest > 0 {
		_, _ = fmt.Fprintf(w, "waiting for invocations under way, up to %.0f s; Ctrl-C again ends them at once\n", longest.Seconds())
	}
}
