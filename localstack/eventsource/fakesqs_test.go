package eventsource_test

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // SQS answers with MD5s
	"encoding/hex"
	"encoding/json"
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
)

// fakeSQS implements the behavior of SQS that a poller can observe: visibility timeouts, long
// polling, message groups and dead-letter queues. It uses package time, so that its waits take no
// real time in a synctest bubble.
type fakeSQS struct {
	mu      sync.Mutex
	queues  map[string]*fakeQueue
	changed chan struct{}            // closed when a message may have become available; then replaced
	serial  int                      // of the last message that was sent
	broken  func(action string) bool // reports whether an action fails
}

type fakeQueue struct {
	sqs        *fakeSQS
	name       string
	fifo       bool
	visibility time.Duration
	wait       time.Duration // default wait of a receive
	dead       string        // name of the dead-letter queue
	receives   int           // the number of receives after which a message is dead-lettered
	messages   []*fakeMessage
}

type fakeMessage struct {
	types.Message
	group     string
	receives  int
	visibleAt time.Time
}

// depth counts the messages in a queue that can be received and those in flight.
type depth struct{ Visible, InFlight int }

func newFakeSQS() *fakeSQS {
	return &fakeSQS{queues: map[string]*fakeQueue{}, changed: make(chan struct{})}
}

func (s *fakeSQS) create(name string, attributes map[string]string) *fakeQueue {
	seconds := func(attribute, byDefault string) time.Duration {
		d, err := time.ParseDuration(cmp.Or(attributes[attribute], byDefault) + "s")
		if err != nil {
			panic(err)
		}
		return d
	}
	q := &fakeQueue{
		sqs: s, name: name, fifo: attributes["FifoQueue"] == "true",
		visibility: seconds("VisibilityTimeout", "30"), wait: seconds("ReceiveMessageWaitTimeSeconds", "0"),
	}
	if policy := attributes["RedrivePolicy"]; policy != "" {
		var p struct {
			DeadLetterTargetArn string
			MaxReceiveCount     int
		}
		if err := json.Unmarshal([]byte(policy), &p); err != nil {
			panic(err)
		}
		q.dead, q.receives = p.DeadLetterTargetArn[strings.LastIndexByte(p.DeadLetterTargetArn, ':')+1:], p.MaxReceiveCount
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = q
	return q
}

// find returns the queue with the URL or name id. If it returns no error, s.mu is locked, and the
// caller must unlock it.
func (s *fakeSQS) find(action string, id *string) (*fakeQueue, error) {
	s.mu.Lock()
	if s.broken != nil && s.broken(action) {
		s.mu.Unlock()
		return nil, errors.New(action + " is broken")
	}
	q := s.queues[strings.TrimPrefix(*id, "http://sqs.local/")]
	if q == nil {
		s.mu.Unlock()
		return nil, &types.QueueDoesNotExist{}
	}
	return q, nil
}

func (s *fakeSQS) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) { //nolint:revive,staticcheck // the SDK's name
	if _, err := s.find("GetQueueUrl", in.QueueName); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String("http://sqs.local/" + *in.QueueName)}, nil
}

func (s *fakeSQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	q, err := s.find("GetQueueAttributes", in.QueueUrl)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"VisibilityTimeout":             strconv.Itoa(int(q.visibility.Seconds())),
		"ReceiveMessageWaitTimeSeconds": strconv.Itoa(int(q.wait.Seconds())),
	}}, nil
}

func (s *fakeSQS) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	q, err := s.find("SendMessage", in.QueueUrl)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return q.send(in), nil
}

// send adds a message to the queue. The caller holds q.sqs.mu.
func (q *fakeQueue) send(in *sqs.SendMessageInput) *sqs.SendMessageOutput {
	s := q.sqs
	s.serial++
	sum := md5.Sum([]byte(*in.MessageBody)) //nolint:gosec // as above
	m := &fakeMessage{group: aws.ToString(in.MessageGroupId)}
	m.MessageId, m.Body, m.MD5OfBody = aws.String(fmt.Sprint("message-", s.serial)), in.MessageBody, aws.String(hex.EncodeToString(sum[:]))
	m.MessageAttributes = in.MessageAttributes
	if len(m.MessageAttributes) > 0 {
		m.MD5OfMessageAttributes = aws.String("md5-of-attributes")
	}
	m.Attributes = map[string]string{"SenderId": "sender", "SentTimestamp": millis()}
	out := &sqs.SendMessageOutput{MessageId: m.MessageId, MD5OfMessageAttributes: m.MD5OfMessageAttributes}
	if q.fifo {
		out.SequenceNumber = aws.String(strconv.Itoa(s.serial))
		m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"] = m.group, aws.ToString(in.MessageDeduplicationId)
		m.Attributes["SequenceNumber"] = *out.SequenceNumber
	}
	q.messages = append(q.messages, m)
	s.arrived()
	return out
}

