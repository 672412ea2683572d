package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The inner call has a stored step, a charge, and was released. The next try of the call runs
// without its steps, because it failed open or is optimistic, and is released too.
func TestX4_AStepBehindAReleaseIsKnownWithoutALease(t *testing.T) {
	call := lambdaidem.Call{Operation: "charge", Key: "c-1"}
	for _, mode := range []string{"lease", "failopen", "optimistic"} {
		t.Run(mode, func(t *testing.T) {
			var r *rig
			charges, n := 0, 0
			h := func(ctx context.Context, _ request) (response, error) {
				n++
				first := n == 1
				g := r.guard
				if !first && mode == "failopen" {
					g = g.With(func(o *lambdaidem.Options) { o.FailOpen = true })
					r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
				}
				if !first && mode == "optimistic" {
					g = g.With(func(o *lambdaidem.Options) { o.Optimistic = true })
				}
				_, _ = lambdaidem.Do(ctx, g, call, func(ctx context.Context) (int, error) {
					if first {
						if _, err := lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { charges++; return 1, nil }); err != nil {
							t.Error(err)
						}
					}
					return 0, lambdaidem.Retryable(errors.New("limit service is down"))
				})
				if first {
					return response{StatusCode: 503}, nil
				}
				return response{StatusCode: http.StatusPaymentRequired}, nil
			}
			r, _ = withLedger(h)
			r.send(t, first())
			out := r.send(t, first())
			rec := r.record(t)
			if charges == 1 && out.StatusCode == 402 {
				t.Errorf("%s: the client gets a final 402 (%s) though the inner call has charged in a stored step", mode, rec.State)
			}
		})
	}
}

// The inner record belongs to a dead attempt that may have charged. The inner call fails open
// and ends with a final failure / a retryable failure.
func TestX5_AFailureBesideADeadAttemptSettlesNothing(t *testing.T) {
	call := lambdaidem.Call{Operation: "charge", Key: "c-1"}
	for name, end := range map[string]error{
		"stored":   lambdaidem.Reject(402, "declined", ""),
		"released": lambdaidem.Retryable(errors.New("busy")),
	} {
		t.Run(name, func(t *testing.T) {
			clock := newTicker()
			var r *rig
			h := func(ctx context.Context, _ request) (response, error) {
				g := r.guard.With(func(o *lambdaidem.Options) { o.FailOpen = true })
				r.store.next[acquire] = []fault{refused(lambdaidem.ReasonUnreachable)}
				_, _ = lambdaidem.Do(ctx, g, call, func(context.Context) (int, error) { return 0, end })
				return response{StatusCode: http.StatusPaymentRequired}, nil
			}
			r = newRig(h, clock.option)
			_, _ = lambdaidem.Do(t.Context(), r.guard, call, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
			r.store.forgetClaims()
			clock.advance(time.Hour)
			out := r.send(t, first())
			if out.StatusCode == 402 {
				t.Errorf("%s: 402 is final", name)
			}
		})
	}
}

// An attempt dies under Rerun. Hold is deployed together with another setting of fingerprints,
// so a retry of the same request gets 422, because the payloads can't be compared.
func TestL6_ARecordThatCantBeComparedIsHeldToo(t *testing.T) {
	const ttl = 24 * time.Hour
	now, runs := time.Now(), 0
	store := memstore.New()
	mk := func(f func(o *lambdaidem.Options)) *lambdaidem.Guard {
		return lambdaidem.New(store, func(o *lambdaidem.Options) {
			o.Namespace, o.TTL, o.Clock, o.Observer = "n", ttl, func() time.Time { return now }, lambdaidem.Discard
		}, f)
	}
	do := func(g *lambdaidem.Guard) error {
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k", Payload: map[string]int{"amount": 1}}, func(context.Context) (int, error) {
			runs++
			return 0, lambdaidem.Uncertain(errors.New("no reply from the bank"))
		})
		return err
	}
	_ = do(mk(func(*lambdaidem.Options) {}))
	holding := mk(func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold
		o.FingerprintSecrets = [][]byte{make([]byte, 32)}
	})
	for _, after := range []time.Duration{ttl - time.Hour, time.Hour + time.Minute} {
		now = now.Add(after)
		if err := do(holding); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
			t.Errorf("%v later: %v; want %v", after, err, lambdaidem.ErrPayloadMismatch)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times under Hold", runs)
	}
}

// A guard that can't compare the payloads does not hold a record whose attempt still runs.
func TestL6_ARecordThatCantBeComparedIsNotHeldWhileItsAttemptRuns(t *testing.T) {
	store := memstore.New()
	mk := func(f func(o *lambdaidem.Options)) *lambdaidem.Guard {
		return lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "n", lambdaidem.Discard }, f)
	}
	plain, holding := mk(func(*lambdaidem.Options) {}), mk(func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold
		o.FingerprintSecrets = [][]byte{make([]byte, 32)}
	})
	pay := lambdaidem.Call{Operation: "pay", Key: "k", Payload: map[string]int{"amount": 1}}
	id := plain.RecordID(lambdaidem.Identity{Namespace: "n", Operation: pay.Operation, Key: pay.Key})
	got, err := lambdaidem.Do(t.Context(), plain, pay, func(context.Context) (int, error) {
		_, err := lambdaidem.Do(t.Context(), holding, pay, func(context.Context) (int, error) { return 2, nil })
		if !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
			t.Errorf("while the attempt runs: %v; want %v", err, lambdaidem.ErrPayloadMismatch)
		}
		rec, err := store.Get(t.Context(), id, time.Now())
		if err != nil || rec.State != lambdaidem.InProgress || rec.Held() {
			t.Errorf("the record is %s, held: %t, %v; want it in progress and not held", rec.State, rec.Held(), err)
		}
		return 1, nil
	})
	if got != 1 || err != nil {
		t.Errorf("the attempt: %d, %v; want 1", got, err)
	}
}

