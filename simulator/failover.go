package simulator

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// failover is a Region that fails, the first one, and what is done about it: its
// keys move to the second one. Times are since the world began.
type failover struct {
	fails bool
	dies  bool          // its processes die and nothing leaves or reaches it; else it is only left
	at    time.Duration // when it fails
	back  time.Duration // when it is back, if it died, with what it had
	moved time.Duration // when its keys are served by the second Region
}

// waits is what a failover waits for before keys move.
type waits struct {
	attempts bool // until those of the Region are over
	writes   bool // until what the Region wrote has arrived
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
	if wait.attempts { // the lease of the last one, and what is still on the wire then
		f.moved += p.timeout + p.maxSkew + p.skew + p.lateness()
	}
	if wait.writes { // those of the last attempt too, if there is none any more
		f.moved = max(f.moved, f.back) + 2*time.Duration(p.regions.lag)*time.Millisecond
	}
	return f
}

// lateness is for how long a request of a plan's may be on the wire after its sender
// gave it up.
func (p *plan) lateness() time.Duration {
	for _, f := range slices.Concat(p.faults, p.effects.faults) {
		if f == RequestLate || f == Twice || f == Unfinished {
			return min(max(p.lateBy, p.effects.lateBy), signatureLife)
		}
	}
	return 0
}

// failed tells whether a Region is down.
func (g *global) failed(region int) bool {
	f, now := &g.plan.failover, time.Since(g.w.born)
	return f.dies && region == 0 && now >= f.at && now < f.back
}

// fail ends the first Region, and notes which records are in doubt: those with an
// attempt there that is not over, or a write that has not arrived.
func (g *global) fail() {
	g.w.journal.fault(RegionFailed)
	g.w.journal.note(nil, "Region 0 fails; its processes die: %v; its keys move after %v", g.plan.failover.dies, g.plan.failover.moved-g.plan.failover.at)
	for _, h := range g.w.journal.sorted() {
		for id, n := range g.onWay {
			if n > 0 && strings.HasPrefix(id, h.id) { // its own, or one of a part
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

// onTheWire is how long a request takes at most that its sender waits for.
const onTheWire = 40 * time.Millisecond

// running returns the processes of the first Region that are not over, or whose last
// request may still be on the wire.
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

// await lets a client wait while its Region is left and the other one doesn't serve
// its key yet.
func (g *global) await(o order) {
	f, now := &g.plan.failover, time.Since(g.w.born)
	if f.fails && !g.plan.anywhere && g.home(o) == 0 && now >= f.at && now < f.moved {
		time.Sleep(f.moved - now)
	}
}

// itemOf returns the id of the item that a write asks for.
func itemOf(body []byte) string {
	var in struct {
		Key, Item struct{ ID struct{ S string } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		panic("simulator: a write can't be read: " + err.Error())
	}
	return cmp.Or(in.Key.ID.S, in.Item.ID.S)
}
