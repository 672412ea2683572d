package simulator

import (
	"fmt"
	"sync"

	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Report is the result of a run.
type Report struct {
	Seed     uint64
	Wrong    []Violation
	Faults   map[Fault]int
	Events   map[lambdaidem.Kind]int // how often the guard reported each outcome
	Endings  map[Ending]int          // how often the handler ended in each way
	Requests int                     // requests of clients
	Runs     int                     // runs of the handler
	Paths    map[Path]int            // how often each path was taken

	Transactions int      // transactions that were applied
	Records      []string // all records; only with several Regions
	Doubts       []string // the records that were in doubt when their Region failed
	Timeline     string   // empty unless a rule was broken or the caller asked for it

	// Diagram returns a diagram of the timeline. It is nil if Timeline is empty.
	Diagram func() sequence.Diagram
}

// Run runs the world of one seed, with the mistake mut unless it is nil. It must be called in a
// synctest bubble. The report has a timeline if timeline is true or a rule was broken.
func Run(seed uint64, mut *Mutation, timeline bool) Report {
	return newWorld(seed, nil, mut).simulate(timeline)
}

// simulate runs the world until everything is over, and returns the report.
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

// probe sends one more request for each record: with the payload p and, unless the record stores
// an answer or is held, with the payload q.
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

// report runs the checks that need the whole journal, and returns the report.
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
