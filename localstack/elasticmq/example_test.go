package elasticmq_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/elasticmq"
)

func ExampleStart() {
	ctx := context.Background()
	server, err := elasticmq.Start(ctx, func(o *elasticmq.Options) { o.Own = true })
	if err != nil {
		fmt.Println(err)
		return
	}
	client := server.Client()
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err == nil {
		_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("an order")})
	}
	fmt.Println("sent, error:", err)
	if err := server.Stop(); err != nil {
		fmt.Println(err)
	}
	// Output: sent, error: <nil>
}
