package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// What an inner call's function says of its error, by a mark or a status, is about the inner
// call. Under Hold, a handler of messages that only returns such an error is held, because
// it may have had an effect of its own. A handler that marks the error itself decides.
func TestX4_AnInnerFailureDoesNotReleaseAMessageUnderHold(t *testing.T) {
	for name, inner := range map[string]error{
		"permanent": lambdaidem.Permanent(errWire),
		"rejection": noPayment,
		"retryable": lambdaidem.Retryable(errWire),
		"uncertain": lambdaidem.Uncertain(errWire),
	} {
		for own, returns := range map[string]func(error) error{
			"as it is": func(err error) error { return err },
			"wrapped":  func(err error) error { return fmt.Errorf("charge: %w", err) },
			"marked":   lambdaidem.Permanent,
		} {
			t.Run(name+", "+own, func(t *testing.T) {
				r := newRig(nil, hold)
				runs := 0
				h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
					runs++
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, inner })
					return returns(err)
				}, silent[events.SQSMessage])
				want := 1
				if own == "marked" && name != "uncertain" {
					want = 3
				}
				for range 3 {
					if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 1 {
						t.Fatalf("the batch returned %+v, %v", out, err)
					}
				}
				if runs != want {
					t.Errorf("the handler ran %d times, want %d", runs, want)
				}
			})
		}
	}
}

// A handler returns the failure of an inner call. The failure is stored in the inner record, so
// every retry gets it again, and the handler's own record stores it too: whatever status it
// has, and whether the handler is the first to receive it.
func TestX4_AStoredInnerFailureIsStored(t *testing.T) {
	r := newRig(nil)
	inner := r.guard.With(func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeFailed }
	})
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) {
			return 0, lambdaidem.Reject(http.StatusTooManyRequests, "daily_limit", "The daily limit is reached.")
		})
		return response{}, err
	}, hold)
	for _, key := range []string{"key-1", "key-1", "key-2", "key-2"} {
		if out := r.send(t, post(key, "{}")); out.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: the answer is %+v", key, out)
		}
	}
	r.wantRuns(t, 2)
}

// A handler that marks the error of an inner call decides, whether the inner call has just
// failed or replays its failure.
func TestX4_TheHandlersOwnMarkDecides(t *testing.T) {
	r := newRig(nil, hold)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) })
		return response{}, lambdaidem.Retryable(err)
	})
	for n := range int64(3) {
		r.send(t, first())
		r.wantRuns(t, n+1)
	}
	both := r.later(func(ctx context.Context, _ request) (response, error) {
		err := r.charged(ctx)
		return response{}, lambdaidem.Retryable(errors.Join(err, fmt.Errorf("give up: %w", lambdaidem.Permanent(errWire))))
	})
	for range 2 {
		both.send(t, post("key-2", "{}"))
	}
	both.wantRuns(t, 1)
}

// A guarded handler of messages, called inside a guarded handler, is an inner call too.
func TestX4_TheMarksOfAnInnerMessageDoNotPassOn(t *testing.T) {
	event := events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "m-1", TopicArn: "arn:aws:sns:eu-central-1:1:t", Message: "{}"}}}}
	two := events.SNSEvent{Records: []events.SNSEventRecord{event.Records[0], {SNS: events.SNSEntity{MessageID: "m-2", TopicArn: "arn:aws:sns:eu-central-1:1:t", Message: "{}"}}}}
	for name, in := range map[string]events.SNSEvent{"one message": event, "two messages": two} {
		for form, err := range map[string]error{
			"marked":  lambdaidem.Retryable(errWire),
			"wrapped": fmt.Errorf("charge: %w", lambdaidem.Retryable(errWire)),
			"joined":  errors.Join(lambdaidem.Retryable(errWire)),
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				r := newRig(nil, hold)
				inner := r.guard.SNS(func(context.Context, events.SNSEventRecord) error { return err }, silent[events.SNSEventRecord])
				r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, inner(ctx, in) })
				for range 3 {
					if out, got := r.handler(t.Context(), first()); got == nil && out.StatusCode < 400 {
						t.Fatalf("the answer is %+v", out)
					}
				}
				r.wantRuns(t, 1)
			})
		}
	}
}

// The handler of an unguarded message is a part of the handler around it, and marks for it.
func TestX4_TheMarkOfAnUnguardedInnerMessageCounts(t *testing.T) {
	r := newRig(nil, hold, func(o *lambdaidem.Options) { o.KeyOptional = true })
	inner := r.guard.SNS(func(context.Context, events.SNSEventRecord) error {
		return fmt.Errorf("no route: %w", lambdaidem.Retryable(errWire))
	}, silent[events.SNSEventRecord],
		func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
			o.Key = func(context.Context, events.SNSEventRecord) (string, error) { return "", nil }
		})
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		return response{}, inner(ctx, events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "m-1", TopicArn: "arn:aws:sns:eu-central-1:1:t"}}}})
	})
	for range 2 {
		r.send(t, first())
	}
	r.wantRuns(t, 2)
}
