package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/functions/internal/notification"
)

type handler struct {
	receipts ledger.Receipts
	queue    queue
	sent     func(ctx context.Context, reference string) error // see package demo
}

// receive handles one new payment: it sends a notification and enlists a receipt.
//
// The two are not alike. The receipt and the record that the payment has one are one
// transaction, made after receive has returned: the receipt is written exactly once.
// The message is sent before that, and SQS takes part in no transaction. So it
// is sent at least once: an attempt that dies in between is followed by another one,
// which sends it again. It has the payment's ID as its key in every attempt, and the
// consumer carries out a key once. Sending afterwards instead would lose the message of
// an attempt that dies in between.
//
// What an attempt makes up, the time, goes into the receipt alone: the run that commits
// decides on it. In the message it would be another one each time.
func (h handler) receive(ctx context.Context, r events.DynamoDBEventRecord) error {
	p, err := ledger.PaymentOf(r)
	if err != nil {
		return err
	}
	if err := h.queue.send(ctx, notification.Of(p)); err != nil {
		return err
	}
	if err := h.sent(ctx, p.Reference); err != nil {
		return err
	}
	h.receipts.Add(dynamostore.Enlist(ctx), ledger.Receipt{
		ID:        ledger.ReceiptID(p.ID),
		PaymentID: p.ID,
		Owner:     p.Owner,
		Amount:    p.Amount,
		Currency:  p.Currency,
		PaidAt:    p.CreatedAt,
		WrittenAt: time.Now().UTC().Format(time.RFC3339Nano),
	})
	return nil
}
