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

// The key function panics because of the payload, so no inner call was made. The client corrects
// its request and keeps the key, as it may after a release without effects.
func TestF5_APanicOfAKeyFunctionBindsNothing(t *testing.T) {
	for name, fails := range map[string]func() (string, error){
		"error": func() (string, error) { return "", errors.New("the customer has no account") },
		"panic": func() (string, error) { panic("the customer has no account") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			h := lambdaidem.Handler(r.guard, "charge", func(_ context.Context, body string) (string, error) {
				if body == `{"amount":1}` {
					return fails()
				}
				return "order-1", nil
			}, func(context.Context, string) (int, error) { return 1, nil })
			r = r.later(func(ctx context.Context, in request) (out response, err error) {
				defer func() {
					if recover() != nil {
						out = response{StatusCode: http.StatusInternalServerError}
					}
				}()
				if _, err := h(ctx, in.Body); err != nil {
					return response{StatusCode: http.StatusInternalServerError}, nil
				}
				return response{StatusCode: http.StatusCreated}, nil
			})
			r.send(t, post("k-1", `{"amount":1}`))
			if out := r.send(t, post("k-1", `{"amount":2}`)); out.StatusCode != http.StatusCreated {
				t.Errorf("the corrected request gets %d %s", out.StatusCode, out.Body)
			}
		})
	}
}

// The same happens without recover: the panic ends the outer handler.
func TestF5_APanicOfAKeyFunctionThatIsNotRecoveredBindsNothing(t *testing.T) {
	r := newRig(nil)
	h := lambdaidem.Handler(r.guard, "charge", func(_ context.Context, body string) (string, error) {
		if body == `{"amount":1}` {
			panic("nil map")
		}
		return "order-1", nil
	}, func(context.Context, string) (int, error) { return 1, nil })
	r = r.later(func(ctx context.Context, in request) (out response, err error) {
		if _, err := h(ctx, in.Body); err != nil {
			return response{StatusCode: http.StatusInternalServerError}, nil //nolint:nilerr // the handler answers for itself
		}
		return response{StatusCode: http.StatusCreated}, nil
	})
	func() {
		defer func() { _ = recover() }()
		_, _ = r.handler(t.Context(), post("k-1", `{"amount":1}`))
	}()
	if out := r.send(t, post("k-1", `{"amount":2}`)); out.StatusCode != http.StatusCreated {
		t.Errorf("the corrected request gets %d %s", out.StatusCode, out.Body)
	}
}

// The inner call charges in a step, which is stored. Then it fails and is released.
func TestX4_AReleasedInnerCallHidesNoStoredStep(t *testing.T) {
	for name, failure := range map[string]error{"no mark": errWire, "retryable": lambdaidem.Retryable(errWire)} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(nil)
			r = r.later(payOr402(func(ctx context.Context) error {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
					_, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { charged++; return 1, nil })
					if err != nil {
						return 0, err
					}
					return 0, failure // before the next step
				})
				return err
			}))
			wantNo402(t, r)
			if charged != 1 {
				t.Errorf("charged %d times", charged)
			}
		})
	}
}

// A function of the application panics when the guard calls it before the inner handler.
func TestX4_APanicBeforeAnInnerRequestIsServedSettlesNothing(t *testing.T) {
	down := false
	failing := func() {
		if down {
			panic("lookup failed")
		}
	}
	for name, opt := range map[string]func(*lambdaidem.Options){
		"skip": func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { failing(); return false } },
		"optional key": func(o *lambdaidem.Options) {
			o.KeyOptional = true
			o.Key = func(context.Context, *lambdaidem.Request) (string, error) { failing(); return "order-1", nil }
		},
		"key": func(o *lambdaidem.Options) {
			o.Key = func(context.Context, *lambdaidem.Request) (string, error) { failing(); return "order-1", nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			down = false
			r := newRig(nil)
			h := r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "inner" }, opt).APIGatewayV2(status(http.StatusCreated))
			if _, err := h(t.Context(), first()); err != nil { // the charge is made
				t.Fatal(err)
			}
			down = true
			wantNo402(t, r.later(payOr402(func(ctx context.Context) error { _, err := h(ctx, first()); return err })))
		})
	}
}

// A request fails open beside another attempt. Its final failure is one that is not stored.
func TestX5_AFinalFailureThatIsReleasedIsNotSentBesideAnotherAttempt(t *testing.T) {
	r := newRig(nil, failOpen)
	finish := r.startAnother(t)
	r = r.later(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Retryable(lambdaidem.Reject(http.StatusPaymentRequired, "no_limit", "Not now."))
	})
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	out := r.send(t, first())
	finish()
	if out.StatusCode == http.StatusPaymentRequired {
		t.Errorf("the client is told %d while another attempt runs, which then succeeds", out.StatusCode)
	}
}

