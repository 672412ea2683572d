package idemtest

import (
	"context"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/process"
)

// Crash runs f as a process that dies: in a goroutine of its own, under a context
// like that of [Invocation]. It returns when f has ended, and fails t if nothing
// killed the process. [Store.Kill], [KillBefore] and [KillAfter] kill it.
//
//	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, event) })
//
// Nothing of a dead process reaches a [Store]: no completion and no release. The
// goroutine that is killed ends by runtime.Goexit, which runs deferred functions.
// Others end when they next call the store, and a batch starts no further message
// and calls no hook of BatchOptions. A goroutine can't be stopped from outside, so
// a handler that runs beside the killed one goes on until then, and the observer
// may be told of the end. The memory of a guard, its cache for one, survives.
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

// Kill kills the process to which a handler's context belongs: between two of its
// effects, say. It does not return. It panics if ctx is not the context that [Crash]
// passes on, or one derived from it.
func (s *Store) Kill(ctx context.Context) { kill(ctx) }

func kill(ctx context.Context) {
	p := process.Of(ctx)
	if p == nil {
		panic("idemtest: nothing to kill: call the guarded handler inside of Crash, with the context that Crash passes on")
	}
	p.Kill()
	process.EndIfDead(ctx)
}
