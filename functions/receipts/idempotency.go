package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ttl is how long the guard remembers that a payment has its receipt. The stream delivers a
// record for at most 24 hours. After that, the dead-letter queue names the record for up to 14
// days, and an operator may send it to the function again.
const ttl = 30 * 24 * time.Hour

type streamHandler = func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error)

// guarded returns the Lambda handler. It guards each stream record of a new payment separately
// and ignores the others. The filter is outside the guard, so that a refund gets no
// idempotency record.
//
// The guard receives only the attributes of a payment that never change, because its
// fingerprint covers the complete stream record. If the stream gave a record up, an operator
// builds it again from the table's item. Without AsMade, the guard would refuse that record as
// a different payload if the payment was refunded in between.
func guarded(guard *lambdaidem.Guard, h handler) streamHandler {
	guard = guard.With(func(o *lambdaidem.Options) {
		// The default namespace is the function's name. A function that replaces this one
		// under another name begins with the last 24 hours of the stream, and must find
		// the records of this function.
		o.Namespace, o.TTL = "receipts", ttl
	})
	each := guard.DynamoDBStream(h.receive, func(o *lambdaidem.BatchOptions[events.DynamoDBEventRecord]) {
		// A payment has one receipt, whichever stream delivers it. The defaults for
		// Operation and Key, the stream's ARN and the ids of its records, change if the
		// stream is turned off and on.
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
