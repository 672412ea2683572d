// Command notifications is a Lambda function that consumes a FIFO queue. For each message it
// asks a mailer to send a payer a mail about a payment.
//
// It shows how to guard the consumer of a queue, so that it handles each key once, and how to
// pass a key on to an outside service.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/functions/internal/environment"
	"github.com/lambdaidem/toolkit/functions/internal/leaseindex"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

func main() {
	slog.SetDefault(lambdacontext.NewLogger())
	env, err := environment.Load(context.Background(), environment.IdempotencyTable, environment.MailerURL)
	if err != nil {
		slog.Error("the notifications function can't start", "error", err)
		os.Exit(1)
	}
	mails, err := newMailer(env.Get(environment.MailerURL))
	if err != nil {
		slog.Error("the notifications function can't start", "error", err)
		os.Exit(1)
	}
	notifications := handler{mailer: mails, told: demo.Nowhere}
	if env.Demo {
		slog.Warn("DEMO=1: payments may ask for crashes by their reference")
		notifications.told = demo.At("notification")
	}
	store := dynamostore.New(env.DynamoDB, env.Get(environment.IdempotencyTable), leaseindex.Option)
	slog.Info("ready", "store", store.Warm(context.Background()))
	guard := lambdaidem.New(store, env.Observed)
	lambda.Start(guarded(guard, notifications))
}
