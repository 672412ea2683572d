package simulator

import (
	"fmt"
	"sync"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Report is what came of a run.
type Report struct {
	Seed     uint64
	Wrong    []Violation
	Faults   map[Fault]int
	Events   map[lambdaidem.Kind]int // outcomes, as the guard told them
	Endings  map[Ending]int          // of handlers
	Requests int                     // of clients
	Runs     int                     // of handlers
	Paths    map[Path]int            // that transactions went

	Transactions int      // that were applied
	Records      []string // that there were
	Doubts       []string // those that were in doubt when their Region failed
	Timeline     string   // only if something is wrong, or it was asked for

	// Diagram draws the timeline. It is nil if there is no Timeline.
	Diagram func() sequence.Diagram
}

// Run turns the world of one seed. It must be called in a synctest bubble. mut
// may be nil.
func Run(seed uint64, mut *Mutation, timeline bool) Report {
	return newWorld(seed, nil, mut).simulate(timeline)
}

// live turns the world until all is over.
func (w *world) simulate(timeline bool) Report {
	w.sweep()
	if w.plan.effects.deposits {
		w.deposits()
	}
	if w.plan.large.loses {
		w.losses()
	}
	var clients, invocations sync.WaitGroup
	for i := range uint64(w.plan.clients) {
		clients.Go(func() { w.client(i, &invocations) })
	}
	w.operators(&clients)
	w.runUntil(&clients, &invocations)
	w.heal()
	w.withdrawUnstarted()
	w.probe()
	return w.report(timeline)
}

// probe asks for each key once more, until one of its payloads is answered.
func (w *world) probe() {
	probes := uint64(900_000)
	for _, h := range w.journal.sorted() {
		var (
			a    *actor
			last result
		)
		for _, payload := range []string{"p", "q"} {
			o := h.order
			o.Payload = payload
			probes++
			a = w.newActor(probes, o)
			if last = w.ask(a); last.carriesAnswer() || w.journal.judge.held(h, a, last) {
				break
			}
		}
		w.journal.judge.probed(h, a, last)
	}
}

// report concludes the book.
func (w *world) report(timeline bool) Report {
	w.journal.judge.conclude()
	endings := map[Ending]int{}
	for _, r := range w.journal.runs {
		endings[r.how]++
	}
	r := Report{Seed: w.seed, Wrong: w.journal.judge.wrong, Faults: w.journal.faults, Events: w.journal.kinds, Endings: endings, Requests: len(w.journal.answers), Runs: len(w.journal.runs), Paths: w.journal.paths, Transactions: w.journal.transactions}
	if w.global != nil {
		r.Records, r.Doubts = w.global.conclude()
	}
	if timeline || len(r.Wrong) > 0 {
		r.Timeline = fmt.Sprintf("seed %d, %+v\n%s", w.seed, w.plan, w.journal.timeline())
		r.Diagram = func() sequence.Diagram { return w.diagram(&r) }
	}
	return r
}
