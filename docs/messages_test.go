package docs_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestMessages_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/messages.md") }

// The page's table of options has a row for each field of BatchOptions.
func TestMessages_NamesEveryOption(t *testing.T) {
	namesEveryField(t, "docs/messages.md", "lambdaidem.BatchOptions", lambdaidem.BatchOptions[events.SQSMessage]{})
}

// startConsumer is the first code block of the page.
func startConsumer(guard *lambdaidem.Guard, charge func(context.Context, string) error) {
	lambda.Start(guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		return charge(ctx, m.Body)
	}))
}

// startWithCurrency includes the attribute currency in the fingerprint.
func startWithCurrency(guard *lambdaidem.Guard, charge func(context.Context, events.SQSMessage) error) {
	lambda.Start(guard.SQS(charge, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.FingerprintAttributes = []string{"currency"}
	}))
}

// startWithTimeout gives each message of a batch its share of the time.
func startWithTimeout(guard *lambdaidem.Guard, charge func(context.Context, events.SQSMessage) error) {
	lambda.Start(guard.SQS(charge, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Timeout = 2900 * time.Millisecond // a function timeout of 30 s, a batch size of 10
	}))
}

// startWithDiscard discards records that are refused for good, so that they don't block their
// shard.
func startWithDiscard(guard *lambdaidem.Guard, charge func(context.Context, events.KinesisEventRecord) error, keep func(context.Context, events.KinesisEventRecord, error) error) {
	lambda.Start(guard.Kinesis(charge, func(o *lambdaidem.BatchOptions[events.KinesisEventRecord]) {
		o.Discard = func(ctx context.Context, r events.KinesisEventRecord, why error) bool {
			return keep(ctx, r, why) == nil // in a queue of your own: nobody else has it any more
		}
	}))
}

// startWholeBatches starts a consumer of a Kafka mapping that can't report single failed records.
func startWholeBatches(guard *lambdaidem.Guard, charge func(context.Context, events.KafkaRecord) error) {
	lambda.Start(guard.Kafka(charge, func(o *lambdaidem.BatchOptions[events.KafkaRecord]) {
		o.WholeBatch = true // the mapping is not in provisioned mode
	}))
}

// objectRow is the row of an object in a table of a bucket's objects.
type objectRow struct{ ID, ETag, Sequencer string }

// keepTheNewest writes the row of the object that a notification is about, unless the row already has
// a newer notification.
func keepTheNewest(ctx context.Context, r events.S3EventRecord) {
	dynamostore.Enlist(ctx).
		PutValue("row", "objects", objectRow{
			ID:        r.S3.Bucket.Name + "/" + r.S3.Object.URLDecodedKey,
			ETag:      r.S3.Object.ETag,
			Sequencer: lambdaidem.SortableSequencer(r.S3.Object.Sequencer),
		}).
		If("attribute_not_exists(sequencer) OR sequencer < :this", dynamostore.Args{":this": lambdaidem.SortableSequencer(r.S3.Object.Sequencer)}).
		Else(lambdaidem.Answer(nil)) // older than what is there: nothing to do, and done
}

// uploads guards a consumer of S3 notifications on a queue.
func uploads(guard *lambdaidem.Guard, charge func(context.Context, events.SQSMessage) error) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	handle := guard.With(func(o *lambdaidem.Options) {
		o.FingerprintIgnore = []string{"/Records/0/eventTime", "/Records/0/responseElements"}
	}).SQS(charge, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			var e events.S3Event
			if err := json.Unmarshal([]byte(m.Body), &e); err != nil {
				return "", err
			}
			if len(e.Records) != 1 { // such as the test that S3 sends when notifications are configured
				return m.MessageId, nil
			}
			return lambdaidem.S3Key(e.Records[0]), nil
		}
	})
	return handle
}

var _ = []any{startConsumer, startWithCurrency, startWithTimeout, startWithDiscard, startWholeBatches, keepTheNewest}

