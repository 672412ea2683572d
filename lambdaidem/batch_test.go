package lambdaidem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func batchGuard(optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	return lambdaidem.New(memstore.New(), append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "test", lambdaidem.Discard
	}}, optFns...)...)
}

// everySource runs a test for each source.
func everySource(t *testing.T, test func(t *testing.T, s batchSource)) {
	for _, s := range batchSources {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

// Each message is handled once, even if its batch is delivered again: completely, in part, in
// another order, or with each message several times.
func TestV2_Redelivered(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{})
		all := s.arranged(batchOf("1 a", "2 b", "3 a", "4 c"))
		c.wantFailed(t, all)
		for i := range all {
			all[i].received++
		}
		c.wantFailed(t, all)
		c.wantFailed(t, all[1:3])
		first := bodiesOf(all)
		slices.Reverse(all)
		c.wantFailed(t, all)
		c.wantFailed(t, append(all, append(all, batchOf("5 a", "5 a")...)...))
		e.want(t, s.name, append(first, "5")...)
	})
}

// The response reports exactly the messages that failed, and those that did not begin because of
// their order. These messages run when they are delivered again, and the others do not run again.
func TestV2_FailuresAreReported(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		broken := true
		e := effects{fail: failing(&broken, "2")}
		c := s.behind(batchGuard(), e.handle, want{})
		all := batchOf("1 a", "2 b", "3 a", "4 b", "5 c")
		switch {
		case s.partitioned:
			c.wantFailed(t, all, "2", "4")
			e.want(t, s.name, "1", "3", "failed 2", "5")
		case s.ordered:
			c.wantFailed(t, all, "2", "4")
			e.want(t, s.name, "1", "failed 2", "3", "5")
		default:
			c.wantFailed(t, all, "2")
			e.want(t, s.name, "1", "failed 2", "3", "4", "5")
		}
		e.all, broken = nil, false
		c.wantFailed(t, all)
		if s.ordered {
			e.want(t, s.name, "2", "4")
		} else {
			e.want(t, s.name, "2")
		}
	})
}

// With BatchOptions.StopBatch, no message of the batch begins after the first failure.
func TestV2_StopBatch(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		if s.async {
			t.Skip("its records come one at a time")
		}
		broken := true
		e := effects{fail: failing(&broken, "2")}
		c := s.behind(batchGuard(), e.handle, want{stopBatch: true})
		all := batchOf("1 a", "2 b", "3 c", "4 c")
		c.wantFailed(t, all, "2", "3", "4")
		e.want(t, s.name, "1", "failed 2")
		broken = false
		c.wantFailed(t, all) // the guard keeps no state between batches
		e.want(t, s.name, "1", "failed 2", "2", "3", "4")
	})
}

// If every message failed, the handler returns the list of all messages, and not an error.
func TestV2_EveryMessageFailed(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		e := effects{fail: func(string, int) error { return errBroken }}
		c := s.behind(batchGuard(), e.handle, want{})
		c.wantFailed(t, batchOf("1 a", "2 b"), "1", "2")
		c.wantFailed(t, batchOf("1 a", "2 b"), "1", "2")
		if len(e.all) != 4 {
			t.Errorf("handled %q", e.all)
		}
	})
}

// With BatchOptions.WholeBatch, for event source mappings without ReportBatchItemFailures, a
// failure is an error of the whole batch.
func TestV2_WholeBatch(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		if s.async {
			t.Skip("its records come one at a time")
		}
		broken := true
		e := effects{fail: failing(&broken, "2")}
		c := s.behind(batchGuard(), e.handle, want{wholeBatch: true})
		_, err := c.deliver(t.Context(), t, batchOf("1 a", "2 b", "3 c")...)
		if err == nil || !strings.Contains(err.Error(), "1 of 3 messages failed; the first: broken") {
			t.Errorf("the batch ended with %v", err)
		}
		broken = false
		c.wantFailed(t, batchOf("1 a", "2 b", "3 c"))
		e.want(t, s.name, "1", "failed 2", "3", "2")
	})
}

// A message without an id can't be listed in the response: with an empty id, Lambda would fail the
// whole batch without an explanation. The handler returns an error instead.
func TestV2_NoNameIsNeverReported(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		if s.async {
			t.Skip("nothing is reported by name")
		}
		broken := true
		e := effects{fail: failing(&broken, "x")}
		c := s.behind(batchGuard(), e.handle, want{key: func(body string) (string, error) { return "key-" + body, nil }})
		all := []msg{{id: "1", group: "a", body: "1"}, {group: "b", body: "x"}}
		if failed, err := c.deliver(t.Context(), t, all...); err == nil || failed != nil {
			t.Errorf("reported %q, %v; want an error", failed, err)
		}
		broken = false
		c.wantFailed(t, all)
		e.want(t, s.name, "1", "failed x", "x")
	})
}

// The failure of a message without an id fails the batch, even if a message with an id fails after
// it.
func TestV2_ANamedFailureHidesNoNamelessOne(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		if s.async {
			t.Skip("nothing is reported by name")
		}
		e := effects{fail: func(string, int) error { return errBroken }}
		c := s.behind(batchGuard(), e.handle, want{key: func(body string) (string, error) { return "key-" + body, nil }})
		failed, err := c.deliver(t.Context(), t, msg{group: "a", body: "x"}, msg{id: "2", group: "b", body: "2"})
		if all := (*lambdaidem.BatchError)(nil); !errors.As(err, &all) || len(all.Errs) != 2 || failed != nil {
			t.Errorf("reported %q, %v; want an error of both messages", failed, err)
		}
		e.want(t, s.name, "failed x", "failed 2")
	})
}