// arrived wakes the receives that are waiting. The caller holds s.mu.
func (s *fakeSQS) arrived() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func millis() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

func (s *fakeSQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	var end time.Time
	for {
		q, err := s.find("ReceiveMessage", in.QueueUrl)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if end.IsZero() {
			end = now.Add(cmp.Or(time.Duration(in.WaitTimeSeconds)*time.Second, q.wait))
		}
		messages, next := q.take(now, int(in.MaxNumberOfMessages))
		changed := s.changed
		s.mu.Unlock()
		if len(messages) > 0 || !now.Before(end) {
			return &sqs.ReceiveMessageOutput{Messages: messages}, nil
		}
		if next.IsZero() || end.Before(next) {
			next = end
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// take receives up to n messages. It also returns when the next message in flight becomes
// visible, or the zero Time if no message is in flight.
func (q *fakeQueue) take(now time.Time, n int) (taken []types.Message, next time.Time) {
	held := map[string]bool{} // groups with a message in flight
	for _, m := range slices.Clone(q.messages) {
		switch {
		case m.visibleAt.After(now):
			held[m.group] = true
			if next.IsZero() || m.visibleAt.Before(next) {
				next = m.visibleAt
			}
		case q.fifo && held[m.group] || len(taken) == n:
		case q.dead != "" && m.receives >= q.receives:
			dead := q.sqs.queues[q.dead]
			dead.messages = append(dead.messages, m)
			q.remove(m)
			q.sqs.arrived()
		default:
			m.receives++
			m.visibleAt = now.Add(q.visibility)
			m.ReceiptHandle = aws.String(fmt.Sprintf("%s#%d", *m.MessageId, m.receives))
			m.Attributes["ApproximateReceiveCount"] = strconv.Itoa(m.receives)
			m.Attributes["ApproximateFirstReceiveTimestamp"] = cmp.Or(m.Attributes["ApproximateFirstReceiveTimestamp"], millis())
			message := m.Message
			message.Attributes = map[string]string{}
			for name, value := range m.Attributes {
				message.Attributes[name] = value
			}
			taken = append(taken, message)
		}
	}
	return taken, next
}

func (q *fakeQueue) remove(m *fakeMessage) {
	q.messages = slices.DeleteFunc(q.messages, func(other *fakeMessage) bool { return other == m })
}

// DeleteMessageBatch deletes each message whose receipt handle is that of its last receive. With
// an older handle, a FIFO queue reports a failure and a standard queue reports success without
// deleting the message. A FIFO queue also refuses a handle whose visibility timeout has expired.
func (s *fakeSQS) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q, err := s.find("DeleteMessageBatch", in.QueueUrl)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		id, _, _ := strings.Cut(*e.ReceiptHandle, "#")
		i := slices.IndexFunc(q.messages, func(m *fakeMessage) bool { return *m.MessageId == id })
		if i < 0 {
			continue // deleted already
		}
		m := q.messages[i]
		if *m.ReceiptHandle == *e.ReceiptHandle && (!q.fifo || m.visibleAt.After(time.Now())) {
			q.remove(m)
		} else if q.fifo {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("ReceiptHandleIsInvalid")})
		}
	}
	if q.fifo {
		s.arrived() // the next message of the group can be received now
	}
	return out, nil
}

// delete deletes the queue itself.
func (q *fakeQueue) delete() {
	q.sqs.mu.Lock()
	defer q.sqs.mu.Unlock()
	delete(q.sqs.queues, q.name)
	q.sqs.arrived()
}

func (q *fakeQueue) arn() string { return head + q.name }

func (q *fakeQueue) depth() (d depth) {
	q.sqs.mu.Lock()
	defer q.sqs.mu.Unlock()
	for _, m := range q.messages {
		if m.visibleAt.After(time.Now()) {
			d.InFlight++
		} else {
			d.Visible++
		}
	}
	return d
}