// Two copies of a notification on a queue run the handler once, although their times differ. S3's test
// message runs the handler like any other message.
func TestV3_NotificationsOnAQueue(t *testing.T) {
	runs := 0
	consume := uploads(lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }), func(context.Context, events.SQSMessage) error { runs++; return nil })
	for i, body := range []string{
		`{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-02T12:45:00.000Z","Bucket":"invoices","RequestId":"1","HostId":"2"}`,
		`{"Records":[{"eventTime":"2026-01-02T12:45:07.123Z","eventName":"ObjectCreated:Put","responseElements":{"x-amz-request-id":"1"},"s3":{"bucket":{"name":"invoices"},"object":{"key":"may.pdf","eTag":"d4","sequencer":"0A"}}}]}`,
		`{"Records":[{"eventTime":"2026-01-02T12:45:09.321Z","eventName":"ObjectCreated:Put","responseElements":{"x-amz-request-id":"2"},"s3":{"bucket":{"name":"invoices"},"object":{"key":"may.pdf","eTag":"d4","sequencer":"0A"}}}]}`,
	} {
		out, err := consume(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: string(rune('1' + i)), Body: body, EventSourceARN: "arn:q"}}})
		if err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("message %d: %+v, %v", i, out, err)
		}
	}
	if runs != 2 {
		t.Errorf("the handler ran %d times", runs)
	}
}

// byCustomerAndNumber derives a message's key with JMESPath, as docs/keys.md shows.
func byCustomerAndNumber() func(*lambdaidem.BatchOptions[events.SQSMessage]) {
	order := jmeskey.Must("[customer, number]")
	return func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) { return order.JSON([]byte(m.Body)) }
	}
}

// byFields derives the key from chosen fields, as docs/keys.md shows.
func byFields(o *lambdaidem.Options) {
	o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
		customer := strings.Join(r.Values("X-Customer"), ",")
		return lambdaidem.HashKey(customer, r.Path)
	}
}

// An operator finds the record of a message as the page shows.
func TestV3_FromAMessageToItsRecord(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	var got string
	consume := guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
		got = lambdaidem.RecordID(ctx)
		return nil
	})
	if _, err := consume(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "7d1cbd70-3a52-4c0a-9f8e-0b5b9d6c2f11", EventSourceARN: "arn:aws:sqs:eu-west-1:111122223333:orders"}}}); err != nil {
		t.Fatal(err)
	}
	id := guard.RecordID(lambdaidem.Identity{
		Operation: "arn:aws:sqs:eu-west-1:111122223333:orders", // or BatchOptions.Operation
		Key:       "7d1cbd70-3a52-4c0a-9f8e-0b5b9d6c2f11",
		Message:   true,
		OwnID:     true, // the key is the source's own id, not one that was sent or derived
	})
	if id != got || id == "" {
		t.Errorf("the page leads to %s; the record is %s", id, got)
	}
}

// The keys that the page derives, from fields and with JMESPath, are the same for every try of
// an order, whatever else in the request differs.
func TestK5_KeysAsThePageDerivesThem(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.Discard
		o.AnonymousCallers = true
		o.FingerprintIgnore = []string{"/sent"}
	})
	runs := 0
	consume := guard.SQS(func(context.Context, events.SQSMessage) error { runs++; return nil }, byCustomerAndNumber())
	for i, body := range []string{`{"customer":"c-1","number":17,"sent":1}`, `{"number":17,"sent":2,"customer":"c-1"}`, `{"customer":"c-1","number":18}`} {
		out, err := consume(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: string(rune('1' + i)), Body: body, EventSourceARN: "arn:q"}}})
		if err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if runs != 2 {
		t.Errorf("it ran %d times", runs)
	}
	web := guard.With(byFields).APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
	})
	for _, c := range []struct {
		customer string
		status   int
	}{{"c-1", 201}, {"", 400}} {
		e := events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders/{id}", RawPath: "/orders/1", Headers: map[string]string{}}
		if e.RequestContext.HTTP.Method = "POST"; c.customer != "" {
			e.Headers["x-customer"] = c.customer
		}
		if out, err := web(t.Context(), e); err != nil || out.StatusCode != c.status {
			t.Errorf("customer %q: %d, %v; want %d", c.customer, out.StatusCode, err, c.status)
		}
	}
}
