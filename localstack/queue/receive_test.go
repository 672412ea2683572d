package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// waiting starts a receive of up to 20 seconds and waits until it waits.
func waiting(ctx context.Context, q *queue.Queue) <-chan string {
	got := make(chan string, 1)
	go func() {
		start := time.Now()
		messages, err := q.Receive(ctx, queue.ReceiveOptions{Max: 10, Wait: new(20 * time.Second)})
		got <- bodies(messages) + code(err) + " after " + time.Since(start).String()
	}()
	synctest.Wait()
	return got
}

func TestReceive_WaitEndsAtOnceByWhatMakesAMessageVisible(t *testing.T) {
	hidden := func(t *testing.T, q *queue.Queue) string {
		t.Helper()
		return receive(t, q, 1)[0].ReceiptHandle
	}
	for name, step := range map[string]struct {
		attributes map[string]string
		before     func(t *testing.T, q *queue.Queue) string
		then       func(q *queue.Queue, handle string) error
		want       string
	}{
		"send": {
			nil, nil,
			func(q *queue.Queue, _ string) error { _, err := q.Send(queue.Outgoing{Body: "x"}); return err },
			"x ok after 5s",
		},
		"visibility set to 0": {
			nil, hidden,
			func(q *queue.Queue, handle string) error { return q.ChangeVisibility(handle, 0) },
			"x ok after 5s",
		},
		"visibility shortened": {
			nil, hidden,
			func(q *queue.Queue, handle string) error { return q.ChangeVisibility(handle, time.Second) },
			"x ok after 6s",
		},
		"visibility timeout ends": {map[string]string{"VisibilityTimeout": "7"}, hidden, nil, "x ok after 7s"},
		"delay ends": {
			map[string]string{"DelaySeconds": "8"},
			func(t *testing.T, q *queue.Queue) string { sendAll(t, q, "", "y"); return "" }, nil, "x y ok after 8s",
		},
		"the first of two delays ends": {
			nil,
			func(t *testing.T, q *queue.Queue) string {
				hidden(t, q)
				send(t, q, queue.Outgoing{Body: "soon", Delay: new(6 * time.Second)})
				send(t, q, queue.Outgoing{Body: "later", Delay: new(9 * time.Second)})
				return ""
			}, nil, "soon ok after 6s",
		},
		"nothing": {map[string]string{"VisibilityTimeout": "60"}, hidden, nil, "ok after 20s"},
		"queue deleted": {
			nil, hidden, func(q *queue.Queue, _ string) error { return q.DeleteQueue() }, "QueueDoesNotExist after 5s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
				q := create(t, s, "orders", step.attributes)
				var handle string
				if step.before != nil {
					sendAll(t, q, "", "x")
					handle = step.before(t, q)
				}
				got := waiting(t.Context(), q)
				time.Sleep(5 * time.Second)
				if step.then != nil {
					if err := step.then(q, handle); err != nil {
						t.Fatal(err)
					}
				}
				expect(t, "receive", <-got, step.want)
			})
		})
	}
}

func TestReceive_FIFOWaitEndsByDelete(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sendAll(t, q, "a", "a1", "a2")
		handle := receive(t, q, 1)[0].ReceiptHandle
		got := waiting(t.Context(), q)
		time.Sleep(3 * time.Second)
		if err := q.Delete(handle); err != nil {
			t.Fatal(err)
		}
		expect(t, "receive", <-got, "a2 ok after 3s")
	})
}

func TestReceive_FIFOWaitEndsByAShorterDelay(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, map[string]string{"DelaySeconds": "900"})
		sendAll(t, q, "a", "a1")
		got := waiting(t.Context(), q)
		time.Sleep(5 * time.Second)
		if err := q.SetAttributes(map[string]string{"DelaySeconds": "7"}); err != nil {
			t.Fatal(err)
		}
		expect(t, "receive", <-got, "a1 ok after 7s")
	})
}

func TestReceive_CloseAndContextEndTheWait(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		ctx, cancel := context.WithCancel(t.Context())
		first := waiting(ctx, q)
		cancel()
		expect(t, "context", <-first, "context canceled after 0s")
		sendAll(t, q, "", "x")
		_, err := q.Receive(ctx, queue.ReceiveOptions{})
		expect(t, "an ended context takes nothing", errors.Is(err, context.Canceled), true)
		expect(t, "it is still there", q.Depth(), queue.Depth{Visible: 1})
		receive(t, q, 1)
		second := waiting(t.Context(), q)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		expect(t, "Close", <-second, queue.ErrClosed.Error()+" after 0s")
		_, err = q.Send(queue.Outgoing{Body: "x"})
		expect(t, "afterwards", err, queue.ErrClosed)
		_, err = s.CreateQueue("another", nil)
		expect(t, "afterwards", err, queue.ErrClosed)
	})
}

func TestReceive_QueueWaitTimeIsTheDefault(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"ReceiveMessageWaitTimeSeconds": "3"})
		start := time.Now()
		if _, err := q.Receive(t.Context(), queue.ReceiveOptions{}); err != nil {
			t.Fatal(err)
		}
		expect(t, "waited", time.Since(start), 3*time.Second)
		receive(t, q, 1)
		expect(t, "an own wait of 0", time.Since(start), 3*time.Second)
	})
}

