package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A request runs without a lease, because its claim was throttled, although an earlier attempt has
// stored an answer. If the handler fails, the client gets the stored answer.
func TestX5_ARequestThatFailedOpenGetsTheAnswerOfTheRecord(t *testing.T) {
	for name, failure := range map[string]error{
		"not carried out":      lambdaidem.Retryable(errWire),
		"final and not stored": lambdaidem.Retryable(lambdaidem.Reject(http.StatusPaymentRequired, "no_limit", "Not now.")),
		"final and stored":     noPayment,
		"not marked":           errWire,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(status(http.StatusCreated), failOpen)
			r.send(t, first())
			r = r.later(func(context.Context, request) (response, error) { return response{}, failure })
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			if out := r.send(t, first()); out.StatusCode != http.StatusCreated || !replayed(out) {
				t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
			}
			if kinds := r.seen.kinds(); !slices.Equal(kinds[len(kinds)-2:], []lambdaidem.Kind{lambdaidem.EventLeaseLost, lambdaidem.EventReplayed}) {
				t.Errorf("the observer saw %v", kinds)
			}
		})
	}
}

// A handler runs without a lease, because of FailOpen, and fails. The record is of a request with
// another payload. The handler may have called another service, so the client is told not to use a
// new key.
func TestX5_AFailureAfterFailOpenBesideAnotherPayload(t *testing.T) {
	hold := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }
	outcome := func(of503 lambdaidem.Outcome) func(*lambdaidem.Options) {
		return func(o *lambdaidem.Options) {
			o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
				if r.Status == http.StatusServiceUnavailable {
					return of503
				}
				return lambdaidem.DefaultOutcome(r)
			}
		}
	}
	for name, c := range map[string]struct {
		option func(*lambdaidem.Options)
		out    response
		err    error
	}{
		"402":             {quiet, response{}, noPayment},
		"402, released":   {quiet, response{}, lambdaidem.Retryable(noPayment)},
		"402, uncertain":  {quiet, response{}, lambdaidem.Uncertain(noPayment)},
		"error":           {quiet, response{}, errWire},
		"error, hold":     {hold, response{}, errWire},
		"500, hold":       {hold, response{StatusCode: 500}, nil},
		"503, uncertain":  {outcome(lambdaidem.OutcomeUncertain), response{StatusCode: 503}, nil},
		"503, to be kept": {outcome(lambdaidem.OutcomeSucceeded), response{StatusCode: 503}, nil},
	} {
		for _, transactions := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, transactions: %v", name, transactions), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, l := withLedger(status(http.StatusCreated), failOpen, c.option)
					if !transactions {
						r = newRig(status(http.StatusCreated), failOpen, c.option)
						l = &ledger{faulty: r.store}
					}
					r.send(t, post("k-1", `{"amount":2}`))
					l.fail(acquire, refused(lambdaidem.ReasonThrottled))
					wantNoNewKey(t, r.later(func(context.Context, request) (response, error) { return c.out, c.err }).send(t, post("k-1", `{"amount":3}`)))
				})
			})
		}
	}
}

// A request has been answered, and a copy of it fails open. Its handler does not know whether it
// had an effect. The client gets the stored answer. If the record can't be read, the client gets
// the handler's failure, unless it is final.
func TestX5_AnUncertainFailureAfterFailOpenReadsTheRecord(t *testing.T) {
	for name, c := range map[string]struct {
		failure    error
		read       fault
		wantStatus int
		wantEvent  lambdaidem.Kind
	}{
		"402":                 {lambdaidem.Uncertain(noPayment), after(func() { time.Sleep(300 * time.Millisecond) }), http.StatusCreated, lambdaidem.EventReplayed},
		"503":                 {lambdaidem.Uncertain(lambdaidem.Reject(503, "later", "Later.")), nil, http.StatusCreated, lambdaidem.EventReplayed},
		"402, no reply":       {lambdaidem.Uncertain(noPayment), requestLost, http.StatusServiceUnavailable, lambdaidem.EventStoreError},
		"504, no reply":       {lambdaidem.Uncertain(lambdaidem.Reject(504, "later", "Later.")), requestLost, http.StatusGatewayTimeout, lambdaidem.EventStoreError},
		"402, the read hangs": {lambdaidem.Uncertain(noPayment), hangs, http.StatusServiceUnavailable, lambdaidem.EventStoreError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(status(http.StatusCreated), failOpen)
				r.send(t, first())
				ctx, hangUp := context.WithCancel(t.Context())
				r = r.later(func(context.Context, request) (response, error) { hangUp(); return response{}, c.failure })
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				r.store.fail(get, c.read)
				start := time.Now()
				out := r.sendCtx(ctx, t, first())
				if out.StatusCode != c.wantStatus {
					t.Errorf("the client is told %d %s; want %d", out.StatusCode, out.Body, c.wantStatus)
				}
				last := r.seen.last(t)
				if name == "402" && last.Store != 300*time.Millisecond {
					t.Errorf("the event has %v in the store", last.Store)
				}
				kinds := r.seen.kinds()
				if last.Kind == lambdaidem.EventReplayed && kinds[len(kinds)-2] != lambdaidem.EventLeaseLost {
					t.Errorf("the observer saw %v", kinds)
				}
				if !slices.Contains(kinds[len(kinds)-2:], c.wantEvent) {
					t.Errorf("the observer saw %v; want %s", kinds, c.wantEvent)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// An attempt fails open. While its handler runs, the client retries, and the retry is told a final
// failure and releases the record. The first attempt must not succeed after that.
func TestX5_AnAttemptThatFailedOpenDoesNotSucceedAfterALaterOneFailed(t *testing.T) {
	for _, pause := range []time.Duration{time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, l := withLedger(nil, failOpen)
			h := r.guarded(enlisting(func(context.Context) (response, error) {
				time.Sleep(pause)
				retry := r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Retryable(noPayment) })
				if out := retry.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
					t.Errorf("the retry is told %d %s", out.StatusCode, out.Body)
				}
				return response{StatusCode: http.StatusCreated}, nil
			}))
			l.fail(acquire, refused(lambdaidem.ReasonThrottled))
			out, err := h(t.Context(), first())
			if err != nil {
				t.Fatal(err)
			}
			wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
			l.wantDone(t)
		})
	}
}

