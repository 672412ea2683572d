package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// No message is deleted after a function error of any kind, nor after an invocation whose result
// is unknown.
func TestSQS_AFailedBatchComesBackByItsVisibilityTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		result emulator.Result
		err    error
		log    string
	}{
		"error":                   {failure("went wrong"), nil, "a batch of 2 failed, it comes back: Unhandled: {\"errorMessage\":\"went wrong\""},
		"timeout":                 {emulator.Result{FunctionError: "Unhandled", Payload: []byte(`{"errorType":"Sandbox.Timedout"}`)}, nil, "Sandbox.Timedout"},
		"crash":                   {emulator.Result{FunctionError: "Unhandled", Payload: []byte(`{"errorType":"Runtime.ExitError"}`)}, nil, "Runtime.ExitError"},
		"error without a payload": {emulator.Result{FunctionError: "Unhandled"}, nil, "Unhandled"},
		// The payload of a function error can look like a successful response.
		"error that reports": {emulator.Result{FunctionError: "Unhandled", Payload: []byte(`{"batchItemFailures":[]}`)}, nil, "Unhandled"},
		"refused":            {emulator.Result{}, errors.New("no such process"), "a batch of 2 was not delivered, it comes back: no such process"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				q := w.create("orders", nil)
				w.send(q, "", "a", "b")
				begun := time.Now()
				s := fromQueue("orders")
				s.ReportsFailures = true
				w.start(func(ctx context.Context, e event) (emulator.Result, error) {
					if e.Records[0].Attributes["ApproximateReceiveCount"] == "1" {
						return c.result, c.err
					}
					return succeeds(ctx, e)
				}, s)
				time.Sleep(time.Minute)
				expect(t, "batches", w.batches(), []string{"a b", "a b"})
				expect(t, "comes back after", w.event(1).at.Sub(begun), 30*time.Second)
				expect(t, "left", q.depth(), depth{})
				w.logs("eventsource: Consumer/Source: ")
				w.logs(c.log)
			})
		})
	}
}

// The cases follow "Handling errors for an SQS event source in Lambda", success and failure
// conditions.
func TestV2_SQSPartialBatchResponses(t *testing.T) {
	for _, c := range []struct {
		answer string // ID-A, ID-B and ID-C stand for the messages' ids
		again  string // the messages that are delivered again
	}{
		{`null`, ""},
		{``, ""},
		{` `, ""},
		{`{}`, ""},
		{`{"batchItemFailures":null}`, ""},
		{`{"batchItemFailures":[]}`, ""},
		{`{"statusCode":200}`, ""},
		{`{"BatchItemFailures":[{"itemIdentifier":"ID-A"}]}`, ""}, // the name is not batchItemFailures, so it is ignored
		{`{"batchItemFailures":[{"itemIdentifier":"ID-B"}]}`, "b"},
		{`{"batchItemFailures":[{"itemIdentifier":"ID-C"},{"itemIdentifier":"ID-A","more":1},{"itemIdentifier":"ID-C"}],"more":1}`, "a c"},
		{`{"batchItemFailures":[{"itemIdentifier":"ID-A"},{"itemIdentifier":"ID-B"},{"itemIdentifier":"ID-C"}]}`, "a b c"},
		{`{"batchItemFailures":[{"itemIdentifier":"ID-B"},{"itemIdentifier":"unknown"}]}`, "a b c"},
		{`{"batchItemFailures":[{"itemIdentifier":"ID-B"},{"itemIdentifier":""}]}`, "a b c"},
		{`{"batchItemFailures":[{"itemIdentifier":null}]}`, "a b c"},
		{`{"batchItemFailures":[{"itemIdentifier":1}]}`, "a b c"},
		{`{"batchItemFailures":[{"itemidentifier":"ID-B"}]}`, "a b c"},
		{`{"batchItemFailures":[{}]}`, "a b c"},
		{`{"batchItemFailures":[null]}`, "a b c"},
		{`{"batchItemFailures":["ID-B"]}`, "a b c"},
		{`{"batchItemFailures":{"itemIdentifier":"ID-B"}}`, "a b c"},
		{`{"batchItemFailures":"ID-B"}`, "a b c"},
		{`{"batchItemFailures":[`, "a b c"},
		{`"ok"`, "a b c"},
		{`[]`, "a b c"},
		{`true`, "a b c"},
	} {
		for _, reporting := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", c.answer, reporting), func(t *testing.T) {
				bubble(t, func(w *world) {
					q := w.create("orders", nil)
					w.send(q, "", "a", "b", "c")
					s := fromQueue("orders")
					s.ReportsFailures = reporting
					w.start(func(ctx context.Context, e event) (emulator.Result, error) {
						if e.Records[0].Attributes["ApproximateReceiveCount"] != "1" {
							return succeeds(ctx, e)
						}
						ids := strings.NewReplacer("ID-A", e.Records[0].MessageID, "ID-B", e.Records[1].MessageID, "ID-C", e.Records[2].MessageID)
						return answer([]byte(ids.Replace(c.answer)))
					}, s)
					time.Sleep(time.Minute)
					want := []string{"a b c"}
					if reporting && c.again != "" { // without ReportBatchItemFailures the response is ignored
						want = append(want, c.again)
					}
					expect(t, "batches", w.batches(), want)
					expect(t, "left", q.depth(), depth{})
					if reporting {
						expect(t, "said something", w.log.String() != "", len(want) > 1)
					} else {
						lost := c.again != "" && json.Valid([]byte(c.answer)) && strings.Contains(c.answer, "batchItemFailures")
						expect(t, "said what is lost", strings.Contains(w.log.String(), "a batch of 3 counts as a success"), lost)
					}
				})
			})
		}
	}
}

