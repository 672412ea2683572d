package eventsource_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func Example() {
	sam, err := template.Parse("template.yaml", []byte(`
Resources:
  Consumer:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Orders: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}
  Orders: {Type: AWS::SQS::Queue}
`), template.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	server, err := elasticmq.Start(ctx, func(o *elasticmq.Options) { o.Own = true })
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Stop() }()
	client := server.Client()
	if err := template.CreateQueues(ctx, client, sam.Queues); err != nil {
		log.Fatal(err)
	}

	done := make(chan string)
	mappings, err := eventsource.Start(ctx, eventsource.Options{
		Template: sam, SQS: client, Log: io.Discard,
		// A local run uses the method Invoke of an emulator.Emulator here.
		Invoke: func(_ context.Context, function string, _ []byte) (emulator.Result, error) {
			done <- function
			return emulator.Result{Payload: []byte("null")}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	orders, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("Orders")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: orders.QueueUrl, MessageBody: aws.String("an order")}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("invoked:", <-done)
	if err := mappings.Close(); err != nil { // waits until the message is deleted
		log.Fatal(err)
	}
	// Output: invoked: Consumer
}
