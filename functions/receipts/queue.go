package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/functions/internal/notification"
	"github.com/lambdaidem/toolkit/propagate/sqskey"
)

// queue is the FIFO queue of notifications.
type queue struct {
	client sender
	url    string
}

// sender is the part of *sqs.Client that queue uses.
type sender interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// sendTime is the maximum time to send one message, including the SDK's retries. It is much
// less than the function's timeout, so that a connection that hangs fails one record and leaves
// time for the others of the batch.
const sendTime = 2 * time.Second

// send sends a notification with the payment's ID as its key, for the consumer's guard, and as
// its deduplication ID. SQS drops a message with a deduplication ID that it has received
// within the last 5 minutes.
//
// The payment's ID is a better key than the one that [sqskey.Message] derives from this
// function's idempotency record. It is fixed once the payment is committed, and each payment
// has one notification. The derived key would change if the record was lost.
//
// The message group is also the payment's ID. The payments of one owner arrive in no order, so
// a group for each owner would keep no useful order. One failing notification would block the
// other notifications of the owner, until all of them are in the dead-letter queue.
func (q queue) send(ctx context.Context, n notification.Notification) error {
	body, err := n.Body()
	if err != nil {
		return err
	}
	input := &sqs.SendMessageInput{QueueUrl: &q.url, MessageBody: &body, MessageGroupId: &n.PaymentID}
	if err := sqskey.MessageWithKey(n.PaymentID, input, func(o *sqskey.Options) { o.Deduplicate = true }); err != nil {
		return fmt.Errorf("notification of payment %s: %w", n.PaymentID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if _, err := q.client.SendMessage(ctx, input); err != nil {
		return fmt.Errorf("send the notification of payment %s: %w", n.PaymentID, err)
	}
	return nil
}