// Failed messages delay the later messages of their own group only.
func TestV2_SQSFIFOKeepsTheOrderOfAGroupThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders.fifo", map[string]string{"FifoQueue": "true"})
		w.send(q, "a", "a1", "a2", "a3")
		w.send(q, "b", "b1")
		s := fromQueue("orders.fifo")
		s.ReportsFailures = true
		var once sync.Once
		w.start(func(ctx context.Context, e event) (result emulator.Result, err error) {
			result, err = succeeds(ctx, e)
			once.Do(func() { result, err = answer(e.reporting("a2", "a3")) })
			return result, err
		}, s)
		time.Sleep(time.Second)
		w.send(q, "a", "a4")
		w.send(q, "b", "b2")
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a1 a2 a3 b1", "b2", "a2 a3 a4"})
		expect(t, "left", q.depth(), depth{})
	})
}

func TestSQS_TheQueueMovesWhatFailsTooOftenToItsDeadLetterQueue(t *testing.T) {
	bubble(t, func(w *world) {
		dead := w.create("dead", nil)
		q := w.create("orders", map[string]string{"VisibilityTimeout": "5", "RedrivePolicy": `{"maxReceiveCount":3,"deadLetterTargetArn":"` + dead.arn() + `"}`})
		w.send(q, "", "a")
		w.start(fails, fromQueue("orders"))
		time.Sleep(time.Hour / 2)
		expect(t, "batches", w.batches(), []string{"a", "a", "a"})
		expect(t, "in the dead-letter queue", dead.depth(), depth{Visible: 1})
	})
}

// A throttled invocation is retried while its messages are invisible, so that the receive count
// doesn't grow.
func TestSQS_AThrottledInvocationIsRetriedWithinTheVisibilityTimeout(t *testing.T) {
	for name, times := range map[string]int{"for a while": 4, "for good": 1000} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				q := w.create("orders", map[string]string{"VisibilityTimeout": "10"})
				w.send(q, "", "a")
				begun := time.Now()
				var refused atomic.Int64 // two batches may run at the same time when the message is received again
				w.start(func(ctx context.Context, e event) (emulator.Result, error) {
					if refused.Add(1) <= int64(times) {
						return emulator.Result{}, fmt.Errorf("wrapped: %w", emulator.ErrTooManyRequests)
					}
					return succeeds(ctx, e)
				}, fromQueue("orders"))
				time.Sleep(9900 * time.Millisecond)
				n := len(w.batches())
				last := w.event(n - 1)
				expect(t, "receives", last.Records[0].Attributes["ApproximateReceiveCount"], "1")
				if name == "for a while" {
					expect(t, "invocations", n, 5)
					expect(t, "left", q.depth(), depth{})
					return
				}
				w.logs("was not delivered, it comes back: wrapped: rate exceeded")
				time.Sleep(time.Second)
				again := w.event(n)
				expect(t, "receives", again.Records[0].Attributes["ApproximateReceiveCount"], "2")
				expect(t, "again after", again.at.Sub(begun), 10*time.Second)
				expect(t, "Close", w.mappings.Close(), nil) // Close doesn't wait for further retries
				if took := time.Since(begun); took > 11*time.Second {
					t.Errorf("Close waited until %v", took)
				}
			})
		})
	}
}

func TestSQS_AQueueThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		q := w.create("orders", map[string]string{"VisibilityTimeout": "20"})
		w.start(succeeds, fromQueue("orders"))
		synctest.Wait()
		asked := 0
		w.breaks(func(string) bool { asked++; return true })
		time.Sleep(time.Minute)
		w.logs("receiving: ")
		w.breaks(nil)
		if asked < 8 || asked > 20 {
			t.Errorf("asked %d times in a minute, want 8 to 20", asked)
		}
		w.send(q, "", "a")
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a"})

		w.breaks(func(action string) bool { return action == "DeleteMessageBatch" })
		w.send(q, "", "b")
		synctest.Wait()
		w.logs("deleting 1 messages that were handled, they may come back: ")
		w.breaks(nil)
		time.Sleep(time.Minute)
		expect(t, "batches", w.batches(), []string{"a", "b", "b"})
	})
}