// A failure is never stored, whatever mark its error has, because a message that returns from a
// dead-letter queue after a fix must run.
func TestV2_FailuresAreNotStored(t *testing.T) {
	for name, err := range map[string]error{
		"plain": errBroken, "permanent": lambdaidem.Permanent(errBroken), "rejected": lambdaidem.Reject(404, "no_such", "gone"),
		"retryable": lambdaidem.Retryable(errBroken), "wrapped": fmt.Errorf("so: %w", lambdaidem.Permanent(errBroken)),
	} {
		everySource(t, func(t *testing.T, s batchSource) {
			e := effects{fail: func(_ string, run int) error {
				if run == 1 && err != nil {
					return err
				}
				return nil
			}}
			c := s.behind(batchGuard(), e.handle, want{})
			c.wantFailed(t, batchOf("1 a"), "1")
			was := err
			err = nil
			c.wantFailed(t, batchOf("1 a"))
			err = was
			if !slices.Equal(e.all, []string{"failed 1", "1"}) {
				t.Errorf("%s: handled %q", name, e.all)
			}
		})
	}
}

// Under Hold, an error without a mark, an uncertain error and a panic hold the message: it does not
// run when it is delivered again. After an error that is retryable, permanent or a rejection, it
// runs again.
func TestV2_UnderHold(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		held bool
	}{
		"plain": {errBroken, true}, "uncertain": {lambdaidem.Uncertain(errBroken), true}, "panic": {nil, true},
		"retryable": {lambdaidem.Retryable(errBroken), false}, "permanent": {lambdaidem.Permanent(errBroken), false}, "rejected": {lambdaidem.Reject(404, "no", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			everySource(t, func(t *testing.T, s batchSource) {
				clock, fail := newTicker(), true
				e := effects{fail: func(string, int) error {
					if fail && c.err == nil {
						panic("at the disco")
					}
					if fail {
						return c.err
					}
					return nil
				}}
				g := batchGuard(clock.option, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
				consumer := s.behind(g, e.handle, want{key: func(body string) (string, error) { return "key-" + body, nil }})
				consumer.wantFailed(t, batchOf("1 a"), "1")
				clock.advance(time.Hour)
				fail, e.all = false, nil
				if c.held {
					consumer.wantFailed(t, batchOf("1 a"), "1")
					e.want(t, s.name)
				} else {
					consumer.wantFailed(t, batchOf("1 a"))
					e.want(t, s.name, "1")
				}
			})
		})
	}
}

// Messages with the same key in one batch run once, whatever their ids. If that run fails, the
// duplicates fail too, and do not run.
func TestV2_DuplicatesInABatch(t *testing.T) {
	for _, s := range batchSources {
		if s.async {
			continue
		}
		for _, concurrency := range []int{1, 4} {
			t.Run(fmt.Sprint(s.name, " ", concurrency), func(t *testing.T) {
				var mu sync.Mutex
				e := effects{}
				h := func(ctx context.Context, body string) error {
					mu.Lock()
					defer mu.Unlock()
					return e.handle(ctx, body)
				}
				c := s.behind(batchGuard(), h, want{key: func(body string) (string, error) { return body, nil }, concurrency: concurrency})
				twins := []msg{{id: "1", group: "a", body: "x"}, {id: "2", group: "a", body: "x"}, {id: "3", group: "a", body: "x"}}
				if s.name == "SQS" || s.name == "Kinesis" { // for these sources, the fingerprint does not cover the group
					twins[1].group = "b"
				}
				c.wantFailed(t, twins)
				e.want(t, s.name, "x")
				e.all, e.fail = nil, func(string, int) error { return errBroken }
				for i := range twins {
					twins[i].body = "y"
				}
				c.wantFailed(t, twins, "1", "2", "3")
				e.want(t, s.name, "failed y")
			})
		}
	}
}

// Another message under the same key fails with ErrPayloadMismatch. Values that change from one
// delivery to the next, such as the receive count, don't make it another message.
func TestV3_Mismatch(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		var e effects
		var failures []string
		c := s.behind(batchGuard(), e.handle, want{key: func(string) (string, error) { return "one", nil }, onFailure: func(body string, err error) {
			failures = append(failures, fmt.Sprint(body, " ", errors.Is(err, lambdaidem.ErrPayloadMismatch)))
		}})
		c.wantFailed(t, []msg{{id: "1", group: "a", body: "x"}})
		c.wantFailed(t, []msg{{id: "2", group: "a", body: "x", received: 7}})
		c.wantFailed(t, []msg{{id: "3", group: "a", body: "y"}}, "3")
		e.want(t, s.name, "x")
		if !slices.Equal(failures, []string{"y true"}) {
			t.Errorf("the failures are %q", failures)
		}
	})
}

// A message that is sent again under the same key is the same message, whatever attributes a tracer
// adds, changes or omits. It neither fails nor runs again.
func TestV3_AttributesOfTracersDontCount(t *testing.T) {
	tracers := []string{"traceparent", "TraceState", "_datadog", "X-B3-TraceId", "X-B3-Sampled", "sentry-trace", "baggage", "uber-trace-id", "newrelic", "AWSTraceHeader", "x-made-up"}
	for _, s := range []batchSource{sqs(false), sqs(true), snsSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{})
		c.wantFailed(t, []msg{{id: "0", body: "x", key: "k"}})
		for i, name := range tracers {
			for j, value := range []string{"1", "2"} {
				c.wantFailed(t, []msg{{id: fmt.Sprint(i, "-", j), body: "x", key: "k", attrs: map[string]string{name: value, "other": value}}})
			}
		}
		e.want(t, s.name, "x")
	}
}

// The attributes of a tracer don't change the payload of a message that failed either, so its retry
// runs, with the same downstream key.
func TestV3_ARetryWithOtherAttributesKeepsItsDownstreamKey(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var keys []string
		c := s.behind(batchGuard(), func(ctx context.Context, _ string) error {
			keys = append(keys, lambdaidem.DownstreamKey(ctx, "charge"))
			return errBroken
		}, want{})
		c.wantFailed(t, []msg{{id: "1", body: "x", key: "k", attrs: map[string]string{"_datadog": "1"}}}, "1")
		c.wantFailed(t, []msg{{id: "2", body: "x", key: "k", attrs: map[string]string{"_datadog": "2"}}}, "2")
		if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
			t.Errorf("%s: the downstream keys are %q", s.name, keys)
		}
	}
}

