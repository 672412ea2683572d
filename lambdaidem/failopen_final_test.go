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

// The tests of this file have a request that fails open, and whose handler returns a final failure,
// such as a 402. The client stops retrying after it. So the client must not get the failure if
// another attempt may carry out the request.

// A call fails open in each state of its record, and its function returns a final failure or an
// error that is marked with Retryable. Then the store replies or fails in many ways. The caller is
// told of the failure only if the record shows that no other attempt carries out the call: this
// attempt has stored the failure, or has released the record.
func TestX5_AFinalFailureAfterFailOpenIsToldOnlyIfTheRecordIsThisAttempts(t *testing.T) {
	failures := map[string]error{
		"402":            noPayment,
		"402, released":  lambdaidem.Retryable(noPayment),
		"402, uncertain": lambdaidem.Uncertain(noPayment),
		"retryable":      lambdaidem.Retryable(errWire),
	}
	claims := map[string]fault{"throttled": refused(lambdaidem.ReasonThrottled), "no request": requestLost, "no reply": lostReply}
	faults := map[string]fault{
		"none": nil, "throttled": refused(lambdaidem.ReasonThrottled), "internal error": refused(lambdaidem.ReasonUnknown),
		"conflict": refused(lambdaidem.ReasonConflict), "no permission": refused(lambdaidem.ReasonPermission), "no request": requestLost, "no reply": lostReply,
	}
	stored, released := 0, 0
	try := func(t *testing.T, failure string, begin func(*testing.T, *lambdaidem.Guard) func(), claim, once, then string, transactions bool) {
		_, l := withLedger(nil)
		var store lambdaidem.Store = l
		if !transactions {
			store = l.faulty
		}
		g := lambdaidem.New(store, failOpen, quiet)
		finish := begin(t, g)
		defer finish()
		l.forgetClaims()
		l.fail(acquire, claims[claim])
		for _, verb := range []string{complete, commit, release} {
			l.fail(verb, faults[once])
			l.failAlways(verb, faults[then])
		}
		_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, failures[failure] })
		l.endFaults()
		if !errors.Is(err, lambdaidem.Code("payment_failed")) && !errors.Is(err, lambdaidem.ErrRetryable) {
			return
		}
		rec := (&rig{store: l.faulty}).record(t)
		switch own := rec.Token == l.allClaims()[0].Token; {
		case own && rec.State == lambdaidem.Completed:
			stored++
		case own && rec.State == lambdaidem.Released:
			released++
		default:
			t.Errorf("%s; the claim: %s, then %s, then %s; transactions: %v: the caller is told %v, and the record is %q", failure, claim, once, then, transactions, err, rec.State)
		}
	}
	for state, begin := range states {
		t.Run(state, func(t *testing.T) {
			for failure := range failures {
				for claim := range claims {
					for once := range faults {
						for then := range faults {
							for _, transactions := range []bool{true, false} {
								synctest.Test(t, func(t *testing.T) { try(t, failure, begin, claim, once, then, transactions) })
							}
						}
					}
				}
			}
		})
	}
	if stored == 0 || released == 0 {
		t.Errorf("%d failures were told and stored, %d told and released", stored, released)
	}
}

// states are what may have become of a record when its next call fails open. Each function brings
// the record into one state, and returns a function to run after that call.
var states = map[string]func(*testing.T, *lambdaidem.Guard) (finish func()){
	"no record": func(*testing.T, *lambdaidem.Guard) func() { return func() {} },
	"in progress": func(t *testing.T, g *lambdaidem.Guard) func() {
		goOn, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			wantCharged(t, g, charge, func() { <-goOn })
		}()
		synctest.Wait()
		return func() { close(goOn); <-done }
	},
	"completed": func(t *testing.T, g *lambdaidem.Guard) func() {
		wantCharged(t, g, charge, func() {})
		return func() {}
	},
	"left by an attempt that died": func(t *testing.T, g *lambdaidem.Guard) func() {
		_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
		if err == nil {
			t.Error("no error")
		}
		time.Sleep(5 * time.Minute) // the lease ends
		return func() {}
	},
	"of another payload": func(t *testing.T, g *lambdaidem.Guard) func() {
		other := charge
		other.Payload = order{"o-2"}
		wantCharged(t, g, other, func() {})
		return func() {}
	},
}

func wantCharged(t *testing.T, g *lambdaidem.Guard, call lambdaidem.Call, wait func()) {
	t.Helper()
	_, err := lambdaidem.Do(context.WithoutCancel(t.Context()), g, call, func(context.Context) (int, error) { wait(); return 1, nil })
	if err != nil {
		t.Error(err)
	}
}

// lostReply is a fault in which the call happens, whatever its result, and its reply is lost.
func lostReply(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	_, _ = call()
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonTimeout, Err: errWire}
}

// The requests that store the final failure fail, and then one gets through. The failure is stored
// and told.
func TestX5_AFinalFailureAfterFailOpenIsStoredWhenErrorsHavePassed(t *testing.T) {
	for name, faults := range map[string][]fault{
		"an internal error":         {refused(lambdaidem.ReasonUnknown)},
		"throttled, then no reply":  {refused(lambdaidem.ReasonThrottled), requestLost},
		"a conflict, then no reply": {refused(lambdaidem.ReasonConflict), requestLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				l.fail(commit, faults...)
				if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
					t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
				}
				if rec := r.record(t); rec.State != lambdaidem.Completed {
					t.Errorf("the record is %s; want %s", rec.State, lambdaidem.Completed)
				}
			})
		})
	}
}

