package dynamostore_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// One HealthCheck serves an HTTP route and any other caller in the program.
func ExampleHealthCheck() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), "idempotency")
	health := dynamostore.NewHealthCheck(store)

	mux := http.NewServeMux()
	mux.Handle("GET /health", health)

	if err := health.Check(context.Background()).Err(); err != nil {
		fmt.Println("the store can't serve:", err)
	}
}
