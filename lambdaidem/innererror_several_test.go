package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// errorList is like the error that the method Unwrap returns in github.com/hashicorp/go-multierror:
// only its methods As and Is find the errors in it.
type errorList []error

func severalErrors(errs ...error) error { return errorList(errs) }

func (e errorList) Error() string {
	var all []string
	for _, one := range e {
		all = append(all, one.Error())
	}
	return fmt.Sprintf("%d errors occurred: %s", len(all), strings.Join(all, "; "))
}

// Unwrap returns a list of the errors after the first one.
func (e errorList) Unwrap() error {
	if len(e) == 1 {
		return nil
	}
	return e[1:]
}

func (e errorList) As(target any) bool   { return errors.As(e[0], target) }
func (e errorList) Is(target error) bool { return errors.Is(e[0], target) }

func answersOne(context.Context) (int, error) { return 1, nil }

// The caller finds nothing of the refusal of a call inside the function, whatever the type of the error
// that the function returns.
func TestX2_DoShowsNoCodeOfACallInsideSeveralErrors(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"first":  func(err error) error { return severalErrors(err, errBroken) },
		"second": func(err error) error { return severalErrors(errBroken, err) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "order-1"}, answersOne)
					return 0, with(err)
				})
				if errors.Is(err, lambdaidem.ErrStoreUnavailable) {
					t.Error("errors.Is finds the code")
				}
				var (
					code      lambdaidem.Code
					refusal   *lambdaidem.Error
					byStore   *lambdaidem.StoreError
					several   errorList
					temporary interface{ Temporary() bool }
				)
				if errors.As(err, &code) || code != "" {
					t.Errorf("errors.As finds the code %q", code)
				}
				if errors.As(err, &refusal) || refusal != nil {
					t.Errorf("errors.As finds the refusal %v", refusal)
				}
				if errors.As(err, &byStore) || byStore != nil {
					t.Errorf("errors.As finds what the store said: %v", byStore)
				}
				if !errors.As(err, &several) || !errors.Is(err, errBroken) {
					t.Errorf("the function's own errors are not in %v", err)
				}
				if errors.As(err, &temporary) {
					t.Errorf("errors.As finds %v", temporary)
				}
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
		})
	}
}

// The invoker of a typed handler reads nothing of the refusal of a call inside the handler.
func TestX2_TheInvokerReadsNothingOfARefusalAmongSeveralErrors(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"released":  func(err error) error { return severalErrors(err, errBroken) },
		"permanent": func(err error) error { return lambdaidem.Permanent(severalErrors(errBroken, err)) },
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(nil)
			receipt := lambdaidem.Call{Operation: "receipt", Key: "r", Payload: 1}
			_, _ = lambdaidem.Do(t.Context(), r.guard, receipt, answersOne)
			receipt.Payload = 2
			h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
				func(ctx context.Context, _ order) (int, error) {
					charged++
					_, err := lambdaidem.Do(ctx, r.guard, receipt, answersOne)
					return 0, with(err)
				})
			_, errorType, text := invoke(t, h, `{"ID":"o-1"}`)
			if strings.Contains(text, "Send a new key") {
				t.Errorf("charged %d, and the invoker is told %q: %q", charged, errorType, text)
			}
		})
	}
}

// A mark counts if errors.As finds it. Under Hold, the errors beside a mark may come from a call that
// had an effect, so Retryable does not release the record.
func TestX2_AMarkAmongSeveralErrorsCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		policy lambdaidem.Policy
		want   lambdaidem.State
	}{
		{"uncertain", severalErrors(errBroken, lambdaidem.Uncertain(errWire)), lambdaidem.Rerun, lambdaidem.InProgress},
		{"permanent", severalErrors(errBroken, lambdaidem.Permanent(errWire)), lambdaidem.Rerun, lambdaidem.Completed},
		{"retryable", severalErrors(errBroken, lambdaidem.Retryable(errWire)), lambdaidem.Rerun, lambdaidem.Released},
		{"retryable", severalErrors(errBroken, lambdaidem.Retryable(errWire)), lambdaidem.Hold, lambdaidem.InProgress},
		{"retryable alone", wholeError{lambdaidem.Retryable(errWire)}, lambdaidem.Hold, lambdaidem.Released},
		{"retryable wrapped", wholeError{fmt.Errorf("again: %w", lambdaidem.Retryable(errWire))}, lambdaidem.Hold, lambdaidem.Released},
		{"retryable joined", wholeError{errors.Join(lambdaidem.Retryable(errWire))}, lambdaidem.Hold, lambdaidem.Released},
		{"retryable beside nothing", pair{nil, lambdaidem.Retryable(errWire)}, lambdaidem.Hold, lambdaidem.Released},
	} {
		t.Run(c.name+" "+string(c.policy), func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, c.err }, func(o *lambdaidem.Options) { o.Policy = c.policy })
			out, _ := r.handler(t.Context(), first())
			r.wantState(t, c.want)
			if c.want == lambdaidem.Released {
				wantProblem(t, out, 503, lambdaidem.ErrRetryable)
			}
		})
	}
}

