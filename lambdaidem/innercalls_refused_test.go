package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// mismatched makes the call charge with one payload, and returns the guard's refusal of another.
func (r *rig) mismatched(ctx context.Context, t testing.TB) error {
	t.Helper()
	with := func(payload int) error {
		call := charge
		call.Payload = payload
		_, err := lambdaidem.Do(ctx, r.guard, call, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	if err := with(1); err != nil {
		t.Error(err)
	}
	err := with(2)
	if !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("the second charge returned %v", err)
	}
	return err
}

// keyless returns the guard's refusal of an inner call without a key.
func (r *rig) keyless(ctx context.Context, _ testing.TB) error {
	_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge"}, func(context.Context) (int, error) { return 1, nil })
	return err
}

// A client that received the refusal of an inner call would take it for a refusal of its own
// request, and would send the request with a new key. The request would then be carried out twice.
func TestX2_ARefusedInnerCallIsNotTheClientsMistake(t *testing.T) {
	refusals := map[string]func(*rig, context.Context, testing.TB) error{"another payload": (*rig).mismatched, "no key": (*rig).keyless}
	for name, refusal := range refusals {
		for mark, c := range map[string]struct {
			by     func(error) error
			status int // 0: the server gets the error
		}{
			"as it is":  {func(err error) error { return err }, 0},
			"wrapped":   {func(err error) error { return errors.Join(errWire, err) }, 0},
			"uncertain": {lambdaidem.Uncertain, 0},
			"retryable": {lambdaidem.Retryable, http.StatusServiceUnavailable},
			"permanent": {lambdaidem.Permanent, http.StatusInternalServerError},
			"in its words": {func(error) error {
				return lambdaidem.Reject(http.StatusConflict, lambdaidem.ErrPrincipalUnknown, "The order has changed.")
			}, http.StatusConflict},
			"in own words": {func(error) error {
				return lambdaidem.Reject(http.StatusConflict, "order_changed", "The order has changed.")
			}, http.StatusConflict},
		} {
			t.Run(name+", "+mark, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) { return response{}, c.by(refusal(r, ctx, t)) })
				out, err := r.handler(t.Context(), first())
				if strings.Contains(out.Body, "idempotency_payload_mismatch") || strings.Contains(out.Body, "idempotency_key_missing") || out.StatusCode != c.status {
					t.Errorf("the client gets %d %s", out.StatusCode, out.Body)
				}
				if (err != nil) != (c.status == 0) {
					t.Errorf("the server gets %v", err)
				}
			})
		}
	}
}

// If an inner call is in progress, the client receives ErrInProgress, because it should repeat its
// request later, as if the request itself were in progress.
func TestX2_AnInnerCallInProgressReachesTheClient(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) { return response{}, r.charged(ctx) })
	defer r.busy(t)()
	wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
}

func TestX2_AnAbandonedInnerCallReachesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		holding := r.guard.With(hold)
		call := func(ctx context.Context) error {
			_, err := lambdaidem.Do(ctx, holding, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
			return err
		}
		_ = call(t.Context())
		time.Sleep(time.Hour)
		r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, call(ctx) })
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrAttemptAbandoned)
	})
}

// An order is an inner call, and stores the refusal of a call inside it as its own failure. The
// client must not receive that refusal from a replay of the order either.
func TestX2_AStoredRefusalOfAnInnerCallIsNotTheClientsMistake(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		var err error
		for range 2 {
			_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
				return 0, lambdaidem.Permanent(r.mismatched(ctx, t))
			})
		}
		return response{}, err
	})
	wantProblem(t, r.send(t, first()), http.StatusInternalServerError, lambdaidem.ErrPermanent)
}