// startAnother sends a request whose handler has begun when startAnother returns. The handler waits
// until finish is called, and then ends with 201.
func (r *rig) startAnother(t *testing.T) (finish func()) {
	began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	other := r.guarded(func(context.Context, request) (response, error) {
		close(began)
		<-goOn
		return response{StatusCode: http.StatusCreated}, nil
	})
	go func() {
		defer close(done)
		if out, err := other(context.WithoutCancel(t.Context()), first()); err != nil || out.StatusCode != http.StatusCreated {
			t.Errorf("the other attempt: %+v, %v", out, err)
		}
	}()
	<-began
	return func() { close(goOn); <-done }
}

// A request fails open while another attempt runs. The client gets the result of the request if
// it is a success, or a failure that the client may retry. It must not get a final failure,
// because it would stop retrying, and the other attempt may still succeed.
func TestX5_AFinalFailureThatFailedOpenIsNotSentBesideAnotherAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(context.Context, request) (response, error)
		want int
	}{
		"final": {func(context.Context, request) (response, error) { return response{}, noPayment }, http.StatusConflict},
		"beside a refusal": {func(context.Context, request) (response, error) {
			return response{}, errors.Join(&lambdaidem.Error{Code: lambdaidem.ErrInProgress, Status: http.StatusLocked}, noPayment)
		}, http.StatusConflict},
		"stored": {func(context.Context, request) (response, error) { return response{}, lambdaidem.Permanent(errWire) }, http.StatusConflict},
		"201":    {status(http.StatusCreated), http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, failOpen)
			finish := r.startAnother(t)
			r = r.later(c.ends)
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			out := r.send(t, first())
			finish()
			if out.StatusCode != c.want {
				t.Errorf("the client is told %d %s; want %d", out.StatusCode, out.Body, c.want)
			}
		})
	}
}

// A client uses a key twice. The second request can't be claimed, so its handler runs without a
// lease and charges a card. The transaction then finds the record of the first request. The client
// must not be told to use a new key, which would charge the card again.
func TestX5_AMismatchAfterARunAsksForNoNewKey(t *testing.T) {
	charged := 0
	r, l := withLedger(enlisting(func(ctx context.Context) (response, error) { charged++; return created(ctx) }), failOpen)
	r.send(t, post("k-1", `{"amount":2}`))
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	wantNoNewKey(t, r.send(t, post("k-1", `{"amount":3}`)))
	if e := r.seen.last(t); e.Kind != lambdaidem.EventMismatch || e.Err == nil {
		t.Errorf("the event is %+v", e)
	}
	if charged != 2 {
		t.Errorf("the handler charged %d times", charged)
	}
	l.wantDone(t, "write")
}

// wantNoNewKey checks that out is a mismatch whose detail doesn't ask for a new key.
func wantNoNewKey(t *testing.T, out response) {
	t.Helper()
	wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	if !strings.Contains(out.Body, "Do not send it with a new key") || strings.Contains(out.Body, "Send a new key") {
		t.Errorf("the client is told %s", out.Body)
	}
}

// An optimistic handler whose writes are dropped has had no effect, unless it made a guarded call.
func TestE4_AMismatchAfterAGuardedCallAsksForNoNewKey(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic)
	r.send(t, post("k-1", `{"amount":2}`))
	other := post("k-1", `{"amount":3}`)
	if out := r.send(t, other); !strings.Contains(out.Body, "Send a new key") {
		t.Errorf("without a guarded call, the client is told %s", out.Body)
	}
	inner := lambdaidem.New(newFaulty(), quiet)
	next := r.later(enlisting(func(ctx context.Context) (response, error) {
		if _, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Error(err)
		}
		return created(ctx)
	}))
	wantNoNewKey(t, next.send(t, other))
	l.wantDone(t, "write")
}
