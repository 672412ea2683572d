package queue

import (
	"context"
	"encoding/json"
	"time"
)

// ReceiveOptions are the parameters of ReceiveMessage.
type ReceiveOptions struct {
	// Max is the most messages to return, 1 to 10. Default: 1.
	Max int
	// Wait is how long to wait for the first message, up to 20 seconds. Default:
	// the queue's ReceiveMessageWaitTimeSeconds.
	Wait *time.Duration
	// Visibility is the visibility timeout of what is returned, up to 12 hours.
	// Default: the queue's VisibilityTimeout.
	Visibility *time.Duration
}

// Receive returns the messages that are visible, or waits for one. There may be
// none. The error is ctx's, or says what is wrong with the options.
func (q *Queue) Receive(ctx context.Context, o ReceiveOptions) ([]Message, error) {
	if o.Max == 0 {
		o.Max = 1
	}
	if o.Max < 1 || o.Max > 10 {
		return nil, outOfRange(o.Max, "MaxNumberOfMessages", 1, 10)
	}
	if o.Wait != nil && (*o.Wait < 0 || *o.Wait > 20*time.Second) {
		return nil, outOfRange(o.Wait.Seconds(), "WaitTimeSeconds", 0, 20)
	}
	if o.Visibility != nil && (*o.Visibility < 0 || *o.Visibility > maxVisibility) {
		return nil, outOfRange(o.Visibility.Seconds(), attrVisibility, 0, 43_200)
	}
	if err := q.enter(); err != nil {
		return nil, err
	}
	wait := q.settings.seconds(attrWait)
	q.service.mu.Unlock()
	if o.Wait != nil {
		wait = *o.Wait
	}
	return q.await(ctx, time.Now().Add(wait), taking{max: o.Max, visibility: o.Visibility})
}

// BatchOptions say what a poller's batch is, as the properties of an event
// source mapping do ("Lambda parameters for Amazon SQS event source mappings").
type BatchOptions struct {
	// Size is BatchSize, the most messages of a batch: up to 10,000, and 10 for a
	// FIFO queue. Default: 10.
	Size int
	// Window is MaximumBatchingWindowInSeconds: how long to wait for more, from
	// the first message on; up to 300 seconds. Their visibility timeouts run
	// meanwhile. FIFO queues have none. Default: 0, take what is there.
	Window time.Duration
	// MaxBytes bounds the JSON of the batch's records, with their commas: Lambda
	// invokes with 6 MB at most. One message is always returned. Default: no
	// bound.
	MaxBytes int
}

// ReceiveBatch waits until there is a message and returns a batch, which is
// never empty without an error: ctx's, ErrClosed, or QueueDoesNotExist. A
// batch that has begun is returned, whatever ends its window. What is not
// deleted within the visibility timeout comes back: that is how a batch, or a
// message of it, fails.
func (q *Queue) ReceiveBatch(ctx context.Context, o BatchOptions) ([]Message, error) {
	largest := 10_000
	if q.FIFO() {
		largest = 10
	}
	if o.Size == 0 {
		o.Size = 10
	}
	switch {
	case o.Size < 1 || o.Size > largest:
		return nil, outOfRange(o.Size, "BatchSize", 1, largest)
	case o.Window < 0 || o.Window > 300*time.Second:
		return nil, outOfRange(o.Window.Seconds(), "MaximumBatchingWindowInSeconds", 0, 300)
	case q.FIFO() && o.Window > 0:
		return nil, badValue(o.Window.Seconds(), "MaximumBatchingWindowInSeconds", "FIFO queues have no batching window.")
	}
	budget := &budget{left: o.MaxBytes, unbounded: o.MaxBytes == 0}
	batch, err := q.await(ctx, time.Time{}, taking{max: o.Size, budget: budget})
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(o.Window)
	for len(batch) < o.Size && !budget.full && time.Now().Before(end) {
		more, err := q.await(ctx, end, taking{max: o.Size - len(batch), budget: budget})
		if err != nil {
			break
		}
		batch = append(batch, more...)
	}
	return batch, nil //nolint:nilerr // what ended the window ends the next call too
}

// budget is the room for the records of a batch.
type budget struct {
	left      int
	unbounded bool
	used      bool // by a first message
	full      bool
}

// fits takes the room for a message, if there is enough.
func (b *budget) fits(m Message) bool {
	if b == nil || b.unbounded {
		return true
	}
	record, err := json.Marshal(m.Event())
	if err != nil { // strings, bytes and maps of them always marshal
		panic(err)
	}
	b.left -= len(record) + len(",")
	b.full = b.full || b.used && b.left < 0
	b.used = true
	return !b.full
}

// taking is what one look at the queue may take.
type taking struct {
	max        int
	visibility *time.Duration
	budget     *budget
}

// await takes messages as soon as there are some, or returns none at the
// deadline; the zero time is none.
func (q *Queue) await(ctx context.Context, deadline time.Time, t taking) ([]Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err // what it would take nobody would get
		}
		if err := q.enter(); err != nil {
			return nil, err
		}
		now := time.Now()
		messages, next, err := q.take(now, t)
		changed := q.changed
		q.service.mu.Unlock()
		if err != nil || len(messages) > 0 || t.budget != nil && t.budget.full {
			return messages, err
		}
		if !deadline.IsZero() && !now.Before(deadline) {
			return nil, nil
		}
		if next.IsZero() || !deadline.IsZero() && deadline.Before(next) {
			next = deadline
		}
		if err := q.sleep(ctx, changed, next); err != nil {
			return nil, err
		}
	}
}

// sleep returns when the queue changes, or at a time unless that is zero.
func (q *Queue) sleep(ctx context.Context, changed <-chan struct{}, until time.Time) error {
	var alarm <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-changed:
		return nil
	case <-alarm:
		return nil
	case <-q.service.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
