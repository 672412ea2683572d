package propagate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	bridge "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate"
	"github.com/lambdaidem/toolkit/propagate/eventkey"
	"github.com/lambdaidem/toolkit/propagate/snskey"
	"github.com/lambdaidem/toolkit/propagate/sqskey"
)

// A handler sends its messages again in a second attempt. They have new ids, but the
// consumer's guard finds the same keys and handles each message once.
func TestV4_TheConsumerFindsTheKey(t *testing.T) {
	if propagate.Attribute != lambdaidem.MessageKey {
		t.Fatalf("producers write %s, consumers read %s", propagate.Attribute, lambdaidem.MessageKey)
	}
	quiet := func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }
	consumer := lambdaidem.New(memstore.New(), quiet)
	handled := map[string]int{}
	onQueue := consumer.SQS(func(context.Context, events.SQSMessage) error { handled["SQS"]++; return nil })
	onTopic := consumer.SNS(func(context.Context, events.SNSEventRecord) error { handled["SNS"]++; return nil })
	onBus := consumer.EventBridge(func(context.Context, events.EventBridgeEvent) error { handled["EventBridge"]++; return nil })

	attempt := 0
	send := func(ctx context.Context) (int, error) {
		attempt++
		id := string(rune('0' + attempt)) // messages that are sent again get new ids
		message := &sqs.SendMessageInput{MessageBody: aws.String("paid")}
		notice := &sns.PublishInput{Message: aws.String("paid")}
		entry := &bridge.PutEventsRequestEntry{Detail: aws.String(`{"paid":true}`)}
		for _, err := range []error{sqskey.Message(ctx, "m", message), snskey.Message(ctx, "n", notice), eventkey.Entry(ctx, "e", entry)} {
			if err != nil {
				t.Error(err)
			}
		}
		var arrived events.SQSMessage
		arrived.MessageId, arrived.Body, arrived.EventSourceARN = id, *message.MessageBody, "arn:q"
		arrived.MessageAttributes = map[string]events.SQSMessageAttribute{}
		for name, a := range message.MessageAttributes {
			arrived.MessageAttributes[name] = events.SQSMessageAttribute{DataType: *a.DataType, StringValue: a.StringValue}
		}
		published := map[string]any{}
		for name, a := range notice.MessageAttributes {
			published[name] = map[string]any{"Type": *a.DataType, "Value": *a.StringValue}
		}
		if out, err := onQueue(t.Context(), events.SQSEvent{Records: []events.SQSMessage{arrived}}); err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("SQS: %+v, %v", out, err)
		}
		if err := onTopic(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: id, TopicArn: "arn:t", Message: *notice.Message, MessageAttributes: published}}}}); err != nil {
			t.Error(err)
		}
		if err := onBus(t.Context(), events.EventBridgeEvent{ID: id, Source: "shop", Detail: json.RawMessage(*entry.Detail)}); err != nil {
			t.Error(err)
		}
		if attempt == 1 {
			return 0, lambdaidem.Retryable(context.DeadlineExceeded)
		}
		return attempt, nil
	}
	producer := lambdaidem.New(memstore.New(), quiet)
	for range 2 {
		_, _ = lambdaidem.Do(t.Context(), producer, lambdaidem.Call{Operation: "pay", Key: "order-1"}, send)
	}
	for source, n := range handled {
		if n != 1 {
			t.Errorf("%s: handled %d times", source, n)
		}
	}
	if attempt != 2 || len(handled) != 3 {
		t.Errorf("%d attempts, handled %v", attempt, handled)
	}
}
