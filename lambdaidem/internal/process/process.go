// Package process lets package idemtest simulate the death of a process in a test. A simulated
// process is attached to a context. After it is killed, each goroutine that uses the context
// ends when it next calls [EndIfDead].
package process

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Process is a simulated process. All calls with the context that [With] returns, or with a context
// derived from it, belong to the process.
type Process struct{ dead atomic.Bool }

type key struct{}

// With returns a copy of ctx, and the new simulated process that is attached to the copy.
func With(ctx context.Context) (context.Context, *Process) {
	p := new(Process)
	return context.WithValue(ctx, key{}, p), p
}

// Of returns the simulated process that [With] attached to ctx, or nil if there is none, as in
// production.
func Of(ctx context.Context) *Process {
	p, _ := ctx.Value(key{}).(*Process)
	return p
}

// Kill kills the process. Each of its goroutines ends when it next calls [EndIfDead].
func (p *Process) Kill() { p.dead.Store(true) }

// Dead reports whether the process was killed.
func (p *Process) Dead() bool { return p.dead.Load() }

// EndIfDead calls runtime.Goexit, which ends the calling goroutine, if ctx belongs to a simulated
// process that a test has killed. Otherwise it does nothing. Only tests simulate processes.
func EndIfDead(ctx context.Context) {
	if p := Of(ctx); p != nil && p.Dead() {
		runtime.Goexit()
	}
}
