package deliveries

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// consumeStream delivers the messages as an event source mapping delivers the records of one
// shard. After a report it continues with the first record that was reported as failed. It
// delivers a batch again if there was no answer or its first record failed, and only half of the
// batch if the plan bisects. It gives a record up after too many tries.
func (w *world) consumeStream() {
	tries := map[int]int{} // by the number of the batch's first record
	size := w.plan.Batch
	for at := 0; at < len(w.all); {
		batch := w.all[at:min(at+size, len(w.all))]
		var failed []string
		var answered bool
		once := func() {
			f, a := w.invoke(func(p *process) ([]string, error) { return p.takeStream(batch) })
			if a {
				w.reported(batch, f)
			}
			failed, answered = f, a
		}
		if w.chance(w.plan.Twice) { // delivery is at least once: two processes have the batch at the same time
			var other sync.WaitGroup
			other.Go(func() {
				if f, a := w.invoke(func(p *process) ([]string, error) { return p.takeStream(batch) }); a {
					w.reported(batch, f)
				}
			})
			once()
			other.Wait()
		} else {
			once()
		}
		next := at
		if answered {
			lowest := lowestOf(batch, failed)
			for _, m := range batch[:lowest] {
				m.done = true
			}
			next = at + lowest
		}
		if next > at {
			at, size = next, w.plan.Batch
			continue
		}
		if tries[at]++; w.plan.Bisects && size > 1 {
			size = (size + 1) / 2
		}
		if tries[at] > w.plan.MaxReceive {
			w.all[at].givenUp = true
			at, size = at+1, w.plan.Batch
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// lowestOf returns the index of the first message that was reported as failed, or len(batch) if
// none was.
func lowestOf(batch []*message, failed []string) int {
	for i, m := range batch {
		for _, name := range failed {
			if name == m.id() {
				return i
			}
		}
	}
	return len(batch)
}

// takeStream invokes the function with an event of the plan's source. It returns the IDs of the
// messages that the function reported as failed.
func (p *process) takeStream(batch []*message) ([]string, error) {
	if p.w.mut.Unguarded {
		return p.bare(batch)
	}
	switch p.w.plan.Source {
	case DynamoDB:
		return p.takeDynamoDB(batch)
	case Kafka:
		return p.takeKafka(batch)
	default:
		return p.takeKinesis(batch)
	}
}

// group returns the message's group. If the mutation ignores order, each message has a group of
// its own.
func (p *process) group(m *message) string {
	if p.w.mut.Unordered {
		return m.id()
	}
	return m.group
}

func (p *process) takeKinesis(batch []*message) ([]string, error) {
	var event events.KinesisTimeWindowEvent
	byID := map[string]*message{}
	for _, m := range batch {
		id := m.id()
		if p.w.mut.Fresh {
			id += fmt.Sprint("/", p.draw(1<<62))
		}
		byID[m.id()] = m
		event.Records = append(event.Records, events.KinesisEventRecord{EventID: "shardId-000000000000:" + id, EventSourceArn: "arn:aws:kinesis:eu-central-1:111122223333:stream/orders",
			Kinesis: events.KinesisRecord{PartitionKey: p.group(m), SequenceNumber: m.id(), Data: []byte(m.id())}})
	}
	h := func(ctx context.Context, m events.KinesisEventRecord) error {
		return p.handle(ctx, byID[m.Kinesis.SequenceNumber])
	}
	out, err := p.guard().Kinesis(h, options(p, func(m events.KinesisEventRecord) string { return string(m.Kinesis.Data) }))(p.ctx, event)
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed, err
}

func (p *process) takeDynamoDB(batch []*message) ([]string, error) {
	var event events.DynamoDBTimeWindowEvent
	byID := map[string]*message{}
	for _, m := range batch {
		id := m.id()
		if p.w.mut.Fresh {
			id += fmt.Sprint("/", p.draw(1<<62))
		}
		byID[m.id()] = m
		event.Records = append(event.Records, events.DynamoDBEventRecord{EventID: id, EventName: "INSERT", EventSourceArn: "arn:aws:dynamodb:eu-central-1:111122223333:table/orders/stream/1",
			Change: events.DynamoDBStreamRecord{SequenceNumber: m.id(), Keys: map[string]events.DynamoDBAttributeValue{"id": events.NewStringAttribute(p.group(m))}}})
	}
	h := func(ctx context.Context, m events.DynamoDBEventRecord) error {
		return p.handle(ctx, byID[m.Change.SequenceNumber])
	}
	out, err := p.guard().DynamoDBStream(h, options(p, func(m events.DynamoDBEventRecord) string { return m.Change.SequenceNumber }))(p.ctx, event)
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed, err
}

// takeKafka invokes the function with a Kafka event. Each group has a partition of its own. A
// record's offset is the message's number.
func (p *process) takeKafka(batch []*message) ([]string, error) {
	event := events.KafkaEvent{EventSourceARN: "arn:aws:kafka:eu-central-1:111122223333:cluster/orders/1", Records: map[string][]events.KafkaRecord{}}
	for _, m := range batch {
		number := strings.TrimLeft(p.group(m), "gm-") // the number of the group, or of the message if the mutation ignores order
		partition, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(err)
		}
		r := events.KafkaRecord{Topic: "orders", Partition: partition, Offset: int64(m.n), Value: base64.StdEncoding.EncodeToString([]byte(m.id()))}
		if p.w.mut.Fresh {
			r.Timestamp.Time = time.UnixMilli(p.draw(1 << 62))
		}
		name := fmt.Sprint("orders-", partition)
		event.Records[name] = append(event.Records[name], r)
	}
	h := func(ctx context.Context, r events.KafkaRecord) error { return p.handle(ctx, p.w.all[r.Offset]) }
	out, err := p.guard().Kafka(h, options(p, func(r events.KafkaRecord) string { return r.Value }))(p.ctx, event)
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, p.w.all[f.ItemIdentifier.Offset].id())
	}
	return failed, err
}
