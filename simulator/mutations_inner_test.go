//go:build !race

package simulator

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// innerMutations are mistakes with inner calls.
var innerMutations = []mistake{
	{Mutation{Name: "inner call that the guard does not recognize", Inner: func(ctx context.Context, _ *lambdaidem.Call, _ *run) context.Context {
		return requestContext(ctx)
	}}, []Check{CheckStoredEndings}},
	{Mutation{Name: "inner call with a key for each attempt", Inner: func(ctx context.Context, c *lambdaidem.Call, r *run) context.Context {
		c.Key = fmt.Sprint(c.Key, r.actor.id)
		return ctx
	}}, []Check{CheckChargeOnce}},
	{Mutation{Name: "released record that forgets what binds it", Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, release: func(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
			l.Bound = ""
			return s.Release(ctx, l, now)
		}}
	}}, []Check{CheckOneCharge}},
	{Mutation{Name: "inner call that binds like a downstream key", Plan: func(p *plan) {
		p.inner, p.steps = p.effects.optimistic < 1, false
		p.bad, p.otherPayload = 0.5, 0.5
		p.deployments = deployments{versions: ignoresPointer, every: 2 * p.timeout}
	}, Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, release: func(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
			if l.Bound == lambdaidem.BoundByInnerCall {
				l.Bound = lambdaidem.BoundByDownstreamKey
			}
			return s.Release(ctx, l, now)
		}}
	}}, []Check{CheckOneCharge}},
}
