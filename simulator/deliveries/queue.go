package deliveries

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// queue delivers messages as SQS does. A message that was received is invisible for a while, and
// visible again unless it is deleted. A message that was received too often is given up. While a
// message of a FIFO group is invisible, no other message of the group is delivered.
type queue struct {
	w       *world
	mu      sync.Mutex
	entries []*entry
}

type entry struct {
	*message
	visible  time.Time // the message can be received from then on
	receives int
}

func (w *world) consumeQueue() {
	q := &queue{w: w}
	for _, m := range w.all {
		q.entries = append(q.entries, &entry{message: m})
	}
	var pollers sync.WaitGroup
	for range w.plan.Consumers {
		pollers.Go(func() {
			for !q.empty() {
				batch := q.receive()
				if len(batch) == 0 {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				until := time.Now().Add(w.plan.Visibility)
				failed, answered := w.invoke(func(p *process) ([]string, error) { return p.takeSQS(batch) })
				if answered {
					q.remove(batch, failed, until)
				}
			}
		})
	}
	pollers.Wait()
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		if !e.done && !e.givenUp {
			return false
		}
	}
	return true
}

// receive returns the next batch; it is empty if no message is visible.
func (q *queue) receive() []*message {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	held := map[string]bool{}
	var batch []*message
	for _, e := range q.entries {
		if e.done || e.givenUp {
			continue
		}
		fifo := q.w.plan.Source == FIFO
		if e.visible.After(now) {
			held[e.group] = true
			continue
		}
		if fifo && held[e.group] || len(batch) == q.w.plan.Batch {
			held[e.group] = true // so that later messages of the group wait as well
			continue
		}
		if e.receives++; e.receives > q.w.plan.MaxReceive {
			e.givenUp = true
			continue
		}
		if !fifo && q.w.chance(q.w.plan.Twice) {
			batch = append(batch, e.message) // it stays visible, so it is delivered twice
			continue
		}
		e.visible = now.Add(q.w.plan.Visibility)
		batch = append(batch, e.message)
	}
	return batch
}

// remove deletes the messages of a batch that were not reported as failures. A FIFO queue ignores
// the deletion of a message after until, when its visibility timeout has passed.
func (q *queue) remove(batch []*message, failed []string, until time.Time) {
	reported := q.w.reported(batch, failed)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range batch {
		if !reported[m.n] && (q.w.plan.Source != FIFO || time.Now().Before(until)) {
			m.done = true
		}
	}
}

// takeSQS invokes the function with an SQS event. It returns the IDs of the messages that the
// function reported as failed.
func (p *process) takeSQS(batch []*message) ([]string, error) {
	w := p.w
	arn := "arn:aws:sqs:eu-central-1:111122223333:orders"
	if w.plan.Source == FIFO && !w.mut.Unordered {
		arn += ".fifo"
	}
	var event events.SQSEvent
	byID := map[string]*message{}
	for _, m := range batch {
		id := m.id()
		if w.mut.Fresh {
			id += "/" + strconv.FormatInt(p.draw(1<<62), 36)
		}
		byID[id] = m
		event.Records = append(event.Records, events.SQSMessage{MessageId: id, Body: m.id(), EventSourceARN: arn,
			Attributes: map[string]string{"MessageGroupId": m.group, "ApproximateReceiveCount": strconv.FormatInt(p.draw(9), 10)}})
	}
	if w.mut.Unguarded {
		return p.bare(batch)
	}
	out, err := p.guard().SQS(func(ctx context.Context, m events.SQSMessage) error { return p.handle(ctx, byID[m.MessageId]) }, options(p, func(m events.SQSMessage) string { return m.Body }))(p.ctx, event)
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, byID[f.ItemIdentifier].id())
	}
	return failed, err
}

// options returns the plan's options for batches with messages of type M. body returns the text
// of a message.
func options[M any](p *process, body func(M) string) func(*lambdaidem.BatchOptions[M]) {
	return func(o *lambdaidem.BatchOptions[M]) {
		o.Concurrency, o.StopBatch, o.WholeBatch = p.w.plan.Concurrency, p.w.plan.StopBatch, p.w.plan.WholeBatch
		o.OnFailure = func(context.Context, M, error) {}
		if p.w.plan.Derived && !p.w.mut.Fresh {
			o.Key = func(_ context.Context, m M) (string, error) { return "order " + body(m), nil }
		}
	}
}

// bare handles a batch without a guard. It returns the IDs of the messages whose handler failed.
func (p *process) bare(batch []*message) (failed []string, err error) {
	one := func(m *message) (err error) {
		defer func() {
			if recover() != nil {
				err = errBad
			}
		}()
		return p.handle(p.ctx, m)
	}
	for _, m := range batch {
		if one(m) != nil {
			failed = append(failed, m.id())
		}
	}
	return failed, nil
}
