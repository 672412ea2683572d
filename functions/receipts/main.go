// Command receipts is a Lambda function that consumes the stream of the table of payments. For
// each new payment it writes a receipt, exactly once, and sends a message that makes the
// notifications function notify the payer.
//
// It shows the transactional outbox that DynamoDB has built in. The function that writes a
// payment sends no message. The table's stream contains every committed write and nothing else,
// so a crash of that function can't lose the message about a committed payment.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/environment"
	"github.com/lambdaidem/toolkit/functions/internal/leaseindex"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	env, err := environment.Load(context.Background(),
		environment.IdempotencyTable, environment.ReceiptsTable, environment.NotificationsQueue)
	if err != nil {
		slog.Error("the receipts function can't start", "error", err)
		os.Exit(1)
	}
	receipts := handler{
		receipts: ledger.Receipts(env.Get(environment.ReceiptsTable)),
		queue:    queue{sqs.NewFromConfig(env.AWS), env.Get(environment.NotificationsQueue)},
		sent:     demo.Nowhere,
	}
	if env.Demo {
		slog.Warn("DEMO=1: payments may ask for crashes by their reference")
		receipts.sent = demo.At("receipt")
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	slog.Info("ready", "store", store.Warm(context.Background()))
	guard := lambdaidem.New(store, env.Observed)
	lambda.Start(guarded(guard, receipts))
}
