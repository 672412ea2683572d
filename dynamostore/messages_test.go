package dynamostore

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The writes that the handler of a message enlists are committed with its record. A batch that is
// delivered twice moves no money twice, and a failed condition moves none.
func TestG1_MessagesWithEnlistedWrites(t *testing.T) {
	b := openBank(t)
	h := b.guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		b.runs.Add(1)
		debit := b.move(ctx)
		if m.Body == "forgiving" {
			debit.Else(lambdaidem.Answer(nil)) // no money is left to take
		}
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(context.Context, events.SQSMessage, error) {}
	})
	deliver := func(want ...string) {
		t.Helper()
		event := events.SQSEvent{}
		for _, m := range []struct{ id, body string }{{"1", ""}, {"2", ""}, {"3", ""}, {"4", ""}, {"5", "forgiving"}} {
			event.Records = append(event.Records, events.SQSMessage{MessageId: m.id, Body: m.body, EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:transfers"})
		}
		out, err := h(t.Context(), event)
		if err != nil || len(out.BatchItemFailures) != len(want) {
			t.Fatalf("reported %+v, %v; want %v", out.BatchItemFailures, err, want)
		}
		for i, f := range out.BatchItemFailures {
			if f.ItemIdentifier != want[i] {
				t.Errorf("reported %+v; want %v", out.BatchItemFailures, want)
			}
		}
	}
	deliver("4") // 100 are enough for three transfers
	b.wantBalance(t, "alice", 10)
	b.wantRuns(t, 5)
	deliver("4") // only the failed message runs again
	b.wantBalance(t, "alice", 10)
	b.wantBalance(t, "bob", 90)
	b.wantRuns(t, 6)
	b.open(t, "alice", 40)
	deliver()
	b.wantBalance(t, "alice", 10)
	b.wantRuns(t, 7)
}

// With Options.Optimistic, a new message takes one round trip.
func TestE4_OptimisticMessages(t *testing.T) {
	b := openBank(t, func(o *lambdaidem.Options) { o.Optimistic = true })
	h := b.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
		b.move(ctx)
		return nil
	})
	for _, trips := range []int{1, 1} {
		before := b.wire.trips()
		out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q"}}})
		if err != nil || len(out.BatchItemFailures) > 0 || b.wire.trips()-before != trips {
			t.Errorf("%+v, %v, %d round trips; want %d", out, err, b.wire.trips()-before, trips)
		}
	}
	b.wantBalance(t, "alice", 70)
}

// A message without a key runs inside a guarded handler. Its enlisted writes are committed with the
// answer of that handler, or not at all.
func TestE1_UnkeyedMessageInsideAGuardedHandler(t *testing.T) {
	b := openBank(t)
	inner := b.guard.With(func(o *lambdaidem.Options) { o.KeyOptional = true }).SQS(func(ctx context.Context, _ events.SQSMessage) error {
		b.move(ctx)
		return nil
	}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(context.Context, events.SQSMessage) (string, error) { return "", nil }
	})
	for i, ends := range []error{errors.New("later"), nil} {
		_, err := lambdaidem.Do(t.Context(), b.guard, lambdaidem.Call{Operation: "consume", Key: "k"}, func(ctx context.Context) (int, error) {
			out, err := inner(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q"}}})
			if err != nil || len(out.BatchItemFailures) > 0 {
				t.Errorf("%+v, %v", out, err)
			}
			return 0, ends
		})
		if (err == nil) != (ends == nil) {
			t.Error(err)
		}
		b.wantBalance(t, "alice", 100-30*i)
	}
}
