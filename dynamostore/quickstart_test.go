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

// This function runs behind an HTTP API.
func Example() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")
	guard := lambdaidem.New(store)
	lambda.Start(guard.APIGatewayV2(createPayment))
}

// This operation must not run twice unnoticed, and its clients may retry for days.
func Example_options() {
	store := dynamostore.New(dynamodb.New(dynamodb.Options{Region: "eu-west-1"}), "idempotency")
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold
		o.TTL = 72 * time.Hour
	})
	_ = guard.APIGatewayV2(createPayment)
}

// createPayment is any handler of yours. It knows nothing of the guard.
func createPayment(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: e.Body}, nil
}
