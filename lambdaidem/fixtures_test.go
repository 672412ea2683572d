package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// fixture returns the event of a source, with our own values in the form that AWS documents ("Using
// Lambda with Amazon SQS", "… Amazon SNS", "… Amazon Kinesis", "… DynamoDB", "… Amazon MSK", "…
// Amazon MQ", "… Amazon DocumentDB", Amazon S3's "Event message structure", "Amazon EventBridge
// event structure").
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// wantAsSent checks that the guard passes everything that AWS sent to the handler.
func wantAsSent[E, M any](t *testing.T, name string, records func(E) []M, guard func(*lambdaidem.Guard, func(context.Context, M) error) func(context.Context, E) error) {
	t.Helper()
	var in E
	if err := json.Unmarshal(fixture(t, name), &in); err != nil {
		t.Fatal(err)
	}
	var got []M
	h := guard(lambdaidem.New(memstore.New(), quiet), func(_ context.Context, m M) error {
		got = append(got, m)
		return nil
	})
	for range 2 {
		if err := h(t.Context(), in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := records(in); !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%s: handled\n%+v\nwant\n%+v", name, got, want)
	}
	// Nothing of what AWS sent is missing in what the handler gets.
	var sent, kept any
	again, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(fixture(t, name), &sent), json.Unmarshal(again, &kept)); err != nil {
		t.Fatal(err)
	}
	if missing := missingOf(sent, kept); missing != "" {
		t.Errorf("%s: %s is lost", name, missing)
	}
}

// missingOf returns the path of a member that sent has and kept has not, or "".
func missingOf(sent, kept any) string {
	switch sent := sent.(type) {
	case nil:
		return "" // a null says nothing, and most Go types have none
	case map[string]any:
		other, _ := kept.(map[string]any)
		for name, v := range sent {
			if missing := missingOf(v, other[name]); missing != "" {
				return name + "." + missing
			}
		}
		return ""
	case []any:
		other, _ := kept.([]any)
		for i, v := range sent {
			if i >= len(other) {
				return "an element"
			}
			if missing := missingOf(v, other[i]); missing != "" {
				return missing
			}
		}
		return ""
	}
	if !reflect.DeepEqual(sent, kept) {
		return "the value"
	}
	return ""
}

// The documented event of each source reaches the handler unchanged and once.
func TestV2_EventsAsAWSSendsThem(t *testing.T) {
	sqs := func(g *lambdaidem.Guard, h func(context.Context, events.SQSMessage) error) func(context.Context, events.SQSEvent) error {
		return withoutFailures(g.SQS(h), func(r events.SQSEventResponse) int { return len(r.BatchItemFailures) })
	}
	wantAsSent(t, "sqs", func(e events.SQSEvent) []events.SQSMessage { return e.Records }, sqs)
	wantAsSent(t, "sqs_fifo", func(e events.SQSEvent) []events.SQSMessage { return e.Records }, sqs)
	wantAsSent(t, "sns", func(e events.SNSEvent) []events.SNSEventRecord { return e.Records },
		func(g *lambdaidem.Guard, h func(context.Context, events.SNSEventRecord) error) func(context.Context, events.SNSEvent) error {
			return g.SNS(h)
		})
	wantAsSent(t, "eventbridge", func(e events.EventBridgeEvent) []events.EventBridgeEvent { return []events.EventBridgeEvent{e} },
		func(g *lambdaidem.Guard, h func(context.Context, events.EventBridgeEvent) error) func(context.Context, events.EventBridgeEvent) error {
			return g.EventBridge(h)
		})
	wantAsSent(t, "kinesis", func(e events.KinesisTimeWindowEvent) []events.KinesisEventRecord { return e.Records },
		func(g *lambdaidem.Guard, h func(context.Context, events.KinesisEventRecord) error) func(context.Context, events.KinesisTimeWindowEvent) error {
			return withoutFailures(g.Kinesis(h), func(r events.KinesisEventResponse) int { return len(r.BatchItemFailures) })
		})
	wantAsSent(t, "dynamodb", func(e events.DynamoDBTimeWindowEvent) []events.DynamoDBEventRecord { return e.Records },
		func(g *lambdaidem.Guard, h func(context.Context, events.DynamoDBEventRecord) error) func(context.Context, events.DynamoDBTimeWindowEvent) error {
			return withoutFailures(g.DynamoDBStream(h), func(r events.DynamoDBEventResponse) int { return len(r.BatchItemFailures) })
		})
	wantAsSent(t, "activemq", func(e events.ActiveMQEvent) []events.ActiveMQMessage { return e.Messages },
		func(g *lambdaidem.Guard, h func(context.Context, events.ActiveMQMessage) error) func(context.Context, events.ActiveMQEvent) error {
			return g.ActiveMQ(h)
		})
	wantAsSent(t, "rabbitmq", func(e events.RabbitMQEvent) []events.RabbitMQMessage { return e.MessagesByQueue["orders::/"] },
		func(g *lambdaidem.Guard, h func(context.Context, events.RabbitMQMessage) error) func(context.Context, events.RabbitMQEvent) error {
			return g.RabbitMQ(h)
		})
	wantAsSent(t, "documentdb", func(e lambdaidem.DocumentDBEvent) []lambdaidem.DocumentDBChange {
		return []lambdaidem.DocumentDBChange{e.Events[0].Event, e.Events[1].Event}
	}, func(g *lambdaidem.Guard, h func(context.Context, lambdaidem.DocumentDBChange) error) func(context.Context, lambdaidem.DocumentDBEvent) error {
		return g.DocumentDB(h)
	})
	for _, name := range []string{"s3", "s3_restore"} {
		wantAsSent(t, name, func(e events.S3Event) []events.S3EventRecord { return e.Records },
			func(g *lambdaidem.Guard, h func(context.Context, events.S3EventRecord) error) func(context.Context, events.S3Event) error {
				return g.S3(h)
			})
	}
	for _, name := range []string{"kafka", "kafka_self_managed"} {
		wantAsSent(t, name, func(e events.KafkaEvent) []events.KafkaRecord {
			return append(slices.Clone(e.Records["orders-0"]), e.Records["refunds-3"]...)
		},
			func(g *lambdaidem.Guard, h func(context.Context, events.KafkaRecord) error) func(context.Context, events.KafkaEvent) error {
				return withoutFailures(g.Kafka(h), func(r lambdaidem.KafkaEventResponse) int { return len(r.BatchItemFailures) })
			})
	}
}

