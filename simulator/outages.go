package simulator

import (
	"math/rand/v2"
	"time"
)

// This file simulates outages of the table under policy Hold. An outage leaves claims behind
// whose handlers never started or had no effect. The process that made them withdraws them in
// its later invocations, so in a plan with an outage a process serves many invocations (process.go).

// outage is a time in which no request gets a reply. The zero value means that there is none.
type outage struct {
	from, until time.Duration // since the world began
}

// newOutage gives some plans an outage. It draws from a random stream of its own, so that the rest
// of each plan does not depend on it.
func newOutage(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0x007a9e))
	if p.effects.optimistic == 1 || r.Float64() >= 0.08 {
		return
	}
	p.policyHold, p.mixed = true, false
	p.keys, p.killHandler = 4, 0 // so that records begin during the outage, and processes outlive it
	from := p.paced(time.Duration(r.Int64N(int64(6 * time.Second))))
	p.outage = outage{from: from, until: from + p.paced(time.Second+time.Duration(r.Int64N(int64(9*time.Second))))}
}

// planned reports whether the plan has an outage.
func (o *outage) planned() bool { return o.until > 0 }

// fault returns what happens to a request that is sent at a time since the world began. The
// database may serve the first request of an invocation, which claims a record or withdraws
// an earlier claim. It serves none of the later ones, so the invocation can't find out
// whether it served the first.
func (o *outage) fault(r *rand.Rand, at time.Duration, of *request) Fault {
	switch {
	case at < o.from || at >= o.until:
		return None
	case of.seq == 1:
		return []Fault{RequestLost, ReplyLost, RequestLate}[r.IntN(3)]
	default:
		return RequestLost
	}
}

// withdrawUnstarted waits until the outage is over and no claim can arrive any more. Then it invokes
// each living process as often as the process was invoked before, because each of those invocations
// may have left a claim behind. Finally it checks that no claim of these processes still holds a
// record without an effect of its handler.
func (w *world) withdrawUnstarted() {
	if !w.plan.outage.planned() {
		return
	}
	time.Sleep(signatureLife)
	records := w.journal.sorted()
	number := uint64(800_000)
	for _, p := range w.processes {
		for range p.served {
			if !p.lives() || len(records) == 0 {
				break
			}
			number++
			a := w.newActor(number, order{Key: records[0].order.Key, Owner: records[0].order.Owner, Payload: "p"})
			w.mu.Lock()
			a.joinLocked(p)
			w.mu.Unlock()
			w.ask(a)
		}
	}
	for _, h := range w.journal.sorted() {
		w.journal.judge.unstarted(h)
	}
}

// withoutEffect reports whether no handler of the actor started, or its handler ended so
// that the record must be released.
func (a *actor) withoutEffect() bool {
	return a.run == nil || !a.run.ended.IsZero() && a.run.leaves(a.run.how) == released
}

// author returns the actor whose attempt wrote to a record under token. It is the sender of
// the write, or an earlier invocation of the same process whose claim the sender withdraws.
func (b *journal) author(sender *actor, h *history, token string) *actor {
	if sender.process == nil || h == nil || len(h.lives) == 0 {
		return sender
	}
	if claimed := h.lives[len(h.lives)-1].tokens[token]; claimed != nil && claimed.process == sender.process {
		return claimed
	}
	return sender
}
