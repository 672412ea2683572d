package simulator

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// order is what a client requests: a payment of a caller, with a key.
type order struct {
	Key, Owner, Payload string
	Unguarded           string // why the order runs without a record and without a Key; empty: it has both
}

// record returns a name for the order's record, or "" if the order runs without a record.
func (o order) record() string {
	if o.Unguarded != "" {
		return ""
	}
	return o.Owner + "/" + o.Key
}

// The reasons to run without a record.
const (
	noKey    = "no key" // the request has no key, and keys are optional
	byMethod = "PUT"    // the guard ignores the key of a PUT request
)

// result is what Lambda returns for an invocation. Status 0: no response, because the process died
// or the handler failed.
type result struct {
	Status   int
	Body     string
	Replayed bool
	Code     string // the code of a problem document
	failed   string // the error or the panic that ended the invocation
}

// client sends the requests of one client. It sends each up to four times, until it gets a final
// answer.
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
				w.global.await(number, o)
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

// carriesAnswer reports whether the client got an answer of a kind that a record stores.
func (r result) carriesAnswer() bool {
	return r.Status == 200 || r.Status == 201 || r.Status == 402 || r.Code == insufficient || r.Code == string(lambdaidem.ErrPermanent)
}

// text returns the part of a result that must be equal in the first answer and in replays.
func (r result) text() string { return fmt.Sprintf("%d %s", r.Status, r.Body) }

// final reports whether the client has no reason to send the request again.
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

// invocation starts an actor, and records its answer, whether or not the client still waits. The
// channel receives the answer.
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

// ask starts the actor's invocation, runs the world until the invocation is over, and returns what
// its client gets.
func (w *world) ask(a *actor) result {
	var running sync.WaitGroup
	got := w.invocation(a, &running)
	w.runUntil(&running)
	return <-got
}
