package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The function of a Do charges a card, makes a guarded call of its own, and returns the error of
// that call. The caller of the Do must find no code in the error that says that the function had no
// effect, or it would charge another card.
func TestX2_DoShowsNoCodeOfACallInsideItsFunction(t *testing.T) {
	other := lambdaidem.Call{Operation: "receipt", Key: "order-1"}
	one := func(context.Context) (int, error) { return 1, nil }
	for name, inside := range map[string]struct {
		code lambdaidem.Code
		call func(context.Context, *rig) error
	}{
		"retryable": {lambdaidem.ErrRetryable, func(ctx context.Context, r *rig) error {
			_, err := lambdaidem.Do(ctx, r.guard, other, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
			return err
		}},
		"joined": {lambdaidem.ErrRetryable, func(context.Context, *rig) error {
			return errors.Join(lambdaidem.Retryable(errWire), errBroken)
		}},
		"unavailable": {lambdaidem.ErrStoreUnavailable, func(ctx context.Context, r *rig) error {
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			_, err := lambdaidem.Do(ctx, r.guard, other, one)
			return err
		}},
		"mismatch": {lambdaidem.ErrPayloadMismatch, func(ctx context.Context, r *rig) error {
			_, _ = lambdaidem.Do(ctx, r.guard, other, one)
			c := other
			c.Payload = 2
			_, err := lambdaidem.Do(ctx, r.guard, c, one)
			return err
		}},
	} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				charged := 0
				r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = policy })
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
						charged++
						return 1, inside.call(ctx, r)
					})
					if errors.Is(err, inside.code) {
						c := charge
						c.Operation = "charge another card"
						_, err = lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { charged++; return 1, nil })
					}
					if err != nil {
						return response{}, err
					}
					return response{StatusCode: 201}, nil
				})
				out, err := r.handler(t.Context(), first())
				if charged > 1 {
					t.Errorf("charged %d times: %d %s, %v", charged, out.StatusCode, out.Body, err)
				}
			})
		}
	}
}

// The same holds for a Do that no guarded handler makes.
func TestX2_AnOutermostDoShowsNoCodeOfACallInsideItsFunction(t *testing.T) {
	r := newRig(nil)
	_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "k"}, func(context.Context) (int, error) { return 1, nil })
		if !errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("the inner call returned %v", err)
		}
		return 0, err
	})
	if own := (*lambdaidem.Error)(nil); err == nil || errors.Is(err, lambdaidem.ErrStoreUnavailable) || errors.As(err, &own) {
		t.Errorf("the outer call returned %v", err)
	}
}

// The caller of a Do finds what the function of a Do inside has returned, except for marks and
// refusals.
func TestX2_DoShowsTheApplicationsErrors(t *testing.T) {
	r := newRig(nil)
	for name, returned := range map[string]error{"plain": errWire, "retryable": lambdaidem.Retryable(errWire), "rejected": noPayment, "type": wireError{7}} {
		t.Run(name, func(t *testing.T) {
			_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "charge", Key: name}, func(ctx context.Context) (int, error) {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "reserve", Key: name}, func(context.Context) (int, error) { return 0, returned })
				return 0, err
			})
			switch own, typed := (*lambdaidem.Error)(nil), (wireError{}); name {
			case "rejected":
				if !errors.As(err, &own) || own.Status != 402 {
					t.Errorf("Do returned %v", err)
				}
			case "type":
				if !errors.As(err, &typed) || typed.line != 7 || !errors.Is(err, wireError{7}) {
					t.Errorf("Do returned %v", err)
				}
			default:
				if !errors.Is(err, errWire) || errors.Is(err, errBroken) || errors.Is(err, lambdaidem.ErrRetryable) {
					t.Errorf("Do returned %v", err)
				}
			}
		})
	}
}

type wireError struct{ line int }

func (e wireError) Error() string { return "the wire is cut" }

// Outside a guarded handler too, Do shows no code of a step inside its function: the caller would take
// ErrAnswerUnreadable for a statement about the whole payment, which is released.
func TestX2_AnOutermostDoShowsNoCodeOfAStep(t *testing.T) {
	r := newRig(nil)
	_, _ = lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
		_, _ = lambdaidem.Step(ctx, "card", func(context.Context) (string, error) { return "receipt", nil })
		return 0, errBroken
	})
	_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
		return lambdaidem.Step(ctx, "card", func(context.Context) (int, error) { return 1, nil }) // the type has changed
	})
	if err == nil || errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
		t.Errorf("the error is %v", err)
	}
}