// The table throttles everything. A success is told after one write.
func TestX5_ASuccessAfterFailOpenDoesNotWait(t *testing.T) {
	for name, c := range map[string]struct {
		claim fault
		store lambdaidem.Reason
	}{
		"throttled":                         {refused(lambdaidem.ReasonThrottled), lambdaidem.ReasonThrottled},
		"a conflict":                        {refused(lambdaidem.ReasonThrottled), lambdaidem.ReasonConflict},
		"throttled after a claim, no reply": {requestLost, lambdaidem.ReasonThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(status(http.StatusCreated), failOpen)
				r.store.fail(acquire, c.claim)
				r.store.failAlways(complete, refused(c.store))
				start := time.Now()
				out := r.send(t, first())
				if took, writes, reads := time.Since(start), r.store.count(complete), r.store.count(get); out.StatusCode != http.StatusCreated || took > 0 || writes != 1 || reads != 0 {
					t.Errorf("the client is told %d after %v, %d writes and %d reads", out.StatusCode, took, writes, reads)
				}
			})
		})
	}
}

// A final failure is reported as uncertain if there is no record to release, or to complete without
// a transaction.
func TestX5_AFinalFailureAfterFailOpenWithoutARecordIsUncertain(t *testing.T) {
	for name, failure := range finalFailures {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, failure }, failOpen)
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
			r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventFailedOpen, lambdaidem.EventUncertain)
		})
	}
}

// The database rejects the handler's writes, and the verdict is a success. It is stored, so that a
// retry gets it too.
func TestX5_AVerdictAfterFailOpenThatIsASuccessIsStored(t *testing.T) {
	r, l := withLedger(enlisting(created), failOpen)
	l.fail(acquire, refused(lambdaidem.ReasonThrottled))
	l.fail(commit, rejects(lambdaidem.Answer(response{StatusCode: http.StatusOK, Body: "already"})))
	if out := r.send(t, first()); out.StatusCode != http.StatusOK {
		t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
	}
	r.wantState(t, lambdaidem.Completed)
}

// The store replies to no request that stores the final failure, or replies with an error. The
// client learns that the outcome is unknown after Options.CleanupTimeout, or before the invocation's
// deadline if the handler returns late. It need not wait for the end of a lease before it retries,
// unless the attempt may have acquired one.
func TestX5_AFinalFailureAfterFailOpenThatIsNotStoredIsUnknownInTime(t *testing.T) {
	handlers := map[string]func(context.Context){
		"at once": func(context.Context) {},
		"late":    func(ctx context.Context) { <-ctx.Done() },
	}
	replies := map[string]fault{
		"throttled":  refused(lambdaidem.ReasonThrottled),
		"a conflict": refused(lambdaidem.ReasonConflict),
		"none":       hangs,
	}
	for name, end := range handlers {
		for reply, storing := range replies {
			for claim, claiming := range map[string]fault{"refused": refused(lambdaidem.ReasonThrottled), "unknown": requestLost} {
				t.Run(name+", "+reply+", claim "+claim, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
							end(ctx)
							return response{}, noPayment
						}, failOpen)
						l.fail(acquire, claiming)
						l.failAlways(commit, storing)
						start := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						defer cancel()
						out := r.sendCtx(ctx, t, first())
						wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
						if took := time.Since(start); ctx.Err() != nil || name == "at once" && took > 2*time.Second {
							t.Errorf("it took %v", took)
						}
						if wait := retryAfter(t, out); name == "at once" && (wait > time.Second) != (claim == "unknown") {
							t.Errorf("the client is to wait %v", wait)
						}
					})
				})
			}
		}
	}
}

// The database reports a conflict with another attempt's transaction, and throttles the next claim.
func TestX9_AConflictThatIsFollowedByThrottlingDoesNotFailOpen(t *testing.T) {
	for name, failure := range map[string]error{"402": noPayment, "402 released": lambdaidem.Retryable(noPayment), "201": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				r, l := withLedger(func(context.Context, request) (response, error) {
					ran++
					return response{StatusCode: 201}, failure
				}, failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonConflict))
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				if out := r.send(t, first()); ran > 0 {
					t.Errorf("ran %d times after a conflict, and told the client %d", ran, out.StatusCode)
				}
			})
		})
	}
}

// The claim lands, and its reply is lost, so the request fails open. Its handler charges. While the
// guard stores the answer, a duplicate's transaction is writing the record, and is refused, because
// the record is in progress. So the conflict passes at once, and a second try would store the
// answer.
func TestX5_ASuccessUnderItsOwnClaimIsStoredAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged := 0
		r, l := withLedger(func(context.Context, request) (response, error) {
			charged++
			return response{StatusCode: 201}, nil
		}, failOpen)
		l.fail(acquire, replyLost)
		l.fail(complete, refused(lambdaidem.ReasonConflict))
		r.send(t, first())
		time.Sleep(5 * time.Minute)
		out := r.send(t, first()) // the client has not received the answer
		if charged != 1 {
			t.Errorf("charged %d times, told %d", charged, out.StatusCode)
		}
	})
}
