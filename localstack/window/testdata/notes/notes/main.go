// Command notes is a user's function. Each of its routes has a guard with rare options.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func write(context.Context, request) (response, error) {
	return response{StatusCode: http.StatusCreated, Body: `{"note":"written"}`}, nil
}

func main() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	plain := dynamostore.New(client, os.Getenv("TABLE"))
	shared := dynamostore.New(client, os.Getenv("SHARED"), func(o *dynamostore.Options) {
		o.IDAttribute, o.SortKeyAttribute = "pk", "sk"
		o.StatusAttribute, o.ExpirationAttribute, o.InProgressExpirationAttribute = "state", "ttl", "lease"
		o.DataAttribute, o.ValidationAttribute = "answer", "print"
		o.Encryption = dynamostore.StaticKeys(dynamostore.Key{ID: "2026", Secret: []byte(strings.Repeat("k", 32))})
	})
	guard := func(store lambdaidem.Store, change func(*lambdaidem.Options)) func(context.Context, request) (response, error) {
		return lambdaidem.New(store, change).APIGatewayV2(write)
	}
	routes := map[string]func(context.Context, request) (response, error){
		"/open":       guard(plain, func(o *lambdaidem.Options) { o.FailOpen = true }),
		"/cached":     guard(plain, func(o *lambdaidem.Options) { o.Cache.Entries = 10 }),
		"/optimistic": guard(plain, func(o *lambdaidem.Options) { o.Optimistic = true }),
		"/shared":     guard(shared, func(o *lambdaidem.Options) { o.IDPrefix = "tenant" }),
		"/slow": func(context.Context, request) (response, error) {
			time.Sleep(2 * time.Second) // longer than the gateway waits
			return write(context.Background(), request{})
		},
	}
	lambda.Start(func(ctx context.Context, e request) (response, error) { return routes[e.RawPath](ctx, e) })
}
