package eventsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

const (
	// maxReceive is the maximum number of messages that one ReceiveMessage call returns and that
	// one DeleteMessageBatch call deletes.
	maxReceive = 10
	// longPoll is the maximum wait of a ReceiveMessage call.
	longPoll = 20 * time.Second
	// concurrentBatches is the maximum number of concurrent batches of a queue without
	// MaximumConcurrency. Lambda starts with this number and scales up ("Configuring scaling
	// behavior for SQS event source mappings"); this package doesn't.
	concurrentBatches = 5
	// settleWithin limits the time for deleting the messages that were handled, and for reports
	// to OnFailure. These requests are sent even if Start's context has ended, because the
	// messages were handled.
	settleWithin = 10 * time.Second
)

// queuePoller delivers the messages of one queue.
type queuePoller struct {
	mapping
	queue      string // name of the queue
	url        *string
	visibility time.Duration
	atOnce     time.Duration // wait of a receive if several queues share the room
}

func (q *queuePoller) prepare(ctx context.Context) error {
	found, err := q.options.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(q.queue)})
	if err != nil {
		return fmt.Errorf("finding the queue %s: %w", q.queue, err)
	}
	q.url = found.QueueUrl
	out, err := q.options.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: q.url,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameVisibilityTimeout, types.QueueAttributeNameReceiveMessageWaitTimeSeconds,
		},
	})
	if err != nil {
		return fmt.Errorf("reading the visibility timeout of the queue %s: %w", q.queue, err)
	}
	seconds, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameVisibilityTimeout)])
	if err != nil {
		return fmt.Errorf("reading the visibility timeout of the queue %s: %w", q.queue, err)
	}
	q.visibility = time.Duration(seconds) * time.Second
	if own := out.Attributes[string(types.QueueAttributeNameReceiveMessageWaitTimeSeconds)]; own != "" && own != "0" {
		q.atOnce = time.Second // the SDK omits a wait of 0, and SQS would then use the queue's own wait
	}
	switch timeout, window := q.function.Timeout, q.source.Window; {
	case q.visibility < timeout:
		q.printf("the queue's visibility timeout, %v, is less than the function's timeout, %v: Lambda refuses such a mapping", q.visibility, timeout)
	case q.visibility < timeout+window:
		q.printf("the queue's visibility timeout, %v, is less than the function's timeout, %v, and the batch's window, %v, together: "+
			"messages may come back, and be dead-lettered, while they are in a batch; AWS advises six times the timeout and the window",
			q.visibility, timeout, window)
	}
	return nil
}

// run keeps one receive running at a time. It runs up to MaximumConcurrency invocations, or fewer
// if the function's room is full.
func (q *queuePoller) run(polling context.Context) {
	slots := make(chan struct{}, cmp.Or(q.source.Concurrency, concurrentBatches))
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	var rest []received
	for polling.Err() == nil || len(rest) > 0 {
		slots <- struct{}{} // before receiving, so that no message is invisible while it waits for a slot
		q.room.take()
		done := func() { q.room.give(); <-slots }
		var batch []received
		batch, rest = q.gather(polling, rest)
		if len(batch) == 0 {
			done()
			continue
		}
		deliveries.Go(func() {
			defer done()
			q.deliver(polling, batch)
		})
	}
}

// gather returns the next batch, and the messages that were received but didn't fit into it. The
// argument batch has the messages that didn't fit into the previous one. A batch has at most
// BatchSize messages, fits into one event, and includes messages that arrive until the window
// ends, which begins with the first message. The batch is empty only if polling has ended.
func (q *queuePoller) gather(polling context.Context, batch []received) (_, rest []received) {
	idle, outage := idlePauses(), outagePauses()
	var end time.Time
	for len(batch) < q.source.BatchSize && polling.Err() == nil {
		wait := longPoll
		if q.room.shared {
			wait = q.atOnce
		}
		if len(batch) > 0 {
			if end.IsZero() {
				end = time.Now().Add(q.source.Window)
			}
			left := time.Until(end)
			if left <= 0 {
				break
			}
			// ReceiveMessage waits for whole seconds, so a window may last up to one second
			// longer.
			wait = min(longPoll, max(left.Truncate(time.Second), time.Second))
		}
		messages, err := q.receive(polling, min(maxReceive, q.source.BatchSize-len(batch)), wait)
		if err != nil {
			if polling.Err() == nil {
				q.printf("receiving: %v", err)
			}
			if !q.pause(polling, &outage, batch) {
				break
			}
			continue
		}
		outage = outagePauses()
		if q.room.shared && len(batch)+len(messages) == 0 {
			q.pause(polling, &idle, nil)
			continue
		}
		batch = add(batch, messages)
		if n := fitting(records(batch)); n < len(batch) {
			return batch[:n], batch[n:]
		}
	}
	n := fitting(records(batch)) // the rest of an earlier batch may be too large too
	return batch[:n], batch[n:]
}

