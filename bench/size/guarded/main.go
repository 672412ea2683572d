// Command guarded is the Lambda function of command bare with a guard. The guard and its store have
// their default options.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/bench/size/internal/order"
	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	guard := lambdaidem.New(dynamostore.New(client, os.Getenv("IDEMPOTENCY_TABLE")))
	lambda.Start(guard.APIGatewayV2(order.Handler(client, os.Getenv("ORDERS_TABLE"))))
}
