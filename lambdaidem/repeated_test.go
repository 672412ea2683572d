package lambdaidem_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

func lookingUp(o *lambdaidem.Options) { o.Repeated = lambdaidem.SentAgain }

// again returns the request as a client sends it for the second time.
func again(in request) request {
	in.Headers["idempotency-attempt"] = "2"
	return in
}

// sendAsking sends a request, and returns its answer and the store calls that it caused.
func (r *rig) sendAsking(t *testing.T, in request) (response, []string) {
	t.Helper()
	before := len(r.store.allCalls())
	out := r.send(t, in)
	return out, r.store.allCalls()[before:]
}

func TestR5_ARepeatedRequestIsReplayedByOneRead(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){"with a lease": func(*lambdaidem.Options) {}, "hold": hold, "fails open": failOpen} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, lookingUp, opt)
			out := r.send(t, first())
			got, calls := r.sendAsking(t, again(first()))
			wantReplay(t, got, out)
			if !slices.Equal(calls, []string{get}) {
				t.Errorf("the replay made the calls %v", calls)
			}
			if e := r.seen.last(t); e.Kind != lambdaidem.EventReplayed || e.Attempt != 1 || e.Store < 0 {
				t.Errorf("the event is %+v", e)
			}
			r.wantRuns(t, 1)
		})
	}
}

// An optimistic attempt would run the handler again before it finds the record.
func TestR5_ARepeatedRequestDoesNotRunAnOptimisticHandler(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic, lookingUp)
	r.send(t, first())
	out, calls := r.sendAsking(t, again(first()))
	if !replayed(out) || !slices.Equal(calls, []string{get}) {
		t.Errorf("the answer is %+v, after the calls %v", out, calls)
	}
	l.wantDone(t, "write")
}

// A request that isn't marked as repeated makes a claim. So does one whose record has no answer.
func TestR5_OnlyAFinishedRecordIsReplayedByTheRead(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*testing.T, *rig)
		in     request
		opt    func(*lambdaidem.Options)
		status int
		calls  []string
		runs   int64
	}{
		{"not repeated", func(t *testing.T, r *rig) { t.Helper(); r.send(t, first()) }, first(), nil, 201, []string{acquire}, 1},
		{"a new key", func(*testing.T, *rig) {}, again(first()), nil, 201, []string{get, acquire, complete}, 1},
		{"another payload", func(t *testing.T, r *rig) { t.Helper(); r.send(t, first()) }, again(post("key-1", `{"amount":7}`)), nil, 422, []string{get, acquire}, 1},
		{"another key", func(t *testing.T, r *rig) { t.Helper(); r.send(t, first()) }, again(post("key-2", `{"amount":100}`)), nil, 201, []string{get, acquire, complete}, 2},
		{"released", func(t *testing.T, r *rig) {
			t.Helper()
			if _, err := r.guarded(status(503))(t.Context(), first()); err != nil {
				t.Fatal(err)
			}
		}, again(first()), nil, 201, []string{get, acquire, acquire, complete}, 2},
		{"dead", func(t *testing.T, r *rig) { t.Helper(); dead(t, r) }, again(first()), nil, 201, []string{get, acquire, acquire, complete}, 2},
		{"held", func(t *testing.T, r *rig) { t.Helper(); dead(t, r) }, again(first()), hold, 409, []string{get, acquire}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := []func(*lambdaidem.Options){lookingUp}
				if c.opt != nil {
					opts = append(opts, c.opt)
				}
				r := newRig(nil, opts...)
				c.before(t, r)
				out, calls := r.sendAsking(t, c.in)
				if out.StatusCode != c.status || !slices.Equal(calls, c.calls) {
					t.Errorf("the answer is %d, after the calls %v; want %d after %v", out.StatusCode, calls, c.status, c.calls)
				}
				r.wantRuns(t, c.runs)
			})
		})
	}
}

// While another attempt runs, a repeated request is refused like any other.
func TestR5_ARepeatedRequestInProgressIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(time.Second, 201), lookingUp)
		done := meanwhile(t, r.handler)
		out := r.send(t, again(first()))
		wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
		<-done
	})
}

// A read that fails decides nothing, and a slow one leaves time for the claim.
func TestR5_AFailedReadLeavesTheRequestToTheLock(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused(lambdaidem.ReasonPermission), "no reply": requestLost, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, lookingUp)
				r.store.fail(get, f)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				if out := r.sendCtx(ctx, t, again(first())); out.StatusCode != 201 {
					t.Errorf("the answer is %+v", out)
				}
				took := time.Since(start)
				if took > 4900*time.Millisecond {
					t.Errorf("it took %v; the read may take half of the time before the end of the reserve", took)
				}
				if e := r.seen.last(t); e.Store != took {
					t.Errorf("the event says that the store took %v of %v", e.Store, took)
				}
				r.wantRuns(t, 1)
				r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventNew)
			})
		})
	}
}

// The cache keeps what was read, like any other replay.
func TestR5_TheReadFillsTheCache(t *testing.T) {
	r := newRig(nil, lookingUp)
	r.send(t, first())
	other := r.beside(roomy, lookingUp)
	if out, calls := other.sendAsking(t, again(first())); !replayed(out) || len(calls) != 1 {
		t.Errorf("the answer is %+v, after the calls %v", out, calls)
	}
	other.wantFromMemory(t, again(first()))
}

func TestR5_SentAgain(t *testing.T) {
	for value, want := range map[string]bool{"2": true, "17": true, "1": false, "0": false, "-3": false, "": false, "x": false, "2,3": false, "2 ": false} {
		r := newRig(nil, lookingUp)
		in := first()
		in.Headers["idempotency-attempt"] = value
		_, calls := r.sendAsking(t, in)
		if got := slices.Contains(calls, get); got != want {
			t.Errorf("with %q, the record was looked up: %t", value, got)
		}
	}
}

