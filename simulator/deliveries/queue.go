package deliveries

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// queue is SQS as far as deliveries go: a message that was received is invisible for
// a while, comes back unless it is deleted, and is given up when it was received too
// often. Of a FIFO group nothing more is handed out while one of it is in flight.
type queue struct {
	w       *world
	mu      sync.Mutex
	entries []*entry
}

type entry struct {
	*message
	visible  time.Time // from when it may be received
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

// receive hands out a batch.
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
			held[e.group] = true // and what comes after it
			continue
		}
		if e.receives++; e.receives > q.w.plan.MaxReceive {
			e.givenUp = true
			continue
		}
		if !fifo && q.w.chance(q.w.plan.Twice) {
			batch = append(batch, e.message) // and it stays visible: once more, to somebody
			continue
		}
		e.visible = now.Add(q.w.plan.Visibility)
		batch = append(batch, e.message)
	}
	return batch
}

// remove deletes what was not reported. A FIFO queue takes no receipt whose
// visibility is over.
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

// takeSQS returns the function's invocation.
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

// options returns the plan's, for any kind of message.
func options[M any](p *process, body func(M) string) func(*lambdaidem.BatchOptions[M]) {
	return func(o *lambdaidem.BatchOptions[M]) {
		o.Concurrency, o.StopBatch, o.WholeBatch = p.w.plan.Concurrency, p.w.plan.StopBatch, p.w.plan.WholeBatch
		o.OnFailure = func(context.Context, M, error) {}
		if p.w.plan.Derived && !p.w.mut.Fresh {
			o.Key = func(_ context.Context, m M) (string, error) { return "order " + body(m), nil }
		}
	}
}

// bare returns a consumer without a guard, which reports failures by itself.
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
