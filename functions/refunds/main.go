// Command refunds is a Lambda function for an HTTP API (payload format 2.0):
// POST /payments/{id}/refunds, safe to retry.
//
// It shows how to guard a handler of API Gateway events without an adapter.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/environment"
	"github.com/lambdaidem/toolkit/functions/internal/leaseindex"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	env, err := environment.Load(context.Background(), environment.IdempotencyTable, environment.PaymentsTable, environment.AccountsTable)
	if err != nil {
		slog.Error("the refunds function can't start", "error", err)
		os.Exit(1)
	}
	refunds := handler{
		payments: ledger.Payments{API: env.DynamoDB, Name: env.Get(environment.PaymentsTable)},
		accounts: ledger.Accounts(env.Get(environment.AccountsTable)),
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	slog.Info("ready", "store", store.Warm(context.Background()))
	guard := lambdaidem.New(store, env.Observed)
	lambda.Start(guard.APIGatewayV2(refunds.create))
}
