package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
)

type handler struct {
	mailer mailer
	told   func(ctx context.Context, reference string) error // see package demo
}

// notify has the payer told of one payment.
//
// Every error is reported, and the message comes back: after the queue's visibility
// timeout, and when that was of no use maxReceiveCount times, from the dead-letter
// queue, once somebody has mended what was wrong. So there is no need to tell a mailer
// that refuses for good from one that is out of order; both end where they should.
//
// The mailer can't be part of a transaction: it is called at least once, with a
// key that is the same in every attempt, so that it sends one mail. There is no
// lambdaidem.Step around the call: that would keep it from being made again where
// something after it fails, and nothing comes after it.
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
