package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ttl is how long the guard remembers that a message was handled. It exceeds the time within
// which the message can arrive again, which is 37 days:
//
//   - The sender may send it again for 15 days: the stream has the payment for 1 day, and the
//     dead-letter queue of the stream for 14.
//   - The queue keeps it for 4 days.
//   - The FIFO dead-letter queue, which counts from the start again, keeps it for 14.
//   - After a redrive, the queue keeps it for 4 more.
const ttl = 45 * 24 * time.Hour

type queueHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// guarded returns the Lambda handler, which guards each message separately.
//
// The key is the payment's ID in the body. The sender also puts it into the message attribute
// for the key, but guarded reads it from the body, because a payer must get one mail for a
// payment. If somebody puts a message into the queue by hand, without the attribute or with
// another value, it still has the same key and causes no second mail. A message with the
// same payment's ID and a different body is refused.
func guarded(guard *lambdaidem.Guard, h handler) queueHandler {
	guard = guard.With(func(o *lambdaidem.Options) {
		// The default namespace is the function's name. A function that replaces this one
		// under another name receives the messages that are still in the queue and in the
		// dead-letter queue, and must find the records of this function.
		o.Namespace, o.TTL = "notifications", ttl
	})
	return guard.SQS(h.notify, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		// The default operation is the queue's ARN. A consumer of the dead-letter queue
		// would have another operation, and would handle messages a second time.
		o.Operation = "notification"
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			n, err := notification.Parse(m.Body)
			return n.PaymentID, err
		}
	})
}
