package eventsource_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lambdaidem/toolkit/localstack/emulator"
	"github.com/lambdaidem/toolkit/localstack/eventsource"
	"github.com/lambdaidem/toolkit/localstack/template"
)

func fromQueue(name string) template.Source {
	return template.Source{ARN: head + name, BatchSize: 10, Retries: -1, ReportsFailures: true}
}

func TestSQS_TheEventIsLambdas(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders.fifo", map[string]string{"FifoQueue": "true"})
		sent, err := w.sqs.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: &q.name, MessageBody: aws.String("x"), MessageGroupId: aws.String("a"), MessageDeduplicationId: aws.String("d"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"s": {DataType: aws.String("String"), StringValue: aws.String("v")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{1}},
			},
		})
		expect[error](t, "sending", err, nil)
		w.start(succeeds, fromQueue("orders.fifo"))
		synctest.Wait()
		e := w.event(0)
		var raw struct {
			Records []struct {
				ReceiptHandle string `json:"receiptHandle"`
			}
		}
		expect(t, "error", json.Unmarshal([]byte(e.payload), &raw), nil)
		// "Using Lambda with Amazon SQS", example FIFO message event.
		want := `{"Records":[{"messageId":"` + *sent.MessageId + `","receiptHandle":"` + raw.Records[0].ReceiptHandle + `","body":"x",` +
			`"attributes":{"ApproximateFirstReceiveTimestamp":"946684800000","ApproximateReceiveCount":"1","MessageDeduplicationId":"d",` +
			`"MessageGroupId":"a","SenderId":"sender","SentTimestamp":"946684800000","SequenceNumber":"` + *sent.SequenceNumber + `"},` +
			`"messageAttributes":{"b":{"binaryValue":"AQ==","stringListValues":[],"binaryListValues":[],"dataType":"Binary"},` +
			`"s":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"}},` +
			`"md5OfBody":"9dd4e461268c8034f5c8564e155c67a6","md5OfMessageAttributes":"` + *sent.MD5OfMessageAttributes + `",` +
			`"eventSource":"aws:sqs","eventSourceARN":"` + head + `orders.fifo","awsRegion":"us-east-1"}]}`
		expect(t, "event", e.payload, want)
		expect(t, "function", e.function, "Consumer")
		expect(t, "handle", raw.Records[0].ReceiptHandle != "", true)
	})
}

func TestSQS_SuccessDeletesTheBatch(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		w.send(q, "", "a", "b", "c")
		w.start(succeeds, fromQueue("orders"))
		time.Sleep(time.Hour)
		w.send(q, "", "d") // long polling receives it at once
		synctest.Wait()
		expect(t, "batches", w.batches(), []string{"a b c", "d"})
		expect(t, "left", q.depth(), depth{})
		expect(t, "log", w.log.String(), "")
		expect(t, "no attributes", strings.Contains(w.event(0).payload, "md5OfMessageAttributes"), false)
	})
}

func TestV2_SQSFIFOHasOneBatchOfAGroupInFlight(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders.fifo", map[string]string{"FifoQueue": "true"})
		w.send(q, "a", "a1", "a2", "a3")
		s := fromQueue("orders.fifo")
		s.BatchSize = 1
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			time.Sleep(10 * time.Second)
			return succeeds(ctx, e)
		}, s)
		time.Sleep(5 * time.Second)
		expect(t, "in flight", w.batches(), []string{"a1"})
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a1", "a2", "a3"})
	})
}

