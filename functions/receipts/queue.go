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

// sender is what sending needs of a *sqs.Client.
type sender interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// sendTime is what one send gets, the SDK's own retries included. It is so much less than
// the function's timeout that a connection that hangs is the failure of one record, and
// leaves the others of its batch their time.
const sendTime = 2 * time.Second

// send sends a notification under the payment's ID: as the key for the consumer's
// guard, and as deduplication id for SQS, which by that drops what is sent again within
// 5 minutes.
//
// A payment's ID was made once, by the run that committed the payment, and there is one
// notification of each. So it is a better key than the guarded handler's own,
// [sqskey.Message]: that one is of this function's record and of the payload that it
// began with, and would be another if the record was lost.
//
// The message group is the payment. A group per owner would look like order, but
// there is none to keep: payments are items of their own, and reach us in no order.
// It would only let one notification that fails hold back the owner's others, until
// they are in the dead-letter queue with it.
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
