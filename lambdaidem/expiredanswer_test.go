package lambdaidem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests in this file have a request whose attempt runs without a lease. The attempt begins ten
// seconds before the record's answer expires, and its handler returns after the answer has expired.

// withLease returns a guard like that of r, whose attempts take a lease.
func (r *rig) withLease() *lambdaidem.Guard {
	return r.guard.With(func(o *lambdaidem.Options) { o.Optimistic, o.FailOpen = false, false })
}

// sendBefore guards h with a lease, sends in, and waits until ten seconds before the answer
// expires.
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

// finalFailures has two final failures: the record stores one, and is released after the other.
var finalFailures = map[string]error{
	"stored":   lambdaidem.Reject(402, "card_declined", "no money"),
	"released": lambdaidem.Retryable(lambdaidem.Reject(402, "card_declined", "no money")),
}

func unavailable(context.Context) (response, error) { return response{StatusCode: 503}, nil }

// The request was answered. After the answer has expired, another request takes the record over and
// is released. The attempt without a lease fails for good. Its client is not told so, because it
// would not ask again.
func TestX5_AFinalFailureIsNotToldIfAnAnswerMayHaveBeenReplaced(t *testing.T) {
	for name, failure := range finalFailures {
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

// The request was answered. After the answer has expired, a request with another payload takes the
// record. The attempt's client does not get a final failure, and is not told to use a new key.
func TestX5_AFinalFailureIsNotToldIfAnotherPayloadMayHaveReplacedAnAnswer(t *testing.T) {
	for name, failure := range finalFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) {
					time.Sleep(20 * time.Second)
					return response{}, failure
				}, failOpen)
				r.sendBefore(t, first(), status(201))
				r.sendAfter(t, post("key-1", `{"amount":7}`), status(201))
				r.store.fail(acquire, requestLost)
				wantNoNewKey(t, r.send(t, first()))
			})
		})
	}
}

// Another attempt is released while the attempt runs. The attempt's failure is not final, so its
// client gets it, and asks again.
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

// A message that is refused for this reason is not discarded.
func TestV3_AMessageIsKeptIfAnAnswerMayHaveBeenReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(nil, optimistic)
		send := func(g *lambdaidem.Guard, body string, fn func(context.Context) error) (failed int) {
			h := g.SQS(func(ctx context.Context, _ events.SQSMessage) error { return fn(ctx) }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Discard = func(context.Context, events.SQSMessage, error) bool { return true }
			})
			out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q", Body: body}}})
			if err != nil {
				t.Error(err)
			}
			return len(out.BatchItemFailures)
		}
		go func() {
			time.Sleep(2 * time.Second)
			send(r.withLease(), "other", func(ctx context.Context) error {
				_ = lambdaidem.DownstreamKey(ctx, "bank")
				return errBroken
			})
		}()
		failed := send(r.guard, "first", func(ctx context.Context) error {
			time.Sleep(4 * time.Second)
			enlist(ctx, "write")
			return nil
		})
		if failed != 1 {
			t.Errorf("%d messages failed; want 1", failed)
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

// The attempt's claim is sent after the answer has expired, because the look-up of a repeated
// request takes long, and arrives after the attempt has ended. The process withdraws it.
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

// An attempt with a lease begins after the optimistic one and is released. The optimistic handler's
// own panic or error goes on, because nothing replaces it.
func TestE4_AnOptimisticFailureIsNotLostBesideALaterAttempt(t *testing.T) {
	for name, end := range map[string]func() (response, error){
		"panic":     func() (response, error) { panic(errBroken) },
		"error":     func() (response, error) { return response{}, errBroken },
		"uncertain": func() (response, error) { return response{}, lambdaidem.Uncertain(errBroken) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := withLedger(nil, optimistic)
				h := r.guarded(func(context.Context, request) (response, error) {
					time.Sleep(20 * time.Second)
					return end()
				})
				r.sendAfter(t, first(), status(503))
				var passed any // the panic or the error
				func() {
					defer func() {
						if v := recover(); v != nil {
							passed = v
						}
					}()
					_, passed = h(t.Context(), first())
				}()
				if passed != any(errBroken) && !errors.Is(r.seen.last(t).Err, errBroken) {
					t.Errorf("the caller gets %v; the last event is %+v", passed, r.seen.last(t))
				}
			})
		})
	}
}

// The observer panics when the guard reports that a handler is about to run without a lease. The
// handler does not start, so the claim whose reply was lost is withdrawn.
func TestX10_AnObserverThatPanicsBeforeARunWithoutALease(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			r := newRig(status(201), failOpen, func(o *lambdaidem.Options) { o.Policy = policy })
			panics := r.guard.With(func(o *lambdaidem.Options) {
				o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) {
					if e.Kind == lambdaidem.EventFailedOpen {
						panic(errBroken)
					}
				})
			})
			r.store.fail(acquire, replyLost)
			func() {
				defer func() {
					if v := recover(); v != any(errBroken) {
						t.Errorf("recovered %v", v)
					}
				}()
				_, _ = panics.APIGatewayV2(status(201))(t.Context(), first())
			}()
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Errorf("the retry gets %+v", out)
			}
		})
	}
}
