package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ttl is for how long a message is known to be done. It can come back from the queue
// for 4 days, from the dead-letter queue for 14 more (a FIFO queue's counts anew), and
// after a redrive for 4 again. Before that it may have been sent for 15 days: the stream
// has a payment for one, and the dead-letter queue says for 14 what it gave up.
const ttl = 45 * 24 * time.Hour

type queueHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// guarded returns the Lambda handler: each message is guarded by itself.
//
// The key is the ID of the payment in the message, which is the key that its sender
// gives it too. It is taken from there because a payer hears of a payment once,
// whatever a message has as a key: one that somebody puts into the queue by hand,
// without the attribute or with another, would be a message of its own, and a second
// mail. One that says something else of the payment is refused.
func guarded(guard *lambdaidem.Guard, h handler) queueHandler {
	guard = guard.With(func(o *lambdaidem.Options) {
		// Not the function's name: one that replaces this function is handed what is in the queue,
		// and in the dead-letter queue.
		o.Namespace, o.TTL = "notifications", ttl
	})
	return guard.SQS(h.notify, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		// Not the queue's ARN: a consumer of the dead-letter queue would be another
		// operation then, and do again what was done.
		o.Operation = "notification"
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			n, err := notification.Parse(m.Body)
			return n.PaymentID, err
		}
	})
}
