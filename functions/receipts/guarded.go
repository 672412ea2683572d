package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ttl is for how long a payment is known to have its receipt. A record of a stream
// comes again for 24 hours at most, but one that was given up waits in the dead-letter
// queue for up to 14 days until somebody looks, and may be handed in again by hand.
const ttl = 30 * 24 * time.Hour

type streamHandler = func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error)

// guarded returns the Lambda handler: what is no new payment is passed over, the rest is
// guarded one by one. Passing over comes first, so that a refund costs no record.
//
// The guard gets what never changes in a payment, and no more: all of a stream's record
// counts as its payload, and one that somebody makes of the table's item, because the
// stream gave it up, would be refused as another one if the payment was refunded since.
func guarded(guard *lambdaidem.Guard, h handler) streamHandler {
	guard = guard.With(func(o *lambdaidem.Options) {
		// Not the function's name: one that replaces this function begins with the last 24 hours
		// of the stream, and would do them again.
		o.Namespace, o.TTL = "receipts", ttl
	})
	each := guard.DynamoDBStream(h.receive, func(o *lambdaidem.BatchOptions[events.DynamoDBEventRecord]) {
		// A payment has one receipt, whichever way word of it comes. The defaults, the
		// stream's ARN and its own ids, are others if the stream is turned off and on.
		o.Operation = "receipt"
		o.Key = func(_ context.Context, r events.DynamoDBEventRecord) (string, error) {
			return ledger.PaymentIDOf(r), nil
		}
	})
	return func(ctx context.Context, e events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error) {
		var made []events.DynamoDBEventRecord
		for _, r := range e.Records {
			if ledger.IsNewPayment(r) {
				made = append(made, ledger.AsMade(r))
			}
		}
		e.Records = made
		return each(ctx, e)
	}
}