func TestR5_ARedeliveredMessageIsLookedUp(t *testing.T) {
	r := newRig(nil)
	runs := 0
	handler := r.guard.SQS(func(context.Context, events.SQSMessage) error { runs++; return nil },
		func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Repeated = lambdaidem.Redelivered })
	for _, c := range []struct {
		receives int
		calls    []string
	}{{1, []string{acquire, complete}}, {1, []string{acquire}}, {2, []string{get}}, {3, []string{get}}} {
		before := len(r.store.allCalls())
		out, err := handler(t.Context(), idemtest.SQS("orders", idemtest.Message{Body: "order 17", Receives: c.receives}))
		if calls := r.store.allCalls()[before:]; err != nil || len(out.BatchItemFailures) != 0 || !slices.Equal(calls, c.calls) {
			t.Errorf("delivery %d made the calls %v, and returned %+v, %v", c.receives, calls, out, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
}

func TestR5_RepeatedCallsOfDoAndHandler(t *testing.T) {
	r := newRig(nil)
	typed := lambdaidem.Handler(r.guard, "refund", func(context.Context, order) (string, error) { return "order-1", nil },
		func(context.Context, order) (int, error) { return 5, nil },
		func(o *lambdaidem.HandlerOptions[order]) {
			o.Repeated = func(context.Context, order) bool { return true }
		})
	call := charge
	call.Repeated = true
	for name, do := range map[string]func() (int, error){
		"Do": func() (int, error) {
			return lambdaidem.Do(t.Context(), r.guard, call, func(context.Context) (int, error) { return 5, nil })
		},
		"Handler": func() (int, error) { return typed(t.Context(), order{"o-1"}) },
	} {
		for i, want := range [][]string{{get, acquire, complete}, {get}} {
			before := len(r.store.allCalls())
			n, err := do()
			if calls := r.store.allCalls()[before:]; n != 5 || err != nil || !slices.Equal(calls, want) {
				t.Errorf("%s, call %d: %d, %v, after the calls %v", name, i+1, n, err, calls)
			}
		}
	}
}

// Reads succeed, and writes are throttled. The record that was looked up forbids the handler to
// run without a lease.
func TestX5_FailOpenKnowsTheRecordThatWasLookedUp(t *testing.T) {
	lookedUp := func(o *lambdaidem.Options) {
		o.FailOpen = true
		o.Repeated = func(*lambdaidem.Request) bool { return true }
	}
	t.Run("steps", func(t *testing.T) {
		steps, fails := 0, true
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { steps++; return 1, nil })
			if fails {
				return response{StatusCode: http.StatusServiceUnavailable}, err
			}
			return response{StatusCode: http.StatusCreated}, err
		}, lookedUp)
		r.send(t, first())
		fails = false
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated || steps != 1 {
			t.Errorf("the retry got %+v; the step ran %d times", out, steps)
		}
	})
	t.Run("held", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }, lookedUp, hold)
			_, _ = r.handler(t.Context(), first())
			time.Sleep(time.Hour)
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
			r.wantRuns(t, 1)
		})
	})
	t.Run("free", func(t *testing.T) {
		r := newRig(nil, lookedUp)
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
			t.Errorf("without a record, the answer is %+v", out)
		}
	})
}

// The record is damaged: every read of it says so. Its handler may have run. Writes are throttled.
// Options.FailOpen says that the handler does not run if the guard has read the record because of
// Repeated, and the record does not permit this call to run.
func TestX5_FailOpenDoesNotRunOverADamagedRecordThatWasLookedUp(t *testing.T) {
	r := newRig(nil, failOpen, lookingUp)
	r.send(t, first()) // the payment is made
	r.store.failAlways(get, refused(lambdaidem.ReasonForeign))
	r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
	out := r.send(t, again(first()))
	r.wantRuns(t, 1)
	if out.StatusCode == http.StatusCreated {
		t.Errorf("the client gets %d %s", out.StatusCode, out.Body)
	}
}

// A state machine puts the RetryCount of its context object into the input.
func TestR5_ARetryOfStepFunctionsIsReplayed(t *testing.T) {
	type input struct {
		ID         string
		RetryCount int
	}
	r := newRig(nil, ignoring("/RetryCount"))
	h := lambdaidem.Handler(r.guard, "charge",
		func(_ context.Context, in input) (string, error) { return in.ID, nil },
		func(context.Context, input) (string, error) { return "paid", nil },
		func(o *lambdaidem.HandlerOptions[input]) {
			o.Repeated = func(_ context.Context, in input) bool { return in.RetryCount > 0 }
		})
	if _, err := h(t.Context(), input{"o-1", 0}); err != nil { // the answer of this call is lost
		t.Fatal(err)
	}
	if got, err := h(t.Context(), input{"o-1", 1}); got != "paid" {
		t.Errorf("the retry of Step Functions gets %q, %v", got, err)
	}
}

// Without Repeated, a request whose context has ended is refused without a request to the store,
// and no error of the store is reported.
func TestR5_ARequestThatCameTooLateIsNotLookedUp(t *testing.T) {
	r := newRig(nil, lookingUp)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, in := range []request{first(), again(first())} {
		r.seen.forget()
		wantProblem(t, r.sendCtx(ctx, t, in), http.StatusServiceUnavailable, lambdaidem.ErrOutOfTime)
		r.wantEvents(t, lambdaidem.EventOutOfTime)
	}
}