func TestSQS_ABatchIsWhatComesWithinItsWindow(t *testing.T) {
	numbered := func(from, to int) []string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf("m%02d", i))
		}
		return all
	}
	s := fromQueue("orders")
	s.BatchSize, s.Window = 25, 5*time.Second

	t.Run("until the window ends", func(t *testing.T) {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			w.start(succeeds, s)
			time.Sleep(time.Minute) // the window begins with the first message
			begun := time.Now()
			w.send(q, "", numbered(0, 12)...)
			time.Sleep(3 * time.Second)
			w.send(q, "", numbered(12, 17)...)
			time.Sleep(time.Minute)
			expect(t, "batches", w.batches(), []string{strings.Join(numbered(0, 17), " ")})
			if after := w.event(0).at.Sub(begun); after < 5*time.Second || after > 6*time.Second {
				t.Errorf("delivered after %v, want 5 to 6 s", after)
			}
		})
	})

	t.Run("or until it is full", func(t *testing.T) {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			w.send(q, "", numbered(0, 30)...)
			w.start(succeeds, s)
			begun := time.Now()
			time.Sleep(time.Minute)
			expect(t, "batches", w.batches(), []string{strings.Join(numbered(0, 25), " "), strings.Join(numbered(25, 30), " ")})
			expect(t, "the full one is delivered after", w.event(0).at.Sub(begun), 0)
		})
	})

	t.Run("or until Close", func(t *testing.T) {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			w.send(q, "", "a")
			w.start(succeeds, s)
			time.Sleep(time.Second)
			expect(t, "Close", w.mappings.Close(), nil)
			expect(t, "batches", w.batches(), []string{"a"})
			expect(t, "left", q.depth(), depth{})
		})
	})
}

func TestSQS_CloseWaitsForTheInvocationsUnderWay(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		w.send(q, "", "a", "b")
		s := fromQueue("orders")
		s.ReportsFailures = true
		w.start(func(_ context.Context, e event) (emulator.Result, error) {
			time.Sleep(10 * time.Second)
			return answer(e.reporting("b"))
		}, s)
		synctest.Wait()
		begun := time.Now()
		expect(t, "Close", w.mappings.Close(), nil)
		expect(t, "Close took", time.Since(begun), 10*time.Second)
		expect(t, "left", q.depth(), depth{InFlight: 1}) // b becomes visible again later
		w.send(q, "", "c")
		time.Sleep(time.Minute)
		expect(t, "nothing more is delivered", w.batches(), []string{"a b"})
		expect(t, "nor received", q.depth(), depth{Visible: 2})
		expect(t, "a second Close", w.mappings.Close(), nil)
	})
}

func TestSQS_StartsContextEndsEverything(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		w.send(q, "", "slow", "fast")
		s := fromQueue("orders")
		s.BatchSize = 1
		ctx, cancel := context.WithCancel(w.Context())
		mappings, err := eventsource.Start(ctx, w.options(func(ctx context.Context, e event) (emulator.Result, error) {
			<-ctx.Done()
			if e.names() == "slow" {
				return emulator.Result{}, ctx.Err()
			}
			return succeeds(ctx, e) // the handler succeeded although the context has ended
		}, s))
		expect(t, "error", err, nil)
		synctest.Wait()
		begun := time.Now()
		cancel()
		expect(t, "Close", mappings.Close(), nil)
		expect(t, "Close took", time.Since(begun), 0)
		expect(t, "what was done is deleted all the same", q.depth(), depth{InFlight: 1})
		w.logs("was not delivered, it comes back: context canceled")
	})
}

func TestSQS_MaximumConcurrencyBoundsTheInvocations(t *testing.T) {
	for set, want := range map[int]int{0: 5, 2: 2, 7: 7} {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			w.send(q, "", strings.Fields("a b c d e f g h i j")...)
			s := fromQueue("orders")
			s.BatchSize, s.Concurrency = 1, set
			w.start(func(ctx context.Context, e event) (emulator.Result, error) {
				time.Sleep(time.Second)
				return succeeds(ctx, e)
			}, s)
			synctest.Wait()
			expect(t, "invocations", len(w.batches()), want)
			expect(t, "what waits for one is not hidden", q.depth(), depth{Visible: 10 - want, InFlight: want})
			time.Sleep(20 * time.Second)
			expect(t, "invocations", len(w.batches()), 10)
			expect(t, "left", q.depth(), depth{})
		})
	}
}

// If the event were escaped for HTML, as package json does by default, a message of the maximum
// size could exceed the size limit of an event.
func TestSQS_AMessageOfAnyCharactersFitsIntoAnInvocation(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		body := strings.Repeat("<", 1<<20-2) + ">&"
		w.send(q, "", body)
		w.start(succeeds, fromQueue("orders"))
		synctest.Wait()
		expect(t, "body", w.event(0).Records[0].Body == body, true)
		if more := len(w.event(0).payload) - len(body); more > 1000 {
			t.Errorf("%d bytes more than the message has", more)
		}
	})
}