// wholeError is an error type with a method As that finds nothing but what Unwrap returns.
type wholeError struct{ err error }

func (e wholeError) Error() string      { return e.err.Error() }
func (e wholeError) Unwrap() error      { return e.err }
func (e wholeError) As(target any) bool { return errors.As(e.err, target) }

type pair [2]error

func (p pair) Error() string   { return fmt.Sprintf("%v, %v", p[0], p[1]) }
func (p pair) Unwrap() []error { return p[:] }

// The marks of an inner call describe only that call, also if the handler puts the call's error into an
// error type with a method As.
func TestX2_AMarkOfAnInnerCallIsNotFoundByTheMethodAs(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"several":     func(err error) error { return severalErrors(err, errWire) },
		"one":         func(err error) error { return wholeError{err} },
		"one, hidden": func(err error) error { return hiddenError{err} },
	} {
		t.Run("retryable "+name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errBroken) })
				return response{}, with(err)
			})
			if out, err := r.handler(t.Context(), first()); err == nil {
				t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
			}
		})
		t.Run("permanent "+name, func(t *testing.T) {
			r := newRig(nil)
			notify := r.guard.SNS(func(context.Context, events.SNSEventRecord) error { return lambdaidem.Permanent(errBroken) })
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				return response{}, with(notify(ctx, snsMessage()))
			})
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, lambdaidem.Released)
		})
	}
}

// A stored failure of an inner call is stored in the outer record too.
func TestX4_AStoredFailureInATypeWithTheMethodAsIsStored(t *testing.T) {
	for name, failure := range map[string]error{"Reject": lambdaidem.Reject(409, "sold_out", "No."), "Permanent": lambdaidem.Permanent(errBroken)} {
		t.Run(name, func(t *testing.T) {
			hold := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }
			r := newRig(nil, hold)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, failure })
				return response{}, wholeError{err}
			}, hold)
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, lambdaidem.Completed)
		})
	}
}

// hiddenError is an error type without the method Unwrap.
type hiddenError struct{ err error }

func (e hiddenError) Error() string      { return e.err.Error() }
func (e hiddenError) As(target any) bool { return errors.As(e.err, target) }

// The time to examine an error must not grow exponentially with the number of errors inside.
func TestX2_ManyErrorsAreExaminedInTime(t *testing.T) {
	const many = 200
	for name, collect := range map[string]func(failed error) error{
		"a list of errors": func(failed error) error { return errorList(slices.Repeat([]error{failed}, many)) },
		"a list of marked errors": func(failed error) error {
			return errorList(slices.Repeat([]error{lambdaidem.Retryable(failed)}, many))
		},
		"a marked list": func(failed error) error {
			return lambdaidem.Retryable(errorList(slices.Repeat([]error{failed}, many)))
		},
		"lists in lists": func(failed error) error {
			for range many {
				failed = &listedTwice{failed}
			}
			return failed
		},
		"marks in marks": func(failed error) error {
			for range many {
				failed = lambdaidem.Retryable(fmt.Errorf("again: %w", lambdaidem.Permanent(failed)))
			}
			return failed
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, errBroken })
				return response{}, collect(err)
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = r.handler(context.WithoutCancel(t.Context()), first())
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Second): // with exponential growth, it would take ages
				t.Fatal("the guard still examines the error")
			}
		})
	}
}

// listedTwice has two methods that return the same list, like an error of go.uber.org/multierr since
// version 1.10.
type listedTwice struct{ err error }

func (e *listedTwice) Error() string   { return e.err.Error() }
func (e *listedTwice) Unwrap() []error { return []error{e.err} }
func (e *listedTwice) Errors() []error { return []error{e.err} }

// listedErrors has the methods of *multierror.Error of github.com/hashicorp/go-multierror.
type listedErrors []error

func (e listedErrors) Error() string          { return errorList(e).Error() }
func (e listedErrors) WrappedErrors() []error { return e }
func (e listedErrors) Unwrap() error          { return errorList(e) }

// aggregate has the methods of an error of go.uber.org/multierr before version 1.10.
type aggregate []error

func (e aggregate) Error() string   { return errorList(e).Error() }
func (e aggregate) Errors() []error { return e }

// An error made by Reject decides, also in a list whose method Unwrap does not return it.
func TestX4_ARejectionInAListIsStored(t *testing.T) {
	soldOut := lambdaidem.Reject(409, "sold_out", "No.")
	for name, err := range map[string]error{
		"go-multierror": listedErrors{errBroken, soldOut, nil},
		"multierr":      aggregate{errBroken, soldOut},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, err })
			wantProblem(t, r.send(t, first()), 409, "sold_out")
			r.wantState(t, lambdaidem.Completed)
		})
	}
}
