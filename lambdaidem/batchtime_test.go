package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The tests of this file are about how a batch uses the time of its invocation.

// queueOf returns an event with n messages of a queue.
func queueOf(n int) events.SQSEvent {
	var e events.SQSEvent
	for i := range n {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprintf("%036d", i), EventSourceARN: "arn:q", Body: fmt.Sprint(i)})
	}
	return e
}

// If a batch runs out of time, the guard logs one short line and sends one event, however many
// messages did not begin.
func TestV2_ACutBatchIsOneLineAndOneEvent(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			seen := &recorder{}
			g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
				o.Namespace = "test"
				if own {
					o.Observer = seen
				}
			})
			h := g.SQS(func(context.Context, events.SQSMessage) error { time.Sleep(2500 * time.Millisecond); return nil })
			var out events.SQSEventResponse
			var err error
			logged := captureLog(t, func() { out, err = h(ctx, queueOf(5000)) })
			if err != nil || len(out.BatchItemFailures) != 4999 {
				t.Errorf("%d were reported, %v", len(out.BatchItemFailures), err)
			}
			if strings.Count(logged, "\n") != 1 || len(logged) > 1000 || !strings.Contains(logged, "messages were not begun") || !strings.Contains(logged, "count=4999") ||
				!strings.Contains(logged, fmt.Sprintf("%036d", 1)) || !strings.Contains(logged, "too little time") {
				t.Errorf("the log has %d lines, %d bytes: %.500s", strings.Count(logged, "\n"), len(logged), logged)
			}
			if !own {
				return
			}
			if !slices.Equal(seen.kinds(), []lambdaidem.Kind{lambdaidem.EventNew, lambdaidem.EventOutOfTime}) {
				t.Fatalf("the observer saw %v", seen.kinds())
			}
			if e := seen.last(t); e.Messages != 4999 || e.Route != "arn:q" || e.Key != "" || !errors.Is(e.Err, lambdaidem.ErrNotBegun) {
				t.Errorf("the event is %+v", e)
			}
		})
	}
}

// If a batch runs out of time, the log line names the lack of time, even if other messages did not
// begin because of their order. The event counts only the messages that lacked time.
func TestV2_ACutBatchNamesTheLackOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		seen := &recorder{}
		h := batchGuard(func(o *lambdaidem.Options) { o.Observer = seen }).SQS(func(context.Context, events.SQSMessage) error {
			time.Sleep(2500 * time.Millisecond)
			return errBroken
		})
		e := queueOf(3)
		for i, group := range []string{"a", "a", "b"} {
			e.Records[i].EventSourceARN, e.Records[i].Attributes = "arn:q.fifo", map[string]string{"MessageGroupId": group}
		}
		logged := captureLog(t, func() { _, _ = h(ctx, e) })
		if !strings.Contains(logged, "count=2") || !strings.Contains(logged, "why=\"too little time") || seen.last(t).Messages != 1 {
			t.Errorf("the event is %+v, the log has %s", seen.last(t), logged)
		}
	})
}

// The default settings work for a function with a timeout of 1 s: messages begin in the first half
// of the time, and the batch ends before the deadline.
func TestV2_ATimeoutOfASecondWorks(t *testing.T) {
	for _, s := range batchSources {
		if s.async {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 990*time.Millisecond) // a little of the time has passed before the handler is called
			defer cancel()
			var e effects
			c := s.behind(batchGuard(), func(ctx context.Context, body string) error {
				time.Sleep(300 * time.Millisecond)
				return e.handle(ctx, body)
			}, want{})
			var failed []string
			var err error
			logged := captureLog(t, func() { failed, err = c.deliver(ctx, t, batchOf("1 a", "2 b", "3 c", "4 d")...) })
			if err != nil || ctx.Err() != nil || !slices.Equal(failed, []string{"3", "4"}) || logged != "" {
				t.Errorf("%s: reported %v, %v; the deadline: %v; the log: %s", s.name, failed, err, ctx.Err(), logged)
			}
			e.want(t, s.name, "1", "2")
		})
	}
}

// If no invocation has MinRunTime left, messages still begin, in the first half of the time, and
// one warning is logged. Otherwise a message begins only if MinRunTime is left.
func TestV2_AMinRunTimeThatNoInvocationHas(t *testing.T) {
	for _, c := range []struct {
		min      time.Duration
		reported []string
		warns    bool
	}{
		{time.Minute, []string{"4", "5"}, true}, {10 * time.Second, []string{"4", "5"}, true}, {9500 * time.Millisecond, []string{"4", "5"}, true},
		{9 * time.Second, []string{"2", "3", "4", "5"}, false}, {4 * time.Second, []string{"5"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var e effects
			consumer := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.MinRunTime = c.min }), func(ctx context.Context, body string) error {
				time.Sleep(1800 * time.Millisecond)
				return e.handle(ctx, body)
			}, want{})
			logged := captureLog(t, func() {
				for i := range 2 {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					failed, err := consumer.deliver(ctx, t, batchOf("1", "2", "3", "4", "5")...)
					if i == 0 && (err != nil || !slices.Equal(failed, c.reported)) {
						t.Errorf("%v: reported %v, %v", c.min, failed, err)
					}
					cancel()
				}
			})
			if n := strings.Count(logged, "MinRunTime"); c.warns != (strings.Count(logged, "\n") == 1 && n > 0) || !c.warns && n > 0 {
				t.Errorf("%v: the log has %s", c.min, logged)
			}
		})
	}
}

