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
	sent     func(ctx context.Context, reference string) error // called after the message; fails if a demonstration asks for it
}

// receive handles one new payment: it sends a notification and enlists a receipt.
//
// The receipt is written exactly once. After receive has returned, the guard commits the
// receipt and the completion of the idempotency record in one transaction.
//
// The message is sent at least once, because SQS takes part in no transaction. If the attempt
// dies between the message and the transaction, the next attempt sends the message again. The
// key of the message is the payment's ID in every attempt, and the consumer handles each key
// once. If receive sent the message after the transaction, an attempt that dies in between
// would lose the message.
//
// The current time is only in the receipt, where the committed run decides it. In the message,
// it would be different in every attempt.
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
