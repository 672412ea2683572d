// Command transfers is a Lambda function for an HTTP API (payload format 2.0):
// POST /transfers, safe to retry.
//
// It shows how to call an outside service whose answer decides the handler's own answer: in a
// step, with a key for that service, between two transactions.
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
	env, err := environment.Load(context.Background(),
		environment.IdempotencyTable, environment.TransfersTable, environment.AccountsTable, environment.ClearingURL)
	if err != nil {
		slog.Error("the transfers function can't start", "error", err)
		os.Exit(1)
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	slog.Info("ready", "store", store.Warm(context.Background()))
	guard := lambdaidem.New(store, env.Observed)
	transfers := newHandler(guard,
		ledger.Transfers(env.Get(environment.TransfersTable)),
		ledger.Accounts(env.Get(environment.AccountsTable)),
		clearing(env.Get(environment.ClearingURL)))
	serve := guard.APIGatewayV2
	if env.Demo {
		slog.Warn("DEMO=1: clients may ask for crashes, and for policy Hold, by header")
		transfers.at = crash
		serve = func(create handlerV2) handlerV2 { return demonstrated(guard, create) }
	}
	lambda.Start(serve(transfers.create))
}
