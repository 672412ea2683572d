package simulator

import (
	"context"
	"runtime"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// handle is the user's handler: it takes some time, has its effect, and answers.
func (a *actor) handle(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	p := a.w.plan
	if a.w.isHealed() {
		p.slow, p.bad, p.disobedient, p.killHandler = 0, 0, 0, 0
	}
	none := events.APIGatewayV2HTTPResponse{}
	r := a.w.journal.beginRun(ctx, a)
	before, after := time.Duration(a.rng.Int64N(int64(30*time.Millisecond))), time.Duration(a.rng.Int64N(int64(30*time.Millisecond)))
	if a.rng.Float64() < p.slow {
		before += time.Duration(a.rng.Int64N(int64(p.timeout)))
	}
	ending := Created
	if a.rng.Float64() < p.bad {
		ending = badEndings[a.rng.IntN(len(badEndings))].ending
	}
	if a.ending != Running {
		ending = a.ending
	}
	if a.rng.Float64() < p.disobedient {
		ctx = context.WithoutCancel(ctx)
	}
	if a.rng.Float64() < p.killHandler {
		at := time.Duration(a.rng.Int64N(int64(before + after + time.Millisecond)))
		timer := time.AfterFunc(at, func() {
			a.w.journal.fault(HandlerKilled)
			a.w.kill(a, HandlerKilled)
		})
		defer timer.Stop()
	}
	if !a.sleep(ctx, before) {
		a.w.journal.endRun(a, Deadline)
		return none, ctx.Err()
	}
	if p.steps && !a.optimistic {
		if err := a.takeSteps(ctx, r); err != nil {
			return none, err
		}
	}
	if p.inner && !a.optimistic {
		a.charge(ctx, r)
	}
	how := ending.traits()
	outside := how.effect
	if p.effects.enlist {
		outside = outside && !a.optimistic && a.rng.Float64() < p.effects.outside
		a.enlist(ctx, r)
	}
	if outside {
		a.w.journal.effect(r)
	}
	if !a.sleep(ctx, after) && !outside {
		a.w.journal.endRun(a, Deadline)
		return none, ctx.Err()
	}
	a.w.journal.endRun(a, ending)
	return how.answer(r)
}

// sleep lets time pass in a handler, until d has passed or ctx ends. It reports whether ctx was
// still alive. A disobedient handler passes a context that never ends. sleep does not return if the
// process is killed.
func (a *actor) sleep(ctx context.Context, d time.Duration) bool {
	if a.w.tree != nil && !a.w.isHealed() {
		return a.work(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		a.exitIfKilled()
		return false
	case <-a.killed:
		runtime.Goexit()
		return false
	}
}

// working is the op of a request that no database serves. It stands for work of the handler.
const working = "work"

// work stands for the handler's work in a small case, where no time passes. The tree decides when
// the work is done, as for a request. It reports whether ctx was still alive.
func (a *actor) work(ctx context.Context) bool {
	r := a.submit(working, nil, time.Now())
	select {
	case <-r.reply:
		a.exitIfKilled()
		return ctx.Err() == nil
	case <-ctx.Done():
		if a.stalledAt(r) { // a stalled process doesn't notice the end of ctx until it continues
			select {
			case <-r.reply:
			case <-a.killed:
			}
		} else {
			a.w.withdraw(r)
		}
		a.exitIfKilled()
		return false
	case <-a.killed:
		runtime.Goexit()
		return false
	}
}
