// Command confirmations is the second function of the tutorial: it reads the stream of the
// table of orders, and has a mail sent for each new order.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("IDEMPOTENCY_TABLE"))
	lambda.Start(mailer{os.Getenv("MAILER_URL")}.guarded(store))
}

type streamHandler = func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error)

func (m mailer) guarded(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) streamHandler {
	guard := lambdaidem.New(store, optFns...)
	guard = guard.With(func(o *lambdaidem.Options) { o.TTL = 48 * time.Hour }) // the stream keeps a record for 24 hours
	return guard.DynamoDBStream(m.confirm)
}
