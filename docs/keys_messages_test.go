package docs_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// This file tests what docs/keys.md says about the keys of messages.

// consumer is a guarded handler of a queue. It counts the messages that it handles, and records why
// messages failed.
type consumer struct {
	deliver func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
	runs    int
	failed  []error
}

func newConsumer(guard *lambdaidem.Guard, optFns ...func(*lambdaidem.BatchOptions[events.SQSMessage])) *consumer {
	c := &consumer{}
	c.deliver = guard.SQS(func(context.Context, events.SQSMessage) error { c.runs++; return nil },
		append(optFns, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { c.failed = append(c.failed, err) }
		})...)
	return c
}

// message delivers one message. If key is not "", the message has this key.
func (c *consumer) message(t *testing.T, queue, id, key, body string) {
	t.Helper()
	m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queue, Body: body}
	if key != "" {
		m.MessageAttributes = map[string]events.SQSMessageAttribute{
			lambdaidem.MessageKey: {DataType: "String", StringValue: &key},
		}
	}
	if _, err := c.deliver(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil {
		t.Error(err)
	}
}

// byOrder derives a message's key from the id of its order.
func byOrder(o *lambdaidem.BatchOptions[events.SQSMessage]) {
	o.Operation = "book-order" // the same for the queue and for its dead-letter queue
	o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
		var order struct {
			ID string `json:"order_id"`
		}
		err := json.Unmarshal([]byte(m.Body), &order)
		return order.ID, err // an empty one is a missing key
	}
}

func TestKeys_RedriveGivesANewID(t *testing.T) {
	const body = `{"order_id":"o-17"}`
	for name, c := range map[string]struct {
		key    string
		optFns []func(*lambdaidem.BatchOptions[events.SQSMessage])
		runs   int
	}{
		"the source's own id": {runs: 2},
		"the sender's":        {key: "k-17", runs: 1},
		"derived":             {optFns: []func(*lambdaidem.BatchOptions[events.SQSMessage]){byOrder}, runs: 1},
	} {
		queue := newConsumer(keysGuard(memstore.New()), c.optFns...)
		queue.message(t, "orders", "m-1", c.key, body)
		queue.message(t, "orders", "m-1", c.key, body) // a redelivery
		queue.message(t, "orders", "m-2", c.key, body) // a redrive
		if queue.runs != c.runs || len(queue.failed) > 0 {
			t.Errorf("%s: handled %d times, failures %v", name, queue.runs, queue.failed)
		}
	}
}

func TestKeys_ADeadLetterQueueNeedsTheSameOperation(t *testing.T) {
	for operation, runs := range map[string]int{"": 2, "book-order": 1} {
		queue := newConsumer(keysGuard(memstore.New()), func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Operation = operation })
		queue.message(t, "orders", "m-1", "k-17", "{}")
		queue.message(t, "orders-dlq", "m-2", "k-17", "{}")
		if queue.runs != runs {
			t.Errorf("with Operation %q: handled %d times", operation, queue.runs)
		}
	}
}

func TestKeys_AMissingKeyFailsTheMessage(t *testing.T) {
	queue := newConsumer(keysGuard(memstore.New()), byOrder)
	queue.message(t, "orders", "m-1", "", "{}")
	queue.message(t, "orders", "m-2", "", "no JSON")
	if queue.runs != 0 || len(queue.failed) != 2 || !errors.Is(queue.failed[0], lambdaidem.ErrKeyMissing) || !errors.Is(queue.failed[1], lambdaidem.ErrKeyInvalid) {
		t.Errorf("handled %d times, failures %v", queue.runs, queue.failed)
	}
}

func TestKeys_TimestampsMakeNewKeys(t *testing.T) {
	first, second := `{"order_id":"o-17","sent_at":"12:00:00"}`, `{"order_id":"o-17","sent_at":"12:00:09"}`
	whole := newConsumer(keysGuard(memstore.New()), func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			sum := sha256.Sum256([]byte(m.Body))
			return hex.EncodeToString(sum[:]), nil
		}
	})
	whole.message(t, "orders", "m-1", "", first)
	whole.message(t, "orders", "m-2", "", second)
	if whole.runs != 2 {
		t.Errorf("handled %d times", whole.runs)
	}

	// A key without the timestamp is the same for both messages, so their payloads would have to be
	// equal too.
	order := newConsumer(keysGuard(memstore.New()), byOrder)
	order.message(t, "orders", "m-1", "", first)
	order.message(t, "orders", "m-2", "", second)
	if order.runs != 1 || len(order.failed) != 1 || !errors.Is(order.failed[0], lambdaidem.ErrPayloadMismatch) {
		t.Errorf("handled %d times, failures %v", order.runs, order.failed)
	}
}

func TestKeys_OutliveTheirTTL(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for ttl, runs := range map[time.Duration]int{0: 2, 30 * 24 * time.Hour: 1} {
		clock := idemtest.NewClock()
		queue := newConsumer(keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Clock, o.TTL = clock.Now, ttl }), byOrder)
		queue.message(t, "orders", "m-1", "", `{"order_id":"o-17"}`)
		clock.Advance(week)
		queue.message(t, "orders", "m-2", "", `{"order_id":"o-17"}`)
		if queue.runs != runs {
			t.Errorf("TTL %v: handled %d times", ttl, queue.runs)
		}
	}
}

// The results of a failed message's steps are kept as long as its record. A redrive that comes
// later runs the steps again, with the same downstream key.
func TestKeys_StepsOutliveTheirTTL(t *testing.T) {
	for ttl, charges := range map[time.Duration]int{0: 2, 30 * 24 * time.Hour: 1} {
		clock := idemtest.NewClock()
		guard := keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Clock, o.TTL = clock.Now, ttl })
		var keys []string
		deliver := guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
			_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (string, error) {
				keys = append(keys, lambdaidem.DownstreamKey(ctx, "charge"))
				return "ch_1", nil
			})
			return errors.Join(err, errors.New("the receipt can't be sent"))
		}, byOrder, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(context.Context, events.SQSMessage, error) {}
		})
		for _, id := range []string{"m-1", "m-2"} {
			m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders", Body: `{"order_id":"o-17"}`}
			if got, err := deliver(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil || len(got.BatchItemFailures) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
			clock.Advance(7 * 24 * time.Hour)
		}
		if len(keys) != charges || keys[0] == "" || keys[len(keys)-1] != keys[0] {
			t.Errorf("TTL %v: charged under %q", ttl, keys)
		}
	}
}
