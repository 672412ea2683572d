package simulator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// An outage of the table under policy Hold. It leaves claims behind whose handlers never
// started, and the process that made them withdraws them in its later invocations. So in
// these plans a process serves many invocations with one guard, one after another, as
// Lambda's do.

// outage is a time in which no request gets a reply. The zero value: there is none.
type outage struct {
	from, until time.Duration // since the world began
}

// newOutage draws from a stream of its own, so that it moves nothing in a plan without
// an outage.
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

// fault is what becomes of a request that is sent at a time since the world began. The
// first request of an invocation, which claims a record or withdraws an earlier claim, may
// be served. None of the requests after that is, so whether it was stays unknown.
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

// withdrawUnstarted has each process that lives be invoked again, when the outage is over
// and no claim can arrive any more, as often as it may have left a claim behind. Then no
// claim of theirs holds a record whose handler never started.
func (w *world) withdrawUnstarted() {
	if !w.plan.outage.planned() {
		return
	}
	time.Sleep(signatureLife)
	records := w.book.sorted()
	slices.SortFunc(w.processes, func(x, y *process) int { return cmp.Compare(x.first.id, y.first.id) })
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
			var running sync.WaitGroup
			w.invocation(a, &running)
			w.turnUntil(&running)
		}
	}
	for _, h := range w.book.sorted() {
		w.book.judge.unstarted(h)
	}
}

// unstarted looks at a record after the processes that live were invoked again.
func (j *judge) unstarted(h *history) {
	a := h.holder
	if a == nil {
		return
	}
	if p := a.process; p != nil && p.lives() && a.run == nil {
		j.brokenRecord(h, CheckWithdrawn, "process %d lives, and its claim holds the record, though no handler started", p.first.id)
	}
}

// author is the attempt that a write to a record is of: the sender's own, or an earlier
// one of the same process, whose claim the sender withdraws.
func (b *book) author(sender *actor, h *history, token string) *actor {
	if sender.process == nil || h == nil || len(h.lives) == 0 {
		return sender
	}
	if claimed := h.lives[len(h.lives)-1].tokens[token]; claimed != nil && claimed.process == sender.process {
		return claimed
	}
	return sender
}

// withdrawal looks at a write of an attempt that another invocation of its process sent.
func (j *judge) withdrawal(a, sender *actor, left state) {
	switch {
	case a == sender:
		return
	case left != released:
		j.brokenLocked(sender, CheckWithdrawn, "it left the record of process %d's claim %s", a.id, left)
	case a.run != nil && !a.open:
		j.brokenLocked(sender, CheckWithdrawn, "it withdrew the claim of process %d, whose handler had started", a.id)
	}
	j.b.paths[ClaimWithdrawn]++
}
