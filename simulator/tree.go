package simulator

import (
	"slices"
)

// tree is one path through the tree of decisions: a script says which branch
// to take where, and beyond it the first is taken.
type tree struct {
	script  []int
	taken   []int
	widths  []int
	faults  int     // still to be dealt
	only    []Fault // what may be dealt; nil: everything
	pauses  int     // how often time may still pass while requests wait
	pending []*request
	held    []*request // late ones: they arrive some time

	alike bool            // the attempts are: which of them is first is all one
	moved map[*actor]bool // those of which something has happened
}

func (t *tree) choose(width int) int {
	choice := 0
	if len(t.taken) < len(t.script) {
		choice = t.script[len(t.taken)]
	}
	t.taken, t.widths = append(t.taken, choice), append(t.widths, width)
	return choice
}

// next returns the script of the path after this one; ok is false after the last.
func (t *tree) next() (script []int, ok bool) {
	for i := len(t.taken) - 1; i >= 0; i-- {
		if t.taken[i]+1 < t.widths[i] {
			return append(slices.Clone(t.taken[:i]), t.taken[i]+1), true
		}
	}
	return nil, false
}

// move is one thing that can happen next.
type move struct {
	r    *request
	f    Fault
	held bool
}

// forget takes a handler's own step back, which its context ended.
func (w *world) withdraw(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.withdrawn = true
}

func (w *world) isOver(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.withdrawn
}

// branch lets one thing happen, and tells whether it did.
func (w *world) branch() bool {
	t := w.tree
	t.pending = append(t.pending, w.takeInbox()...)
	t.pending = slices.DeleteFunc(t.pending, func(r *request) bool { return r.actor.isDead() || w.isOver(r) })
	if w.isHealed() {
		for _, r := range t.pending {
			r.reply <- w.serve(r)
		}
		happened := len(t.pending) > 0
		t.pending = nil
		return happened
	}
	var moves []move
	free := t.distinct()
	for _, r := range free {
		moves = append(moves, move{r: r})
	}
	for _, r := range t.held {
		moves = append(moves, move{r: r, held: true})
	}
	if t.faults > 0 {
		for _, r := range free {
			kinds := wireFaults
			switch {
			case r.op == working:
				kinds = handlerFaults
			case r.tx != nil:
				kinds = slices.Concat(wireFaults, transactionFaults)
			}
			for _, f := range kinds {
				if t.only != nil && !slices.Contains(t.only, f) {
					continue
				}
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

// distinct returns the pending requests whose next move leads to another run: of
// attempts that are alike and have done nothing yet, only the first's. What the
// others would begin is the same with their names exchanged.
func (t *tree) distinct() []*request {
	if !t.alike {
		return t.pending
	}
	var free []*request
	fresh := false
	for _, r := range t.pending { // in the order of their actors
		if !t.moved[r.actor] {
			if fresh {
				continue
			}
			fresh = true
		}
		free = append(free, r)
	}
	return free
}

// move lets one request meet its fate at once.
func (w *world) move(m move) {
	t, r := w.tree, m.r
	t.moved[r.actor] = true
	if m.held {
		t.held = slices.DeleteFunc(t.held, func(x *request) bool { return x == r })
		w.journal.note(r.actor, "%s arrives late", r.what)
		w.serve(r)
		return
	}
	t.pending = slices.DeleteFunc(t.pending, func(x *request) bool { return x == r })
	if m.f != None {
		t.faults--
		t.pauses = 1
	}
	w.deliver(r, m.f, instantDelivery{w, r})
}

// atOnce is the passage of a request that takes no time. What comes late waits
// until a move brings it.
type instantDelivery struct {
	w *world
	r *request
}

func (p instantDelivery) arrive(do func()) { do() }
func (p instantDelivery) late()            { p.w.tree.held = append(p.w.tree.held, p.r) }
func (p instantDelivery) again()           { p.late() }
func (p instantDelivery) slow()            { p.late() }
func (p instantDelivery) wake(do func())   { p.w.afterFunc(p.w.plan.timeout+2*p.w.plan.maxSkew, do) }
func (p instantDelivery) reply(rep reply)  { p.r.reply <- rep }
func (p instantDelivery) silence()         { p.reply(reply{err: errReset}) }
