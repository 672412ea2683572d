package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
)

// The environment variables that Main reads. watch.yaml sets them.
const (
	tableVariable   = "IDEMPOTENCY_TABLE"
	indexVariable   = "IDEMPOTENCY_LEASE_INDEX"
	shardsVariable  = "IDEMPOTENCY_LEASE_SHARDS"
	serviceVariable = "SERVICE_NAME"
	routesVariable  = "WATCHED_ROUTES"
)

// Main starts the function, and does not return. It reads these environment variables:
//
//	IDEMPOTENCY_TABLE         the table of records: its name or its ARN. Required.
//	IDEMPOTENCY_LEASE_INDEX   the table's index of leases: LeaseIndex of dynamostore.Options. Required.
//	IDEMPOTENCY_LEASE_SHARDS  the number of shards of the index: LeaseShards of dynamostore.Options. Default: 64.
//	SERVICE_NAME              the dimension service of the metrics. Default: the function's name.
//	WATCHED_ROUTES            the routes and operations with metrics of their own, separated by commas: see Options.Routes. Default: none.
//
// LeaseIndex must be that of the functions that write records, and LeaseShards at least theirs:
// a watch with fewer shards does not see the leases in the others.
//
// A table whose attributes are renamed, or that has a sort key, needs a program with [Handler],
// whose store has the same options as the functions.
//
// If a variable is missing or invalid, or the AWS configuration can't be loaded, Main logs the
// reason and ends the process with status 1. Main sets the default logger of log/slog to that
// of [lambdacontext.NewLogger].
func Main() {
	slog.SetDefault(lambdacontext.NewLogger())
	handler, err := fromEnvironment(context.Background())
	if err != nil {
		slog.Error("the watch function can't start", "error", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

// fromEnvironment returns the handler that the environment variables describe. The error names
// every variable that is missing or invalid.
func fromEnvironment(ctx context.Context) (func(context.Context) error, error) {
	var problems []error
	required := func(name, what string) string {
		value := os.Getenv(name)
		if value == "" {
			problems = append(problems, fmt.Errorf("the environment variable %s is not set: set it to %s", name, what))
		}
		return value
	}
	table := required(tableVariable, "the name of the table of idempotency records")
	index := required(indexVariable, "the name of the table's index of leases, which is dynamostore.Options.LeaseIndex of the functions that write records")
	shards, err := shardsIn(os.Getenv(shardsVariable))
	if err != nil {
		problems = append(problems, err)
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(dynamostore.HTTPClient()))
	if err != nil {
		problems = append(problems, fmt.Errorf("load the AWS configuration: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		// DynamoDB Local sends error replies without a checksum. The SDK would log a
		// warning for each of them, because it takes an absent checksum for 0.
		o.DisableValidateResponseChecksum = os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != ""
	})
	store := dynamostore.New(client, table, func(o *dynamostore.Options) { o.LeaseIndex, o.LeaseShards = index, shards })
	return Handler(store, func(o *Options) {
		o.Metrics = emf.New(func(o *emf.Options) { o.Service = os.Getenv(serviceVariable) })
		o.Routes = routesIn(os.Getenv(routesVariable))
	}), nil
}

// shardsIn returns a number of shards, or 0 for an empty text, which is the store's default.
func shardsIn(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	shards, err := strconv.Atoi(text)
	if err != nil || shards < 1 || shards > 1000 {
		return 0, fmt.Errorf("the environment variable %s is %q: set it to dynamostore.Options.LeaseShards of the functions that write records, a number from 1 to 1000", shardsVariable, text)
	}
	return shards, nil
}

// routesIn returns the routes in a list that is separated by commas, without the spaces around
// them. A route template or an operation has no comma.
func routesIn(list string) []string {
	var routes []string
	for route := range strings.SplitSeq(list, ",") {
		if route = strings.TrimSpace(route); route != "" {
			routes = append(routes, route)
		}
	}
	return routes
}
