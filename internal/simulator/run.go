package simulator

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing/synctest"
	"time"

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
	Timeline string                  // only if something is wrong, or it was asked for
}

// Run turns the world of one seed. It must be called in a synctest bubble. mut
// may be nil.
func Run(seed uint64, mut *Mutation, timeline bool) Report {
	w := newWorld(seed, nil, mut)
	w.sweep()
	var clients, invocations sync.WaitGroup
	for i := range uint64(w.plan.clients) {
		clients.Go(func() { w.client(i, &invocations) })
	}
	w.turnUntil(&clients, &invocations)
	w.heal()
	w.probe()
	return w.report(timeline)
}

// report concludes the book.
func (w *world) report(timeline bool) Report {
	w.book.judge.conclude()
	endings := map[Ending]int{}
	for _, r := range w.book.runs {
		endings[r.how]++
	}
	r := Report{Seed: w.seed, Wrong: w.book.judge.wrong, Faults: w.book.faults, Events: w.book.kinds, Endings: endings, Requests: len(w.book.answers), Runs: len(w.book.runs)}
	if timeline || len(r.Wrong) > 0 {
		r.Timeline = fmt.Sprintf("seed %d, %+v\n%s", w.seed, w.plan, w.book.timeline())
	}
	return r
}

// client sends its requests, and each again until it is answered for good or
// patience ends.
func (w *world) client(number uint64, invocations *sync.WaitGroup) {
	r := rand.New(rand.NewPCG(w.seed, 1_000_000+number))
	pick := func(limit time.Duration) time.Duration { return time.Duration(r.Int64N(int64(limit))) }
	var started uint64
	for range w.plan.requests {
		o := order{Key: fmt.Sprintf("k%d", r.IntN(w.plan.keys)), Owner: "alice", Payload: "p"}
		if r.Float64() < 0.15 {
			o.Owner = "bob"
		}
		if r.Float64() < w.plan.otherPayload {
			o.Payload = "q"
		}
		time.Sleep(pick(500 * time.Millisecond))
		for range 4 {
			started++
			a := w.newActor(1000*(number+1)+started, o)
			got := w.invocation(a, invocations)
			patience := time.NewTimer(200*time.Millisecond + pick(2*w.plan.timeout))
			final := false
			select {
			case res := <-got:
				final = res.final()
			case <-patience.C:
				w.book.note(a, "its client gives up waiting")
				if w.plan.hangsUp {
					w.book.fault("client hangs up")
					a.cancel()
				}
			}
			patience.Stop()
			if final {
				break
			}
			time.Sleep(pick(3 * time.Second))
		}
	}
}

// carriesAnswer tells whether a client got an answer of the kind that a record
// keeps.
func (r result) carriesAnswer() bool {
	return r.Status == 201 || r.Status == 402 || r.Code == insufficient || r.Code == string(lambdaidem.ErrPermanent)
}

// final tells whether a client has no reason to ask again.
func (r result) final() bool {
	switch {
	case r.failed != "":
		return false
	case r.Status >= 500, r.Status == 429, r.Status == 409:
		return r.carriesAnswer() || r.Code == string(lambdaidem.ErrAttemptAbandoned)
	default:
		return true
	}
}

// invocation starts an actor, and enters what it answers, whether or not its
// client still listens.
func (w *world) invocation(a *actor, running *sync.WaitGroup) <-chan result {
	got := make(chan result, 1)
	from := time.Now()
	running.Go(func() {
		res := a.invoke()
		w.book.answered(a, from, res)
		got <- res
	})
	return got
}

// sweep lets TTL delete what it may, when it pleases.
func (w *world) sweep() {
	w.in(w.ms(10_000), func() {
		for _, key := range w.db.Expired(table) {
			if w.rng.IntN(2) == 0 {
				w.db.DeleteExpired(table, key)
			}
		}
		if !w.healed {
			w.sweep()
		}
	})
}

// heal ends all faults, and waits until everything late has arrived and every
// lease is over.
func (w *world) heal() {
	w.mu.Lock()
	w.healed = true
	w.mu.Unlock()
	w.settle()
	time.Sleep(w.plan.timeout + w.plan.maxSkew + w.plan.skew + time.Second)
	synctest.Wait()
}

// probe asks for each key once more, until one of its payloads is answered.
func (w *world) probe() {
	probes := uint64(900_000)
	for _, h := range w.book.sorted() {
		var last result
		for _, payload := range []string{"p", "q"} {
			o := h.order
			o.Payload = payload
			probes++
			a := w.newActor(probes, o)
			var running sync.WaitGroup
			got := w.invocation(a, &running)
			w.turnUntil(&running)
			if last = <-got; last.carriesAnswer() || w.book.judge.held(last) {
				break
			}
		}
		w.book.judge.probed(h.order, last)
	}
}
