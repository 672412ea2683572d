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

// V2: a batch that comes again, whole, in part, in another order, or twice in one:
// each message is handled once.
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

// V2: exactly those that failed are reported, those that an order keeps back among
// them; they run when they come back, and the others don't run again.
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

// V2: by option nothing of the batch begins after its first failure.
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
		c.wantFailed(t, all) // nothing is kept between batches
		e.want(t, s.name, "1", "failed 2", "2", "3", "4")
	})
}

// V2: where every message failed the answer is the list of them, not an error.
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

// V2: for mappings without partial answers a failure is an error of the whole.
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

// V2: a message that can't be named can't be reported: an empty name would fail the
// batch without a word, so it is failed with one.
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

// V2: the failure of a message that can't be named fails the batch even if another message,
// which has a name, fails after it.
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

// V2: a failure is never stored, whatever it is marked with: a message that comes
// back from a dead-letter queue, after a mend, must run.
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

// X2, V2: under hold an unmarked error and a panic hold the message, also when it
// comes back; what is marked as surely not happened, or as the same every time, runs.
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

// V2: two of one key in a batch are one, whatever their ids; a duplicate of one that
// failed failed too, and does not run.
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
				if s.name == "SQS" || s.name == "Kinesis" { // whose groups don't count in the fingerprint
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

// F5, V3: another message under the same key is a failure, reported; what changes
// from one delivery to the next makes no other message.
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

// V3, F4: a message that is sent again under its own key is the same one, whatever
// attributes a tracer adds, changes or leaves out: it neither fails nor runs again.
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

// V3, F4, E6: nor do they make another payload of a message that failed, whose retry
// keeps its downstream key.
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

// F4, V3: named attributes count, by name, type and value, in whatever order they come
// and in any case; others don't.
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

// F4, V3: a named attribute's bytes count, and so does its type.
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

// namingAttributes names attributes that count.
func namingAttributes(names ...string) func(*lambdaidem.BatchOptions[events.SQSMessage]) {
	return func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.FingerprintAttributes = names }
}

// F4: the names are the guard's own copy.
func TestV3_NamedAttributesAreCopied(t *testing.T) {
	names := []string{"currency"}
	var e effects
	c := sqs(false).behind(batchGuard(), e.handle, want{counted: names})
	names[0] = "changed"
	c.wantFailed(t, []msg{{id: "1", body: "x", key: "k", attrs: map[string]string{"currency": "EUR"}}})
	c.wantFailed(t, []msg{{id: "2", body: "x", key: "k", attrs: map[string]string{"currency": "USD"}}}, "2")
}

// V3: SNS's subject counts like the body, direct and through a queue.
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

// V3: what names an attribute in an envelope names it there as on the queue itself;
// an envelope and its queue may both have it.
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

// F5, V2: another message under the key of one that failed is no duplicate of it: it
// runs, as a request that was corrected does.
func TestV2_AnotherMessageAfterAFailure(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "x")}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}, {id: "2", body: "y", key: "k"}, {id: "3", body: "x", key: "k"}}, "1", "3")
	e.want(t, "SQS", "failed x", "y")
}

// V2: each name is reported once, also of a message that is in the batch twice.
func TestV2_ReportedOnce(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "1")}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, batchOf("1", "1", "2", "1"), "1")
	e.want(t, "SQS", "failed 1", "2")
}

// V2: nothing begins once the invocation's context has ended.
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

// F1: the messages of two tenants never share a record.
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

// The switch lets messages run unguarded, each by itself, and says so by its events.
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

// Messages without a key are nobody's duplicates: one that fails keeps none back.
func TestV3_UnkeyedMessagesAreApart(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "1")}
	_ = captureLog(t, func() {
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true }), e.handle, want{key: func(string) (string, error) { return "", nil }})
		c.wantFailed(t, []msg{{id: "1", body: "1"}, {id: "2", body: "2"}, {id: "3", body: "1"}}, "1", "3")
	})
	e.want(t, "SQS", "failed 1", "2", "failed 1")
}

// O1: what can't be guarded is an event too.
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

// V3: a body counts by value if it is JSON, with its numbers by their text.
func TestV3_BodiesCountByValue(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), kinesisSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{key: func(string) (string, error) { return "one", nil }})
		c.wantFailed(t, []msg{{id: "1", body: `{"a":9007199254740993,"b":[]}`}})
		c.wantFailed(t, []msg{{id: "2", body: `{ "b": [ ], "a": 9007199254740993 }`}})
		c.wantFailed(t, []msg{{id: "3", body: `{"a":9007199254740992,"b":[]}`}}, "3")
	}
}