// What the guard itself says of a call of Do outside a guarded handler is an *Error.
func TestX2_AnOutermostRefusalIsAnError(t *testing.T) {
	r, l := withLedger(nil)
	do := func(amount int, fn func(context.Context) (int, error)) error {
		c := charge
		c.Payload = amount
		_, err := lambdaidem.Do(t.Context(), r.guard, c, fn)
		return err
	}
	l.fail(commit, rejects(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500}))
	for _, c := range []struct {
		code lambdaidem.Code
		err  error
	}{
		{lambdaidem.ErrConditionFailed, do(1, func(ctx context.Context) (int, error) {
			enlist(ctx, "stock")
			return 1, nil
		})},
		{"sold_out", func() error {
			_ = do(1, func(context.Context) (int, error) { return 0, lambdaidem.Reject(409, "sold_out", "No.") })
			return do(1, answersOne) // a replay
		}()},
		{lambdaidem.ErrPayloadMismatch, do(2, answersOne)},
	} {
		if e, ok := c.err.(*lambdaidem.Error); !ok || e.Code != c.code { //nolint:errorlint // the error itself
			t.Errorf("the error is a %T, %v; want an *Error with the code %s", c.err, c.err, c.code)
		}
	}
}

// The caller of an outermost Do finds a mark only if it has decided the outcome: a caller that found
// ErrRetryable after a payment whose outcome is unknown would pay in another way.
func TestX2_AnOutermostDoShowsOnlyTheMarkThatDecided(t *testing.T) {
	retryable, permanent := lambdaidem.Retryable(errWire), lambdaidem.Permanent(errBroken)
	for name, c := range map[string]struct {
		returned             error
		retryable, permanent bool
	}{
		"retryable":            {retryable, true, false},
		"permanent":            {permanent, false, true},
		"wrapped":              {fmt.Errorf("pay: %w", permanent), false, true},
		"retryable, permanent": {errors.Join(retryable, permanent), false, true},
		"retryable, uncertain": {errors.Join(retryable, lambdaidem.Uncertain(errBroken)), false, false},
		"permanent, uncertain": {errors.Join(permanent, lambdaidem.Uncertain(errWire)), false, false},
		"own code, two marks":  {errors.Join(lambdaidem.Code("declined"), permanent, lambdaidem.Uncertain(errWire)), false, false},
		"uncertain inside":     {lambdaidem.Permanent(lambdaidem.Uncertain(errWire)), false, false},
		"retryable, no mark":   {errors.Join(retryable, errBroken), false, false},
		"retryable, hidden":    {hiddenError{retryable}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lambdaidem.Do(t.Context(), newRig(nil).guard, charge, func(context.Context) (int, error) { return 0, c.returned })
			if errors.Is(err, lambdaidem.ErrRetryable) != c.retryable || errors.Is(err, lambdaidem.ErrPermanent) != c.permanent {
				t.Errorf("Do returned %v: retryable %t, permanent %t; want %t, %t", err,
					errors.Is(err, lambdaidem.ErrRetryable), errors.Is(err, lambdaidem.ErrPermanent), c.retryable, c.permanent)
			}
			if err.Error() != c.returned.Error() || errors.Is(c.returned, errWire) && !errors.Is(err, errWire) {
				t.Errorf("Do returned %v; want the text and the errors of %v", err, c.returned)
			}
		})
	}
}

// The caller of an outermost Do finds no code of a call inside either if an error type of the function
// shows the code only by one of its methods Is and As.
func TestX2_AnOutermostDoShowsNoCodeThatAMethodFinds(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"Is":          func(err error) error { return comparedError{err} },
		"As":          func(err error) error { return hiddenError{err} },
		"As the code": func(err error) error { return hiddenError{firstCode(err)} },
		"As *Error":   func(err error) error { return ownError{err} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "k"}, answersOne)
				refusal, _ := errors.AsType[*lambdaidem.Error](err)
				return 0, with(refusal)
			})
			_, isRefusal := errors.AsType[*lambdaidem.Error](err)
			_, hasCode := errors.AsType[lambdaidem.Code](err)
			if err == nil || errors.Is(err, lambdaidem.ErrStoreUnavailable) || isRefusal || hasCode {
				t.Errorf("Do returned %v, in which the caller finds the refusal of the call inside", err)
			}
		})
	}
}

func firstCode(err error) error {
	code, _ := errors.AsType[lambdaidem.Code](err)
	return code
}

// comparedError is an error type without the methods Unwrap and As.
type comparedError struct{ err error }

func (e comparedError) Error() string        { return e.err.Error() }
func (e comparedError) Is(target error) bool { return errors.Is(e.err, target) }

// ownError is an error type that shows only the *Error inside it.
type ownError struct{ err error }

func (e ownError) Error() string { return e.err.Error() }

func (e ownError) As(target any) bool {
	to, ok := target.(**lambdaidem.Error)
	return ok && errors.As(e.err, to)
}
