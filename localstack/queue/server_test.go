package queue_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// The SDK finds the server as a deployed function would, by its environment.
func TestServer_FoundByTheEnvironment(t *testing.T) {
	server, err := queue.Start(t.Context(), queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL_SQS", server.URL())
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	transport := &http.Client{Transport: &http.Transport{}}
	defer transport.CloseIdleConnections()
	loaded, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := sqs.NewFromConfig(loaded, func(o *sqs.Options) { o.Retryer, o.HTTPClient = aws.NopRetryer{}, transport })
	created, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "URL", *created.QueueUrl, server.URL()+"/000000000000/orders")
	q, err := server.Queue(*created.QueueUrl)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the same in process", q.URL(), *created.QueueUrl)

	ended := make(chan error)
	go func() {
		_, err := client.ReceiveMessage(context.WithoutCancel(t.Context()), &sqs.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: 20})
		ended <- err
	}()
	start := time.Now()
	sendAll(t, q, "", "x")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := client.ReceiveMessage(context.WithoutCancel(t.Context()), &sqs.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: 20})
		ended <- err
	}()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a receive succeeded on a closed server")
	}
	expect(t, "all of it soon", time.Since(start) < 15*time.Second, true)
	if err := server.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	_, err = q.Send(queue.Outgoing{Body: "x"})
	expect(t, "after Close", errors.Is(err, queue.ErrClosed), true)
}

func TestServer_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server, err := queue.Start(ctx, queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := create(t, server.Service, "orders", nil)
	cancel()
	_, err = q.ReceiveBatch(context.WithoutCancel(ctx), queue.BatchOptions{}) // waits for the end
	expect(t, "receive", err, queue.ErrClosed)
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func TestServer_ListensOnLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "nonsense"} {
		server, err := queue.Start(t.Context(), queue.Options{Addr: addr})
		if err == nil {
			_ = server.Close()
			t.Errorf("%s was taken", addr)
		}
	}
	first, err := queue.Start(t.Context(), queue.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	_, err = queue.Start(t.Context(), queue.Options{Addr: strings.TrimPrefix(first.URL(), "http://")})
	expect(t, "an address in use", err != nil && strings.Contains(err.Error(), "is another one running there?"), true)
}
