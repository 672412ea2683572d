package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file have a request that fails open and fails for good, or for now. After its
// run the store replies to some requests only, or with errors that may pass. The client must not be
// told of the failure while another attempt carries out the request, or has carried it out.

// A duplicate's transaction is in progress when the final failure is to be stored. The next try gets
// no reply.
func TestX9_AFinalFailureThatFailedOpenConflictsAndThenGetsNoReply(t *testing.T) {
	for name, failure := range finalFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(status(http.StatusCreated), failOpen)
				r.send(t, first())
				r = r.later(func(context.Context, request) (response, error) { return response{}, failure })
				r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
				r.store.fail(complete, refused(lambdaidem.ReasonConflict), requestLost)
				r.store.fail(release, refused(lambdaidem.ReasonConflict), requestLost)
				if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
				}
			})
		})
	}
}

// The same, but with a transaction.
func TestX9_AFinalFailuresTransactionConflictsAndThenGetsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		duplicate := r.later(status(http.StatusCreated))
		l.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		l.fail(commit, refused(lambdaidem.ReasonConflict), func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			duplicate.send(t, first())
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "commit", Reason: lambdaidem.ReasonUnreachable, Err: errWire}
		})
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// A transaction of another attempt is in progress as long as the release has time.
func TestX9_ErrRetryableIsNotFoundAfterFailOpenDuringATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, failOpen)
		r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		r.store.failAlways(release, refused(lambdaidem.ReasonConflict))
		_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
		if errors.Is(err, lambdaidem.ErrRetryable) {
			t.Errorf("the caller gets %v", err)
		}
	})
}

// Everything is throttled for a moment. Another attempt holds the lease and charges. The request has
// a minute left, and the record could be read with the next try.
func TestX5_AFailureAfterFailOpenWaitsForAThrottledRead(t *testing.T) {
	for name, failure := range map[string]error{
		"released":  lambdaidem.Retryable(noPayment),
		"retryable": lambdaidem.Retryable(errWire),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, failOpen)
				charged, began, goOn, done := 0, make(chan struct{}), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					_, err := lambdaidem.Do(context.WithoutCancel(t.Context()), r.guard, charge, func(context.Context) (int, error) {
						close(began)
						<-goOn
						charged++
						return 1, nil
					})
					if err != nil {
						t.Error(err)
					}
				}()
				<-began
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				r.store.fail(release, refused(lambdaidem.ReasonThrottled))
				r.store.fail(get, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, failure })
				close(goOn)
				<-done
				if charged == 1 && (errors.Is(err, lambdaidem.ErrRetryable) || errors.Is(err, lambdaidem.Code("payment_failed"))) {
					t.Errorf("the charge is made, and the caller is told %v", err)
				}
			})
		})
	}
}

// The transaction that stores the 402 fails with an internal error, and so does the read. Another
// attempt has charged already.
func TestX5_AFinalFailureAfterFailOpenIsNotToldAfterOneFailedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		r.later(status(http.StatusCreated)).send(t, first())
		l.fail(acquire, refused(lambdaidem.ReasonThrottled))
		l.fail(commit, refused(lambdaidem.ReasonUnknown))
		l.fail(get, refused(lambdaidem.ReasonThrottled))
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// The table throttles the transaction that stores the 402, and one of the next requests gets no
// reply. Another attempt has charged already.
func TestX5_AFinalFailureAfterFailOpenIsThrottledAndThenGetsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		r.later(status(http.StatusCreated)).send(t, first())
		l.fail(acquire, refused(lambdaidem.ReasonThrottled))
		l.fail(commit, refused(lambdaidem.ReasonThrottled), requestLost)
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// The same after FailOpen, while another attempt holds the lease and charges.
func TestX5_AMarked402IsNotSentAfterFailOpenBesideAnotherAttempt(t *testing.T) {
	for name, failure := range map[string]error{"uncertain": lambdaidem.Uncertain(noPayment), "retryable": lambdaidem.Retryable(noPayment)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, failOpen)
				other := r.later(func(context.Context, request) (response, error) {
					time.Sleep(10 * time.Second)
					return response{StatusCode: http.StatusCreated}, nil
				})
				done := make(chan struct{})
				go func() { defer close(done); other.send(t, first()) }()
				time.Sleep(time.Second)
				r = r.later(func(context.Context, request) (response, error) { return response{}, failure })
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
				}
				<-done
			})
		})
	}
}
