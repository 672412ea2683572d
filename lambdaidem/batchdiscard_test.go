package lambdaidem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// A message that has begun and not finished is not discarded after a deployment that changes how
// payloads are compared. A message that certainly has another payload may be discarded.
func TestV2_AMessageThatNeverFinishedIsNotDiscarded(t *testing.T) {
	r := newRig(nil)
	message := func(body string) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:aws:sqs:r:a:q", Body: body}}}
	}
	const body, another = `{"payment":"1","at":"now"}`, `{"payment":"2","at":"now"}`
	fail := true
	h := func(ctx context.Context, _ events.SQSMessage) error {
		if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil || !fail {
			return err
		}
		return errors.New("down")
	}
	discarding := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Discard = func(context.Context, events.SQSMessage, error) bool { return true }
	}
	later := r.guard.With(func(o *lambdaidem.Options) { o.FingerprintIgnore = []string{"/at"} })
	for _, c := range []struct {
		what   string
		guard  *lambdaidem.Guard
		body   string
		failed int
	}{
		{"the first delivery", r.guard, body, 1},
		{"the same message, under other options", later, body, 1},
		{"another message", r.guard, another, 0},
	} {
		out, err := c.guard.SQS(h, discarding)(t.Context(), message(c.body))
		if err != nil || len(out.BatchItemFailures) != c.failed {
			t.Errorf("%s: %+v, %v; want %d failures", c.what, out, err, c.failed)
		}
	}
	fail = false
	if out, err := r.guard.SQS(h)(t.Context(), message(body)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := later.SQS(h, discarding)(t.Context(), message(body)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Errorf("once it is done: %+v, %v", out, err)
	}
}

// An optimistic attempt runs the handler before it finds the record of another payload. Its writes
// are dropped, so the message may be discarded, unless a guarded call inside the handler has had an
// effect.
func TestV2_AnOptimisticMessageWithAnotherPayloadIsDiscarded(t *testing.T) {
	for name, want := range map[string]struct{ discarded, failed int }{"writes only": {1, 0}, "a guarded call": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			r, _ := withLedger(nil, optimistic)
			discarded := 0
			h := r.guard.SQS(func(ctx context.Context, m events.SQSMessage) (err error) {
				if name == "a guarded call" {
					_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "note", Key: m.MessageId}, func(context.Context) (int, error) { return 1, nil })
				}
				return err
			}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Key = func(context.Context, events.SQSMessage) (string, error) { return "k1", nil }
				o.Discard = func(context.Context, events.SQSMessage, error) bool { discarded++; return true }
			})
			send := func(id, body string) int {
				out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, EventSourceARN: "arn:aws:sqs:r:a:q", Body: body}}})
				if err != nil {
					t.Fatal(err)
				}
				return len(out.BatchItemFailures)
			}
			if failed := send("m1", `{"amount":100}`); failed != 0 {
				t.Fatal("the first message failed")
			}
			if failed := send("m2", `{"amount":90}`); failed != want.failed || discarded != want.discarded {
				t.Errorf("%d failures, discarded %d times; want %+v", failed, discarded, want)
			}
		})
	}
}

// The handler of an optimistic message has returned, and the guarded call that it left in a goroutine
// is still charging. The message may have an effect, so it is not discarded as one that did not run.
func TestV2_AnOptimisticMessageWhoseGuardedCallIsRunningIsNotDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(nil, optimistic)
		discarded := false
		h := r.guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
			if m.MessageId == "m2" {
				go func() {
					_, _ = lambdaidem.Do(context.WithoutCancel(ctx), r.guard, lambdaidem.Call{Operation: "charge", Key: m.MessageId}, func(context.Context) (int, error) {
						time.Sleep(time.Second)
						return 1, nil
					})
				}()
				synctest.Wait()
			}
			return nil
		}, silent[events.SQSMessage], func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "k1", nil }
			o.Discard = func(context.Context, events.SQSMessage, error) bool { discarded = true; return true }
		})
		for _, id := range []string{"m1", "m2"} {
			out, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: id, EventSourceARN: "arn:aws:sqs:r:a:q", Body: id}}})
			if failed := len(out.BatchItemFailures) > 0; err != nil || failed != (id == "m2") || discarded {
				t.Errorf("%s: failed %v, discarded %v, %v", id, failed, discarded, err)
			}
		}
		time.Sleep(time.Minute)
	})
}

