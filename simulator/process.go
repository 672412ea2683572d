package simulator

import (
	"context"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// process serves invocations with one guard, one after another, as a process on Lambda does.
// Its clock, its policy, its version and its Region are those of the first invocation. Only plans
// with an outage have such processes. In all other plans each invocation has its own process.
type process struct {
	first  *actor
	guard  *lambdaidem.Guard
	inner  *lambdaidem.Guard // of the handler's inner calls
	served int               // invocations that began

	serving *actor // the invocation in progress, or nil if the process is idle; under w.mu
}

// current returns the invocation that the process serves.
func (p *process) current() *actor {
	p.first.w.mu.Lock()
	defer p.first.w.mu.Unlock()
	return p.serving
}

// Read implements io.Reader. It is the guard's source of random tokens and jitter.
func (p *process) Read(b []byte) (int, error) { return p.current().Read(b) }

// Observe implements lambdaidem.Observer. It records the guard's events in the journal.
func (p *process) Observe(ctx context.Context, e lambdaidem.Event) { p.current().Observe(ctx, e) }

// assignProcess has an idle process serve the actor's invocation, or starts a process for it. It
// does nothing in a plan without an outage, where each invocation has its own process.
func (w *world) assignProcess(a *actor) {
	if !w.plan.outage.planned() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p.lives() && p.first.region == a.region {
			a.joinLocked(p)
			return
		}
	}
	p := &process{first: a}
	w.processes = append(w.processes, p)
	a.joinLocked(p)
}

// joinLocked makes the actor the process's next invocation.
func (a *actor) joinLocked(p *process) {
	a.process, p.serving = p, a
	p.served++
	a.skew, a.policy, a.optimistic = p.first.skew, p.first.policy, p.first.optimistic && a.order.Unguarded == ""
}

// leave ends the actor's invocation. The process is then idle, unless it has died.
func (a *actor) leave() {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if a.process != nil && !a.dead {
		a.process.serving = nil
	}
}

// lives reports whether the process can serve another invocation now. The last invocation of a
// process that died never ends, so lives stays false for that process.
func (p *process) lives() bool { return p.serving == nil && !p.replaced() }

// starter returns the actor that started the actor's process. Its number decides what differs
// between processes, such as the transport.
func (a *actor) starter() *actor {
	if a.process != nil {
		return a.process.first
	}
	return a
}
