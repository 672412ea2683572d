//go:build !race

package simulator

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// outageMutations are mistakes with claims that an outage left behind.
var outageMutations = []mistake{
	{Mutation{Name: "claim not withdrawn by a later invocation", Store: func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		return wrapped{Store: s, release: func(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
			if p := a.process; p != nil && p.current().sent == 0 { // the first request of an invocation withdraws an earlier claim
				return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "release", NotApplied: true, Err: context.DeadlineExceeded}
			}
			return s.Release(ctx, l, now)
		}}
	}}, []Check{CheckWithdrawn}},
	{Mutation{Name: "every claim withdrawn by the next invocation", Store: func(s lambdaidem.Store, a *actor) lambdaidem.Store {
		var last lambdaidem.Lease
		return wrapped{Store: s, acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			if a.process != nil && last.Token != "" {
				_, _ = s.Release(ctx, last, c.Now)
			}
			last = lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: c.Expires}
			return s.Acquire(ctx, c)
		}}
	}}, []Check{CheckWithdrawn}},
}