// The invoker of a typed handler, such as a state machine that catches error codes, must not
// receive the code of a refused inner call. It does receive a code that the handler itself chose.
func TestX2_ARefusedInnerCallIsNotTheInvokersMistake(t *testing.T) {
	for name, c := range map[string]struct {
		by   func(error) error
		want string
	}{
		"as it is":  {func(err error) error { return err }, "Error"},
		"permanent": {lambdaidem.Permanent, "Error"},
		"retryable": {lambdaidem.Retryable, "Error"},
		"uncertain": {lambdaidem.Uncertain, "Error"},
		"in words":  {func(error) error { return lambdaidem.Reject(http.StatusConflict, "order_changed", "It has.") }, "order_changed"},
	} {
		r := newRig(nil)
		h := lambdaidem.Handler(lambdaidem.New(memstore.New(), quiet), "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
			func(ctx context.Context, _ order) (int, error) { return 1, c.by(r.mismatched(ctx, t)) })
		if _, errorType, message := invoke(t, h, `{"ID":"o-1"}`); errorType != c.want {
			t.Errorf("%s: Lambda reports %q, %q", name, errorType, message)
		}
	}
}

// An optimistic inner call makes a call of unknown outcome, and then finds its record finished
// with another payload. None of its own writes were made, but the other call may have had its
// effect.
func TestX4_AnOptimisticInnerCallThatLostKeepsWhatIsInside(t *testing.T) {
	for name, c := range map[string]struct {
		inside error // the error of the call inside the order
		want   lambdaidem.State
	}{
		"an unknown call": {lambdaidem.Uncertain(errWire), lambdaidem.InProgress},
		"a settled call":  {lambdaidem.Permanent(errWire), lambdaidem.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r, _ = withLedger(func(ctx context.Context, _ request) (response, error) {
					g := r.guard.With(optimistic)
					call := lambdaidem.Call{Operation: "order", Key: "o-1", Payload: 1}
					_, err := lambdaidem.Do(ctx, g, call, func(ctx context.Context) (int, error) {
						_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.inside })
						first := call
						first.Payload = 2
						if _, err := lambdaidem.Do(t.Context(), g, first, func(ctx context.Context) (int, error) {
							enlist(ctx, "theirs")
							return 2, nil
						}); err != nil {
							t.Error(err)
						}
						enlist(ctx, "ours")
						return 1, nil
					})
					if !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
						t.Errorf("the order returned %v", err)
					}
					return response{StatusCode: http.StatusPaymentRequired}, nil
				})
				r.store.forgetClaims()
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, c.want)
			})
		})
	}
}

// The failure of an inner HTTP handler also counts as a failure when it is replayed, from the store
// or from the cache. It does not bind the outer record to its payload.
func TestF5_AReplayedFailureOfAnInnerHandlerBindsNothing(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){"from the store": func(*lambdaidem.Options) {}, "from the cache": roomy} {
		t.Run(name, func(t *testing.T) {
			inner := newRig(func(context.Context, request) (response, error) {
				return response{StatusCode: http.StatusPaymentRequired}, nil
			}, opt)
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				out, err := inner.handler(ctx, post("inner-1", "{}"))
				if err != nil || out.StatusCode != http.StatusPaymentRequired {
					t.Errorf("the inner handler returned %d, %v", out.StatusCode, err)
				}
				return response{StatusCode: http.StatusBadGateway}, nil
			})
			for _, body := range []string{paid100, paid101, paid102} {
				r.mustRun(t, post("key-1", body))
			}
			inner.wantRuns(t, 1)
		})
	}
}

// However a typed handler marks the refusal of an inner guard, its invoker does not receive the
// cause of the refusal, such as the error of the store.
func TestX5_AMarkedInnerRefusalHidesItsCause(t *testing.T) {
	for name, mark := range map[string]func(error) error{
		"as it is":  func(err error) error { return err },
		"retryable": lambdaidem.Retryable,
		"uncertain": lambdaidem.Uncertain,
		"twice":     func(err error) error { return lambdaidem.Uncertain(lambdaidem.Retryable(err)) },
	} {
		r := newRig(nil)
		h := lambdaidem.Handler(r.guard, "checkout", func(_ context.Context, o order) (string, error) { return o.ID, nil },
			func(ctx context.Context, _ order) (int, error) {
				r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
				return 1, mark(r.charged(ctx))
			})
		if _, errorType, message := invoke(t, h, `{"ID":"o-1"}`); errorType != string(lambdaidem.ErrStoreUnavailable) || strings.Contains(message, "secret") {
			t.Errorf("%s: the invoker sees %s: %s", name, errorType, message)
		}
	}
}
