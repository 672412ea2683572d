// Command receipts is a Lambda function for the stream of the table of payments: it
// writes a receipt for each new payment, exactly once, and has the payer notified.
//
// It shows the transactional outbox as DynamoDB has it built in. A payment's writer
// sends nothing: whatever it commits is in the table's stream, and what it does not
// commit never is. Nothing can come between the write and the message, since the
// write is the message.
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
	guard := lambdaidem.New(dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option), env.Observed)
	lambda.Start(guarded(guard, receipts))
}