// The payload includes the attributes that BatchOptions.FingerprintAttributes names. Their order
// and the case of their names don't matter. Other attributes don't count.
func TestV3_NamedAttributesCount(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{counted: []string{"A", "b", "c", "d", "e", "f", "g", "Currency"}})
		attrs := map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6", "g": "7", "currency": "EUR"}
		for i := range 20 {
			attrs["other"] = fmt.Sprint(i)
			c.wantFailed(t, []msg{{id: "1", body: "x", key: "k", attrs: attrs}})
		}
		e.want(t, s.name, "x")
		other := maps.Clone(attrs)
		other["currency"] = "USD"
		c.wantFailed(t, []msg{{id: "2", body: "x", key: "k", attrs: other}}, "2")
		delete(other, "currency")
		c.wantFailed(t, []msg{{id: "3", body: "x", key: "k", attrs: other}}, "3")
	}
}

// The type and the value of a named attribute count, also if the value is binary.
func TestV3_NamedAttributesOfEveryType(t *testing.T) {
	text, number := "1", "1"
	of := func(a events.SQSMessageAttribute) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q", MessageAttributes: map[string]events.SQSMessageAttribute{"a": a}}}}
	}
	all := []events.SQSMessageAttribute{
		{DataType: "String", StringValue: &text}, {DataType: "Number", StringValue: &number}, {DataType: "Binary", BinaryValue: []byte("1")}, {DataType: "Binary", BinaryValue: []byte("2")}, {DataType: "Binary"},
	}
	for i, first := range all {
		h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return nil }, silent[events.SQSMessage], namingAttributes("a"))
		_, _ = h(t.Context(), of(first))
		for j, again := range all {
			out, err := h(t.Context(), of(again))
			if same := len(out.BatchItemFailures) == 0; err != nil || same != (i == j) {
				t.Errorf("attributes %d and %d: the same %v, %v", i, j, same, err)
			}
		}
	}
}

// namingAttributes returns an option that sets BatchOptions.FingerprintAttributes.
func namingAttributes(names ...string) func(*lambdaidem.BatchOptions[events.SQSMessage]) {
	return func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.FingerprintAttributes = names }
}

// The guard copies the names in BatchOptions.FingerprintAttributes, so a later change of the slice
// has no effect.
func TestV3_NamedAttributesAreCopied(t *testing.T) {
	names := []string{"currency"}
	var e effects
	c := sqs(false).behind(batchGuard(), e.handle, want{counted: names})
	names[0] = "changed"
	c.wantFailed(t, []msg{{id: "1", body: "x", key: "k", attrs: map[string]string{"currency": "EUR"}}})
	c.wantFailed(t, []msg{{id: "2", body: "x", key: "k", attrs: map[string]string{"currency": "USD"}}}, "2")
}

// The subject of an SNS message is a part of the payload, whether the message arrives directly or
// through a queue.
func TestV3_TheSubjectOfATopicsMessageCounts(t *testing.T) {
	run := func(context.Context) error { return nil }
	for name, send := range map[string]func(g *lambdaidem.Guard) func(id, subject string) bool{
		"direct": func(g *lambdaidem.Guard) func(id, subject string) bool {
			h := g.SNS(func(ctx context.Context, _ events.SNSEventRecord) error { return run(ctx) }, silent[events.SNSEventRecord])
			return func(id, subject string) bool {
				return h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: id, TopicArn: "arn:t", Subject: subject, Message: "x",
					MessageAttributes: map[string]any{lambdaidem.MessageKey: map[string]any{"Type": "String", "Value": "k"}}}}}}) == nil
			}
		},
		"through a queue": func(g *lambdaidem.Guard) func(id, subject string) bool {
			h := g.SQS(func(ctx context.Context, _ events.SQSMessage) error { return run(ctx) }, silent[events.SQSMessage])
			return func(id, subject string) bool {
				body := fmt.Sprintf(`{"Type":"Notification","MessageId":"%s","TopicArn":"arn:t","Subject":%s,"Message":"x","Timestamp":"%s","MessageAttributes":{"x-idempotency-key":{"Type":"String","Value":"k"}}}`, id, mustJSON(t, subject), id)
				if subject == "" {
					body = strings.Replace(body, `"Subject":"",`, "", 1)
				}
				out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, EventSourceARN: "arn:q", Body: body}}})
				return err == nil && len(out.BatchItemFailures) == 0
			}
		},
	} {
		for _, first := range []string{"", "paid", "refunded"} {
			same := send(batchGuard())
			same("0", first)
			for i, again := range []string{"", "paid", "refunded"} {
				if got := same(fmt.Sprint(i+1), again); got != (again == first) {
					t.Errorf("%s: the subjects %q and %q: the same: %v", name, first, again, got)
				}
			}
		}
	}
}