func withoutFailures[E, R any](h func(context.Context, E) (R, error), failed func(R) int) func(context.Context, E) error {
	return func(ctx context.Context, e E) error {
		out, err := h(ctx, e)
		if err == nil && failed(out) > 0 {
			return errBroken
		}
		return err
	}
}

// The keys and ids of the documented events are those that senders and sources set.
func TestV3_KeysOfEventsAsAWSSendsThem(t *testing.T) {
	var keys []string
	keep := func(ctx context.Context) { keys = append(keys, lambdaidem.Key(ctx)) }
	g := lambdaidem.New(memstore.New(), quiet)
	decode(t, "sqs", func(e events.SQSEvent) error {
		_, err := g.SQS(func(ctx context.Context, _ events.SQSMessage) error { keep(ctx); return nil })(t.Context(), e)
		return err
	})
	decode(t, "sns", func(e events.SNSEvent) error {
		return g.SNS(func(ctx context.Context, _ events.SNSEventRecord) error { keep(ctx); return nil })(t.Context(), e)
	})
	decode(t, "eventbridge", func(e events.EventBridgeEvent) error {
		return g.EventBridge(func(ctx context.Context, _ events.EventBridgeEvent) error { keep(ctx); return nil })(t.Context(), e)
	})
	decode(t, "kinesis", func(e events.KinesisTimeWindowEvent) error {
		_, err := g.Kinesis(func(ctx context.Context, _ events.KinesisEventRecord) error { keep(ctx); return nil })(t.Context(), e)
		return err
	})
	decode(t, "dynamodb", func(e events.DynamoDBTimeWindowEvent) error {
		_, err := g.DynamoDBStream(func(ctx context.Context, _ events.DynamoDBEventRecord) error { keep(ctx); return nil })(t.Context(), e)
		return err
	})
	decode(t, "kafka", func(e events.KafkaEvent) error {
		_, err := g.Kafka(func(ctx context.Context, _ events.KafkaRecord) error { keep(ctx); return nil })(t.Context(), e)
		return err
	})
	decode(t, "activemq", func(e events.ActiveMQEvent) error {
		return g.ActiveMQ(func(ctx context.Context, _ events.ActiveMQMessage) error { keep(ctx); return nil })(t.Context(), e)
	})
	decode(t, "rabbitmq", func(e events.RabbitMQEvent) error {
		return g.RabbitMQ(func(ctx context.Context, _ events.RabbitMQMessage) error { keep(ctx); return nil })(t.Context(), e)
	})
	decode(t, "documentdb", func(e lambdaidem.DocumentDBEvent) error {
		return g.DocumentDB(func(ctx context.Context, _ lambdaidem.DocumentDBChange) error { keep(ctx); return nil })(t.Context(), e)
	})
	want := []string{"order-17", "2e1424d4-f796-459a-8184-9c92662be6da", "payment-p-1", "payment-p-1",
		"shardId-000000000006:49590338271490256608559692538361571095921575989136588898", "shardId-000000000006:49590338271490256608559692540925702759324208523137515618",
		"c4ca4238a0b923820dcc509a6f75849b", "c81e728d9d4c2f636f067f89cc14862c",
		"order-17", "orders-0-16-1764000001987", "refunds-3-9007199254740993-1764000002987",
		"order-17", "ID:b-9bcfa592-423a-4942-879d-eb284b418fc8-1.mq.eu-west-1.amazonaws.com-37557-1234520418293-4:1:1:1:2",
		"order-17", "m-18", "0163eeb6e7000000090100000009000041e1", "0163eeb6e70000000a0100000009000041e1"}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("the keys are %q", keys)
	}
}

