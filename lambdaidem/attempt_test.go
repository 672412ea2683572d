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

// ambiguous makes the call and then reports a conflict with another transaction, so the guard can't
// know whether the call was applied. It returns the error of the call if there is one.
func ambiguous(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	if _, err := call(); err != nil {
		return lambdaidem.Record{}, err
	}
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonConflict, Err: errWire}
}

// leaseLost makes no call and reports that another attempt has taken the lease.
func leaseLost(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
}

// MinRunTime applies only to a call that has waited for another attempt. Any other call runs,
// however little time is left.
func TestL8_MinRunTimeIsForThoseThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, waiting(time.Minute), func(o *lambdaidem.Options) { o.MinRunTime = 10 * time.Second })
		for _, end := range []handler{status(500), status(201)} { // the first finds no record, the second a released record
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			want, err := end(ctx, first())
			if err != nil {
				t.Fatal(err)
			}
			out, err := r.guarded(end)(ctx, first())
			if err != nil || out.StatusCode != want.StatusCode {
				t.Errorf("with a second left it got %+v, %v", out, err)
			}
			cancel()
		}
		r.wantRuns(t, 2)
	})
}

// A call that is refused because of another transaction releases the lease that its own claim may
// have acquired.
func TestX9_GivingWayGivesBackTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.store.fail(acquire, ambiguous)
		r.store.failAlways(acquire, refused(lambdaidem.ReasonConflict))
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		r.wantRuns(t, 0)
		r.wantState(t, lambdaidem.Released)
		r.store.failAlways(acquire, nil)
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
			t.Errorf("the retry got %+v", out)
		}
	})
}

// The handler's context ends before Options.Outcome is called and before the record is finished.
// Work that the handler left running in its context must not have an effect after the record is
// finished.
func TestX7_TheHandlersContextEndsBeforeItsRecordIsFinished(t *testing.T) {
	for _, code := range []int{201, 500} {
		var kept context.Context
		alive := func(where string) {
			if kept.Err() == nil {
				t.Errorf("%d: the handler's context is alive at the %s", code, where)
			}
		}
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			kept = ctx //nolint:fatcontext // the test checks that this context ends
			return response{StatusCode: code}, nil
		}, func(o *lambdaidem.Options) {
			o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
				alive("rule")
				return lambdaidem.DefaultOutcome(r)
			}
		})
		at := func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			alive(verb)
			return call()
		}
		r.store.fail(complete, at)
		r.store.fail(release, at)
		r.send(t, first())
		if n := r.store.count(complete) + r.store.count(release); n != 1 {
			t.Errorf("%d: the record was finished %d times", code, n)
		}
	}
}

// An attempt outlives its record, and a request with another payload acquires a record under the
// same key. The first attempt then gets ErrPayloadMismatch, and not ErrInProgress, even if the
// other attempt is still in progress.
func TestX6_LeaseLostToAnotherPayload(t *testing.T) {
	for name, winner := range map[string]handler{
		"completed":   status(201),
		"in progress": func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(context.Context, request) (response, error) {
					time.Sleep(lambdaidem.MinTTL + 2*time.Minute) // until the lease and the record have expired, ignoring the end of the context
					if _, err := r.guarded(winner)(t.Context(), post("key-1", "{}")); err != nil && !errors.Is(err, errWire) {
						t.Errorf("the winner: %v", err)
					}
					return response{StatusCode: 201, Body: "loser"}, nil
				}, func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
				wantProblem(t, r.send(t, first()), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
			})
		})
	}
}

// A run without a lease, because of Options.FailOpen, may have no record to release. A failed
// release is therefore not reported as an error of the store. EventReleased is sent all the same,
// because a retry runs the handler again.
func TestX5_AFailedOpenReleaseIsTold(t *testing.T) {
	r := newRig(status(500), failOpen)
	r.store.failAlways(acquire, refused(lambdaidem.ReasonUnreachable))
	r.store.failAlways(release, requestLost)
	if out := r.send(t, first()); out.StatusCode != 500 {
		t.Errorf("the answer is %+v", out)
	}
	r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventFailedOpen, lambdaidem.EventReleased)
}

// If the guard answers in place of the handler, the caller gets the guard's answer, even if the
// handler returned a final error such as a rejection.
func TestX4_NoErrorOfTheHandlerHidesTheGuardsAnswer(t *testing.T) {
	for name, own := range map[string]error{
		"rejected":  lambdaidem.Reject(404, "no_order", "There is no such order."),
		"permanent": lambdaidem.Permanent(errors.New("no such card")),
	} {
		t.Run(name+", completion lost", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { return response{}, own })
				r.store.failAlways(complete, requestLost)
				wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)

				c := newCharges()
				c.store.failAlways(complete, requestLost)
				_, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (int, error) { return 0, own })
				if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("Do returned %v", err)
				}
				h := lambdaidem.Handler(c.guard, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil },
					func(context.Context, order) (receipt, error) { return receipt{}, own })
				if _, err := h(t.Context(), order{"o-1"}); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("the typed handler returned %v", err)
				}
			})
		})
		t.Run(name+", lease lost", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				winner := response{StatusCode: 202, Body: "winner"}
				r = newRig(func(context.Context, request) (response, error) {
					time.Sleep(leaseWithoutDeadline) // ignoring the end of the context
					if _, err := r.guarded(func(context.Context, request) (response, error) { return winner, nil })(t.Context(), first()); err != nil {
						t.Error(err)
					}
					return response{}, own
				})
				wantReplay(t, r.send(t, first()), winner)

				c := newCharges()
				n, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (int, error) {
					time.Sleep(leaseWithoutDeadline)
					if _, err := c.do(t, charge); err != nil {
						t.Error(err)
					}
					return 7, own
				})
				if n != 1 || err != nil {
					t.Errorf("Do returned %d, %v; want what the winner stored", n, err)
				}
			})
		})
	}
}

// If the claim was not applied, the release finds no lease. That is not reported as a second error
// of the store.
func TestX5_NothingToGiveBackIsNoError(t *testing.T) {
	r := newRig(nil)
	r.store.fail(acquire, requestLost)
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
	r.wantEvents(t, lambdaidem.EventStoreError)
	if n := r.store.count(release); n != 1 {
		t.Errorf("it released %d times", n)
	}
}
