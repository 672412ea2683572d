package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The claim of the inner call is applied and its reply is lost. The call fails open, charges in a
// step, which is not stored, and fails before the next step. Its release succeeds. The same call
// whose claim is throttled hides no charge (TestX4_AStepOfAnInnerCallThatFailedOpenCounts).
func TestX4_AStepOfAnInnerCallThatFailedOpenCountsIfItsReleaseSucceeds(t *testing.T) {
	for name, fails := range map[string]func() error{
		"no mark":   func() error { return errors.New("the ledger is down") },
		"retryable": func() error { return lambdaidem.Retryable(errWire) },
		"panic":     func() error { panic("a mistake") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			charged := 0
			r = r.later(payOr402(func(ctx context.Context) error {
				r.store.fail(acquire, replyLost)
				_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
					if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
						return 0, err
					}
					return 0, fails()
				})
				return err
			}))
			out := r.send(t, first())
			if out.StatusCode == http.StatusPaymentRequired {
				t.Errorf("charged %d times, and the client is told %d for good: the record is %s", charged, out.StatusCode, r.record(t).State)
			}
		})
	}
}

// A message fails open beside a completed record that can't be compared with it, charges, and
// fails. It has begun and not finished, so it is not discarded as one that did not run.
func TestV2_AMessageThatFailedOpenAndRanIsNotDiscarded(t *testing.T) {
	r := newRig(nil, failOpen, secrets(oldSecret))
	message := func(body string) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:aws:sqs:r:a:q", Body: body}}}
	}
	if out, err := r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(t.Context(), message(`{"amount":100}`)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatal(out, err)
	}
	next := r.guard.With(secrets(newSecret))
	ran, discarded := 0, 0
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	out, err := next.SQS(func(context.Context, events.SQSMessage) error { ran++; return errWire }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Discard = func(context.Context, events.SQSMessage, error) bool { discarded++; return true }
	})(t.Context(), message(`{"amount":90}`))
	if err != nil || ran != 1 || discarded != 0 || len(out.BatchItemFailures) != 1 {
		t.Errorf("ran %d times, discarded %d times: %+v, %v", ran, discarded, out, err)
	}
}

// The first try of the inner call fails open, charges in a step, which is not stored, and fails.
// The second try has a lease, fails before it reaches the bank, and is released. With a lease, the
// step of the first try is stored and counts (TestX4_AReleasedInnerCallHidesNoStoredStep).
func TestX4_AReleasedSecondTryDoesNotForgetAStepOfTheFirstThatFailedOpen(t *testing.T) {
	for _, first := range []string{"with a lease", "throttled", "request lost"} {
		t.Run(first, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			r = r.later(payOr402(func(ctx context.Context) error {
				return twice(func(try int) error {
					switch {
					case try == 1 && first == "throttled":
						r.throttledCalls(1)
					case try == 1 && first == "request lost":
						r.store.fail(acquire, requestLost)
					}
					_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
						if try == 1 {
							if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { return 1, nil }); err != nil {
								return 0, err
							}
						}
						return 0, lambdaidem.Retryable(errWire)
					})
					return err
				})
			}))
			wantNo402(t, r)
		})
	}
}
