package main

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// ttl is for how long a message is known to be done. It can come back from the queue
// for 4 days, from the dead-letter queue for 14 more (a FIFO queue's counts anew), and
// after a redrive for 4 again; and for a day the sender may send it once more.
const ttl = 30 * 24 * time.Hour

// concurrency is how many messages of a batch are handled at a time: all of them, so
// that a mailer which takes its time does not leave the last ones without any.
const concurrency = 10

type queueHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// guarded is the Lambda handler: each message is guarded by itself, by the key that
// its sender gave it (V3).
func guarded(guard *lambdaidem.Guard, h handler) queueHandler {
	guard = guard.With(func(o *lambdaidem.Options) { o.TTL = ttl })
	return guard.SQS(h.notify, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		// Not the queue's ARN: a consumer of the dead-letter queue would be another
		// operation then, and do again what was done.
		o.Operation = "notification"
		o.Concurrency = concurrency
	})
}