// If the deadline of the invocation has already passed, no message begins, and the store is not
// called.
func TestV2_NoTimeAtAll(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	store := newFaulty()
	g := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
	failed, err := sqs(false).behind(g, func(context.Context, string) error { return nil }, want{}).deliver(ctx, t, batchOf("1", "2")...)
	if err != nil || !slices.Equal(failed, []string{"1", "2"}) || len(store.allCalls()) > 0 {
		t.Errorf("reported %v, %v; the store was asked to %v", failed, err, store.allCalls())
	}
}

// After the invocation's context has ended, no message begins: neither the store nor the handler is
// called, and the error of each message gives the reason.
func TestV2_NothingBeginsAfterTheContextEnded(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		if deadline {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, time.Hour)
			defer stop()
		}
		store, seen := newFaulty(), &recorder{}
		g := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", seen })
		var why []error
		c := sqs(false).behind(g, func(context.Context, string) error { cancel(); return nil }, want{onFailure: func(_ string, err error) { why = append(why, err) }})
		failed, err := c.deliver(ctx, t, batchOf("1", "2", "3")...)
		if err != nil || !slices.Equal(failed, []string{"2", "3"}) || store.count(acquire) != 1 {
			t.Errorf("reported %v, %v; the store was asked to %v", failed, err, store.allCalls())
		}
		if e := seen.last(t); e.Kind != lambdaidem.EventOutOfTime || e.Messages != 2 {
			t.Errorf("the last event is %+v", e)
		}
		for _, err := range why {
			if !errors.Is(err, lambdaidem.ErrNotBegun) || !errors.Is(err, context.Canceled) {
				t.Errorf("a message is told %v", err)
			}
		}
	}
}

// With BatchOptions.Timeout, a message whose handler hangs is the only one that is reported, in
// every delivery, and the other messages are handled. So only that message reaches the dead-letter
// queue.
func TestV2_AMessageThatHangsDoesNotTakeItsNeighbours(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		synctest.Test(t, func(t *testing.T) {
			var e effects
			cause := ""
			c := s.behind(batchGuard(), func(ctx context.Context, body string) error {
				if body == "2" {
					<-ctx.Done()
					cause = context.Cause(ctx).Error()
					return ctx.Err()
				}
				return e.handle(ctx, body)
			}, want{timeout: 5 * time.Second})
			for receive := range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				began := time.Now()
				failed, err := c.deliver(ctx, t, batchOf("1 a", "2 b", "3 c", "4 d")...)
				if took := time.Since(began); err != nil || !slices.Equal(failed, []string{"2"}) || took != 5*time.Second {
					t.Errorf("receive %d: reported %v, %v after %v", receive, failed, err, took)
				}
				cancel()
			}
			e.want(t, s.name, "1", "3", "4")
			if !strings.Contains(cause, "BatchOptions.Timeout") {
				t.Errorf("the cause is %q", cause)
			}
		})
	})
}

// BatchOptions.Timeout also limits a message that runs unguarded, because it has no key.
func TestV2_TheTimeoutOfAnUnguardedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true }), func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}, want{timeout: time.Second, key: func(string) (string, error) { return "", nil }})
		began := time.Now()
		_ = captureLog(t, func() { c.wantFailed(t, batchOf("1"), "1") })
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A handler that ignores the end of its context keeps its lease until the end of the invocation. No
// other attempt runs at the same time, and the result of the handler counts.
func TestV2_AHandlerThatIgnoresItsTimeoutKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		store := memstore.New()
		guard := func() *lambdaidem.Guard {
			return lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
		}
		ended := make(chan []string)
		go func() {
			failed, _ := sqs(false).behind(guard(), func(context.Context, string) error { time.Sleep(40 * time.Second); return nil }, want{timeout: time.Second}).deliver(ctx, t, batchOf("1")...)
			ended <- failed
		}()
		time.Sleep(30 * time.Second) // long after Timeout and MaxSkew
		second := sqs(false).behind(guard(), func(context.Context, string) error { t.Error("it ran beside the first"); return nil }, want{})
		second.wantFailed(t, batchOf("1"), "1")
		if failed := <-ended; failed != nil {
			t.Errorf("reported %v", failed)
		}
		second.wantFailed(t, batchOf("1"))
	})
}

// An event with a tumbling window is refused with an error that names the setting, and no handler
// runs. If Lambda rebuilt the state of a window, the records that are already handled would be
// missing in it.
func TestV2_TumblingWindowsAreRefused(t *testing.T) {
	for _, s := range []batchSource{kinesisSource(), dynamoDBSource()} {
		for _, field := range []object{
			{"window": object{"start": "2026-07-30T17:00:00Z", "end": "2026-07-30T17:05:00Z"}}, {"state": object{}}, {"state": object{"1": "a"}},
			{"shardId": "shardId-000000000006"}, {"isFinalInvokeForWindow": true}, {"isWindowTerminatedEarly": true},
		} {
			ran := false
			c := s.behind(batchGuard(), func(context.Context, string) error { ran = true; return nil }, want{})
			event := c.event
			c.event = func(arn string, all []msg) any {
				e := event(arn, all).(object)
				for name, value := range field {
					e[name] = value
				}
				return e
			}
			if failed, err := c.deliver(t.Context(), t, batchOf("1 a")...); err == nil || !strings.Contains(err.Error(), "TumblingWindowInSeconds") || ran {
				t.Errorf("%s, %v: reported %v, %v; it ran: %v", s.name, field, failed, err, ran)
			}
		}
	}
}