// BatchOptions.FingerprintAttributes names attributes of the queue's message and of the SNS message
// in an envelope. If both messages have the attribute, both values count.
func TestV3_NamedAttributesInEnvelopes(t *testing.T) {
	euro, dollar := "EUR", "USD"
	message := func(id, inside string, outside *string) events.SQSEvent {
		m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:q", Body: `{"Type":"Notification","MessageId":"` + id + `","TopicArn":"arn:t","Message":"x","Timestamp":"` + id +
			`","MessageAttributes":{"x-idempotency-key":{"Type":"String","Value":"k"},"currency":{"Type":"String","Value":"` + inside + `"},"_datadog":{"Type":"Binary","Value":"` + id + `"}}}`}
		if outside != nil {
			m.MessageAttributes = map[string]events.SQSMessageAttribute{"currency": {DataType: "String", StringValue: outside}}
		}
		return events.SQSEvent{Records: []events.SQSMessage{m}}
	}
	for _, outside := range []*string{nil, &euro} {
		h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return nil }, silent[events.SQSMessage], namingAttributes("currency"))
		for i := range 20 {
			if out, err := h(t.Context(), message(fmt.Sprint(i), euro, outside)); err != nil || len(out.BatchItemFailures) > 0 {
				t.Errorf("sent again: %+v, %v", out, err)
			}
		}
		if out, err := h(t.Context(), message("30", dollar, outside)); err != nil || len(out.BatchItemFailures) != 1 {
			t.Errorf("in another currency: %+v, %v", out, err)
		}
		if out, err := h(t.Context(), message("31", euro, &dollar)); err != nil || len(out.BatchItemFailures) != 1 {
			t.Errorf("in another currency outside: %+v, %v", out, err)
		}
	}
}

// Another message under the key of a message that failed is not its duplicate. It runs, like a
// request that was corrected.
func TestV2_AnotherMessageAfterAFailure(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "x")}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}, {id: "2", body: "y", key: "k"}, {id: "3", body: "x", key: "k"}}, "1", "3")
	e.want(t, "SQS", "failed x", "y")
}

// A failed message is reported once, even if it is in the batch several times.
func TestV2_ReportedOnce(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "1")}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, batchOf("1", "1", "2", "1"), "1")
	e.want(t, "SQS", "failed 1", "2")
}

// No message begins after the invocation's context has ended.
func TestV2_ContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var e effects
	c := sqs(false).behind(batchGuard(), func(ctx context.Context, body string) error {
		cancel()
		return e.handle(ctx, body)
	}, want{})
	if failed, err := c.deliver(ctx, t, batchOf("1", "2", "3")...); err != nil || !slices.Equal(failed, []string{"2", "3"}) {
		t.Errorf("reported %v, %v", failed, err)
	}
}

// The messages of two tenants never share a record.
func TestF1_MessagesOfTenants(t *testing.T) {
	var e effects
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	for _, tenant := range []string{"blue", "green", "blue"} {
		ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: tenant})
		if failed, err := c.deliver(ctx, t, batchOf("1")...); err != nil || failed != nil {
			t.Errorf("reported %v, %v", failed, err)
		}
	}
	e.want(t, "SQS", "1", "1")
}

// While the guard is switched off, every message runs unguarded, even a duplicate. One event is
// sent for each message.
func TestV2_SwitchedOff(t *testing.T) {
	t.Setenv(lambdaidem.SwitchOff, "true")
	seen := &recorder{}
	var e effects
	logged := captureLog(t, func() {
		broken := true
		e.fail = failing(&broken, "2")
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.Observer = seen }), e.handle, want{})
		c.wantFailed(t, batchOf("1", "1", "2", "2"), "2")
	})
	e.want(t, "SQS", "1", "1", "failed 2", "failed 2")
	if slices.Contains(seen.kinds(), lambdaidem.EventNew) || len(seen.kinds()) != 4 || strings.Contains(logged, "without an idempotency key") {
		t.Errorf("the observer saw %v; the log has %s", seen.kinds(), logged)
	}
}

// Messages without a key don't count as duplicates. If one fails, another one with the same body
// still runs.
func TestV3_UnkeyedMessagesAreApart(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "1")}
	_ = captureLog(t, func() {
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true }), e.handle, want{key: func(string) (string, error) { return "", nil }})
		c.wantFailed(t, []msg{{id: "1", body: "1"}, {id: "2", body: "2"}, {id: "3", body: "1"}}, "1", "3")
	})
	e.want(t, "SQS", "failed 1", "2", "failed 1")
}

// An event is sent for a message that the guard refuses.
func TestO1_RefusedMessages(t *testing.T) {
	seen := &recorder{}
	var e effects
	c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.Observer = seen }), e.handle, want{})
	c.wantFailed(t, []msg{{id: "1", body: "x", key: "\x00"}, {id: "2", body: "y"}}, "1")
	if !slices.Equal(seen.kinds(), []lambdaidem.Kind{lambdaidem.EventKeyInvalid, lambdaidem.EventNew}) {
		t.Errorf("the observer saw %v", seen.kinds())
	}
	if e := seen.last(t); e.Route != "arn:aws:sqs:eu-west-1:111122223333:orders" || !strings.HasPrefix(e.Scope, "test message arn:") {
		t.Errorf("the event is %+v", e)
	}
}

// Bodies that are JSON are compared by value, and their numbers by their text.
func TestV3_BodiesCountByValue(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), kinesisSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{key: func(string) (string, error) { return "one", nil }})
		c.wantFailed(t, []msg{{id: "1", body: `{"a":9007199254740993,"b":[]}`}})
		c.wantFailed(t, []msg{{id: "2", body: `{ "b": [ ], "a": 9007199254740993 }`}})
		c.wantFailed(t, []msg{{id: "3", body: `{"a":9007199254740992,"b":[]}`}}, "3")
	}
}

// If the sender gave a key, the key identifies the message, even if its id is new. Otherwise the id
// that the source gave identifies it. A key and an id with the same text have different records.
func TestV3_Keys(t *testing.T) {
	for _, s := range []batchSource{sqs(false), sqs(true), snsSource(), eventBridgeSource(), kafkaSource(), activeMQSource()} {
		t.Run(s.name, func(t *testing.T) {
			var e effects
			c := s.behind(batchGuard(), e.handle, want{})
			c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}})
			c.wantFailed(t, []msg{{id: "2", body: "x", key: "k"}})
			c.wantFailed(t, []msg{{id: "k", body: "x"}})
			c.wantFailed(t, []msg{{id: "3", body: "x", key: "1"}})
			e.want(t, s.name, "x", "x", "x")
		})
	}
}

