package lambdaidem_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// V2: a message that has begun and not finished is not discarded after a deployment that
// changes how payloads are compared. One that surely has another payload may be.
func TestV2_AMessageThatNeverFinishedIsNotDiscarded(t *testing.T) {
	r := newRig(nil)
	message := func(body string) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:aws:sqs:r:a:q", Body: body}}}
	}
	const body, another = `{"payment":"1","at":"now"}`, `{"payment":"2","at":"now"}`
	fail := true
	h := func(ctx context.Context, _ events.SQSMessage) error {
		if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil || !fail {
			return err
		}
		return errors.New("down")
	}
	discarding := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Discard = func(context.Context, events.SQSMessage, error) bool { return true }
	}
	later := r.guard.With(func(o *lambdaidem.Options) { o.FingerprintIgnore = []string{"/at"} })
	for _, c := range []struct {
		what   string
		guard  *lambdaidem.Guard
		body   string
		failed int
	}{
		{"the first delivery", r.guard, body, 1},
		{"the same message, under other options", later, body, 1},
		{"another message", r.guard, another, 0},
	} {
		out, err := c.guard.SQS(h, discarding)(t.Context(), message(c.body))
		if err != nil || len(out.BatchItemFailures) != c.failed {
			t.Errorf("%s: %+v, %v; want %d failures", c.what, out, err, c.failed)
		}
	}
	fail = false
	if out, err := r.guard.SQS(h)(t.Context(), message(body)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := later.SQS(h, discarding)(t.Context(), message(body)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Errorf("once it is done: %+v, %v", out, err)
	}
}
