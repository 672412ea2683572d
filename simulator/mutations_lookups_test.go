//go:build !race

package simulator

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// lookupMutations are mistakes in looking up the record of a repeated request.
var lookupMutations = []mistake{
	{Mutation{Name: "look-up that finds expired records", Plan: func(p *plan) { p.lookUp = true }, Store: func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
			return s.Get(ctx, id, now.Add(-time.Hour))
		}}
	}}, []Check{CheckExpired}},
	{Mutation{Name: "look-up of another record", Plan: func(p *plan) { p.lookUp, p.keys = true, 1 }, Store: func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, get: func(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
			a.w.mu.Lock()
			for _, h := range a.w.journal.sorted() {
				if h.id != id {
					id = h.id
					break
				}
			}
			a.w.mu.Unlock()
			return s.Get(ctx, id, now)
		}}
	}}, []Check{CheckOwnAnswer}},
}
