// Command payments is a Lambda function for an HTTP API (payload format 2.0):
// POST /payments and GET /payments/{id}, safe to retry, and GET /health.
//
// It shows how to guard a net/http application. The application does not handle idempotency
// keys. It enlists its writes, so that they are committed in one transaction with its
// response.
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
		slog.Error("the payments function can't start", "error", err)
		os.Exit(1)
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	app := newApplication(
		ledger.Payments{API: env.DynamoDB, Name: env.Get(environment.PaymentsTable)},
		ledger.Accounts(env.Get(environment.AccountsTable)),
		newHealth(store, env.Get(environment.PaymentsTable), env.Get(environment.AccountsTable)))
	if env.Demo {
		slog.Warn("DEMO=1: clients may ask for delays and failures by header")
		app = demonstrated(app)
	}
	slog.Info("ready", "store", store.Warm(context.Background()))
	lambda.Start(guarded(lambdaidem.New(store, env.Observed), app))
}
