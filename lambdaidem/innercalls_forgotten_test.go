package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file have a handler that answers 402 if its inner charge failed. The charge
// was made, or may have been made, and the handler can't know that. The 402 must not be stored.

// payOr402 returns a handler that answers 201 if pay succeeds, and 402 if it fails or panics.
func payOr402(pay func(context.Context) error) func(context.Context, request) (response, error) {
	return func(ctx context.Context, _ request) (r response, _ error) {
		defer func() {
			if v := recover(); v != nil {
				r = response{StatusCode: http.StatusPaymentRequired, Body: fmt.Sprint(v)}
			}
		}()
		if err := pay(ctx); err != nil {
			return response{StatusCode: http.StatusPaymentRequired, Body: err.Error()}, nil
		}
		return response{StatusCode: http.StatusCreated}, nil
	}
}

func wantNo402(t *testing.T, r *rig) {
	t.Helper()
	if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
		t.Errorf("the client is told %d %q", out.StatusCode, out.Body)
	}
	if again := r.send(t, first()); again.StatusCode == http.StatusPaymentRequired && replayed(again) {
		t.Errorf("the 402 is stored: %q", again.Body)
	}
}

// The outcome of an earlier attempt of the inner call is unknown. The next attempt of the call
// fails before it reaches the bank, and its record is released.
func TestX4_AReleasedInnerCallHidesNoEarlierAttempt(t *testing.T) {
	for name, second := range map[string]error{"retryable": lambdaidem.Retryable(errWire), "no mark": errWire} {
		t.Run(name+", an attempt of this request", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, tries := newRig(nil), 0
				r = r.later(payOr402(func(ctx context.Context) error {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
						if tries++; tries == 1 {
							return 0, lambdaidem.Uncertain(context.DeadlineExceeded)
						}
						return 0, second
					})
					return err
				}))
				wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				time.Sleep(2 * leaseWithoutDeadline)
				wantNo402(t, r)
				if tries < 2 {
					t.Errorf("the charge was tried %d times", tries)
				}
			})
		})
		t.Run(name+", an attempt of another request", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.failAlways(complete, requestLost)
				_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 1, nil })
				if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				r.store.failAlways(complete, nil)
				time.Sleep(2 * leaseWithoutDeadline)
				wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, second })
					return err
				})))
			})
		})
	}
}

// An attempt of the inner call died in a version that was not optimistic. The next version is
// optimistic, and its function fails before it reaches the bank.
func TestE4_AnOptimisticInnerCallHidesNoDeadAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(nil)
		_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
		if err == nil {
			t.Fatal("the first attempt succeeded")
		}
		time.Sleep(2 * leaseWithoutDeadline)
		inner := r.guard.With(func(o *lambdaidem.Options) { o.Optimistic = true })
		wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
			_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) { return 0, errWire })
			return err
		})))
	})
}

// An inner call is released after a call inside it has had its effect.
func TestX4_AReleasedInnerCallHidesNoCallInsideIt(t *testing.T) {
	r := newRig(nil)
	order := lambdaidem.Call{Operation: "order", Key: "o"}
	wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
		_, err := lambdaidem.Do(ctx, r.guard, order, func(ctx context.Context) (int, error) {
			if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return 0, errWire // after the charge
		})
		return err
	})))
}

// An optimistic inner call is done. Its duplicate fails, and its record can't be read.
func TestE4_AFailureWithoutTheRecordSettlesNoInnerCall(t *testing.T) {
	for name, end := range map[string]func() error{"panic": func() error { panic("nil pointer") }, "error": func() error { return errWire }} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(nil)
			inner := r.guard.With(func(o *lambdaidem.Options) { o.Optimistic = true })
			transfer := func(ctx context.Context, end func() error) error {
				_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
					enlist(ctx, "money")
					return 1, end()
				})
				return err
			}
			if err := transfer(t.Context(), func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			l.wantDone(t, "money")
			wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
				l.fail(get, refused(lambdaidem.ReasonPermission))
				return transfer(ctx, end)
			})))
		})
	}
}

// moody is a result that can't be decoded while moodyPanics is true, as in a new version.
type moody struct{}

func (moody) MarshalJSON() ([]byte, error) { return []byte(`1`), nil }
func (*moody) UnmarshalJSON([]byte) error {
	if moodyPanics {
		panic("a new version can't read it")
	}
	return nil
}

var moodyPanics bool // a variable, because UnmarshalJSON has no parameter for it

