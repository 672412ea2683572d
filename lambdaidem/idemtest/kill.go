package idemtest

import (
	"context"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/process"
)

// Crash simulates a process that dies. It runs f in a new goroutine, with a context like that of
// [Invocation], and returns when f has ended. Inside f, [Store.Kill] and the faults [KillBefore]
// and [KillAfter] kill the simulated process. If f ends without any of them, Crash fails t.
//
//	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, event) })
//
// After the death:
//
//   - No call of the process reaches a [Store], neither a completion nor a release.
//   - The goroutine that was killed ends with runtime.Goexit, which runs deferred functions.
//   - Any other goroutine, such as one that runs a handler, continues until its next call of the
//     store.
//   - A batch starts no further message and calls no hook of BatchOptions.
//   - The observer may still receive an event.
//   - The memory of a guard, such as its cache, survives.
func Crash(t testing.TB, timeout time.Duration, f func(ctx context.Context)) {
	t.Helper()
	ctx, died := process.With(Invocation(t, timeout))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	<-ended
	if !died.Dead() {
		t.Error("nothing was killed: the function that should have crashed returned, or ended by itself")
	}
}

// Kill kills the simulated process of a handler, for example between two of the handler's effects.
// It does not return. ctx must be the context that [Crash] passes to its function, or a context
// derived from it. Otherwise Kill panics.
func (s *Store) Kill(ctx context.Context) { kill(ctx) }

func kill(ctx context.Context) {
	p := process.Of(ctx)
	if p == nil {
		panic("idemtest: nothing to kill: call the guarded handler inside of Crash, with the context that Crash passes on")
	}
	p.Kill()
	process.EndIfDead(ctx)
}