// The record is released with a stored step, a charge. The retry fails open, and its handler ends
// with a final 402.
func TestX5_AFinalFailureIsNotSentOverStoredSteps(t *testing.T) {
	for _, writes := range []bool{false, true} {
		n, charges := 0, 0
		h := func(ctx context.Context, _ request) (response, error) {
			if n++; n == 1 {
				_, _ = lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { charges++; return 1, nil })
				return response{StatusCode: 503}, nil
			}
			if writes {
				enlist(ctx, "w").whenFailed = true
			}
			return response{StatusCode: 402}, nil
		}
		r, _ := withLedger(h, func(o *lambdaidem.Options) { o.FailOpen = true })
		r.send(t, first())
		r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		out := r.send(t, first())
		if out.StatusCode == 402 {
			t.Errorf("writes=%v: final 402, though the guard has seen that the record has a stored charge", writes)
		}
	}
}

type holdFails struct{ *ledger }

func (holdFails) Hold(context.Context, lambdaidem.Record, time.Time) (lambdaidem.Record, error) {
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "hold", Reason: lambdaidem.ReasonUnreachable, Err: errWire}
}

// Under Hold and FailOpen, the handler has run with an enlisted write, and the record can't be
// held. The client must not be told that the request was not carried out.
func TestL6_AHoldThatFailsAfterTheHandlerRan(t *testing.T) {
	clock := newTicker()
	outside := 0
	die := true
	h := func(ctx context.Context, _ request) (response, error) {
		if die {
			return response{}, lambdaidem.Uncertain(errWire)
		}
		outside++
		enlist(ctx, "w")
		return response{StatusCode: 201}, nil
	}
	r, l := withLedger(h, clock.option)
	_, _ = r.handler(t.Context(), first())
	die = false
	clock.advance(time.Hour)
	r.guard = lambdaidem.New(holdFails{l}, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Policy, o.FailOpen = "test", r.seen, lambdaidem.Hold, true
	}, clock.option)
	r.handler = r.guarded(h)
	r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
	out := r.send(t, first())
	l.wantDone(t)
	wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
	if outside != 1 {
		t.Errorf("the handler ran %d times", outside)
	}
}

// Two goroutines of the handler make the same inner call. One call has the answer, the other is
// refused: while the first is running, or so late that its refusal is recorded after the answer. The
// handler answers 422, perhaps because of the refusal, so the 422 is not stored.
func TestX4_ARefusalBesideAnAnswerOfTheSameCallIsNotSettled(t *testing.T) {
	call := lambdaidem.Call{Operation: "charge", Key: "c-1"}
	for _, late := range []bool{false, true} {
		for policy, want := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
			t.Run(fmt.Sprintf("late %t, %s", late, policy), func(t *testing.T) {
				var r *rig
				h := func(ctx context.Context, _ request) (response, error) {
					refusal, goOn := make(chan error, 1), make(chan struct{})
					_, err := lambdaidem.Do(ctx, r.guard, call, func(context.Context) (int, error) {
						asked := make(chan struct{})
						if late {
							r.store.fail(acquire, func(_ context.Context, _ string, f func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
								rec, err := f()
								close(asked)
								<-goOn
								return rec, err
							})
						}
						go func() {
							_, err := lambdaidem.Do(ctx, r.guard, call, func(context.Context) (int, error) { return 2, nil })
							refusal <- err
							if !late {
								close(asked)
							}
						}()
						<-asked
						return 1, nil
					})
					close(goOn)
					if refused := <-refusal; err != nil || !errors.Is(refused, lambdaidem.ErrInProgress) {
						t.Errorf("the calls end with %v and %v", err, refused)
					}
					return response{StatusCode: http.StatusUnprocessableEntity}, nil
				}
				r = newRig(h, func(o *lambdaidem.Options) { o.Policy = policy })
				wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				r.wantState(t, want)
			})
		}
	}
}

// As above, in a handler that is itself an inner call. The calls are numbered across both handlers.
func TestX4_ARefusalBesideAnAnswerInsideAnInnerCallIsNotSettled(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
			refused := make(chan error, 1)
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
				refused <- r.charged(ctx)
				return 1, nil
			})
			if late := <-refused; err != nil || !errors.Is(late, lambdaidem.ErrInProgress) {
				t.Errorf("the calls end with %v and %v", err, late)
			}
			return 0, noPayment
		})
		if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("the order: %v", err)
		}
		return response{StatusCode: http.StatusBadGateway}, nil
	})
	r.send(t, first())
}