// A payment that was sent again may arrive another way, because raw message delivery was
// switched or a queue was replaced. It is not discarded as another payment, and finishes
// under the downstream key of its first attempt. With another body it may be discarded.
func TestV2_AMessageThatArrivesAnotherWayIsNotDiscarded(t *testing.T) {
	const body, envelope = `{"amount":100}`, `{"Type":"Notification","MessageId":"i","TopicArn":"arn:t","Subject":"s","Message":"{\"amount\":100}"}`
	const event = `{"id":"i","source":"shop","detail-type":"Paid","account":"1","time":"t","region":"r","detail":{"amount":100}}`
	const queue, fifo = "arn:aws:sqs:r:a:q", "arn:aws:sqs:r:a:q.fifo"
	type way struct{ queue, body string }
	for name, c := range map[string]struct {
		first, second way
		discarded     bool
	}{
		"raw message delivery":       {way{queue, envelope}, way{queue, body}, false},
		"no raw message delivery":    {way{queue, body}, way{queue, envelope}, false},
		"a standard queue":           {way{fifo, body}, way{queue, body}, false},
		"a FIFO queue":               {way{queue, body}, way{fifo, body}, false},
		"a rule of a bus":            {way{queue, body}, way{queue, event}, false},
		"a rule instead of a topic":  {way{queue, envelope}, way{queue, event}, false},
		"another payment":            {way{queue, body}, way{queue, `{"amount":90}`}, true},
		"another payment of a topic": {way{queue, envelope}, way{queue, strings.Replace(envelope, "100", "90", 1)}, true},
	} {
		r := newRig(nil)
		send := func(w way, end error) (key string, discarded bool) {
			h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
				key = lambdaidem.DownstreamKey(ctx, "pay")
				return end
			}, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Operation = "pay"
				o.Key = func(context.Context, events.SQSMessage) (string, error) { return "k1", nil }
				o.Discard = func(context.Context, events.SQSMessage, error) bool { discarded = true; return true }
			})
			m := events.SQSMessage{MessageId: "m", EventSourceARN: w.queue, Body: w.body, Attributes: map[string]string{"MessageGroupId": "g"}}
			if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return key, discarded
		}
		first, _ := send(c.first, errWire)
		second, discarded := send(c.second, nil)
		if ran := second != ""; discarded != c.discarded || ran == c.discarded || ran && second != first {
			t.Errorf("%s: discarded: %v, downstream keys %q and %q", name, discarded, first, second)
		}
	}
}

// An event may come directly from a bus or through a queue, and a publication directly from a topic
// or through a queue. Both deliveries are the same message, with the same downstream key.
func TestV2_AnEventThatArrivesThroughAQueueIsNotAnother(t *testing.T) {
	r := newRig(nil)
	var keys []string
	failing := func(ctx context.Context) error {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "pay"))
		return errWire
	}
	queued := func(operation, body string) {
		t.Helper()
		h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error { return failing(ctx) }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Operation = operation
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "k1", nil }
		})
		if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:q", Body: body}}}); err != nil {
			t.Fatal(err)
		}
	}
	fromBus := r.guard.EventBridge(func(ctx context.Context, _ events.EventBridgeEvent) error { return failing(ctx) }, func(o *lambdaidem.BatchOptions[events.EventBridgeEvent]) {
		o.Operation = "event"
		o.Key = func(context.Context, events.EventBridgeEvent) (string, error) { return "k1", nil }
	})
	_ = fromBus(t.Context(), events.EventBridgeEvent{ID: "i", Source: "shop", DetailType: "Paid", Detail: []byte(`{"amount":100}`)})
	queued("event", `{"amount":100}`)
	fromTopic := r.guard.SNS(func(ctx context.Context, _ events.SNSEventRecord) error { return failing(ctx) }, func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
		o.Operation = "publication"
		o.Key = func(context.Context, events.SNSEventRecord) (string, error) { return "k1", nil }
	})
	_ = fromTopic(t.Context(), events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "i", Subject: "s", Message: `{"amount":100}`}}}})
	queued("publication", `{"amount":100}`)
	if len(keys) != 4 || keys[0] != keys[1] || keys[2] != keys[3] {
		t.Errorf("of four deliveries these ran: %q", keys)
	}
}

// A panic of BatchOptions.Repeated or Key is a mistake of this version, and not of the sender, so
// the message is not discarded.
func TestV3_AMessageIsNotDiscardedAfterAPanic(t *testing.T) {
	for name, panics := range map[string]func(*lambdaidem.BatchOptions[events.SQSMessage]){
		"Repeated": func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Repeated = func(events.SQSMessage) bool { panic("a mistake") }
		},
		"Key": func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { panic("a mistake") }
		},
	} {
		h := newRig(nil).guard.SQS(func(context.Context, events.SQSMessage) error { return nil }, silent[events.SQSMessage], panics,
			func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
				o.Discard = func(context.Context, events.SQSMessage, error) bool { return true }
			})
		if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 1 {
			t.Errorf("after a panic of %s, the batch returned %+v, %v", name, out, err)
		}
	}
}

// An attempt of a message died, and an operator settled its record as failed, because the message
// was not handled. The message is reported as failed until it reaches the dead-letter queue. After
// a deployment that changes how payloads are compared, Discard must not acknowledge it.
func TestV2_AMessageThatAnOperatorSettledAsFailedIsNotDiscarded(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){"same settings": func(*lambdaidem.Options) {}, "another secret": secrets(newSecret)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, handled := newRig(nil), 0
				discarding := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
					o.Discard = func(context.Context, events.SQSMessage, error) bool { return true }
				}
				in := idemtest.SQS("orders", idemtest.Message{Body: "order 17"})
				died := r.guard.SQS(func(context.Context, events.SQSMessage) error { return lambdaidem.Uncertain(errWire) }, discarding)
				if _, err := died(t.Context(), in); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				rec := r.record(t)
				_, err := r.store.Store.Complete(t.Context(), lambdaidem.Lease{ID: rec.ID, Token: rec.Token}, lambdaidem.Result{
					Outcome: lambdaidem.OutcomeFailed, Failure: lambdaidem.NoAnswer("the order was not shipped"), At: time.Now(), Expires: time.Now().Add(24 * time.Hour),
				})
				if err != nil {
					t.Fatal(err)
				}
				h := r.guard.With(opt).SQS(func(context.Context, events.SQSMessage) error { handled++; return nil }, discarding)
				out, err := h(t.Context(), in)
				if err != nil || len(out.BatchItemFailures) != 1 {
					t.Errorf("the message was handled %d times, and is acknowledged: %+v, %v", handled, out, err)
				}
			})
		})
	}
}
