package simulator

import (
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Small is a case small enough to try every order of its requests.
type Small struct {
	Name     string
	Before   Ending   // the ending of an earlier attempt; Running: there is none
	Attempts []Ending // the ending of each attempt's handler
	Payloads []string // the payload of each attempt; nil: all have the same
	Faults   int      // how many faults to try in each order, each at every request
	Hold     bool
	Policies []lambdaidem.Policy // the policies of the earlier attempt and of each attempt; nil: see Hold
	Wait     time.Duration
	Only     []Fault // the faults to try; nil: all
	Hasty    []bool  // whether the earlier attempt and each attempt run optimistically; nil: none does
	Enlist   bool    // handlers enlist a transfer
	Cents    int     // the balance of the account that pays; 0: plenty
	Verdict  Ending  // the ending of an attempt whose account has too little money
	Mirrored bool    // try both of two orders that differ only in which of two equal attempts begins
}

// Play runs one path of a small case: the one that the script selects, or the first one if script
// is nil. It returns the script of the next path. more is false after the last path. Play must be
// called in a synctest bubble.
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

// alike reports whether the attempts differ only in their names, and c allows to leave out mirrored
// orders.
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

// before runs the earlier attempt, and waits until its lease is over.
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
