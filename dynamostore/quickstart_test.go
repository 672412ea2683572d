package dynamostore_test

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A function behind an HTTP API, as it is deployed.
func Example() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")
	guard := lambdaidem.New(store)
	lambda.Start(guard.APIGatewayV2(createPayment))
}

// An operation that must not run twice unseen, and clients that come back for
// days.
func Example_options() {
	store := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency")
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold
		o.TTL = 72 * time.Hour
	})
	_ = guard.APIGatewayV2(createPayment)
}

// createPayment is any handler of your own; it knows nothing of the guard.
func createPayment(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: e.Body}, nil
}
