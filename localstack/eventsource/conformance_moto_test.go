package eventsource_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The poller knows no package queue: what it does with one message that succeeds and
// one that fails until it is dead is the same on another SQS, such as moto's server.
func TestSQS_CrossCheck(t *testing.T) {
	endpoint := os.Getenv("SQS_CROSSCHECK_ENDPOINT") // as in package queue
	if endpoint == "" {
		t.Skip("SQS_CROSSCHECK_ENDPOINT names no other SQS")
	}
	l := &local{T: t, called: make(chan struct{}, 1)}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	l.sqs = client
	name := time.Now().Format("orders-150405")
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
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url(name + "-dead"), WaitTimeSeconds: 20})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("in the dead-letter queue: %+v, %v; the log:\n%s", out, err, l.log.String())
	}
	expect(t, "dead", aws.ToString(out.Messages[0].Body), "bad")
	names := l.until(count(3))
	expect(t, "good", times(names, "good"), 1)
	expect(t, "bad", times(names, "bad"), 2)
	left, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: url(name), AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "left", left.Attributes, map[string]string{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"})
}
