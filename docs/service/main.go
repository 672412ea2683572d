// Command service is a service such as a reader of docs/testing.md has: one
// function behind an HTTP API, guarded on a table of its own.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

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
	lambda.Start(newHandler(store))
}

// newHandler returns the handler of the service. A test can pass another store.
func newHandler(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) lambdaidem.APIGatewayV2Handler {
	return lambdaidem.New(store, optFns...).APIGatewayV2(createPayment)
}

func createPayment(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	var order struct {
		Amount int `json:"amount"`
	}
	if err := json.Unmarshal([]byte(e.Body), &order); err != nil || order.Amount <= 0 {
		return events.APIGatewayV2HTTPResponse{}, lambdaidem.Reject(http.StatusBadRequest, "amount_invalid", "amount must be a positive number")
	}
	// The payment's id is derived from the record's id, so another attempt makes the same payment.
	payment, err := json.Marshal(map[string]any{"id": lambdaidem.RecordID(ctx), "amount": order.Amount, "attempt": lambdaidem.Attempt(ctx)})
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(payment)}, nil
}
