package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
	outside "github.com/lambdaidem/toolkit/localstack/queue"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// V4: what is sent again within 5 minutes is dropped by the queue itself. What is in
// the queue is what a consumer's guard reads.
func TestV4_MessageThatIsSentAgainIsOneInTheQueue(t *testing.T) {
	server, err := outside.Start(t.Context(), outside.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	fifo, err := server.CreateQueue("notifications.fifo", map[string]string{"FifoQueue": "true"})
	if err != nil {
		t.Fatal(err)
	}
	s, p := newSetUp(), payment()
	s.handler.sent, p.Reference = demo.At("receipt"), "receipt-fails=1"
	s.handler.queue = queue{url: fifo.URL(), client: sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(server.URL()),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})}
	r := insert(t, p)
	for attempt, want := range []int{1, 0} {
		if failed := s.deliver(t, r); len(failed) != want {
			t.Fatalf("attempt %d: %v failed; want %d", attempt+1, failed, want)
		}
	}
	batch, err := fifo.ReceiveBatch(t.Context(), outside.BatchOptions{Size: 10})
	if err != nil || len(batch) != 1 {
		t.Fatalf("%d messages, %v; want one", len(batch), err)
	}
	e := batch[0].Event()
	key := e.MessageAttributes[lambdaidem.MessageKey]
	if n, err := notification.Parse(e.Body); err != nil || n != notification.Of(p) || e.Attributes["MessageGroupId"] != p.ID ||
		key.DataType != "String" || aws.ToString(key.StringValue) != e.Attributes["MessageDeduplicationId"] {
		t.Errorf("the message is %+v; want the payment's notification under its key", e)
	}
}

// hanging is a queue that never answers about one payment.
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

// V2: a send that hangs fails its own record, and leaves those behind it their time.
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
