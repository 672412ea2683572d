package simulator

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// order is what a client asks for.
type order struct {
	Key, Owner, Payload string
	Unguarded           string // how it comes to run without a record, if it does; it has no Key then
}

// record names the record of an order's key; empty for one that has none.
func (o order) record() string {
	if o.Unguarded != "" {
		return ""
	}
	return o.Owner + "/" + o.Key
}

// The ways to run without a record.
const (
	noKey    = "no key" // where keys are optional (K3)
	byMethod = "PUT"    // with a key, which means nothing then (K4)
)

// result is what a client gets. Status 0: no answer (the process died, or the
// client gave up).
type result struct {
	Status   int
	Body     string
	Replayed bool
	Code     string // of a problem document
	failed   string // the invocation ended with an error or a panic
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
		if e := &w.plan.effects; e.unguarded > 0 && r.Float64() < e.unguarded {
			o.Key, o.Unguarded = "", []string{noKey, byMethod}[r.IntN(2)]
		}
		time.Sleep(w.plan.paced(pick(500 * time.Millisecond)))
		for range 4 {
			started++
			if w.global != nil {
				w.global.await(o)
			}
			a := w.newActor(1000*(number+1)+started, o)
			w.assignProcess(a)
			got := w.invocation(a, invocations)
			patience := time.NewTimer(200*time.Millisecond + pick(2*w.plan.timeout))
			final := false
			select {
			case res := <-got:
				final = res.final()
			case <-patience.C:
				w.journal.gaveUp(a)
				if w.plan.hangsUp {
					w.journal.fault(HungUp)
					a.cancel()
				}
			}
			patience.Stop()
			if final {
				break
			}
			time.Sleep(w.plan.paced(pick(3 * time.Second)))
		}
	}
}

// carriesAnswer tells whether a client got an answer of the kind that a record
// keeps.
func (r result) carriesAnswer() bool {
	return r.Status == 200 || r.Status == 201 || r.Status == 402 || r.Code == insufficient || r.Code == string(lambdaidem.ErrPermanent)
}

// text returns what of a result must be equal between a first answer and a replay.
func (r result) text() string { return fmt.Sprintf("%d %s", r.Status, r.Body) }

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
	w.journal.add(entry{kind: kindAsk, actor: a})
	running.Go(func() {
		res := a.invoke()
		w.journal.answered(a, from, res)
		got <- res
	})
	return got
}

// ask starts the actor's invocation, lets the world go on until the invocation is over, and
// returns what its client gets.
func (w *world) ask(a *actor) result {
	var running sync.WaitGroup
	got := w.invocation(a, &running)
	w.runUntil(&running)
	return <-got
}
