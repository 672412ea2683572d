// Package process lets idemtest simulate the death of a process in a test.
package process

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Process is a simulated process: everything that runs under its context.
type Process struct{ dead atomic.Bool }

type key struct{}

// With returns a context of a new process.
func With(ctx context.Context) (context.Context, *Process) {
	p := new(Process)
	return context.WithValue(ctx, key{}, p), p
}

// Of returns the process to which a context belongs, or nil.
func Of(ctx context.Context) *Process {
	p, _ := ctx.Value(key{}).(*Process)
	return p
}

// Kill kills the process. Its goroutines end when they next call [EndIfDead].
func (p *Process) Kill() { p.dead.Store(true) }

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead.Load() }

// EndIfDead ends the calling goroutine by runtime.Goexit if the context belongs to
// a dead process. Outside of such tests it does nothing.
func EndIfDead(ctx context.Context) {
	if p := Of(ctx); p != nil && p.Dead() {
		runtime.Goexit()
	}
}
