package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
	outside "github.com/lambdaidem/toolkit/localstack/queue"
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
