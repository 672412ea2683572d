package main

import (
	"context"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The queue drops a message that is sent again within 5 minutes. The consumer's guard can read
// the key of the message.
func TestV4_MessageThatIsSentAgainIsOneInTheQueue(t *testing.T) {
	client := elasticmq.ForTest(t).Client()
	fifo, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("notifications-" + rand.Text() + ".fifo"), Attributes: map[string]string{"FifoQueue": "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, p := newSetUp(), payment()
	s.handler.sent, p.Reference = demo.At("receipt"), "receipt-fails=1"
	s.handler.queue = queue{url: *fifo.QueueUrl, client: client}
	r := insert(t, p)
	for attempt, want := range []int{1, 0} {
		if failed := s.deliver(t, r); len(failed) != want {
			t.Fatalf("attempt %d: %v failed; want %d", attempt+1, failed, want)
		}
	}
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: fifo.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("messages %+v, %v; want one", out, err)
	}
	m := out.Messages[0]
	key := m.MessageAttributes[lambdaidem.MessageKey]
	if n, err := notification.Parse(*m.Body); err != nil || n != notification.Of(p) || m.Attributes["MessageGroupId"] != p.ID ||
		aws.ToString(key.DataType) != "String" || aws.ToString(key.StringValue) != m.Attributes["MessageDeduplicationId"] {
		t.Errorf("the message is %+v; want the payment's notification under its key", m)
	}
}

// hanging is a queue that never answers for one payment.
type hanging struct {
	outgoing
	payment string
}

func (h *hanging) SendMessage(ctx context.Context, in *sqs.SendMessageInput, optFns ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if *in.MessageGroupId == h.payment {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.outgoing.SendMessage(ctx, in, optFns...)
}

// A send that hangs fails only its own record, and leaves time for the records behind it.
func TestV2_SendThatHangsIsOneFailure(t *testing.T) {
	deployed, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	timeout := deployed.Function("ReceiptsFunction").Timeout
	synctest.Test(t, func(t *testing.T) {
		s, a, b := newSetUp(), payment(), payment()
		queueOf := &hanging{payment: a.ID}
		s.handler.queue.client = queueOf
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		ctx, _ = dynamostore.Capture(ctx)
		begun, first := time.Now(), insert(t, a)
		answer, err := s.guarded(s.store)(ctx, events.DynamoDBTimeWindowEvent{DynamoDBEvent: events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{first, insert(t, b)}}})
		if failed := answer.BatchItemFailures; err != nil || len(failed) != 1 || failed[0].ItemIdentifier != first.Change.SequenceNumber || len(queueOf.sent) != 1 {
			t.Errorf("%v, %v failed, and %d were sent; want the first to fail, and the second to be sent", err, failed, len(queueOf.sent))
		}
		if took := time.Since(begun); took > timeout/3 {
			t.Errorf("one send took %v of the function's %v", took, timeout)
		}
	})
}
