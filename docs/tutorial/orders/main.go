// Command orders is the first function of the tutorial: POST /orders charges a card and
// stores the order.
package main

import (
	"context"
	"log"
	"os"

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
	shop := shop{orders: os.Getenv("ORDERS_TABLE"), bank: os.Getenv("BANK_URL")}
	lambda.Start(shop.guarded(store))
}

func (s shop) guarded(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) lambdaidem.APIGatewayV2Handler {
	guard := lambdaidem.New(store, optFns...)
	guard = guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	return guard.APIGatewayV2(s.create)
}
