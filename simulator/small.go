package simulator

import (
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Small is a case small enough to try every order of its requests.
type Small struct {
	Name     string
	Before   Ending   // how an attempt ended that came before: Running for none
	Attempts []Ending // how the handler of each ends
	Payloads []string // of each; nil: all the same
	Faults   int      // how many faults to try in each order, one at each place
	Hold     bool
	Policies []lambdaidem.Policy // of the one before, and of each; nil: by Hold
	Wait     time.Duration
	Only     []Fault // the faults to try; nil: all
	Hasty    []bool  // which of the one before, and of each, run optimistically; nil: none does
	Enlist   bool    // handlers enlist a transfer
	Cents    int     // what their account holds; 0: a lot
	Verdict  Ending  // what becomes of an attempt whose account holds too little
	Mirrored bool    // try both of two orders that differ only in which of two equal attempts begins
}

// Play runs one path of a small case. It must be called in a synctest bubble.
// It returns the script of the next path, if there is one.
func Play(c Small, script []int, timeline bool) (r Report, next []int, more bool) {
	p := plan{keys: 1, timeout: 3 * time.Second, ttl: 24 * time.Hour, maxSkew: 2 * time.Second, policyHold: c.Hold, wait: c.Wait}
	if c.Enlist {
		p.effects = effects{enlist: true, poor: map[string]bool{"k": c.Cents > 0}, cents: c.Cents, verdicts: []Ending{c.Verdict}}
	}
	w := newWorld(1, &p, nil)
	if c.Before != Running {
		w.before(c)
	}
	w.tree = &tree{script: script, faults: c.Faults, only: c.Only, alike: c.alike(), moved: map[*actor]bool{}}
	var all sync.WaitGroup
	var number uint64
	for i, ending := range c.Attempts {
		number++
		o := order{Key: "k", Owner: "alice", Payload: "p"}
		if c.Payloads != nil {
			o.Payload = c.Payloads[i]
		}
		a := w.newActor(number, o)
		a.ending = ending
		if c.Policies != nil {
			a.policy = c.Policies[1+i]
		}
		if c.Hasty != nil {
			a.optimistic = c.Hasty[1+i]
		}
		w.invocation(a, &all)
	}
	w.runUntil(&all)
	for _, late := range w.tree.held {
		w.journal.note(late.actor, "%s arrives late", late.what)
		w.serve(late)
	}
	next, more = w.tree.next()
	w.heal()
	w.probe()
	return w.report(timeline), next, more
}

// alike tells whether the attempts differ in nothing but their names.
func (c *Small) alike() bool {
	for i, ending := range c.Attempts {
		switch {
		case c.Mirrored, ending != c.Attempts[0],
			c.Payloads != nil && c.Payloads[i] != c.Payloads[0],
			c.Policies != nil && c.Policies[1+i] != c.Policies[1],
			c.Hasty != nil && c.Hasty[1+i] != c.Hasty[1]:
			return false
		}
	}
	return true
}

// before lets the attempt before end in its way, and its lease pass.
func (w *world) before(c Small) {
	a := w.newActor(900, order{Key: "k", Owner: "alice", Payload: "p"})
	a.ending = c.Before
	if c.Policies != nil {
		a.policy = c.Policies[0]
	}
	if c.Hasty != nil {
		a.optimistic = c.Hasty[0]
	}
	if c.Before == Killed {
		a.ending = Created
		w.plan.killHandler = 2
	}
	w.ask(a)
	w.plan.killHandler = 0
	time.Sleep(w.plan.timeout + 2*w.plan.maxSkew)
}
