package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Under Hold, a message whose handler panicked is held, even if the value of the panic is an error
// with a mark.
func TestV2_APanicWithAMarkIsHeld(t *testing.T) {
	for name, value := range map[string]any{
		"plain": "text", "retryable": lambdaidem.Retryable(errBroken), "permanent": lambdaidem.Permanent(errBroken), "rejected": lambdaidem.Reject(404, "no", ""), "answer": lambdaidem.Answer(nil),
	} {
		runs := 0
		g := batchGuard(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		c := sqs(false).behind(g, func(context.Context, string) error { runs++; panic(value) }, want{})
		for range 2 {
			c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}}, "1")
		}
		if runs != 1 {
			t.Errorf("%s: it ran %d times", name, runs)
		}
	}
}

// A panic(nil) fails the message even with GODEBUG=panicnil=1, where recover returns nil for it.
func TestV2_PanicNil(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	c := sqs(false).behind(batchGuard(), func(context.Context, string) error { panic(nil) }, want{}) //nolint:govet // on purpose
	c.wantFailed(t, batchOf("1"), "1")
}

// A queue may receive the messages of an SNS topic, or the events of a bus, inside envelopes. The
// envelope differs each time that the sender sends the message again, so the key and the payload
// are those of the message inside the envelope.
func TestV3_Envelopes(t *testing.T) {
	sns := func(id, message, key string) string {
		attributes := ""
		if key != "" {
			attributes = `,"MessageAttributes":{"x-idempotency-key":{"Type":"String","Value":"` + key + `"},"traceparent":{"Type":"String","Value":"` + id + `"}}`
		}
		return `{"Type":"Notification","MessageId":"` + id + `","TopicArn":"arn:aws:sns:eu-west-1:1:payments","Message":` + string(mustJSON(t, message)) + `,"Timestamp":"2026-01-02T12:45:07.` + id + `Z","SignatureVersion":"1","Signature":"` + id + `"` + attributes + `}`
	}
	bus := func(id, detail, _ string) string {
		return `{"version":"0","id":"` + id + `","detail-type":"Paid","source":"shop","account":"1","time":"` + id + `","region":"eu-west-1","resources":[],"detail":` + detail + `}`
	}
	for name, c := range map[string]struct {
		body        func(id, message, key string) string
		one, other  string
		key, nobody string
	}{
		"SNS":         {sns, "paid", "refunded", "k", ""},
		"EventBridge": {bus, `{"x-idempotency-key":"k","paid":1}`, `{"x-idempotency-key":"k","paid":2}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			consumer := sqs(false).behind(batchGuard(), func(context.Context, string) error { runs++; return nil }, want{})
			consumer.wantFailed(t, []msg{{id: "1", body: c.body("100", c.one, c.key)}})
			consumer.wantFailed(t, []msg{{id: "2", body: c.body("200", c.one, c.key)}})
			consumer.wantFailed(t, []msg{{id: "3", body: c.body("300", c.other, c.key)}}, "3")
			if runs != 1 {
				t.Errorf("it ran %d times", runs)
			}
		})
	}
	// Without a key in the envelope, the key is the id of the queue's message. The id in the
	// envelope is not used, because anybody could have written it into the body.
	var keys []string
	consumer := sqs(false).behind(batchGuard(), func(ctx context.Context, _ string) error { keys = append(keys, lambdaidem.Key(ctx)); return nil }, want{})
	consumer.wantFailed(t, []msg{{id: "1", body: sns("9", "x", "")}, {id: "2", body: sns("9", "x", "")}, {id: "3", body: `{"TopicArn":1}`}, {id: "4", body: `{"Type":"Notification","TopicArn":"a"}`}, {id: "5", body: `{"detail-type":"x"`}})
	if !slices.Equal(keys, []string{"1", "2", "3", "4", "5"}) {
		t.Errorf("the keys are %q", keys)
	}
	// A body that resembles an envelope but has other members is no envelope, so the payload is the
	// whole body.
	for _, like := range []string{
		`{"Type":"Notification","MessageId":"1","TopicArn":"a","Message":"x","amount":%d}`, `{"Type":"Notification","MessageId":"1","TopicArn":"a","Message":"%d","Message":"x"}`,
		`{"Type":"Notification","MessageId":"1","TopicArn":"a","message":"%d","Message":"x"}`, `{"id":"1","source":"s","detail-type":"t","time":"n","detail":{},"amount":%d}`,
	} {
		c := sqs(false).behind(batchGuard(), func(context.Context, string) error { return nil }, want{key: func(string) (string, error) { return "one", nil }})
		c.wantFailed(t, []msg{{id: "1", body: fmt.Sprintf(like, 1)}})
		c.wantFailed(t, []msg{{id: "2", body: fmt.Sprintf(like, 2)}}, "2")
	}
	// The key in an attribute of the queue's message has priority over the key in the envelope.
	consumer.wantFailed(t, []msg{{id: "6", key: "own", body: sns("9", "x", "theirs")}})
	if keys[len(keys)-1] != "own" {
		t.Errorf("the key is %q", keys[len(keys)-1])
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The case of the attribute's name does not matter, as in a header. A message with two such
// attributes fails.
func TestV3_TheKeysNameInAnyCase(t *testing.T) {
	for _, s := range []batchSource{sqs(false), snsSource(), kafkaSource(), activeMQSource(), rabbitMQSource()} {
		var e effects
		c := s.behind(batchGuard(), e.handle, want{})
		c.wantFailed(t, []msg{{id: "1", body: "x", attrs: map[string]string{"X-Idempotency-Key": "k"}}})
		c.wantFailed(t, []msg{{id: "2", body: "x", key: "k"}})
		c.wantFailed(t, []msg{{id: "3", body: "y", key: "z", attrs: map[string]string{"X-IDEMPOTENCY-KEY": "z"}}}, "3")
		e.want(t, s.name, "x")
	}
}

// Events of two accounts, Regions, sources or types never share a record. An event whose source is
// the ARN of a queue does not share a record with a message of that queue.
func TestF1_EventsOfABusAreApart(t *testing.T) {
	ids := map[string]string{}
	g := batchGuard()
	handle := g.EventBridge(func(ctx context.Context, e events.EventBridgeEvent) error {
		ids[lambdaidem.RecordID(ctx)] = e.AccountID + e.Region + e.Source + e.DetailType
		return nil
	})
	detail := json.RawMessage(`{"x-idempotency-key":"k"}`)
	all := []events.EventBridgeEvent{
		{AccountID: "1", Region: "eu", Source: "shop", DetailType: "Paid"}, {AccountID: "2", Region: "eu", Source: "shop", DetailType: "Paid"}, {AccountID: "1", Region: "us", Source: "shop", DetailType: "Paid"},
		{AccountID: "1", Region: "eu", Source: "shop", DetailType: "Refunded"}, {AccountID: "1", Region: "eu", Source: "store", DetailType: "Paid"},
		{AccountID: "1", Region: "eu", Source: "shop|Paid", DetailType: ""}, {AccountID: "1", Region: "eu", Source: "arn:aws:sqs:eu-west-1:111122223333:orders"},
	}
	for i, e := range all {
		e.ID, e.Detail = fmt.Sprint(i), detail
		if err := handle(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	sqs(false).behind(g, func(ctx context.Context, _ string) error { ids[lambdaidem.RecordID(ctx)] = "queue"; return nil }, want{}).wantFailed(t, []msg{{id: "9", body: string(detail), key: "k"}})
	if len(ids) != len(all)+1 {
		t.Errorf("%d records: %v", len(ids), ids)
	}
	if id := g.RecordID(lambdaidem.Identity{Operation: "events:eu|1|shop|Paid", Key: "k", Message: true}); ids[id] != "1eushopPaid" {
		t.Errorf("the default operation is another one: %v", ids[id])
	}
}

// Other members of an event's detail don't affect its key, even if their names are duplicates or
// their text is invalid.
func TestV3_TheKeysNeighbours(t *testing.T) {
	for _, detail := range []string{`{"x-idempotency-key":"k","env":1,"Env":2}`, `{"a":1,"a":2,"x-idempotency-key":"k"}`, `{"x-idempotency-key":"k","s":"\ud800"}`, `{"x-idempotency-key":"k","deep":{"x-idempotency-key":1}}`} {
		var got string
		if err := batchGuard().EventBridge(func(ctx context.Context, _ events.EventBridgeEvent) error { got = lambdaidem.Key(ctx); return nil })(t.Context(),
			events.EventBridgeEvent{ID: "1", Source: "shop", Detail: json.RawMessage(detail)}); err != nil || got != "k" {
			t.Errorf("%s: the key is %q, %v", detail, got, err)
		}
	}
}

// The group of a FIFO queue is a part of the payload: under the same key, a message of another
// group fails. The partition key of a Kinesis record is no part of the payload.
func TestV3_Groups(t *testing.T) {
	byBody := func(body string) (string, error) { return body, nil }
	var e effects
	c := sqs(true).behind(batchGuard(), e.handle, want{key: byBody})
	c.wantFailed(t, []msg{{id: "1", group: "alice", body: "x"}, {id: "2", group: "bob", body: "x"}}, "2")
	e.want(t, c.name, "x")
	e.all = nil
	c = kinesisSource().behind(batchGuard(), e.handle, want{key: byBody})
	c.wantFailed(t, []msg{{id: "1", group: "alice", body: "x"}})
	c.wantFailed(t, []msg{{id: "2", group: "bob", body: "x"}})
	e.want(t, c.name, "x")
}

// Two messages with the same key in one batch run once, even if the store can't be reached and the
// guard fails open.
func TestV2_DuplicatesWithoutAStore(t *testing.T) {
	store := newFaulty()
	store.failAlways(acquire, refused(lambdaidem.ReasonUnreachable))
	var e effects
	g := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.FailOpen, o.CleanupTimeout = "test", lambdaidem.Discard, true, time.Millisecond
	})
	c := sqs(false).behind(g, e.handle, want{})
	_, _ = c.deliver(t.Context(), t, []msg{{id: "1", body: "x", key: "k"}, {id: "2", body: "x", key: "k"}}...)
	e.want(t, c.name, "x")
}

// If Options.Outcome returns an unknown value, the message is uncertain, and does not run again at
// once.
func TestV2_AnUnknownOutcomeIsUncertain(t *testing.T) {
	for outcome, runs := range map[lambdaidem.Outcome]int{"odd": 1, lambdaidem.OutcomeUncertain: 1, lambdaidem.OutcomeReleased: 2, lambdaidem.OutcomeFailed: 2, lambdaidem.OutcomeSucceeded: 2} {
		var e effects
		e.fail = func(string, int) error { return lambdaidem.Reject(418, "teapot", "") }
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) {
			o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return outcome }
		}), e.handle, want{})
		c.wantFailed(t, batchOf("1"), "1")
		c.wantFailed(t, batchOf("1"), "1")
		if len(e.all) != runs {
			t.Errorf("%s: it ran %d times; want %d", outcome, len(e.all), runs)
		}
	}
}

// The fingerprint distinguishes the type of an attribute from its value.
func TestV3_TypeAndValueOfAnAttribute(t *testing.T) {
	for _, pair := range [][2][2]string{{{"String.a", "b c"}, {"String.a b", "c"}}, {{"String.a", "bc"}, {"String.ab", "c"}}} {
		var all []int
		h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return nil }, silent[events.SQSMessage], namingAttributes("n"))
		for _, a := range pair {
			out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q", MessageAttributes: map[string]events.SQSMessageAttribute{"n": {DataType: a[0], StringValue: &a[1]}}}}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, len(out.BatchItemFailures))
		}
		if !slices.Equal(all, []int{0, 1}) {
			t.Errorf("%q: failures: %v", pair, all)
		}
	}
}

// An attribute is a valid key only if its type is String, with or without a custom label. The type
// String.Array is a list.
func TestV3_AListIsNoKey(t *testing.T) {
	for dataType, failed := range map[string]bool{"String": false, "String.uuid": false, "String.Array": true, "Strings": true, "Binary": true, "": true} {
		value := `["a"]`
		err := batchGuard().SNS(func(context.Context, events.SNSEventRecord) error { return nil }, silent[events.SNSEventRecord])(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{
			SNS: events.SNSEntity{MessageID: "1", TopicArn: "arn:t", MessageAttributes: map[string]any{lambdaidem.MessageKey: map[string]any{"Type": dataType, "Value": value}}}}}})
		invalid := err != nil
		if dataType == "String" || dataType == "String.uuid" { // the validator decides whether a key may have quotation marks
			failed = lambdaidem.PrintableKey(value) != nil
		}
		if invalid != failed {
			t.Errorf("%q: %v", dataType, err)
		}
	}
}

// If BatchOptions.Key is slow, the guard stops calling it while there is still time to report all
// messages.
func TestV2_SlowKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		asked := 0
		h := batchGuard().SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
				asked++
				time.Sleep(1500 * time.Millisecond)
				return m.MessageId, nil
			}
		})
		var event events.SQSEvent
		for i := range 7 {
			event.Records = append(event.Records, events.SQSMessage{MessageId: fmt.Sprint(i), EventSourceARN: "arn:q"})
		}
		var out events.SQSEventResponse
		var err error
		logged := captureLog(t, func() { out, err = h(ctx, event) })
		if err != nil || ctx.Err() != nil || asked != 3 || len(out.BatchItemFailures) != 7 || strings.Count(logged, "\n") != 1 || !strings.Contains(logged, "[0 1 2 3 4 5 6]") {
			t.Errorf("reported %v, %v; %d keys were asked for; the deadline: %v; the log: %s", out, err, asked, ctx.Err(), logged)
		}
	})
}

// A record of a stream waits for BatchOptions.Wait and not for Options.Wait. By default, it waits
// until the other attempt has ended.
func TestV2_WaitIsTheBatchs(t *testing.T) {
	for _, c := range []struct {
		wait    time.Duration
		waits   bool
		options time.Duration
	}{{0, true, 2 * time.Second}, {2 * time.Second, false, 0}, {2 * time.Second, false, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			store := memstore.New()
			guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer, o.Wait = "test", lambdaidem.Discard, c.options })
			var e effects
			go func() {
				_, _ = kinesisSource().behind(guard, func(ctx context.Context, body string) error {
					time.Sleep(10 * time.Second)
					return e.handle(ctx, body)
				}, want{}).deliver(ctx, t, batchOf("1")...)
			}()
			time.Sleep(time.Second)
			failed, err := kinesisSource().behind(guard, e.handle, want{wait: c.wait}).deliver(ctx, t, batchOf("1")...)
			if err != nil || c.waits != (len(failed) == 0) {
				t.Errorf("with %v: reported %v, %v", c.wait, failed, err)
			}
			synctest.Wait()
			time.Sleep(20 * time.Second)
		})
	}
}

// The order of the elements in a DynamoDB set does not matter in the fingerprint. The order of a
// list does.
func TestV3_SetsHaveNoOrder(t *testing.T) {
	record := func(image string) events.DynamoDBTimeWindowEvent {
		var e events.DynamoDBTimeWindowEvent
		text := `{"Records":[{"eventID":"1","eventSourceARN":"arn:t","dynamodb":{"SequenceNumber":"1","Keys":{"id":{"S":"a"}},"NewImage":` + image + `}}]}`
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	for i, c := range []struct {
		one, other string
		same       bool
	}{
		{`{"v":{"SS":["a","b"]}}`, `{"v":{"SS":["b","a"]}}`, true}, {`{"v":{"M":{"x":{"NS":["1","2"]}}}}`, `{"v":{"M":{"x":{"NS":["2","1"]}}}}`, true}, {`{"v":{"L":[{"BS":["AA==","AQ=="]}]}}`, `{"v":{"L":[{"BS":["AQ==","AA=="]}]}}`, true},
		{`{"v":{"L":[{"S":"a"},{"S":"b"}]}}`, `{"v":{"L":[{"S":"b"},{"S":"a"}]}}`, false}, {`{"v":{"SS":["a","b"]}}`, `{"v":{"SS":["a","c"]}}`, false}, {`{"v":{"M":{"SS":{"L":[{"S":"a"},{"S":"b"}]}}}}`, `{"v":{"M":{"SS":{"L":[{"S":"b"},{"S":"a"}]}}}}`, false},
	} {
		h := batchGuard().DynamoDBStream(func(context.Context, events.DynamoDBEventRecord) error { return nil }, silent[events.DynamoDBEventRecord])
		_, _ = h(t.Context(), record(c.one))
		if out, err := h(t.Context(), record(c.other)); err != nil || c.same != (len(out.BatchItemFailures) == 0) {
			t.Errorf("%d: %+v, %v", i, out, err)
		}
	}
}

// A panic in Options.Outcome or in BatchOptions.OnFailure affects one message, and not the batch.
func TestV2_OtherPanics(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		for name, c := range map[string]struct {
			option func(*lambdaidem.Options)
			fails  func(string, error)
		}{
			"outcome": {option: func(o *lambdaidem.Options) {
				o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { panic("outcome") }
			}},
			"on failure": {option: func(*lambdaidem.Options) {}, fails: func(string, error) { panic("on failure") }},
		} {
			_ = captureLog(t, func() {
				h := func(_ context.Context, body string) error {
					if body == "1" {
						return lambdaidem.Reject(404, "no", "")
					}
					return nil
				}
				consumer := sqs(false).behind(batchGuard(c.option), h, want{concurrency: concurrency, onFailure: c.fails})
				failed, err := consumer.deliver(t.Context(), t, batchOf("1", "2", "3")...)
				if err != nil || !slices.Equal(failed, []string{"1"}) {
					t.Errorf("%s, %d at a time: reported %v, %v", name, concurrency, failed, err)
				}
			})
		}
	}
}

// A message whose handler calls runtime.Goexit has failed, and counts as begun. The other messages
// run.
func TestV2_GoexitIsOneFailure(t *testing.T) {
	for _, concurrency := range []int{1, 3} {
		var got error
		c := sqs(false).behind(batchGuard(), func(_ context.Context, body string) error {
			if body == "1" {
				runtime.Goexit()
			}
			return nil
		}, want{concurrency: concurrency, onFailure: func(_ string, err error) { got = err }})
		c.wantFailed(t, batchOf("1", "2", "3"), "1")
		if got == nil || errors.Is(got, lambdaidem.ErrNotBegun) {
			t.Errorf("%d at a time: the failure is %v", concurrency, got)
		}
	}
}

// After a panic, Lambda gets the type and the text of the panic's value, as from an unguarded
// handler, and no stack.
func TestV2_ErrorTypeOfAPanic(t *testing.T) {
	for value, want := range map[any]messages.InvokeResponse_Error{"text": {Type: "string", Message: "text"}, errBroken: {Type: "errorString", Message: "broken"}} {
		h := batchGuard().SNS(func(context.Context, events.SNSEventRecord) error { panic(value) }, silent[events.SNSEventRecord])
		if err := h(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "1", TopicArn: "arn:t"}}}}); !reflect.DeepEqual(any(err), any(want)) {
			t.Errorf("%v: %#v", value, err)
		}
	}
}

// spiteful is an error that panics in the method that the field on names, or in all of its methods
// if on is "all".
type spiteful struct {
	on    string
	inner error
}

func (e spiteful) may(method string) {
	if e.on == method || e.on == "all" {
		panic("spite in " + method)
	}
}
func (e spiteful) Error() string { e.may("Error"); return "spiteful" }
func (e spiteful) Is(error) bool { e.may("Is"); return false }
func (e spiteful) As(any) bool   { e.may("As"); return false }
func (e spiteful) Unwrap() error { e.may("Unwrap"); return e.inner }

// An error whose methods panic fails only its own message, wherever the application's code returns
// the error or panics with it. The process and the batch continue.
func TestV2_AnErrorThatPanicsIsOneFailure(t *testing.T) {
	spite := func(t *testing.T, err error, policy lambdaidem.Policy) {
		t.Helper()
		for where, c := range map[string]struct {
			handle func() error
			key    func(string) (string, error)
			failed []string
		}{
			"returned": {func() error { return err }, nil, []string{"2"}},
			"wrapped":  {func() error { return fmt.Errorf("so: %w", err) }, nil, []string{"2"}},
			"joined":   {func() error { return errors.Join(errBroken, err) }, nil, []string{"2"}},
			"marked":   {func() error { return lambdaidem.Retryable(err) }, nil, []string{"2"}},
			"panicked": {func() error { panic(err) }, nil, []string{"2"}},
			"of the key": {func() error { return nil }, func(body string) (string, error) {
				if body == "2" {
					return "", err
				}
				return body, nil
			}, []string{"2"}},
			"panicked in the key": {func() error { return nil }, func(body string) (string, error) {
				if body == "2" {
					panic(err)
				}
				return body, nil
			}, []string{"2"}},
		} {
			everySource(t, func(t *testing.T, s batchSource) {
				var e effects
				handle := func(ctx context.Context, body string) error {
					if body == "2" {
						if err := c.handle(); err != nil {
							return err
						}
					}
					return e.handle(ctx, body)
				}
				_ = captureLog(t, func() {
					for _, quiet := range []bool{true, false} {
						e.all = nil
						w := want{key: c.key}
						if !quiet {
							w.onFailure = func(_ string, err error) { _ = err.Error() }
						}
						consumer := s.behind(batchGuard(func(o *lambdaidem.Options) { o.Policy = policy }), handle, w)
						failed, got := consumer.deliver(t.Context(), t, batchOf("1 a", "2 b", "3 c")...)
						if got != nil || !slices.Equal(failed, c.failed) {
							t.Errorf("%s, %s: reported %v, %v", where, policy, failed, got)
						}
						e.want(t, where, "1", "3")
					}
				})
			})
		}
	}
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		for _, method := range []string{"Is", "As", "Unwrap", "Error", "all"} {
			spite(t, spiteful{on: method, inner: errBroken}, policy)
		}
	}
}

// By default, the failure of each message is logged, even if methods of its error panic. The error
// may come from the handler, BatchOptions.Key, Options.Outcome or BatchOptions.Discard.
func TestV2_AnErrorThatPanicsInTheDefaultLog(t *testing.T) {
	type options = lambdaidem.BatchOptions[events.SQSMessage]
	evil := spiteful{on: "all"}
	for name, c := range map[string]struct {
		guard  func(*lambdaidem.Options)
		option func(*options)
		err    error
	}{
		"returned": {err: evil},
		"in the key": {option: func(o *options) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { panic(evil) }
		}},
		"of the key": {option: func(o *options) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "", evil }
		}},
		"in the outcome": {err: lambdaidem.Reject(404, "no", ""), guard: func(o *lambdaidem.Options) {
			o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { panic(evil) }
		}},
		"in the hook": {option: func(o *options) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "", nil }
			o.Discard = func(context.Context, events.SQSMessage, error) bool { panic(evil) }
		}},
	} {
		logged := captureLog(t, func() {
			h := batchGuard(func(o *lambdaidem.Options) {
				if c.guard != nil {
					c.guard(o)
				}
			}).SQS(func(context.Context, events.SQSMessage) error { return c.err }, func(o *options) {
				if c.option != nil {
					c.option(o)
				}
			})
			if out, err := h(t.Context(), queueOf(2)); err != nil || len(out.BatchItemFailures) != 2 {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		})
		if strings.Count(logged, "a message failed") != 2 {
			t.Errorf("%s: the log has %s", name, logged)
		}
	}
}

// An error whose methods panic counts as a panic of the handler. It is reported as a panic, and its
// message is released, or held under Hold, whatever mark the error has.
func TestV2_AnErrorThatPanicsCountsAsAPanic(t *testing.T) {
	for policy, runs := range map[lambdaidem.Policy]int{lambdaidem.Rerun: 2, lambdaidem.Hold: 1} {
		n := 0
		var got error
		c := sqs(false).behind(batchGuard(func(o *lambdaidem.Options) { o.Policy = policy }), func(context.Context, string) error {
			n++
			return lambdaidem.Retryable(spiteful{on: "Is"})
		}, want{onFailure: func(_ string, err error) { got = err }})
		c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}}, "1")
		if got == nil || !strings.Contains(got.Error(), "spite in Is") || !strings.Contains(got.Error(), "batch_edges_test.go") {
			t.Errorf("%s: the failure is %v", policy, got)
		}
		c.wantFailed(t, []msg{{id: "1", body: "x", key: "k"}}, "1")
		if n != runs {
			t.Errorf("%s: it ran %d times", policy, n)
		}
	}
}

// With BatchOptions.Discard, a message that the guard would refuse on every retry is acknowledged,
// so that its shard can advance. The message does not run, and the log says so.
func TestV2_DiscardedMessages(t *testing.T) {
	byBody := func(body string) (string, error) {
		switch body {
		case "missing":
			return "", nil
		case "invalid":
			return "\x00", nil
		case "error":
			return "", errBroken
		}
		return "one", nil
	}
	everySource(t, func(t *testing.T, s batchSource) {
		var e effects
		var asked []string
		c := s.behind(batchGuard(), e.handle, want{key: byBody, discard: func(body string, err error) bool {
			code := (*lambdaidem.Error)(nil)
			errors.As(err, &code)
			asked = append(asked, fmt.Sprint(body, " ", code.Code))
			return body != "error"
		}})
		c.wantFailed(t, []msg{{id: "1", group: "a", body: "x"}})
		var poisoned []msg
		for i, body := range []string{"missing", "invalid", "other", "error"} {
			poisoned = append(poisoned, msg{id: fmt.Sprint("p", i), group: fmt.Sprint(i), body: body})
		}
		logged := captureLog(t, func() { c.wantFailed(t, poisoned, "p3") })
		e.want(t, s.name, "x")
		if want := []string{"missing idempotency_key_missing", "invalid idempotency_key_invalid", "other idempotency_payload_mismatch", "error idempotency_key_invalid"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q", asked)
		}
		if strings.Count(logged, "a message was discarded") != 3 || !strings.Contains(logged, "id=") || !strings.Contains(logged, "idempotency_payload_mismatch") || !strings.Contains(logged, "WARN") {
			t.Errorf("the log has %s", logged)
		}
	})
}

// After a discarded record, the later records of its group run in their order. By default, the
// failed record stops them.
func TestV2_AShardGoesOnBehindADiscardedRecord(t *testing.T) {
	for _, s := range []batchSource{kinesisSource(), dynamoDBSource(), kafkaSource()} {
		for _, discards := range []bool{true, false} {
			var e effects
			w := want{key: func(body string) (string, error) {
				if body == "2" {
					return "", errBroken
				}
				return body, nil
			}}
			if discards {
				w.discard = func(string, error) bool { return true }
			}
			_ = captureLog(t, func() {
				c := s.behind(batchGuard(), e.handle, w)
				if discards {
					c.wantFailed(t, batchOf("1 a", "2 a", "3 a"))
					e.want(t, s.name, "1", "3")
				} else {
					c.wantFailed(t, batchOf("1 a", "2 a", "3 a"), "2", "3")
					e.want(t, s.name, "1")
				}
			})
		}
	}
}

// A message is never discarded if its handler fails, if another attempt is handling it, or if the
// store fails. A message is not discarded either if Discard panics.
func TestV2_WhatIsNeverDiscarded(t *testing.T) {
	for _, s := range []batchSource{sqs(false), kinesisSource(), kafkaSource()} {
		for name, c := range map[string]struct {
			err     error
			fault   fault
			discard func(string, error) bool
		}{
			"the handler's":           {err: errBroken},
			"with a code":             {err: &lambdaidem.Error{Code: lambdaidem.ErrPayloadMismatch, Status: 422}},
			"rejected with a code":    {err: lambdaidem.Reject(422, lambdaidem.ErrPayloadMismatch, "")},
			"uncertain":               {err: lambdaidem.Uncertain(errBroken)},
			"the store's":             {fault: refused(lambdaidem.ReasonUnreachable)},
			"not ours":                {fault: refused(lambdaidem.ReasonForeign)},
			"a hook that panics":      {discard: func(string, error) bool { panic("at the disco") }},
			"a hook with an evil one": {discard: func(string, error) bool { panic(spiteful{on: "all"}) }},
		} {
			store, asked, told := newFaulty(), 0, error(nil)
			if c.fault != nil {
				store.failAlways(acquire, c.fault)
			}
			w := want{wait: time.Nanosecond, onFailure: func(_ string, err error) { told = err }, discard: func(body string, err error) bool {
				asked++
				return c.discard == nil || c.discard(body, err)
			}}
			if c.discard != nil {
				w.key = func(string) (string, error) { return "", nil }
			}
			g := lambdaidem.New(store, func(o *lambdaidem.Options) {
				o.Namespace, o.Observer, o.CleanupTimeout = "test", lambdaidem.Discard, time.Millisecond
			})
			for range 2 { // if the error is uncertain, the second delivery finds the message in progress
				s.behind(g, func(context.Context, string) error { return c.err }, w).wantFailed(t, batchOf("1 a"), "1")
			}
			if (asked > 0) != (c.discard != nil) || c.discard != nil && !errors.Is(told, lambdaidem.ErrKeyMissing) {
				t.Errorf("%s: the hook was asked %d times, the failure is %v", name, asked, told)
			}
		}
	}
}

// An operator has completed the record of a message without an answer. If the outcome is failed,
// the message may not have been handled. It is then not acknowledged, so that it reaches the
// dead-letter queue. The same holds if the record has the value that a handled message has, which
// [lambdaidem.CheckResult] refuses together with that outcome.
func TestV2_AMessageWhoseRecordWasEndedIsNotAcknowledged(t *testing.T) {
	nobodyKnows := lambdaidem.NoAnswer("nobody knows")
	for _, c := range []struct {
		ended    lambdaidem.Result
		failures int
	}{
		{lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: nobodyKnows}, 1},
		{lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Value: []byte("{}")}, 1},
		{lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Failure: nobodyKnows}, 0},
		{lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte("{}")}, 0},
	} {
		r := newRig(nil)
		var why error
		h := r.guard.SQS(func(context.Context, events.SQSMessage) error { return lambdaidem.Uncertain(errWire) }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { why = err }
		})
		if _, err := h(t.Context(), oneMessage()); err != nil {
			t.Fatal(err)
		}
		rec := r.record(t)
		c.ended.At, c.ended.Expires = time.Now(), time.Now().Add(time.Hour)
		if _, err := r.store.Store.Complete(t.Context(), lambdaidem.Lease{ID: rec.ID, Token: rec.Token}, c.ended); err != nil {
			t.Fatal(err)
		}
		why = nil
		out, err := h(t.Context(), oneMessage())
		if err != nil || len(out.BatchItemFailures) != c.failures || (c.failures > 0) != errors.Is(why, lambdaidem.ErrAnswerUnavailable) {
			t.Errorf("%+v: the batch returned %+v, %v; the message failed with %v", c.ended, out, err, why)
		}
	}
}
