package simulator

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// RunRegions runs the world of one seed with a global table. The plan is the one that [Run] draws,
// without what this simulation or a table with that consistency doesn't have: operators, lost
// parts, inner calls and, with strong consistency, transactions. change may change the plan; it may
// be nil. mut may be nil as well. RunRegions must be called in a synctest bubble.
func RunRegions(seed uint64, mode memdynamo.Consistency, change func(seed uint64, p *plan), mut *Mutation, timeline bool) Report {
	p := drawPlan(seed, rand.New(rand.NewPCG(seed, 0x1de3907e47)))
	p.operators = operators{} // they would need a Region, like everyone else
	p.large.loses = false
	p.inner = false               // the table of charges is not a global table
	if mode == memdynamo.Strong { // such a table has no transactions
		p.effects = effects{}
	}
	lag := rand.New(rand.NewPCG(seed, 0x4e910))
	p.regions = regions{mode: mode, lag: []int{200, 1000, 1000, 3000}[lag.IntN(4)]}
	if change != nil {
		change(seed, &p)
	}
	if mut != nil && mut.Regions != nil {
		mut.Regions(&p.regions)
	}
	return newWorld(seed, &p, mut).simulate(timeline)
}

// anywhere lets each request go to a random Region.
func anywhere(_ uint64, p *plan) { p.regions.anywhere = true }

// failing returns a change of the plan that lets the first Region fail. It also removes the fault
// Stall, because Lambda ends a process at its timeout, so none continues after its lease.
func failing(wait waits) func(uint64, *plan) {
	return func(seed uint64, p *plan) {
		stalls := func(f Fault) bool { return f == Stall }
		p.keys, p.faults, p.effects.lateBy = 4, slices.DeleteFunc(p.faults, stalls), 20*time.Second
		p.regions.failover = newFailover(seed, p, wait)
	}
}

// TwoRegions sends a request with the same key to one Region and, up to gap later, to another. No
// other fault happens. When every write has arrived, it sends one more request to each of the two
// Regions. It must be called in a synctest bubble.
func TwoRegions(seed uint64, mode memdynamo.Consistency, gap time.Duration, timeline bool) Report {
	p := plan{keys: 1, timeout: 3 * time.Second, ttl: 24 * time.Hour, maxSkew: 2 * time.Second, regions: regions{mode: mode, lag: 1000}}
	if mode == memdynamo.Eventual {
		p.effects = effects{enlist: true, outside: 1, verdicts: []Ending{RefusedSilent}}
	}
	w := newWorld(seed, &p, nil)
	var number uint64
	send := func(gap time.Duration) {
		var all sync.WaitGroup
		for region := range 2 {
			number++
			id := number
			all.Go(func() {
				time.Sleep(time.Duration(region) * gap)
				a := w.newActor(id, order{Key: "k", Owner: "alice", Payload: "p"})
				a.region = region
				w.invocation(a, &all)
			})
		}
		w.runUntil(&all)
	}
	send(time.Duration(w.rng.Int64N(int64(gap))))
	w.heal()
	send(0)
	return w.report(timeline)
}
