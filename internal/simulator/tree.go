package simulator

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Small is a case small enough to try every order of its requests.
type Small struct {
	Name     string
	Before   Ending   // how an attempt ended that came before: Running for none
	Attempts []Ending // how the handler of each ends
	Payloads []string // of each; nil: all the same
	Faults   int      // how many faults to try in each order, one at each place
	Hold     bool
	Wait     time.Duration
}

// tree is one path through the tree of decisions: a script says which branch
// to take where, and beyond it the first is taken.
type tree struct {
	script  []int
	taken   []int
	widths  []int
	faults  int // still to be dealt
	pauses  int // how often time may still pass while requests wait
	pending []*request
	held    []*request // late ones: they arrive some time
}

func (t *tree) choose(width int) int {
	choice := 0
	if len(t.taken) < len(t.script) {
		choice = t.script[len(t.taken)]
	}
	t.taken, t.widths = append(t.taken, choice), append(t.widths, width)
	return choice
}

// next is the script of the path after this one; ok is false after the last.
func (t *tree) next() (script []int, ok bool) {
	for i := len(t.taken) - 1; i >= 0; i-- {
		if t.taken[i]+1 < t.widths[i] {
			return append(slices.Clone(t.taken[:i]), t.taken[i]+1), true
		}
	}
	return nil, false
}

const working = "work"

// work is the handler's own step, which takes its turn among the requests.
func (a *actor) work(ctx context.Context) bool {
	r := a.submit(working, nil)
	select {
	case <-r.reply:
		a.mustLive()
		return ctx.Err() == nil
	case <-a.killed:
		runtime.Goexit()
		return false
	}
}

// move is one thing that can happen next.
type move struct {
	r    *request
	f    Fault
	held bool
}

// branch lets one thing happen, and tells whether it did.
func (w *world) branch() bool {
	t := w.tree
	t.pending = append(t.pending, w.takeInbox()...)
	t.pending = slices.DeleteFunc(t.pending, func(r *request) bool { return r.actor.isDead() })
	if w.isHealed() {
		for _, r := range t.pending {
			r.reply <- w.serve(r)
		}
		happened := len(t.pending) > 0
		t.pending = nil
		return happened
	}
	var moves []move
	for _, r := range t.pending {
		moves = append(moves, move{r: r})
	}
	for _, r := range t.held {
		moves = append(moves, move{r: r, held: true})
	}
	if t.faults > 0 {
		for _, r := range t.pending {
			kinds := wireFaults
			if r.op == working {
				kinds = handlerFaults
			}
			for _, f := range kinds {
				moves = append(moves, move{r: r, f: f})
			}
		}
	}
	// Time passes when nobody has anything to send, and now and then before.
	width := len(moves)
	mayPause := len(t.pending) == 0 || t.pauses > 0
	if width == 0 {
		return false
	}
	if mayPause {
		width++
	}
	choice := t.choose(width)
	if choice == len(moves) {
		if len(t.pending) > 0 {
			t.pauses--
		}
		return false
	}
	w.move(moves[choice])
	return true
}

// move lets one request meet its fate at once.
func (w *world) move(m move) {
	t, r := w.tree, m.r
	if m.held {
		t.held = slices.DeleteFunc(t.held, func(x *request) bool { return x == r })
		w.book.note(r.actor, "%s arrives late", describe(r))
		w.serve(r)
		return
	}
	t.pending = slices.DeleteFunc(t.pending, func(x *request) bool { return x == r })
	if m.f != None {
		t.faults--
		t.pauses = 1
	}
	w.befall(r, m.f, atOnce{w, r})
}

// atOnce is the passage of a request that takes no time. What comes late waits
// until a move brings it.
type atOnce struct {
	w *world
	r *request
}

func (p atOnce) arrive(do func()) { do() }
func (p atOnce) late()            { p.w.tree.held = append(p.w.tree.held, p.r) }
func (p atOnce) again()           { p.late() }
func (p atOnce) wake(do func())   { p.w.in(p.w.plan.timeout+2*p.w.plan.maxSkew, do) }
func (p atOnce) reply(rep reply)  { p.r.reply <- rep }
func (p atOnce) silence()         { p.reply(reply{err: errReset}) }

// Play runs one path of a small case. It must be called in a synctest bubble.
// It returns the script of the next path, if there is one.
func Play(c Small, script []int, timeline bool) (r Report, next []int, more bool) {
	p := plan{keys: 1, timeout: 3 * time.Second, ttl: 24 * time.Hour, maxSkew: 2 * time.Second, policyHold: c.Hold, wait: c.Wait}
	w := newWorld(1, &p, nil)
	if c.Before != Running {
		w.before(c.Before)
	}
	w.tree = &tree{script: script, faults: c.Faults}
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
		w.invocation(a, &all)
	}
	w.turnUntil(&all)
	for _, late := range w.tree.held {
		w.book.note(late.actor, "%s arrives late", describe(late))
		w.serve(late)
	}
	next, more = w.tree.next()
	w.heal()
	w.probe()
	return w.report(timeline), next, more
}

// before lets one attempt end in the given way, and its lease pass.
func (w *world) before(ending Ending) {
	a := w.newActor(900, order{Key: "k", Owner: "alice", Payload: "p"})
	a.ending = ending
	if ending == Killed {
		a.ending = Created
		w.plan.killHandler = 2
	}
	var one sync.WaitGroup
	w.invocation(a, &one)
	w.turnUntil(&one)
	w.plan.killHandler = 0
	time.Sleep(w.plan.timeout + 2*w.plan.maxSkew)
}
