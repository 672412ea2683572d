package simulator

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// failover is a failure of the first Region, after which its keys move to the second Region. Times
// are since the world began.
type failover struct {
	fails bool
	dies  bool          // its processes die, and nothing leaves or reaches it; otherwise clients only leave it
	at    time.Duration // when the Region fails
	back  time.Duration // when the Region is back with its data; equal to at unless dies is true
	moved time.Duration // when the second Region begins to serve the keys
}

// waits says what a failover waits for before keys move. docs/operate.md has all three waits, and
// the simulated ones are as long as it says: the timeout and MaxSkew, then the life of a signature,
// then the lag. Most plans delay requests by up to 20 seconds only, but their keys wait as long.
type waits struct {
	attempts bool // until the attempts of the failed Region are over
	late     bool // until no request of these attempts can arrive any more
	writes   bool // until the failed Region's writes have arrived in the other Region
}

// newFailover draws a failover for a plan.
func newFailover(seed uint64, p *plan, wait waits) failover {
	r := rand.New(rand.NewPCG(seed, 0xfa170))
	f := failover{fails: true, dies: r.IntN(2) == 0, at: time.Duration(r.Int64N(int64(6 * time.Second)))}
	f.back = f.at
	if f.dies {
		f.back += time.Duration(r.Int64N(int64(20 * time.Second)))
	}
	f.moved = f.at
	if wait.attempts {
		f.moved += p.timeout + p.maxSkew
	}
	if wait.late {
		f.moved += signatureLife
	}
	if wait.writes { // if attempts are over by then, this includes the writes of the last one
		f.moved = max(f.moved, f.back) + 2*time.Duration(p.regions.lag)*time.Millisecond
	}
	return f
}

// lateness returns how long a request may be on the wire after its sender gave it up. An outage
// makes requests late too, whatever the plan's other faults are.
func (p *plan) lateness() time.Duration {
	late := func(f Fault) bool { return f == RequestLate || f == Twice || f == Unfinished }
	if p.outage.planned() || slices.ContainsFunc(slices.Concat(p.faults, p.effects.faults), late) {
		return min(max(p.lateBy, p.effects.lateBy), signatureLife)
	}
	return 0
}

// failed reports whether a Region is down.
func (g *global) failed(region int) bool {
	f, now := &g.plan.failover, time.Since(g.w.born)
	return f.dies && region == 0 && now >= f.at && now < f.back
}

// fail ends the first Region, and records which records are in doubt: those with an attempt there
// that is not over, or with a write that has not arrived in the other Region.
func (g *global) fail() {
	g.w.journal.fault(RegionFailed)
	g.w.journal.note(nil, "Region 0 fails; its processes die: %v; its keys move after %v", g.plan.failover.dies, g.plan.failover.moved-g.plan.failover.at)
	for _, h := range g.w.journal.sorted() {
		for id, n := range g.onWay {
			if n > 0 && strings.HasPrefix(id, h.id) { // the record's item, or a part of its answer
				g.doubts[h.order.record()] = true
			}
		}
	}
	for _, a := range g.running() {
		g.doubts[a.order.record()] = true
		if g.plan.failover.dies {
			g.w.kill(a, RegionFailed)
		}
	}
}

// onTheWire is the longest time that a request and its reply take together, without a fault.
const onTheWire = 40 * time.Millisecond

// running returns the actors of the first Region that have not ended, or whose last request may
// still be on the wire.
func (g *global) running() []*actor {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	var all []*actor
	for _, a := range g.actors {
		if a.region == 0 && (a.endedAt.IsZero() || time.Since(a.endedAt) < onTheWire+g.w.plan.lateness()) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(x, y *actor) int { return cmp.Compare(x.id, y.id) })
	return all
}

// await lets a client wait after it has left the first Region, until the second Region serves its
// key. Clients continue one nanosecond apart, so that the same seed gives the same run.
func (g *global) await(client uint64, o order) {
	f, now := &g.plan.failover, time.Since(g.w.born)
	if f.fails && !g.plan.anywhere && g.home(o) == 0 && now >= f.at && now < f.moved {
		time.Sleep(f.moved - now + time.Duration(client)) //nolint:gosec // a few
	}
}

// itemOf returns the ID of the item that a PutItem or UpdateItem request writes.
func itemOf(body []byte) string {
	var in struct {
		Key, Item struct{ ID struct{ S string } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic("simulator: a write can't be read: " + err.Error())
	}
	return cmp.Or(in.Key.ID.S, in.Item.ID.S)
}
