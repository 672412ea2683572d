package idemtest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// For every source, the key and the body of a message reach the handler, and a second delivery of
// the event runs no handler.
func TestMessagesOfEverySource(t *testing.T) {
	guard := lambdaidem.New(memstore.New())
	type seen struct{ key, body string }
	var all []seen
	see := func(ctx context.Context, body string) error {
		all = append(all, seen{lambdaidem.Key(ctx), body})
		return ctx.Err()
	}
	two := []idemtest.Message{{Body: "one"}, {ID: "my-own", Key: "k", Body: "two", Attributes: map[string]string{"a": "b"}}}

	idemtest.Twice(t, guard.SQS(func(ctx context.Context, m events.SQSMessage) error { return see(ctx, m.Body) }), idemtest.SQS("orders", two...))
	idemtest.Twice(t, guard.Kinesis(func(ctx context.Context, m events.KinesisEventRecord) error { return see(ctx, string(m.Kinesis.Data)) }), idemtest.Kinesis("orders", two...))
	idemtest.Twice(t, guard.DynamoDBStream(func(ctx context.Context, m events.DynamoDBEventRecord) error {
		return see(ctx, m.Change.NewImage["body"].String())
	}), idemtest.DynamoDBStream("orders", two...))
	idemtest.Twice(t, answering(guard.SNS(func(ctx context.Context, m events.SNSEventRecord) error { return see(ctx, m.SNS.Message) })), idemtest.SNS("orders", two[1]))
	idemtest.Twice(t, guard.Kafka(func(ctx context.Context, m events.KafkaRecord) error {
		value, err := base64.StdEncoding.DecodeString(m.Value)
		return errors.Join(err, see(ctx, string(value)))
	}), idemtest.Kafka("orders", two...))
	detail := idemtest.Message{Key: "k", Body: `{"n":9007199254740993}`}
	idemtest.Twice(t, answering(guard.EventBridge(func(ctx context.Context, m events.EventBridgeEvent) error { return see(ctx, string(m.Detail)) })), idemtest.EventBridge("shop", "Paid", detail))

	want := []seen{{"message-1", "one"}, {"k", "two"}, {"shardId-000000000000:message-1", "one"}, {"shardId-000000000000:my-own", "two"},
		{"message-1", "one"}, {"my-own", "two"}, {"k", "two"}, {"orders-61-3193154306-1767323045000", "one"}, {"k", "two"}, {"k", `{"n":9007199254740993,"x-idempotency-key":"k"}`}}
	if !slices.Equal(all, want) {
		t.Errorf("handlers saw %+v", all)
	}
}

// answering converts a handler of asynchronous events to the form that Twice takes.
func answering[E any](h func(context.Context, E) error) func(context.Context, E) (struct{}, error) {
	return func(ctx context.Context, e E) (struct{}, error) { return struct{}{}, h(ctx, e) }
}

// Messages have the order and the groups of their source. A queue is a FIFO queue if its name ends
// in .fifo.
func TestMessagesInGroups(t *testing.T) {
	fail := errors.New("not now")
	for queue, want := range map[string]string{"orders": "[{1}]", "orders.fifo": "[{1} {3}]"} {
		h := lambdaidem.New(memstore.New()).SQS(func(_ context.Context, m events.SQSMessage) error {
			if m.MessageId == "1" {
				return fail
			}
			return nil
		}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(context.Context, events.SQSMessage, error) {}
		})
		out, err := h(t.Context(), idemtest.SQS(queue, idemtest.Message{ID: "1", Group: "a"}, idemtest.Message{ID: "2", Group: "b"}, idemtest.Message{ID: "3", Group: "a"}))
		if err != nil || fmt.Sprint(out.BatchItemFailures) != want {
			t.Errorf("%s: %v, %v; want %s", queue, out.BatchItemFailures, err, want)
		}
	}
	records := idemtest.Kinesis("s", make([]idemtest.Message, 12)...).Records
	for i := range records[1:] {
		if a, b := records[i].Kinesis.SequenceNumber, records[i+1].Kinesis.SequenceNumber; len(a) != len(b) || a >= b {
			t.Errorf("sequence numbers %s, %s", a, b)
		}
	}
}

// A second delivery of a message differs from the first only in the fields that AWS changes.
func TestMessagesDeliveredAgain(t *testing.T) {
	one := idemtest.SQS("orders", idemtest.Message{Body: "x"}).Records[0]
	two := idemtest.SQS("orders", idemtest.Message{Body: "x", Receives: 2}).Records[0]
	if one.Attributes["ApproximateReceiveCount"] != "1" || two.Attributes["ApproximateReceiveCount"] != "2" || one.ReceiptHandle == two.ReceiptHandle {
		t.Errorf("%+v, and again %+v", one, two)
	}
	two.Attributes, two.ReceiptHandle = one.Attributes, one.ReceiptHandle
	if !reflect.DeepEqual(one, two) {
		t.Errorf("%+v, and again %+v", one, two)
	}
}

// Events are unchanged after they are encoded to JSON and decoded again.
func TestMessagesOnTheWire(t *testing.T) {
	all := []idemtest.Message{{Key: "k", Body: `{"a":1}`, Attributes: map[string]string{"b": "c"}}}
	for _, event := range []any{idemtest.SQS("q.fifo", all...), idemtest.SNS("t", all[0]), idemtest.EventBridge("s", "d", all[0]), idemtest.Kinesis("s", all...), idemtest.DynamoDBStream("t", all...), idemtest.Kafka("t", all...)} {
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(reflect.TypeOf(event))
		if err := json.Unmarshal(text, again.Interface()); err != nil {
			t.Fatal(err)
		}
		if other, err := json.Marshal(again.Elem().Interface()); err != nil || string(other) != string(text) {
			t.Errorf("%T is\n%s\nand after the wire\n%s, %v", event, text, other, err)
		}
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "no JSON object") {
			t.Errorf("a detail that is no object: %v", v)
		}
	}()
	idemtest.EventBridge("s", "d", idemtest.Message{Body: "text"})
}