// Options.ValidateKey checks the keys that senders gave, but not the ids that sources gave.
func TestV3_KeysAreValidated(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), eventBridgeSource(), kafkaSource(), activeMQSource()} {
		var e effects
		c := s.behind(batchGuard(func(o *lambdaidem.Options) { o.ValidateKey = lambdaidem.UUIDKey }), e.handle, want{})
		c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}}, "1")
		c.wantFailed(t, []msg{{id: "2", body: "y"}})
		c.wantFailed(t, []msg{{id: "3", body: "z", key: "a1b2c3d4-0000-4000-8000-000000000000"}})
		e.want(t, s.name, "y", "z")
	}
}

// If there is a value under the name MessageKey that is not one valid text, the key is invalid. It
// does not count as missing.
func TestV3_KeysThatAreNone(t *testing.T) {
	var e effects
	g := batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true }) // a message with a missing key would run
	var got error
	sqs := g.SQS(func(ctx context.Context, m events.SQSMessage) error { return e.handle(ctx, m.Body) }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { got = err }
	})
	for _, attribute := range []string{
		`{"binaryValue":"aw==","dataType":"Binary"}`, `{"stringValue":"1","dataType":"Number"}`, `{"stringValue":"","dataType":"String"}`, `{"dataType":"String"}`, `{"stringValue":"a\u0000","dataType":"String"}`,
	} {
		var event events.SQSEvent
		if err := json.Unmarshal([]byte(`{"Records":[{"messageId":"1","body":"x","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q","messageAttributes":{"x-idempotency-key":`+attribute+`}}]}`), &event); err != nil {
			t.Fatal(err)
		}
		if out, err := sqs(t.Context(), event); err != nil || len(out.BatchItemFailures) != 1 || !errors.Is(got, lambdaidem.ErrKeyInvalid) {
			t.Errorf("%s: %+v, %v", attribute, out, err)
		}
	}
	bridge := g.EventBridge(func(ctx context.Context, m events.EventBridgeEvent) error { return e.handle(ctx, m.ID) }, func(o *lambdaidem.BatchOptions[events.EventBridgeEvent]) {
		o.OnFailure = func(context.Context, events.EventBridgeEvent, error) {}
	})
	for _, detail := range []string{`{"x-idempotency-key":1}`, `{"x-idempotency-key":null,"x-idempotency-key":"a"}`, `{"x-idempotency-key":"a","X-Idempotency-Key":null}`, `{"x-idempotency-key":["a"],"X-Idempotency-Key":"a"}`, `{"x-idempotency-key":""}`, `{"x-idempotency-key":"a","x-idempotency-key":"a"}`, `{"x-idempotency-key":"a","X-Idempotency-Key":"b"}`, `{"X-Idempotency-Key":["a"]}`} {
		err := bridge(t.Context(), events.EventBridgeEvent{ID: "1", Source: "shop", Detail: json.RawMessage(detail)})
		if !errors.Is(err, lambdaidem.ErrKeyInvalid) {
			t.Errorf("%s: %v", detail, err)
		}
	}
	sns := g.SNS(func(ctx context.Context, m events.SNSEventRecord) error { return e.handle(ctx, m.SNS.MessageID) }, func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
		o.OnFailure = func(context.Context, events.SNSEventRecord, error) {}
	})
	for _, a := range []any{"text", map[string]any{"Type": "Binary", "Value": "aw=="}, map[string]any{"Type": "String"}, nil, map[string]any{"Type": "String", "Value": 7}} {
		err := sns(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "1", TopicArn: "arn:t", MessageAttributes: map[string]any{lambdaidem.MessageKey: a}}}}})
		if !errors.Is(err, lambdaidem.ErrKeyInvalid) {
			t.Errorf("%v: %v", a, err)
		}
	}
	e.want(t, "all")
}

// A key that is null in an event's detail is missing, and not invalid. The guard then uses the id
// that the source gave: the id of the event or, through a queue, the id of the queue's message.
func TestV3_ANullIsAMissingKey(t *testing.T) {
	for _, detail := range []string{`{"x-idempotency-key":null}`, `{"a":1,"X-Idempotency-Key":null}`} {
		var keys []string
		keep := func(ctx context.Context) { keys = append(keys, lambdaidem.Key(ctx)) }
		g := batchGuard()
		bus := g.EventBridge(func(ctx context.Context, _ events.EventBridgeEvent) error { keep(ctx); return nil }, silent[events.EventBridgeEvent])
		for range 2 {
			if err := bus(t.Context(), events.EventBridgeEvent{ID: "event-1", Source: "shop", Detail: json.RawMessage(detail)}); err != nil {
				t.Errorf("%s: %v", detail, err)
			}
		}
		queue := g.SQS(func(ctx context.Context, _ events.SQSMessage) error { keep(ctx); return nil }, silent[events.SQSMessage])
		body := `{"version":"0","id":"event-2","detail-type":"Paid","source":"shop","account":"1","time":"t","region":"eu-west-1","resources":[],"detail":` + detail + `}`
		if out, err := queue(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "message-1", EventSourceARN: "arn:q", Body: body}}}); err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("%s through a queue: %+v, %v", detail, out, err)
		}
		if !slices.Equal(keys, []string{"event-1", "message-1"}) {
			t.Errorf("%s: the keys are %q", detail, keys)
		}
	}
}