// A function of the application panics before the inner call's handler runs. The panic must count
// like an error of the same function: the guard refuses the call, and a retry may succeed.
func TestX4_APanicBeforeAnInnerHandlerSettlesNothing(t *testing.T) {
	defer func() { moodyPanics = false }()
	down := false
	failing := func(value string) string {
		if down {
			panic("lookup failed")
		}
		return value
	}
	for name, pay := range map[string]func(*lambdaidem.Guard) func(context.Context) error{
		"replay": func(g *lambdaidem.Guard) func(context.Context) error {
			return func(ctx context.Context) error {
				moodyPanics = down
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (moody, error) { return moody{}, nil })
				return err
			}
		},
		"replay from the cache": func(g *lambdaidem.Guard) func(context.Context) error {
			g = g.With(func(o *lambdaidem.Options) { o.Cache.Entries = 10 })
			return func(ctx context.Context) error {
				moodyPanics = down
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (moody, error) { return moody{}, nil })
				return err
			}
		},
		"ValidateKey": func(g *lambdaidem.Guard) func(context.Context) error {
			g = g.With(func(o *lambdaidem.Options) { o.ValidateKey = func(string) error { failing(""); return nil } })
			return func(ctx context.Context) error {
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 1, nil })
				return err
			}
		},
		"the key of a Handler": func(g *lambdaidem.Guard) func(context.Context) error {
			h := lambdaidem.Handler(g, "charge", func(context.Context, int) (string, error) { return failing("order-1"), nil },
				func(context.Context, int) (int, error) { return 1, nil })
			return func(ctx context.Context) error { _, err := h(ctx, 1); return err }
		},
		"the principal of a Handler": func(g *lambdaidem.Guard) func(context.Context) error {
			h := lambdaidem.Handler(g, "charge", func(context.Context, int) (string, error) { return "order-1", nil },
				func(context.Context, int) (int, error) { return 1, nil }, func(o *lambdaidem.HandlerOptions[int]) {
					o.Principal = func(context.Context, int) (string, error) { return failing("me"), nil }
				})
			return func(ctx context.Context) error { _, err := h(ctx, 1); return err }
		},
		"the key of a request": func(g *lambdaidem.Guard) func(context.Context) error {
			h := g.With(func(o *lambdaidem.Options) {
				o.Namespace = "inner"
				o.Key = func(context.Context, *lambdaidem.Request) (string, error) { return failing("order-1"), nil }
			}).APIGatewayV2(status(http.StatusCreated))
			return func(ctx context.Context) error { _, err := h(ctx, first()); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			down = false
			r := newRig(nil)
			charge := pay(r.guard)
			if err := charge(t.Context()); err != nil {
				t.Fatal(err)
			}
			down = true
			wantNo402(t, r.later(payOr402(charge)))
		})
	}
}

// The order is optimistic, so its record keeps nothing of an attempt that fails. The first attempt
// makes a charge and fails. Then the handler makes the order again, and now the order fails before
// the charge. In the second case, there is a refusal between the two.
func TestX4_ASecondTryForgetsNoEffectOfTheFirst(t *testing.T) {
	for name, between := range map[string]bool{"at once": false, "after a refusal": true} {
		t.Run(name, func(t *testing.T) {
			r, _ := withLedger(nil)
			inner := r.guard.With(func(o *lambdaidem.Options) { o.Optimistic = true })
			charged, tries := 0, 0
			orderCall := func(ctx context.Context) error {
				_, err := lambdaidem.Do(ctx, inner, lambdaidem.Call{Operation: "order", Key: "o"}, func(ctx context.Context) (int, error) {
					if tries++; tries > 1 {
						return 0, lambdaidem.Retryable(errWire)
					}
					if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
						return 0, err
					}
					return 0, lambdaidem.Retryable(errWire)
				})
				return err
			}
			r = r.later(payOr402(func(ctx context.Context) error {
				_ = orderCall(ctx)
				if between {
					ended, cancel := context.WithCancel(ctx)
					cancel()
					_ = orderCall(ended)
				}
				return orderCall(ctx)
			}))
			if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
				t.Errorf("charged %d times, and the client is told %d", charged, out.StatusCode)
			}
		})
	}
}

// The handler makes the same charge twice. The first call returns the answer. The second call can't
// read it, because its type is another one. The charge was made, so the 402 is not final.
func TestX1_AnAnswerThatOneOfTwoCallsCantReadIsNotFinal(t *testing.T) {
	r := newRig(nil)
	wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
		if err := r.charged(ctx); err != nil {
			t.Error(err)
		}
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (string, error) { return "p-1", nil })
		return err
	})))
}

// The handler makes the same charge twice. The first call returns the answer. The store can't be
// reached when the second call asks for it, and the handler answers 402.
func TestX4_AnAnswerSettlesNoLaterRefusalOfTheSameCall(t *testing.T) {
	r := newRig(nil)
	wantNo402(t, r.later(payOr402(func(ctx context.Context) error {
		if err := r.charged(ctx); err != nil {
			t.Error(err)
		}
		r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
		defer r.store.failAlways(acquire, nil)
		return r.charged(ctx)
	})))
}

// The charge is refused. Then the order succeeds, and a goroutine that it started makes the charge
// after all. The refusal is settled, so the handler's own 402 is stored.
func TestX4_ACallThatIsLeftBehindSettlesAnEarlierRefusal(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("the charge: %v", err)
		}
		ordered, charged := make(chan struct{}), make(chan error)
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o"}, func(ctx context.Context) (int, error) {
			go func() {
				<-ordered
				charged <- r.charged(context.WithoutCancel(ctx))
			}()
			return 1, nil
		})
		close(ordered)
		if err := errors.Join(err, <-charged); err != nil {
			t.Error(err)
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.Completed)
}
