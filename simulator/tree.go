package simulator

import (
	"slices"
)

// tree is one path through the tree of decisions. The script has the branch to take at each
// decision. After the end of the script the first branch is taken.
type tree struct {
	script  []int
	taken   []int      // the branches that were taken
	widths  []int      // the number of branches at each decision
	faults  int        // how many faults may still happen
	only    []Fault    // the faults that may happen; nil: all
	pauses  int        // how often time may still pass while requests wait
	pending []*request // sent, and not yet delivered
	held    []*request // delayed requests, which arrive at some later time

	alike bool            // the attempts are equal, so it makes no difference which is first
	moved map[*actor]bool // the actors whose requests have been delivered
}

func (t *tree) choose(width int) int {
	choice := 0
	if len(t.taken) < len(t.script) {
		choice = t.script[len(t.taken)]
	}
	t.taken, t.widths = append(t.taken, choice), append(t.widths, width)
	return choice
}

// next returns the script of the next path. ok is false if this path was the last one.
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

// withdraw removes a handler's work from the pending requests, because the handler's context has
// ended.
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

// branch makes one decision and its move. It reports whether something happened; otherwise time
// passes.
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
	// Time may pass if no request is pending, or if a pause is left.
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

// distinct returns the pending requests whose delivery leads to different runs. If the attempts are
// alike, it returns only the first request of those that have done nothing yet, because the others
// lead to the same run with other names.
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

// move delivers one request at once, with the move's fault.
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

// instantDelivery delivers a request in no time. A delayed request waits until a move delivers it.
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
