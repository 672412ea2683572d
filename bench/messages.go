package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/bench/internal/interval"
	"github.com/lambdaidem/toolkit/bench/internal/table"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The measurements of messages use batches of new messages, some of which are handled at the same
// time.
const (
	messagesAtOnce = 10
	messagesABatch = 400

	messagesScenario = "messages" // the name by which -scenario selects them
)

// throughput compares the messages per second of the toolkit and the bare SDK.
type throughput struct {
	batches int
	rate    [sides]float64 // messages per second
	ratio   interval.Estimate
}

// measureMessages lets both sides handle batches of new messages, in turns, in random order. The
// bare SDK sends the two writes of each message from a loop with the same concurrency.
func (r *rig) measureMessages(ctx context.Context, batches int, random *mathrand.Rand) (*throughput, error) {
	progress("messages, %d at once: %d batches of %d each side", messagesAtOnce, batches, messagesABatch)
	consume := lambdaidem.New(r.store).SQS(func(context.Context, events.SQSMessage) error { return nil },
		func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Concurrency = messagesAtOnce })
	bare := &floor{client: r.bare.client}
	if err := r.leave(new([]record), []**recorded{&bare.lock, &bare.complete}, func(key string) error {
		return consumed(consume(ctx, r.messages(key)))
	}); err != nil {
		return nil, err
	}
	took := make([][sides]float64, batches)
	for i := range took {
		for _, side := range random.Perm(sides) {
			var work func() error
			if side == oursSide {
				keys := make([]string, messagesABatch)
				for i := range keys {
					keys[i] = rand.Text()
				}
				event := r.messages(keys...)
				work = func() error { return consumed(consume(ctx, event)) }
			} else {
				operations := make([]operation, messagesABatch)
				for i := range operations {
					id, token := freshID(), freshToken()
					operations[i] = func(ctx context.Context) error { return bare.first(ctx, id, token, r.deadline.Add(maxSkew)) }
				}
				work = func() error {
					return do(ctx, operations, messagesAtOnce, make([]time.Duration, messagesABatch))
				}
			}
			began := time.Now()
			if err := work(); err != nil {
				return nil, err
			}
			took[i][side] = time.Since(began).Seconds()
		}
	}
	return throughputOf(took, random), nil
}

// throughputOf computes the throughput. took has the seconds that each batch took, by side.
func throughputOf(took [][sides]float64, random *mathrand.Rand) *throughput {
	t := &throughput{batches: len(took)}
	sum := func(side int, times []int) (all float64) {
		for i, batch := range took {
			all += batch[side] * float64(count(times, i))
		}
		return all
	}
	for side := range sides {
		t.rate[side] = float64(len(took)*messagesABatch) / sum(side, nil)
	}
	t.ratio = interval.Bootstrap(len(took), func(times []int) float64 { return sum(floorSide, times) / sum(oursSide, times) }, random)
	return t
}

// messages returns an SQS event with one message for each id. Its bodies are those of the requests.
func (r *rig) messages(ids ...string) events.SQSEvent {
	var e events.SQSEvent
	for _, id := range ids {
		e.Records = append(e.Records, events.SQSMessage{MessageId: id, Body: r.body, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:payments"})
	}
	return e
}

func consumed(out events.SQSEventResponse, err error) error {
	if n := len(out.BatchItemFailures); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages failed", n))
	}
	return err
}

func (t *throughput) table() table.Table {
	return table.Table{
		{fmt.Sprintf("new SQS messages, %d at once", messagesAtOnce), "batches of " + fmt.Sprint(messagesABatch), "bare SDK", "toolkit", "toolkit : bare SDK", fmt.Sprintf("aim ≥ %.2f", aimThroughput)},
		{"messages a second", fmt.Sprint(t.batches), fmt.Sprintf("%.0f", t.rate[floorSide]), fmt.Sprintf("%.0f", t.rate[oursSide]),
			fmt.Sprintf("%.3f (%.3f–%.3f)", t.ratio.Value, t.ratio.Low, t.ratio.High), string(t.ratio.AtLeast(aimThroughput))},
	}
}