// An event has at most 6 MB ("Lambda quotas"). The other messages that were received are in the
// next one.
func TestSQS_AnInvocationTakesSixMegabytes(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		for range 10 {
			w.send(q, "", strings.Repeat("x", 1<<20))
		}
		s := fromQueue("orders")
		s.Concurrency = 2
		w.start(succeeds, s)
		time.Sleep(time.Minute)
		var sizes []int
		for i := range w.batches() {
			e := w.event(i)
			sizes = append(sizes, len(e.Records))
			if len(e.payload) > 6<<20 {
				t.Errorf("an event of %d bytes", len(e.payload))
			}
			expect(t, "receives", e.Records[0].Attributes["ApproximateReceiveCount"], "1")
		}
		expect(t, "batches", sizes, []int{5, 5})
		expect(t, "left", q.depth(), depth{})
	})
}

// Close also delivers messages that were received but didn't fit into an earlier event.
func TestSQS_CloseDeliversTheRestOfWhatWasReceived(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		for range 6 {
			w.send(q, "", strings.Repeat(`"`, 1<<20)) // 2 MB in JSON
		}
		s := fromQueue("orders")
		s.Concurrency = 1
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			time.Sleep(time.Second)
			return succeeds(ctx, e)
		}, s)
		synctest.Wait()
		expect(t, "Close", w.mappings.Close(), nil)
		expect(t, "batches", len(w.batches()), 3)
		expect(t, "left", q.depth(), depth{})
	})
}

// A batch of 6 MB is delivered before its window ends.
func TestSQS_ABatchThatCanTakeNoMoreIsNotHeldBack(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", nil)
		for range 6 {
			w.send(q, "", strings.Repeat("x", 1<<20))
		}
		s := fromQueue("orders")
		s.BatchSize, s.Window = 100, time.Minute
		w.start(succeeds, s)
		synctest.Wait()
		expect(t, "records", len(w.event(0).Records), 5)
	})
}

// The test sends messages that just fit into one event, and messages that are one byte too large.
func TestSQS_SixMegabytesAreCountedToTheByte(t *testing.T) {
	for more, want := range []int{1, 2} {
		bubble(t, func(w *world) {
			q := w.create("orders", nil)
			large, quotes := strings.Repeat("x", 1<<20), strings.Repeat(`"`, 1<<20) // quotes are two bytes each in JSON
			w.send(q, "", large, quotes, quotes, "x")
			w.start(succeeds, fromQueue("orders"))
			synctest.Wait()
			room := 6<<20 - len(w.event(0).payload)
			expect(t, "left", q.depth(), depth{})
			expect(t, "Close", w.mappings.Close(), nil) // stop polling, so that one receive returns all messages
			w.send(q, "", large, quotes, quotes, strings.Repeat("x", 1+room+more))
			w.start(succeeds, fromQueue("orders"))
			synctest.Wait()
			expect(t, "batches", len(w.batches())-1, want)
			expect(t, "largest", len(w.event(1).payload) <= 6<<20, true)
			expect(t, "left", q.depth(), depth{})
		})
	}
}

// A FIFO queue refuses to delete a message whose visibility timeout has ended, and the log says
// so.
func TestSQS_AnInvocationLongerThanTheVisibilityTimeoutIsSaid(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "2"})
		w.send(q, "a", "a1")
		s := fromQueue("orders.fifo")
		s.Concurrency = 2
		w.start(func(ctx context.Context, e event) (emulator.Result, error) {
			if e.Records[0].Attributes["ApproximateReceiveCount"] < "3" {
				time.Sleep(3 * time.Second)
			}
			return succeeds(ctx, e)
		}, s)
		w.logs("the queue's visibility timeout, 2s, is less than the function's timeout, 3s: Lambda refuses such a mapping")
		time.Sleep(time.Minute)
		w.logs("1 of 1 messages that were handled could not be deleted, they may come back: ReceiptHandleIsInvalid")
	})
}
