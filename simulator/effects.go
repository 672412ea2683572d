package simulator

import (
	"math/rand/v2"
	"time"
)

// effects has a plan's parameters for enlisted writes. The zero value means that handlers enlist
// nothing. The float64 fields are shares, from 0 to 1.
type effects struct {
	enlist     bool
	optimistic float64         // attempts that run optimistically
	unguarded  float64         // requests that run unguarded
	poor       map[string]bool // the keys whose requests are paid from the poor account
	cents      int             // the opening balance of the poor account
	deposits   bool            // money is paid into the poor account at random times
	whenFailed float64         // runs whose writes are committed with a failed answer too
	outside    float64         // runs that also have an effect outside of the transaction
	idle       float64         // runs that enlist nothing
	verdicts   []Ending        // the possible endings of runs whose condition fails
	lateBy     time.Duration   // the longest delay of a late transaction
	faults     []Fault         // the faults that only transactions meet
}

// newEffects decides what the handlers of a plan enlist. It draws from a random stream
// of its own, so that the rest of each plan does not depend on it.
func newEffects(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xe44ec75))
	chance := func(c float64) bool { return r.Float64() < c }
	e := effects{enlist: true, cents: 5 + 10*r.IntN(2), poor: map[string]bool{"k0": chance(0.5), "k1": chance(0.5), "": chance(0.3)}, lateBy: 20 * time.Second}
	switch kind := r.Float64(); {
	case kind < 1./3:
		if chance(0.2) { // so many errors that attempts fail open
			p.failOpen, p.rate = true, 0.4
			p.faults = append(p.faults, Throttled, FailBefore)
		}
	case kind < 1./2:
		e.optimistic = 1
		if chance(0.4) { // two versions of a function use one table
			e.optimistic = 0.5
		}
	default:
		if chance(0.1) { // faults after which only all tries of a request together tell whether it was applied
			p.faults, p.rate = []Fault{ReplyLost, FailAfter, Throttled}, 0.5
		}
		return
	}
	e.deposits = chance(0.5)
	if chance(0.25) {
		e.unguarded = 0.3
	}
	if chance(0.25) {
		e.whenFailed = 0.7
	}
	e.outside, e.idle = 0.3, 0.1
	for range 1 + r.IntN(2) {
		e.verdicts = append(e.verdicts, conditionEndings[r.IntN(len(conditionEndings))].ending)
	}
	if chance(0.15) {
		e.lateBy = 20 * time.Minute
	}
	for range r.IntN(3) {
		e.faults = append(e.faults, transactionFaults[r.IntN(len(transactionFaults))])
	}
	if e.optimistic == 1 {
		p.policyHold, p.mixed, p.failOpen = false, false, false
	}
	p.effects = e
}
