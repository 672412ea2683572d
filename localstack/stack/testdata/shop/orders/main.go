// Command orders is a user's function, with the route POST /orders under policy Rerun and the
// route POST /held-orders under policy Hold.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// order is an order as it is stored in the table and returned to the client.
type order struct {
	ID       string `dynamodbav:"id" json:"id"`
	Shop     string `json:"shop"`
	Currency string `json:"currency"`
	Key      string `json:"key"`
	Attempt  int    `json:"attempt"`
	Request  string `json:"request"`
	Inner    string `dynamodbav:",omitempty" json:"inner,omitempty"`
}

// create writes an order as an enlisted write. If X-Until is set, create waits until the file
// with that name exists, even if the context ends. If X-Journal is set, create appends a line to
// that file, as an example of an outside effect. X-Inner is the key of a guarded call inside the
// handler.
func create(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	lc, _ := lambdacontext.FromContext(ctx)
	made := order{
		ID: "order-" + lambdaidem.RecordID(ctx), Shop: os.Getenv("SHOP"), Currency: os.Getenv("CURRENCY"),
		Key: lambdaidem.Key(ctx), Attempt: lambdaidem.Attempt(ctx), Request: lc.AwsRequestID,
	}
	if key := e.Headers["x-inner"]; key != "" {
		result, err := lambdaidem.Do(ctx, guard(), lambdaidem.Call{Operation: "inner", Key: key}, func(context.Context) (string, error) { return "by " + made.Key, nil })
		if err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
		made.Inner = result
	}
	dynamostore.Enlist(ctx).PutValue("order", os.Getenv("TABLE"), made)
	if file := e.Headers["x-until"]; file != "" {
		await(file)
	}
	if file := e.Headers["x-journal"]; file != "" {
		if err := note(file, made); err != nil {
			return events.APIGatewayV2HTTPResponse{}, err
		}
	}
	body, err := json.Marshal(made)
	return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: string(body)}, err
}

func await(file string) {
	for range time.Tick(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
}

func note(file string, made order) error {
	journal, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(journal)
	if err := json.NewEncoder(w).Encode(made); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return journal.Close()
}

// guard returns the guard that all calls share.
var guard = sync.OnceValue(func() *lambdaidem.Guard {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return lambdaidem.New(dynamostore.New(dynamodb.NewFromConfig(cfg), os.Getenv("TABLE")))
})

func main() {
	rerun := guard().APIGatewayV2(create)
	held := guard().With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }).APIGatewayV2(create)
	lambda.Start(func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if e.RawPath == "/held-orders" {
			return held(ctx, e)
		}
		return rerun(ctx, e)
	})
}