// A message whose key can't be found fails. A message without a key fails too, unless
// Options.KeyOptional is set. It then runs unguarded.
func TestV3_NoKey(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		for name, c := range map[string]struct {
			key  func(string) (string, error)
			code lambdaidem.Code
		}{
			"none":    {func(string) (string, error) { return "", nil }, lambdaidem.ErrKeyMissing},
			"error":   {func(string) (string, error) { return "k", errBroken }, lambdaidem.ErrKeyInvalid},
			"panics":  {func(string) (string, error) { panic("at the disco") }, lambdaidem.ErrKeyInvalid},
			"invalid": {func(string) (string, error) { return "\x00", nil }, lambdaidem.ErrKeyInvalid},
		} {
			var e effects
			var got error
			consumer := s.behind(batchGuard(), e.handle, want{key: c.key, onFailure: func(_ string, err error) { got = err }})
			consumer.wantFailed(t, batchOf("1 a"), "1")
			e.want(t, s.name)
			if !errors.Is(got, c.code) {
				t.Errorf("%s: %v; want %s", name, got, c.code)
			}
			seen := &recorder{}
			g := batchGuard(func(o *lambdaidem.Options) { o.KeyOptional, o.Observer = true, seen })
			consumer = s.behind(g, e.handle, want{key: c.key})
			if name != "none" {
				consumer.wantFailed(t, batchOf("1 a"), "1")
				continue
			}
			logged := captureLog(t, func() {
				consumer.wantFailed(t, batchOf("1 a"))
				consumer.wantFailed(t, batchOf("1 a"))
			})
			e.want(t, s.name, "1", "1")
			if !slices.Equal(seen.kinds(), []lambdaidem.Kind{lambdaidem.EventBypassed, lambdaidem.EventBypassed}) || strings.Count(logged, "runs unguarded") != 2 {
				t.Errorf("the observer saw %v, the log has %q", seen.kinds(), logged)
			}
		}
	})
}

// captureLog returns what is logged by default while do runs.
func captureLog(t *testing.T, do func()) string {
	t.Helper()
	var buf bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	defer slog.SetDefault(was)
	do()
	return buf.String()
}

// Two queues never share a record, unless their handlers have the same BatchOptions.Operation, as
// for a queue and its dead-letter queue.
func TestV3_Scope(t *testing.T) {
	for _, s := range batchSources {
		var e effects
		g := batchGuard()
		byBody := func(body string) (string, error) { return body, nil }
		s.behind(g, e.handle, want{key: byBody}).wantFailed(t, []msg{{id: "1", body: "x"}})
		s.behind(g, e.handle, want{key: byBody, queue: "orders-dlq"}).wantFailed(t, []msg{{id: "2", body: "x"}})
		e.want(t, s.name, "x", "x")
		if e.all = nil; slices.Contains([]string{"EventBridge", "S3", "DocumentDB"}, s.name) {
			continue // the source is a part of the event
		}
		s.behind(g, e.handle, want{key: byBody, operation: "charge"}).wantFailed(t, []msg{{id: "3", body: "x"}})
		s.behind(g, e.handle, want{key: byBody, operation: "charge", queue: "orders-dlq"}).wantFailed(t, []msg{{id: "4", body: "x"}})
		e.want(t, s.name, "x")
	}
	// A message shares no record with a Do or a typed handler that has the same operation and key.
	g := batchGuard()
	var ids []string
	keep := func(ctx context.Context) { ids = append(ids, lambdaidem.RecordID(ctx)) }
	sqs(false).behind(g, func(ctx context.Context, _ string) error { keep(ctx); return nil }, want{operation: "charge"}).wantFailed(t, []msg{{id: "k", body: "x"}, {id: "2", body: "x", key: "k"}})
	_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(ctx context.Context) (int, error) { keep(ctx); return 0, nil })
	_, _ = lambdaidem.Handler(g, "charge", func(context.Context, int) (string, error) { return "k", nil }, func(ctx context.Context, _ int) (int, error) { keep(ctx); return 0, nil })(t.Context(), 1)
	if slices.Sort(ids); len(slices.Compact(ids)) != 4 {
		t.Errorf("the records are %q", ids)
	}
	for _, own := range []bool{true, false} {
		if id := g.RecordID(lambdaidem.Identity{Operation: "charge", Key: "k", Message: true, OwnID: own}); !slices.Contains(ids, id) {
			t.Errorf("RecordID leads to %s, which no message has", id)
		}
	}
}

// A message that names no source has no record. It fails with an error that says what to set.
func TestV3_NoSource(t *testing.T) {
	var got error
	h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { got = err }
	})
	out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1"}}})
	if err != nil || len(out.BatchItemFailures) != 1 || !errors.Is(got, lambdaidem.ErrRequestInvalid) || !strings.Contains(got.Error(), "BatchOptions.Operation") {
		t.Errorf("%+v, %v, %v", out, err, got)
	}
}

// A panic fails only its own message. The text of the error has the stack.
func TestV2_Panics(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		e := effects{fail: func(body string, _ int) error {
			if body == "2" {
				panic(fmt.Errorf("at the disco: %w", errBroken))
			}
			return nil
		}}
		var got error
		c := s.behind(batchGuard(), e.handle, want{onFailure: func(_ string, err error) { got = err }})
		c.wantFailed(t, batchOf("1 a", "2 b", "3 c"), "2")
		e.want(t, s.name, "1", "3")
		if got == nil || !errors.Is(got, errBroken) || !strings.Contains(got.Error(), "at the disco") || !strings.Contains(got.Error(), "batch_test.go") {
			t.Errorf("the failure is %v", got)
		}
	})
}

