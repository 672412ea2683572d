package eventsource_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// TestSQS_OfElasticMQ sends two messages: one succeeds, and the other fails until it is
// dead-lettered.
func TestSQS_OfElasticMQ(t *testing.T) {
	l := &local{T: t, called: make(chan struct{}, 1)}
	client := elasticmq.ForTest(t).Client()
	l.sqs = client
	name := "orders-" + rand.Text()
	queues := []template.Queue{
		{LogicalID: "Orders", Name: name, Visibility: time.Second, Retention: time.Hour, DeadLetter: head + name + "-dead", MaxReceives: 2},
		{LogicalID: "Dead", Name: name + "-dead", Visibility: 30 * time.Second, Retention: time.Hour},
	}
	for range 2 {
		if err := template.CreateQueues(t.Context(), client, queues); err != nil {
			t.Fatal(err)
		}
	}
	url := func(name string) *string {
		out, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err != nil {
			t.Fatal(err)
		}
		return out.QueueUrl
	}
	s := fromQueue(name)
	s.Name, s.ReportsFailures = "Orders", true
	o := l.options(func(_ context.Context, e event) (emulator.Result, error) { return answer(e.reporting("bad")) }, s)
	l.startWith(o)
	for _, body := range []string{"good", "bad"} {
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url(name), MessageBody: aws.String(body)}); err != nil {
			t.Fatal(err)
		}
	}
	// Poll with short receives, because a dead-lettered message does not wake a ReceiveMessage
	// call that is already waiting in ElasticMQ.
	var out *sqs.ReceiveMessageOutput
	for deadline := time.Now().Add(20 * time.Second); out == nil || len(out.Messages) == 0; {
		var err error
		out, err = client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url(name + "-dead"), WaitTimeSeconds: 1})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("in the dead-letter queue: %+v, %v; the log:\n%s", out, err, l.log.String())
		}
	}
	expect(t, "dead", aws.ToString(out.Messages[0].Body), "bad")
	names := l.until(count(3))
	expect(t, "good", times(names, "good"), 1)
	expect(t, "bad", times(names, "bad"), 2)
	expect(t, "left", depthOf(t, client, url(name)), depth{})
}