// pause waits for the next pause. If batch is empty, the poller's place in the room is free for
// other pollers meanwhile. pause returns false if ctx ends.
func (q *queuePoller) pause(ctx context.Context, p *pauses, batch []received) bool {
	if len(batch) == 0 {
		q.room.give()
		defer q.room.take()
	}
	return p.wait(ctx)
}

func (q *queuePoller) receive(ctx context.Context, most int, wait time.Duration) ([]received, error) {
	out, err := q.options.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    q.url,
		MaxNumberOfMessages:         int32(most), //nolint:gosec // 1 to 10
		WaitTimeSeconds:             int32(wait / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	at := time.Now()
	messages := make([]received, 0, len(out.Messages))
	for _, m := range out.Messages {
		messages = append(messages, received{
			id: aws.ToString(m.MessageId), handle: m.ReceiptHandle, at: at, record: messageRecord(m, q.source.ARN, q.region()),
		})
	}
	return messages, nil
}

// received is a message that was received and not yet deleted.
type received struct {
	id     string
	handle *string
	at     time.Time
	record []byte // as JSON
}

// add appends messages to batch. If a message is in the batch already, its visibility timeout has
// ended and it was received again. add then removes the older entry, because only the receipt
// handle of the last receive deletes the message.
func add(batch, messages []received) []received {
	for _, m := range messages {
		batch = slices.DeleteFunc(batch, func(earlier received) bool { return earlier.id == m.id })
		batch = append(batch, m)
	}
	return batch
}

func records(batch []received) [][]byte {
	all := make([][]byte, len(batch))
	for i, m := range batch {
		all[i] = m.record
	}
	return all
}

// deliver invokes the function with a batch and deletes the messages that succeeded. The other
// messages become visible again when their visibility timeout ends. The queue's redrive policy
// limits how often.
func (q *queuePoller) deliver(polling context.Context, batch []received) {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.id
	}
	o := q.invoke(records(batch), ids)
	// If the invocation was throttled: "Lambda continues to retry the message until the message's
	// timestamp exceeds your queue's visibility timeout" ("Handling errors for an SQS event
	// source in Lambda").
	for pause := retryPauses(); errors.Is(o.refused, emulator.ErrTooManyRequests) && time.Since(batch[0].at)+pause.next < q.visibility; {
		if !pause.wait(polling) {
			break
		}
		o = q.invoke(records(batch), ids)
	}
	switch {
	case o.refused != nil:
		q.printf("a batch of %d was not delivered, it comes back: %v", len(batch), o.refused)
		return
	case o.failed != nil:
		q.printf("a batch of %d failed, it comes back: %v", len(batch), o.failed)
		return
	case len(o.reported) > 0:
		q.printf("%d of a batch of %d failed, they come back", len(o.reported), len(batch))
	}
	failed := map[int]bool{}
	for _, i := range o.reported {
		failed[i] = true
	}
	var done []received
	for i, m := range batch {
		if !failed[i] {
			done = append(done, m)
		}
	}
	q.remove(done)
}

// remove deletes messages from the queue. It logs how many could not be deleted.
func (q *queuePoller) remove(messages []received) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.ctx), settleWithin)
	defer cancel()
	for len(messages) > 0 {
		n := min(maxReceive, len(messages))
		entries := make([]types.DeleteMessageBatchRequestEntry, n)
		for i, m := range messages[:n] {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.handle}
		}
		out, err := q.options.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: q.url, Entries: entries})
		if err != nil {
			q.printf("deleting %d messages that were handled, they may come back: %v", n, err)
		} else if len(out.Failed) > 0 {
			var reasons []string
			for _, f := range out.Failed {
				reasons = append(reasons, aws.ToString(f.Code))
			}
			q.printf("%d of %d messages that were handled could not be deleted, they may come back: %s", len(out.Failed), n, strings.Join(reasons, ", "))
		}
		messages = messages[n:]
	}
}