// By default, each failure is logged once. A message that did not begin is not logged as a failure.
func TestV2_FailuresAreLogged(t *testing.T) {
	h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return errBroken })
	logged := captureLog(t, func() {
		var event events.SQSEvent
		for _, id := range []string{"1", "2"} {
			event.Records = append(event.Records, events.SQSMessage{MessageId: id, EventSourceARN: "arn:q.fifo", Attributes: map[string]string{"MessageGroupId": "g"}})
		}
		if out, err := h(t.Context(), event); err != nil || len(out.BatchItemFailures) != 2 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	if strings.Count(logged, "a message failed") != 1 || !strings.Contains(logged, "id=1") || !strings.Contains(logged, "error=broken") {
		t.Errorf("the log has %q", logged)
	}
}

// The logger that docs/log.md recommends writes slog's own message as "message". No line of it has
// a member twice, and the line of a failure names the record.
func TestV2_AFailuresLineHasNoMemberTwice(t *testing.T) {
	var buf bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&buf, &slog.HandlerOptions{ReplaceAttr: lambdacontext.ReplaceAttr})))
	defer slog.SetDefault(was)
	g := batchGuard()
	h := g.SQS(func(context.Context, events.SQSMessage) error { return errBroken }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) { return m.Body, nil }
	})
	optional := g.With(func(o *lambdaidem.Options) { o.KeyOptional = true }).SQS(func(context.Context, events.SQSMessage) error { return errBroken },
		func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "", nil }
		})
	event := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q", Body: "a"}, {MessageId: "2", EventSourceARN: "arn:q"}}}
	for _, h := range []func(context.Context, events.SQSEvent) (events.SQSEventResponse, error){h, optional} {
		if out, err := h(t.Context(), event); err != nil || len(out.BatchItemFailures) != 2 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	record := g.RecordID(lambdaidem.Identity{Operation: "arn:q", Message: true, Key: "a"})
	lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
	for _, line := range lines {
		members := map[string]bool{}
		dec := json.NewDecoder(strings.NewReader(line))
		for depth, name := 0, true; dec.More() || depth > 0; {
			token, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			switch token {
			case json.Delim('{'):
				depth++
				name = true
				continue
			case json.Delim('}'):
				depth--
				name = true
				continue
			}
			if text, ok := token.(string); ok && name && depth == 1 {
				if members[text] {
					t.Errorf("the member %q is there twice: %s", text, line)
				}
				members[text] = true
			}
			name = !name
		}
	}
	if !strings.Contains(lines[0], `"message":"a message failed"`) || !strings.Contains(lines[0], `"id":"1"`) || !strings.Contains(lines[0], `"record":"`+record+`"`) {
		t.Errorf("the first line is %s; want the record %s", lines[0], record)
	}
	if strings.Count(buf.String(), `"record":"lambdaidem#`) != 1 {
		t.Errorf("the log names records where there are none: %s", buf.String())
	}
}

// A message that can't be finished in time does not begin, and is reported. If it began and the
// invocation timed out, Lambda would deliver the whole batch again.
func TestV2_Deadline(t *testing.T) {
	for _, s := range batchSources {
		if s.async {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var e effects
			var late []error
			c := s.behind(batchGuard(), func(ctx context.Context, body string) error {
				time.Sleep(1500 * time.Millisecond)
				return e.handle(ctx, body)
			}, want{onFailure: func(_ string, err error) { late = append(late, err) }})
			failed, err := c.deliver(ctx, t, batchOf("1 a", "2 b", "3 c", "4 d", "5 e")...)
			if err != nil || ctx.Err() != nil || !slices.Equal(failed, []string{"4", "5"}) {
				t.Errorf("%s: reported %v, %v; the deadline: %v", s.name, failed, err, ctx.Err())
			}
			e.want(t, s.name, "1", "2", "3")
			if len(late) != 2 || !errors.Is(late[0], lambdaidem.ErrNotBegun) {
				t.Errorf("the failures are %v", late)
			}
		})
	}
}

// A message that another invocation is handling is not done yet. A queue delivers it again. A
// stream or an asynchronous event may not deliver it again, so the batch waits for the other
// attempt.
func TestV2_InProgressElsewhere(t *testing.T) {
	for _, s := range batchSources {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			store := memstore.New()
			guard := func() *lambdaidem.Guard {
				return lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
			}
			var e effects
			slow := s.behind(guard(), func(ctx context.Context, body string) error {
				time.Sleep(10 * time.Second)
				return e.handle(ctx, body)
			}, want{})
			var one sync.WaitGroup
			one.Go(func() {
				if failed, err := slow.deliver(ctx, t, batchOf("1 a")...); err != nil || len(failed) > 0 {
					t.Errorf("%s: reported %v, %v", s.name, failed, err)
				}
			})
			time.Sleep(time.Second)
			began := time.Now()
			failed, err := s.behind(guard(), e.handle, want{}).deliver(ctx, t, batchOf("1 a")...)
			waited := time.Since(began)
			if queue := strings.HasPrefix(s.name, "SQS"); err != nil || queue != slices.Equal(failed, []string{"1"}) || queue != (waited < time.Second) {
				t.Errorf("%s: reported %v, %v after %v", s.name, failed, err, waited)
			}
			one.Wait()
			e.want(t, s.name, "1")
		})
	}
}

// An attempt dies in the middle of a batch. Its message runs again after the lease has ended. The
// messages before it do not run again, and the messages after it run.
func TestV2_CrashInTheMiddle(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		clock := newTicker()
		var e effects
		crash := errors.New("the process is gone")
		store := newFaulty()
		g := lambdaidem.New(store, clock.option, func(o *lambdaidem.Options) {
			o.Namespace, o.Observer, o.CleanupTimeout = "test", lambdaidem.Discard, time.Millisecond
		})
		c := s.behind(g, func(ctx context.Context, body string) error {
			if body == "2" && len(e.all) == 1 {
				return lambdaidem.Uncertain(crash) // leaves the lease, like a process that dies
			}
			return e.handle(ctx, body)
		}, want{wait: time.Nanosecond})
		all := batchOf("1 a", "2 b", "3 c")
		c.wantFailed(t, all[:2], "2")
		c.wantFailed(t, all, "2") // the lease has not ended
		e.want(t, s.name, "1", "3")
		clock.advance(time.Hour)
		c.wantFailed(t, all)
		e.want(t, s.name, "1", "3", "2")
	})
}

