package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
)

type handler struct {
	mailer mailer
	told   func(ctx context.Context, reference string) error // called after the mail; fails if a demonstration asks for it
}

// notify asks the mailer to send one mail about one payment.
//
// The guard reports every error to SQS, and the message returns after the queue's visibility
// timeout. After maxReceiveCount attempts SQS moves it to the dead-letter queue, from which an
// operator redrives it once the cause is repaired. So notify need not distinguish a mailer
// that refuses a mail for good from one that fails for a while.
//
// The mailer can't take part in a transaction, so it is called at least once. It sends one
// mail, because the key is the same in every attempt. The call is not in a lambdaidem.Step. A
// step would prevent a second call if something after the call failed, but nothing that can
// fail follows, except in a demonstration.
func (h handler) notify(ctx context.Context, m events.SQSMessage) error {
	n, err := notification.Parse(m.Body)
	if err != nil {
		return err
	}
	if err := h.mailer.tell(ctx, n); err != nil {
		return err
	}
	return h.told(ctx, n.Reference)
}