// The record is held: an attempt under Hold has an unknown outcome, and an operator must decide. A
// duplicate fails open and ends with a final failure.
func TestX5_AFailureBesideAHeldRecordIsNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newRig(func(context.Context, request) (response, error) {
			if n++; n == 1 {
				return response{}, lambdaidem.Uncertain(context.DeadlineExceeded) // after the request to the bank
			}
			return response{}, noPayment
		}, failOpen, hold)
		_, _ = r.handler(t.Context(), first())
		time.Sleep(2 * leaseWithoutDeadline)
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		wantNo402(t, r)
	})
}

// noHold is a store whose Hold fails, for example because it is throttled.
type noHold struct {
	*faulty
	down  bool
	holds int
}

func (s *noHold) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	if s.holds++; s.down {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "hold", Reason: lambdaidem.ReasonThrottled, NotApplied: true, Err: errWire}
	}
	return s.faulty.Store.(lambdaidem.Holder).Hold(ctx, oldRec, now)
}

// The record's expiry can't be removed. If the client were told that an operator must decide, it
// would wait, and the handler would run again after the TTL.
func TestL6_AHoldThatFailsIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, runs := &noHold{faulty: newFaulty(), down: true}, 0
		rerun := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
		pay := func(g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) {
				runs++
				return 0, lambdaidem.Uncertain(errWire)
			})
			return err
		}
		_ = pay(rerun)
		time.Sleep(time.Hour)
		holding := rerun.With(hold)
		if err := pay(holding); !errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("Hold fails: %v; want %v", err, lambdaidem.ErrStoreUnavailable)
		}
		store.down = false
		for range 2 {
			if err := pay(holding); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
				t.Errorf("the next retry: %v; want %v", err, lambdaidem.ErrAttemptAbandoned)
			}
			time.Sleep(48 * time.Hour)
		}
		if runs != 1 || store.holds != 2 {
			t.Errorf("the handler ran %d times, and %d requests held the record; want 1, and 2: the one that failed and another", runs, store.holds)
		}
	})
}

// racing is a store in which something happens between the guard's read of a record and its Hold.
type racing struct {
	*faulty
	before func()
}

func (s *racing) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.faulty.Store.(lambdaidem.Holder).Hold(ctx, oldRec, now)
}

// Versions under Rerun and Hold run side by side. Another attempt has taken over and completed
// the record since the version under Hold has read it. No operator can decide it then.
func TestL6_AHoldThatComesLateSeesWhatTheRecordIs(t *testing.T) {
	for name, c := range map[string]struct {
		ends error // the result of the other attempt
		want error
	}{
		"completed":   {nil, nil},
		"in progress": {lambdaidem.Uncertain(errWire), lambdaidem.ErrInProgress},
		"released":    {errWire, lambdaidem.ErrInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &racing{newFaulty(), nil}
				rerun := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
				_, _ = lambdaidem.Do(t.Context(), rerun, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
				time.Sleep(time.Hour)
				store.before = func() {
					_, _ = lambdaidem.Do(t.Context(), rerun, charge, func(context.Context) (int, error) { return 7, c.ends })
				}
				got, err := lambdaidem.Do(t.Context(), rerun.With(hold), charge, func(context.Context) (int, error) { return 8, nil })
				if !errors.Is(err, c.want) || c.want == nil && (err != nil || got != 7) {
					t.Errorf("%d, %v; want 7 or %v", got, err, c.want)
				}
			})
		})
	}
}

// unloadable is a store that keeps answers separately and can no longer load them.
type unloadable struct{ *faulty }

func (s unloadable) Release(ctx context.Context, l lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	rec, err := s.faulty.Release(ctx, l, now)
	if rec.State == lambdaidem.Completed {
		rec.Result.Value, rec.Result.Apart = nil, "elsewhere"
	}
	return rec, err
}

func (s unloadable) Load(ctx context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	<-ctx.Done()
	return rec.Result, &lambdaidem.StoreError{Op: "load", Reason: lambdaidem.ReasonTimeout, NotApplied: true, Err: ctx.Err()}
}

// A request fails open during an outage, and its handler fails. The record has an answer, which
// can't be loaded. The request must still be answered before the invocation's deadline.
func TestL8_AnAnswerThatCantBeLoadedDelaysNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, runs := unloadable{newFaulty()}, 0
		g := lambdaidem.New(store, failOpen, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
		h := g.APIGatewayV2(func(context.Context, request) (response, error) {
			if runs++; runs == 1 {
				return response{StatusCode: http.StatusCreated}, nil
			}
			return response{StatusCode: http.StatusBadGateway}, nil
		})
		_, _ = h(t.Context(), first())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		out, err := h(ctx, first())
		if ctx.Err() != nil {
			t.Errorf("the answer %d, %v comes after the invocation's deadline", out.StatusCode, err)
		}
	})
}