// Several processes that get the same batch at the same time handle each message once.
func TestV2_TwoProcesses(t *testing.T) {
	everySource(t, func(t *testing.T, s batchSource) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var e effects
			store := memstore.New()
			handle := func(ctx context.Context, body string) error {
				time.Sleep(time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				return e.handle(ctx, body)
			}
			var all []msg
			for i := range 30 {
				all = append(all, msg{id: fmt.Sprint(i), group: fmt.Sprint(i % 5), body: fmt.Sprint(i)})
			}
			var wait sync.WaitGroup
			for range 3 {
				wait.Go(func() {
					g := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
					c := s.behind(g, handle, want{concurrency: 4})
					for rest := all; len(rest) > 0; {
						failed, err := c.deliver(t.Context(), t, rest...)
						if err != nil {
							t.Error(err)
							return
						}
						rest = slices.DeleteFunc(slices.Clone(rest), func(m msg) bool { return !slices.Contains(failed, m.id) })
						time.Sleep(time.Millisecond)
					}
				})
			}
			wait.Wait()
			if slices.Sort(e.all); len(e.all) != 30 || len(slices.Compact(e.all)) != 30 {
				t.Errorf("%d were handled: %v", len(e.all), e.all)
			}
		})
	})
}

// Under Hold, the guard warns once that it uses the ids that the source gave as keys.
func TestV3_OwnIDUnderHold(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Hold, lambdaidem.Rerun} {
		logged := captureLog(t, func() {
			var e effects
			c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.Policy = policy }), e.handle, want{})
			if before := captureLog(t, func() { c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}}) }); before != "" {
				t.Errorf("of a sender's key it was said %q", before)
			}
			c.wantFailed(t, batchOf("2", "3"))
			c.wantFailed(t, batchOf("4"))
		})
		if n := strings.Count(logged, "guarded by the ids of their source"); n != map[lambdaidem.Policy]int{lambdaidem.Hold: 1}[policy] {
			t.Errorf("under %s it was said %d times: %s", policy, n, logged)
		}
	}
}

// A message that is redriven from a dead-letter queue has a new id. If the id is the key, the
// message runs again, even if it was handled or is held. A key that was sent or derived prevents
// that.
func TestV2_Redrive(t *testing.T) {
	byBody := func(body string) (string, error) { return "order-" + body, nil }
	for name, c := range map[string]struct {
		sent string
		key  func(string) (string, error)
		runs int
	}{"own id": {"", nil, 2}, "sent": {"k", nil, 1}, "derived": {"", byBody, 1}} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			var e effects
			if policy == lambdaidem.Hold { // the first delivery holds the message
				e.fail = func(string, int) error { return errBroken }
			}
			g := batchGuard(func(o *lambdaidem.Options) { o.Policy = policy })
			_ = captureLog(t, func() {
				queue := sqs(false).behind(g, e.handle, want{key: c.key, operation: "charge"})
				_, _ = queue.deliver(t.Context(), t, msg{id: "1", body: "x", key: c.sent})
				dlq := sqs(false).behind(g, e.handle, want{key: c.key, operation: "charge", queue: "orders-dlq"})
				_, _ = dlq.deliver(t.Context(), t, msg{id: "2", body: "x", key: c.sent})
			})
			if len(e.all) != c.runs {
				t.Errorf("%s under %s: handled %q; want %d", name, policy, e.all, c.runs)
			}
		}
	}
}

// The error of an asynchronous invocation is the handler's own error, without its mark. If several
// messages fail, it is a BatchError with all of their errors.
func TestV2_AsynchronousErrors(t *testing.T) {
	record := func(id string) events.SNSEventRecord {
		return events.SNSEventRecord{SNS: events.SNSEntity{MessageID: id, TopicArn: "arn:t"}}
	}
	for name, c := range map[string]struct{ err, want error }{
		"plain": {errBroken, errBroken}, "permanent": {lambdaidem.Permanent(errBroken), errBroken}, "retryable": {lambdaidem.Retryable(errBroken), errBroken}, "uncertain": {lambdaidem.Uncertain(errBroken), errBroken},
	} {
		h := batchGuard().SNS(func(context.Context, events.SNSEventRecord) error { return c.err }, func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
			o.OnFailure = func(context.Context, events.SNSEventRecord, error) {}
		})
		if err := h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{record(name)}}); err != c.want { //nolint:errorlint // it must be the very error, without its mark
			t.Errorf("%s: %#v", name, err)
		}
		err := h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{record("a" + name), record("b" + name)}})
		if all := (*lambdaidem.BatchError)(nil); !errors.As(err, &all) || all.Messages != 2 || len(all.Errs) != 2 || !errors.Is(err, errBroken) {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// An error that the function Answer made counts as a success. The handler of a message has no other
// answer.
func TestV2_AnswerIsSuccess(t *testing.T) {
	e := effects{fail: func(string, int) error { return lambdaidem.Answer(nil) }}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, batchOf("1"))
	c.wantFailed(t, batchOf("1"))
	if len(e.all) != 1 {
		t.Errorf("handled %q", e.all)
	}
}

// A panic because of an invalid option or a nil handler names its cause.
func TestV2_OptionsAreChecked(t *testing.T) {
	type options = lambdaidem.BatchOptions[events.SQSMessage]
	handle := func(context.Context, events.SQSMessage) error { return nil }
	for want, wrap := range map[string]func(){
		"BatchOptions.Concurrency": func() { batchGuard().SQS(handle, func(o *options) { o.Concurrency = -1 }) },
		"BatchOptions.Wait":        func() { batchGuard().SQS(handle, func(o *options) { o.Wait = -1 }) },
		"BatchOptions.Timeout":     func() { batchGuard().SQS(handle, func(o *options) { o.Timeout = -1 }) },
		"handler of messages":      func() { batchGuard().SQS(nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), want) {
					t.Errorf("%s: panicked with %v", want, v)
				}
			}()
			wrap()
		}()
	}
}