func TestReceive_RefusesWhatIsOutOfRange(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q, fifo := create(t, s, "orders", nil), createFIFO(t, s, nil)
		for _, o := range []queue.ReceiveOptions{
			{Max: 11}, {Max: -1}, {Wait: new(21 * time.Second)}, {Wait: new(-time.Second)},
			{Visibility: new(12*time.Hour + 1)}, {Visibility: new(-time.Second)},
		} {
			_, err := q.Receive(t.Context(), o)
			expect(t, "receive", code(err), "InvalidParameterValueException")
		}
		for _, o := range []queue.BatchOptions{{Size: 10_001}, {Size: -1}, {Window: 301 * time.Second}, {Window: -1}} {
			_, err := q.ReceiveBatch(t.Context(), o)
			expect(t, "batch", code(err), "InvalidParameterValueException")
		}
		for _, o := range []queue.BatchOptions{{Size: 11}, {Window: 1}} {
			_, err := fifo.ReceiveBatch(t.Context(), o)
			expect(t, "FIFO batch", code(err), "InvalidParameterValueException")
		}
	})
}

func TestReceiveBatch_WindowBeginsWithTheFirstMessage(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		start := time.Now()
		go func() {
			for _, body := range []string{"1", "2", "3", "4"} {
				time.Sleep(4 * time.Second)
				sendAll(t, q, "", body)
			}
		}()
		batch, err := q.ReceiveBatch(t.Context(), queue.BatchOptions{Window: 10 * time.Second})
		expect(t, "batch", bodies(batch)+code(err), "1 2 3 ok")
		expect(t, "at", time.Since(start), 14*time.Second)
		batch, err = q.ReceiveBatch(t.Context(), queue.BatchOptions{})
		expect(t, "without a window", bodies(batch)+code(err), "4 ok")
		expect(t, "at", time.Since(start), 16*time.Second)
	})
}

func TestReceiveBatch_IsReturnedWhenItIsFull(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		for range 30 {
			sendAll(t, q, "", "x")
		}
		start := time.Now()
		batch, err := q.ReceiveBatch(t.Context(), queue.BatchOptions{Size: 25, Window: 10 * time.Second})
		expect(t, "error", err, nil)
		expect(t, "size", len(batch), 25)
		batch, err = q.ReceiveBatch(t.Context(), queue.BatchOptions{})
		expect(t, "error", err, nil)
		expect(t, "the rest", len(batch), 5)
		expect(t, "at once", time.Since(start), 0)
	})
}

func TestReceiveBatch_NeverHasMoreThanItsSize(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", map[string]string{"DelaySeconds": "1"})
		send(t, q, queue.Outgoing{Body: "1", Delay: new(time.Duration)})
		sendAll(t, q, "", "2", "3", "4")
		batch, err := q.ReceiveBatch(t.Context(), queue.BatchOptions{Size: 2, Window: 10 * time.Second})
		expect(t, "batch", bodies(batch)+code(err), "1 2 ok")
	})
}

func TestReceiveBatch_AnEndedWindowKeepsItsMessages(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "1")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		batch, err := q.ReceiveBatch(ctx, queue.BatchOptions{Window: 10 * time.Second})
		expect(t, "batch", bodies(batch)+code(err), "1 ok")
		expect(t, "after", time.Since(start), 3*time.Second)
		_, err = q.ReceiveBatch(ctx, queue.BatchOptions{})
		expect(t, "the next one", errors.Is(err, context.Canceled), true)
	})
}

func TestReceiveBatch_MaxBytesBoundsTheRecords(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		body := strings.Repeat(`"`, 1000) // two bytes each in JSON
		sendAll(t, q, "", body, body, body)
		two := 0
		for _, m := range receive(t, q, 2) {
			record, err := json.Marshal(m.Event())
			if err != nil {
				t.Fatal(err)
			}
			two += len(record) + len(",")
		}
		time.Sleep(30 * time.Second)
		start := time.Now()
		batch, err := q.ReceiveBatch(t.Context(), queue.BatchOptions{Window: 10 * time.Second, MaxBytes: two})
		expect(t, "error", err, nil)
		expect(t, "size", len(batch), 2)
		expect(t, "full, so at once", time.Since(start), 0)
		expect(t, "the third is untouched", q.Depth(), queue.Depth{Visible: 1, InFlight: 2})
		batch, err = q.ReceiveBatch(t.Context(), queue.BatchOptions{MaxBytes: 1})
		expect(t, "error", err, nil)
		expect(t, "one is always returned", len(batch), 1)
		expect(t, "its receives", batch[0].System["ApproximateReceiveCount"], "1")
		time.Sleep(30 * time.Second)
		batch, err = q.ReceiveBatch(t.Context(), queue.BatchOptions{MaxBytes: two - 1})
		expect(t, "error", err, nil)
		expect(t, "a byte less", len(batch), 1)
	})
}
