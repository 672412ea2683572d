package lambdaidem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests in this file have a request whose attempt runs without a lease. The attempt begins ten
// seconds before the record's answer expires, and its handler returns after the answer has expired.

// withLease returns a guard like that of r, whose attempts take a lease.
func (r *rig) withLease() *lambdaidem.Guard {
	return r.guard.With(func(o *lambdaidem.Options) { o.Optimistic, o.FailOpen = false, false })
}

// sendBefore guards h with a lease, sends in, and waits until ten seconds before the answer expires.
func (r *rig) sendBefore(t *testing.T, in request, h handler) {
	t.Helper()
	if _, err := r.withLease().APIGatewayV2(h)(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	time.Sleep(24*time.Hour - 10*time.Second) // the default of Options.TTL is 24 hours
}

// sendAfter guards h with a lease, and sends in two seconds after the answer has expired.
func (r *rig) sendAfter(t *testing.T, in request, h handler) {
	go func() {
		time.Sleep(12 * time.Second)
		if _, err := r.withLease().APIGatewayV2(h)(t.Context(), in); err != nil {
			t.Error(err)
		}
	}()
}

func unavailable(context.Context) (response, error) { return response{StatusCode: 503}, nil }

// The request was answered. After the answer has expired, another request takes the record over and
// is released. The attempt without a lease fails for good. Its client is not told so, because it
// would not ask again.
func TestX5_AFinalFailureIsNotToldIfAnAnswerMayHaveBeenReplaced(t *testing.T) {
	for name, failure := range map[string]error{
		"stored":   lambdaidem.Reject(402, "card_declined", "no money"),
		"released": lambdaidem.Retryable(lambdaidem.Reject(402, "card_declined", "no money")),
	} {
		t.Run(name, func(t *testing.T) {
			for kind, option := range map[string]func(*lambdaidem.Options){"optimistic": optimistic, "failed open": failOpen} {
				synctest.Test(t, func(t *testing.T) {
					r, l := withLedger(afterwards(20*time.Second, func(context.Context) (response, error) { return response{}, failure }), option)
					r.sendBefore(t, first(), enlisting(created))
					r.sendAfter(t, first(), enlisting(unavailable))
					if kind == "failed open" {
						l.fail(acquire, requestLost)
					}
					wantProblem(t, r.send(t, first()), 409, lambdaidem.ErrInProgress)
					l.wantDone(t, "write")
				})
			}
		})
	}
}

// As before, but the other request has another payload, and its record refuses this one. The client
// is not told to use a new key: the request was answered before.
func TestV3_AMismatchAsksForNoNewKeyIfAnAnswerMayHaveBeenReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(afterwards(20*time.Second, created), optimistic)
		r.sendBefore(t, first(), enlisting(created))
		r.sendAfter(t, post("key-1", `{"amount":7}`), func(ctx context.Context, _ request) (response, error) {
			_ = lambdaidem.DownstreamKey(ctx, "bank")
			return unavailable(ctx)
		})
		out := r.send(t, first())
		wantProblem(t, out, 422, lambdaidem.ErrPayloadMismatch)
		if strings.Contains(out.Body, "Send a new key") {
			t.Errorf("the client is told %s", out.Body)
		}
		l.wantDone(t, "write")
	})
}

// As before, but the attempt's failure is not final. Its client gets it, and asks again.
func TestX5_AFailureThatIsNotFinalIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(afterwards(20*time.Second, unavailable), failOpen)
		r.sendBefore(t, first(), enlisting(created))
		r.sendAfter(t, first(), enlisting(unavailable))
		l.fail(acquire, requestLost)
		if out := r.send(t, first()); out.StatusCode != 503 || out.Body != "" {
			t.Errorf("%+v", out)
		}
	})
}

// The answer that has expired is a failure. The attempt succeeds, and its client gets its answer.
func TestX5_ASuccessIsToldAlthoughAFailureExpiredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) {
			time.Sleep(20 * time.Second)
			return response{StatusCode: 201}, nil
		}, failOpen)
		r.sendBefore(t, first(), status(402))
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
			t.Errorf("%+v", out)
		}
	})
}

// The attempt's claim is sent after the answer has expired, because the look-up of a repeated request
// takes long, and arrives after the attempt has ended. The process withdraws it.
func TestX10_ALateClaimIsWithdrawnAlthoughAnAnswerExpiredMeanwhile(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, failOpen, func(o *lambdaidem.Options) { o.Policy = policy })
				do := func(key string, repeated bool, err error) error {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "pay", Key: key, Repeated: repeated}, func(context.Context) (int, error) { return 1, err })
					return err
				}
				if err := do("k", false, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(24*time.Hour - 2*time.Second)
				r.store.fail(get, hangs)
				r.store.fail(acquire, requestLost)
				if err := do("k", true, lambdaidem.Retryable(errBroken)); !errors.Is(err, errBroken) {
					t.Errorf("the repeated call gets %v", err)
				}
				claims := r.store.allClaims()
				if _, err := r.store.Store.Acquire(t.Context(), claims[len(claims)-1]); err != nil {
					t.Fatal(err)
				}
				for range 40 { // calls with other keys, which withdraw the claim
					time.Sleep(time.Minute)
					if err := do("other", false, nil); err != nil {
						t.Fatal(err)
					}
				}
				if err := do("k", false, nil); err != nil {
					t.Errorf("40 minutes later: %v", err)
				}
			})
		})
	}
}

// The attempt's claim arrives between the completion that finds no record and the read after it. The
// client gets the attempt's own failure: no other attempt exists.
func TestX5_AnAttemptsOwnLateClaimIsNoOtherAttempt(t *testing.T) {
	r := newRig(status(402), failOpen)
	r.store.fail(acquire, requestLost)
	r.store.fail(get, func(ctx context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		if _, err := r.store.Store.Acquire(ctx, r.store.allClaims()[0]); err != nil {
			t.Error(err)
		}
		return call()
	})
	if out := r.send(t, first()); out.StatusCode != 402 || replayed(out) {
		t.Errorf("%+v", out)
	}
}