func decode[E any](t *testing.T, name string, do func(E) error) {
	t.Helper()
	var e E
	if err := json.Unmarshal(fixture(t, name), &e); err != nil {
		t.Fatal(err)
	}
	if err := do(e); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Whatever a source sends, no decorator panics, and a batch that is delivered again doesn't run
// completed messages again.
func FuzzMessages(f *testing.F) {
	for _, name := range []string{"sqs", "sqs_fifo", "sns", "eventbridge", "kinesis", "dynamodb", "kafka", "kafka_self_managed", "s3", "s3_restore", "activemq", "rabbitmq", "documentdb"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte(`{"Records":[{"Sns":{"TopicArn":"a","MessageAttributes":{"x-idempotency-key":[1]}},"messageAttributes":{"x-idempotency-key":{"dataType":"String"}},"eventSourceARN":"a.fifo","dynamodb":{"Keys":{"a":{}}},"kinesis":{"data":null}}],"detail":{"x-idempotency-key":{}},"records":{"@":[{"topic":"@","value":"{","headers":[{}]}]}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		fuzzMessages(t, event, (*lambdaidem.Guard).SQS, func(r events.SQSEventResponse) int { return len(r.BatchItemFailures) })
		fuzzMessages(t, event, (*lambdaidem.Guard).Kinesis, func(r events.KinesisEventResponse) int { return len(r.BatchItemFailures) })
		fuzzMessages(t, event, (*lambdaidem.Guard).Kafka, func(r lambdaidem.KafkaEventResponse) int { return len(r.BatchItemFailures) })
		fuzzMessages(t, event, (*lambdaidem.Guard).DynamoDBStream, func(r events.DynamoDBEventResponse) int { return len(r.BatchItemFailures) })
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).SNS)
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).EventBridge)
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).S3)
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).ActiveMQ)
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).RabbitMQ)
		fuzzAsynchronous(t, event, (*lambdaidem.Guard).DocumentDB)
	})
}

// decodes decodes an event and reports whether that worked. aws-lambda-go panics at some events
// that DynamoDB never sends.
func decodes(event []byte, into any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return json.Unmarshal(event, into) == nil
}

func silent[M any](o *lambdaidem.BatchOptions[M]) { o.OnFailure = func(context.Context, M, error) {} }

func fuzzMessages[E, M, R any](t *testing.T, event []byte, guard func(*lambdaidem.Guard, func(context.Context, M) error, ...func(*lambdaidem.BatchOptions[M])) func(context.Context, E) (R, error), failed func(R) int) {
	t.Helper()
	var in E
	if !decodes(event, &in) {
		return
	}
	runs := 0
	h := guard(lambdaidem.New(memstore.New(), quiet), func(context.Context, M) error { runs++; return nil }, silent[M])
	one, err := h(t.Context(), in)
	first := runs
	two, again := h(t.Context(), in)
	if (err == nil) != (again == nil) || failed(one) != failed(two) || runs != first {
		t.Fatalf("%T: first %d failures, %v, %d runs; then %d, %v, %d", in, failed(one), err, first, failed(two), again, runs)
	}
}

func fuzzAsynchronous[E, M any](t *testing.T, event []byte, guard func(*lambdaidem.Guard, func(context.Context, M) error, ...func(*lambdaidem.BatchOptions[M])) func(context.Context, E) error) {
	t.Helper()
	fuzzMessages(t, event, func(g *lambdaidem.Guard, h func(context.Context, M) error, o ...func(*lambdaidem.BatchOptions[M])) func(context.Context, E) (int, error) {
		one := guard(g, h, o...)
		return func(ctx context.Context, e E) (int, error) { return 0, one(ctx, e) }
	}, func(int) int { return 0 })
}
