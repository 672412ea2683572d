package docs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestMessages_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/messages.md") }

// The table of options is that of the type.
func TestMessages_NamesEveryOption(t *testing.T) {
	namesEveryField(t, "docs/messages.md", "lambdaidem.BatchOptions", lambdaidem.BatchOptions[events.SQSMessage]{})
}

// startConsumer is the first code of the page.
func startConsumer(guard *lambdaidem.Guard, charge func(context.Context, string) error) {
	lambda.Start(guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
		return charge(ctx, m.Body)
	}))
}

// startWithCurrency names an attribute that counts.
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

// startWithDiscard takes records that are refused for good out of their shard's way.
func startWithDiscard(guard *lambdaidem.Guard, charge func(context.Context, events.KinesisEventRecord) error, keep func(context.Context, events.KinesisEventRecord, error) error) {
	lambda.Start(guard.Kinesis(charge, func(o *lambdaidem.BatchOptions[events.KinesisEventRecord]) {
		o.Discard = func(ctx context.Context, r events.KinesisEventRecord, why error) bool {
			return keep(ctx, r, why) == nil // in a queue of your own: nobody else has it any more
		}
	}))
}

// startWholeBatches is for a Kafka mapping that reports no failures one by one.
func startWholeBatches(guard *lambdaidem.Guard, charge func(context.Context, events.KafkaRecord) error) {
	lambda.Start(guard.Kafka(charge, func(o *lambdaidem.BatchOptions[events.KafkaRecord]) {
		o.WholeBatch = true // the mapping is not in provisioned mode
	}))
}

var _ = []any{startConsumer, startWithCurrency, startWithTimeout, startWithDiscard, startWholeBatches}

// byCustomerAndNumber is a key of a message by JMESPath, as docs/keys.md has it.
func byCustomerAndNumber() func(*lambdaidem.BatchOptions[events.SQSMessage]) {
	order := jmeskey.Must("[customer, number]")
	return func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) { return order.JSON([]byte(m.Body)) }
	}
}

// byFields is a key of chosen fields, as docs/keys.md has it.
func byFields(o *lambdaidem.Options) {
	o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
		customer := strings.Join(r.Values("X-Customer"), ",")
		return lambdaidem.HashKey(customer, r.Path)
	}
}

// V3: an operator gets from a message to its record, as the page shows.
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

// K5: keys of fields and by JMESPath are one for one order, whatever else a try has.
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