// V3: the sender's key is the message's, over new ids; without one it is the
// source's own id, and no sender's key can be taken for that.
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

// K2: a sender's key is held to ValidateKey, the source's own ids are not.
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

// V3: an attribute of the key's name that is no text is an invalid key, never a
// missing one.
func TestV3_KeysThatAreNone(t *testing.T) {
	var e effects
	g := batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true }) // it isn't missing
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

// V3: a null in an event's detail is a missing key, not an invalid one: the event is
// guarded by its own id, direct and through a queue.
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

// K5, V3: a message whose key can't be found fails; one that has none fails too, or
// runs unguarded by option.
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

// F1, V3: two queues never share a record, but where they are said to: a queue and
// its dead-letter queue.
func TestV3_Scope(t *testing.T) {
	for _, s := range batchSources {
		var e effects
		g := batchGuard()
		byBody := func(body string) (string, error) { return body, nil }
		s.behind(g, e.handle, want{key: byBody}).wantFailed(t, []msg{{id: "1", body: "x"}})
		s.behind(g, e.handle, want{key: byBody, queue: "orders-dlq"}).wantFailed(t, []msg{{id: "2", body: "x"}})
		e.want(t, s.name, "x", "x")
		if e.all = nil; slices.Contains([]string{"EventBridge", "S3", "DocumentDB"}, s.name) {
			continue // what it comes from is a part of the event
		}
		s.behind(g, e.handle, want{key: byBody, operation: "charge"}).wantFailed(t, []msg{{id: "3", body: "x"}})
		s.behind(g, e.handle, want{key: byBody, operation: "charge", queue: "orders-dlq"}).wantFailed(t, []msg{{id: "4", body: "x"}})
		e.want(t, s.name, "x")
	}
	// Nor does a message share one with a call or a typed handler of that name.
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

// V3: a message that names no source has no record; it fails, and says what to do.
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

// V2: a panic is one message's failure, and the log has its stack.
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

// The default log has each failure once, and none of those that never began.
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

// V2: with the logger that docs/log.md recommends, which calls slog's own message
// "message", no line has a member twice; and the line names the record.
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

// V2: what can't be finished in time is reported, not begun and cut off, which would
// bring the whole batch again.
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

// L8, V2: in progress elsewhere is not done yet. A queue brings the message again; of
// a stream or an asynchronous event, which may not, the batch waits for the lease.
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

// V2, L6: an attempt that died in the middle of a batch: its message runs again once
// the lease is over, those before it don't, those after it do.
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
				return lambdaidem.Uncertain(crash) // leaves the lease, as a process that dies does
			}
			return e.handle(ctx, body)
		}, want{wait: time.Nanosecond})
		all := batchOf("1 a", "2 b", "3 c")
		c.wantFailed(t, all[:2], "2")
		c.wantFailed(t, all, "2") // the lease is not over
		e.want(t, s.name, "1", "3")
		clock.advance(time.Hour)
		c.wantFailed(t, all)
		e.want(t, s.name, "1", "3", "2")
	})
}

// V2: two processes that get one batch at once handle each message once.
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

// V3: under hold the source's own id is warned of once.
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

// V2: the redrive of a dead-letter queue gives a message a new id: its own id evades
// what is done and what is held, a key that was sent or derived doesn't.
func TestV2_Redrive(t *testing.T) {
	byBody := func(body string) (string, error) { return "order-" + body, nil }
	for name, c := range map[string]struct {
		sent string
		key  func(string) (string, error)
		runs int
	}{"own id": {"", nil, 2}, "sent": {"k", nil, 1}, "derived": {"", byBody, 1}} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			var e effects
			if policy == lambdaidem.Hold { // it was held
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

// X2: the error of an asynchronous invocation is the handler's own, and the guard's
// refusals say nothing of the store; several are counted.
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
		if err := h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{record(name)}}); err != c.want { //nolint:errorlint // itself, without its mark
			t.Errorf("%s: %#v", name, err)
		}
		err := h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{record("a" + name), record("b" + name)}})
		if all := (*lambdaidem.BatchError)(nil); !errors.As(err, &all) || all.Messages != 2 || len(all.Errs) != 2 || !errors.Is(err, errBroken) {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// An Answer stands for the handler having returned: there is one answer alone.
func TestV2_AnswerIsSuccess(t *testing.T) {
	e := effects{fail: func(string, int) error { return lambdaidem.Answer(nil) }}
	c := sqs(false).behind(batchGuard(), e.handle, want{})
	c.wantFailed(t, batchOf("1"))
	c.wantFailed(t, batchOf("1"))
	if len(e.all) != 1 {
		t.Errorf("handled %q", e.all)
	}
}

// The options that can't be are named.
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
