//go:build !race

package simulator

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// regionMistake is a mistake with a global table. The simulator must find it in a world with the
// given consistency and change of the plan: see RunRegions.
type regionMistake struct {
	mistake
	mode   memdynamo.Consistency
	change func(uint64, *plan)
}

// regionMistakes are mistakes of the Regions themselves, of their users, and of the guard and the
// store.
var regionMistakes = []regionMistake{
	{mistake{Mutation{Name: "requests of a key go to any Region", Regions: func(r *regions) { r.anywhere = true }}, []Check{CheckOneAtATime, CheckCompletedNeverChanges}}, memdynamo.Eventual, nil},
	{mistake{Mutation{Name: "requests go to a Region by client", Regions: func(r *regions) { r.byClient = true }}, []Check{CheckOneAtATime, CheckCompletedNeverChanges}}, memdynamo.Eventual, nil},
	{mistake{Mutation{Name: "failover while attempts run"}, []Check{CheckCompletedNeverChanges, CheckLinearizable, CheckOneEffect, CheckHeld}}, memdynamo.Eventual, lagging(waits{writes: true})},
	{mistake{Mutation{Name: "failover while requests are late"}, []Check{CheckCompletedNeverChanges, CheckLinearizable, CheckOneEffect, CheckHeld}}, memdynamo.Eventual, belated},
	{mistake{Mutation{Name: "failover while writes are on their way"}, []Check{CheckCompletedNeverChanges, CheckLinearizable, CheckOneEffect, CheckHeld}}, memdynamo.Eventual, cutOff},
	{mistake{Mutation{Name: "the last to arrive wins, not the last to write", Regions: func(r *regions) { r.unordered = true }}, []Check{CheckCompletedNeverChanges, CheckLinearizable, CheckOneEffect, CheckHeld}}, memdynamo.Eventual, failing(orderly)},
	{mistake{Mutation{Name: "a strong table's conditions are asked of a copy", Regions: func(r *regions) { r.locally = true }}, []Check{CheckOneAtATime, CheckCompletedNeverChanges}}, memdynamo.Strong, anywhere},
	{mistake{Mutation{Name: "a completion that another Region's write refused taken for stored", Store: storedAnyway}, []Check{CheckFirstAnswer, CheckEffectKept}}, memdynamo.Strong, conflicting},
	{mistake{Mutation{Name: "reads that see a strong table late", Request: func(_ string, body []byte) []byte {
		return bytes.Replace(body, []byte(`"ConsistentRead":true`), []byte(`"ConsistentRead":false`), 1)
	}}, []Check{CheckWhole}}, memdynamo.Strong, anywhere},
	{mistake{Mutation{Name: "another Region's write taken for an outage under fail open", Store: erring(func(e *lambdaidem.StoreError) {
		if e.Reason == lambdaidem.ReasonConflict {
			e.Reason = lambdaidem.ReasonUnknown
		}
	})}, []Check{CheckConflictIsBusy}}, memdynamo.Strong, conflicting},
	{mistake{Mutation{Name: "expired records replay where no TTL deletes them", Store: mistakeNamed("TTL not filtered on read").Store}, []Check{CheckExpired}}, memdynamo.Strong, anywhere},
}

// conflicting lets writes be refused often because of another Region's write.
func conflicting(seed uint64, p *plan) {
	anywhere(seed, p)
	p.faults, p.rate, p.failOpen = []Fault{Conflict}, 0.4, true
}

// storedAnyway treats a completion that was refused because of another write as a success.
func storedAnyway(s lambdaidem.Store, _ *actor) lambdaidem.Store {
	return wrapped{Store: s, complete: func(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
		rec, err := s.Complete(ctx, l, r)
		if e := (*lambdaidem.StoreError)(nil); errors.As(err, &e) && e.Reason == lambdaidem.ReasonConflict {
			return lambdaidem.Record{ID: l.ID, State: lambdaidem.Completed, Token: l.Token, Result: r}, nil
		}
		return rec, err
	}}
}

// belated has a failover that doesn't wait for late requests. Many requests are late, and attempts
// are short, so some of these requests arrive after the keys have moved.
func belated(seed uint64, p *plan) {
	p.timeout, p.skew, p.slow, p.regions.lag = 3*time.Second, 0, 0.2, 3000
	p.faults, p.rate, p.lateBy = []Fault{RequestLate}, 0.4, 20*time.Second
	failing(waits{attempts: true, writes: true})(seed, p)
}

// cutOff has a failover that waits only for attempts to end. Attempts are short, and the failed
// Region's writes don't leave it for 20 seconds.
func cutOff(seed uint64, p *plan) {
	p.timeout, p.slow, p.faults = 2*time.Second, 0, nil
	failing(waits{attempts: true})(seed, p)
	p.regions.failover.dies, p.regions.failover.back = true, p.regions.failover.at+20*time.Second
}

// mistakeNamed returns one of mutations.
func mistakeNamed(name string) Mutation {
	for _, m := range mutations {
		if m.Name == name {
			return m.Mutation
		}
	}
	panic("simulator: no mistake " + name)
}

// TestMutations_D3 checks that each of regionMistakes is found, by one of the checks that belong to
// it.
func TestMutations_D3(t *testing.T) {
	for _, m := range regionMistakes {
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			others := map[Check]bool{}
			for seed := range uint64(2000) {
				var r Report
				synctest.Test(t, func(*testing.T) { r = RunRegions(seed, m.mode, m.change, &m.Mutation, false) })
				for _, c := range r.checks() {
					others[c] = true
				}
				for _, c := range m.checks {
					if others[c] {
						t.Logf("caught by %q at seed %d, after %v", r.checks(), seed, time.Since(began).Round(time.Millisecond))
						return
					}
				}
			}
			t.Errorf("it survives; none of the checks %q found it (others did: %v)", m.checks, others)
		})
	}
}
