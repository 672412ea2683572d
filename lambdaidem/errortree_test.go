package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// refusedOrder is an error type with a cause and a list of problems. Its method Unwrap returns the
// cause, and its method Errors the list.
type refusedOrder struct {
	cause    error
	problems []error
}

func (e *refusedOrder) Error() string   { return fmt.Sprintf("order: %v", e.cause) }
func (e *refusedOrder) Unwrap() error   { return e.cause }
func (e *refusedOrder) Errors() []error { return e.problems }

// A mark counts in the cause of an error that also has a list of errors. The guard must not
// overlook Uncertain there: a retry would charge the card again.
func TestX2_AMarkInTheCauseOfAListCounts(t *testing.T) {
	for name, c := range map[string]struct {
		policy lambdaidem.Policy
		err    error
		want   lambdaidem.State
	}{
		"uncertain, no problems": {lambdaidem.Rerun, &refusedOrder{cause: lambdaidem.Uncertain(errWire)}, lambdaidem.InProgress},
		"uncertain, problems":    {lambdaidem.Rerun, &refusedOrder{cause: lambdaidem.Uncertain(errWire), problems: []error{errBroken}}, lambdaidem.InProgress},
		"permanent":              {lambdaidem.Rerun, &refusedOrder{cause: lambdaidem.Permanent(errWire)}, lambdaidem.Completed},
		"retryable":              {lambdaidem.Hold, &refusedOrder{cause: lambdaidem.Retryable(errWire)}, lambdaidem.Released},
		"listed, uncertain":      {lambdaidem.Rerun, &refusedOrder{cause: errors.Join(errBroken, lambdaidem.Uncertain(errWire)), problems: []error{errBroken}}, lambdaidem.InProgress},
		"reject":                 {lambdaidem.Rerun, &refusedOrder{cause: lambdaidem.Reject(402, "declined", "no")}, lambdaidem.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(func(context.Context, request) (response, error) { charged++; return response{}, c.err }, func(o *lambdaidem.Options) { o.Policy = c.policy })
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, c.want)
			_, _ = r.handler(t.Context(), first())
			if c.want == lambdaidem.InProgress && charged > 1 {
				t.Errorf("charged %d times", charged)
			}
		})
	}
	t.Run("is", func(t *testing.T) {
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, &refusedOrder{cause: errWire} })
			if !errors.Is(err, errWire) {
				t.Errorf("errors.Is does not find what the function returned in %v", err)
			}
			return response{StatusCode: 503}, nil
		})
		r.send(t, first())
	})
}

// The same holds for the error of a message. The message must not run again under a lease that
// Uncertain keeps.
func TestX2_AMarkInTheCauseOfAListCountsForAMessage(t *testing.T) {
	r := newRig(nil)
	paid := 0
	h := r.guard.SQS(func(context.Context, events.SQSMessage) error {
		paid++
		return &refusedOrder{cause: lambdaidem.Uncertain(errWire), problems: []error{errBroken}}
	}, silent)
	for range 2 {
		_, _ = h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", EventSourceARN: "arn:aws:sqs:eu-west-1:1:q", EventSource: "aws:sqs", Body: "{}"}}})
	}
	if paid > 1 {
		t.Errorf("paid %d times under a lease that Uncertain should have kept", paid)
	}
}

// leaf is an error type whose method Errors returns the error itself.
type leaf struct{ calls *int }

func (e leaf) Error() string { return "leaf" }

func (e leaf) Errors() []error {
	if *e.calls++; *e.calls > 10000 {
		panic("without a limit, the stack would overflow and the process die")
	}
	return []error{e}
}

// An error that lists itself is examined once.
func TestX2_AnErrorMayListItself(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) { return response{}, leaf{new(int)} })
	_, _ = r.handler(t.Context(), first())
	r.wantState(t, lambdaidem.Released)
}

// sliceError is an error type whose values can't be compared, such as a list of validation errors.
type sliceError []string

func (e sliceError) Error() string { return fmt.Sprint([]string(e)) }

// Errors that can't be compared are examined too.
func TestX2_ErrorsThatCantBeComparedAreExamined(t *testing.T) {
	for name, err := range map[string]error{
		"list":           &refusedOrder{cause: sliceError{"amount"}, problems: []error{sliceError{"amount"}, lambdaidem.Uncertain(errWire)}},
		"go-multierror":  listedErrors{sliceError{"amount"}, lambdaidem.Uncertain(errWire)},
		"several in one": severalErrors(sliceError{"amount"}, lambdaidem.Uncertain(errWire)),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return response{}, err })
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, lambdaidem.InProgress)
		})
	}
}

// The guard finds each error of a list that is inside an error type with the methods Unwrap and As.
func TestX2_AListInATypeWithTheMethodAsIsExamined(t *testing.T) {
	for name, c := range map[string]struct {
		err  func(context.Context, *rig) error
		want lambdaidem.State
	}{
		"stored": {func(ctx context.Context, r *rig) error {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errBroken) })
			return wholeError{listedErrors{err}}
		}, lambdaidem.Completed},
		"several": {func(context.Context, *rig) error {
			return listedErrors{lambdaidem.Retryable(errBroken), lambdaidem.Retryable(errWire)}
		}, lambdaidem.Released},
		"retryable": {func(context.Context, *rig) error { return wholeError{listedErrors{lambdaidem.Retryable(errBroken)}} }, lambdaidem.Released},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, hold)
			r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, c.err(ctx, r) }, hold)
			r.store.forgetClaims()
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, c.want)
		})
	}
}

// The cause of an error comes before its list of problems: the client gets the status of the cause.
func TestX2_TheCauseOfAListComesFirst(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{}, &refusedOrder{cause: noPayment, problems: []error{lambdaidem.Reject(404, "no_account", "No.")}}
	})
	if out := r.send(t, first()); out.StatusCode != 402 {
		t.Errorf("the client is told %d %s; want 402", out.StatusCode, out.Body)
	}
}

// A mark counts in a cause that only resembles an error of the list by a method Is.
func TestX2_AMarkInACauseLikeAListedErrorCounts(t *testing.T) {
	for name, err := range map[string]error{
		"errno":          &refusedOrder{cause: lambdaidem.Uncertain(&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}), problems: []error{fs.ErrNotExist}},
		"same rejection": &refusedOrder{cause: lambdaidem.Uncertain(lambdaidem.Reject(503, "bank_down", "Later.")), problems: []error{lambdaidem.Reject(503, "bank_down", "Later.")}},
		"same 402":       &refusedOrder{cause: lambdaidem.Uncertain(lambdaidem.Reject(402, "declined", "a")), problems: []error{lambdaidem.Reject(402, "declined", "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(func(context.Context, request) (response, error) { charged++; return response{}, err })
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, lambdaidem.InProgress)
			out, err := r.handler(t.Context(), first())
			if charged > 1 {
				t.Errorf("charged %d times under a lease that Uncertain should have kept: %d %v", charged, out.StatusCode, err)
			}
		})
	}
	t.Run("error of a Do", func(t *testing.T) {
		charged := 0
		errWeak := errors.New("weak")
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, errWeak })
			charged++ // by other means
			return response{}, &refusedOrder{cause: lambdaidem.Uncertain(err), problems: []error{errWeak}}
		})
		r.store.forgetClaims()
		_, _ = r.handler(t.Context(), first())
		r.wantState(t, lambdaidem.InProgress)
		_, _ = r.handler(t.Context(), first())
		if charged > 1 {
			t.Errorf("charged %d times", charged)
		}
	})
}
