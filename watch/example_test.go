package watch_test

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/watch"
)

// This is the whole main function of a program that reads its settings from environment variables.
func ExampleMain() {
	watch.Main()
}

// A function that sets options of the store must set them like the functions that write to the
// table.
func ExampleHandler() {
	cfg, err := config.LoadDefaultConfig(context.Background(), config.WithHTTPClient(dynamostore.HTTPClient()))
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency", func(o *dynamostore.Options) {
		o.LeaseIndex, o.LeaseShards = "leases", 256
	})
	lambda.Start(watch.Handler(store, func(o *watch.Options) {
		o.Metrics = emf.New(func(o *emf.Options) { o.Service = "payments" })
		o.Routes = []string{"POST /payments", "notification"}
	}))
}
