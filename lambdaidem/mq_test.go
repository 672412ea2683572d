package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// everyWhole runs a test for each source that takes no list of failures and whose events have
// several messages. The function deliver sends such an event.
func everyWhole(t *testing.T, test func(t *testing.T, behind func(g *lambdaidem.Guard, e *effects, w want) (deliver func(...msg) error))) {
	for _, s := range []batchSource{activeMQSource(), rabbitMQSource(), documentDBSource()} {
		t.Run(s.name, func(t *testing.T) {
			test(t, func(g *lambdaidem.Guard, e *effects, w want) func(...msg) error {
				c := s.behind(g, e.handle, w)
				return func(all ...msg) error {
					_, err := c.send(t.Context(), t, all...)
					return err
				}
			})
		})
	}
}

// If a source takes no list of failures, one failure fails the batch. When Lambda delivers the batch
// again, only the message that failed runs. A message that is twice in a batch runs once.
func TestV2_ABatchWithoutAListOfFailures(t *testing.T) {
	everyWhole(t, func(t *testing.T, behind func(*lambdaidem.Guard, *effects, want) func(...msg) error) {
		broken := true
		e := effects{fail: failing(&broken, "2")}
		deliver := behind(batchGuard(), &e, want{})
		all := append(batchOf("1 a", "2 b", "3 c"), batchOf("1 a", "3 c")...)
		if err := deliver(all...); err == nil || err.Error() != "1 of 5 messages failed; the first: broken" {
			t.Errorf("the batch ended with %v", err)
		}
		broken = false
		for range 2 {
			if err := deliver(all...); err != nil {
				t.Errorf("the batch ended with %v", err)
			}
		}
		e.want(t, t.Name(), "1", "failed 2", "3", "2")
	})
}

// With BatchOptions.StopBatch, no message begins after the first failure.
func TestV2_StopBatchWithoutAListOfFailures(t *testing.T) {
	everyWhole(t, func(t *testing.T, behind func(*lambdaidem.Guard, *effects, want) func(...msg) error) {
		broken := true
		e := effects{fail: failing(&broken, "2")}
		deliver := behind(batchGuard(), &e, want{stopBatch: true})
		if err := deliver(batchOf("1 a", "2 b", "3 c")...); err == nil {
			t.Error("the batch succeeded")
		}
		e.want(t, t.Name(), "1", "failed 2")
	})
}

// Changes of one document keep their order. After a failure, changes of other documents go on.
func TestV2_ChangesOfADocumentKeepTheirOrder(t *testing.T) {
	broken := true
	e := effects{fail: failing(&broken, "1")}
	c := documentDBSource().behind(batchGuard(), e.handle, want{})
	all := batchOf("1 a", "2 b", "3 a")
	if _, err := c.send(t.Context(), t, all...); err == nil {
		t.Error("the batch succeeded")
	}
	e.want(t, c.name, "failed 1", "2")
	broken = false
	if _, err := c.send(t.Context(), t, all...); err != nil {
		t.Error(err)
	}
	e.want(t, c.name, "failed 1", "2", "1", "3")
}

// A RabbitMQ message has a key only if its publisher has set the header or the message id. The
// header takes precedence, and must be a string.
func TestV3_TheKeyOfARabbitMQMessage(t *testing.T) {
	for properties, want := range map[string]string{
		`{"messageId":null}`: "idempotency_key_missing", `{}`: "idempotency_key_missing", `{"messageId":"m"}`: "m",
		`{"messageId":""}`:                                                                      "idempotency_key_invalid",
		`{"messageId":"m","headers":{"a":{"b":1}}}`:                                             "m",
		`{"messageId":"m","headers":{"x-idempotency-key":{"bytes":[107]}}}`:                     "k",
		`{"headers":{"X-Idempotency-Key":"k"}}`:                                                 "k",
		`{"messageId":"m","headers":{"x-idempotency-key":10}}`:                                  "idempotency_key_invalid",
		`{"messageId":"m","headers":{"x-idempotency-key":null}}`:                                "idempotency_key_invalid",
		`{"messageId":"m","headers":{"x-idempotency-key":{"bytes":[]}}}`:                        "idempotency_key_invalid",
		`{"messageId":"m","headers":{"x-idempotency-key":{"bytes":[300]}}}`:                     "idempotency_key_invalid",
		`{"messageId":"m","headers":{"x-idempotency-key":{"bytes":[-61,-92]}}}`:                 "idempotency_key_invalid", // ä
		`{"headers":{"x-idempotency-key":{"bytes":[107]},"X-Idempotency-Key":{"bytes":[107]}}}`: "idempotency_key_invalid",
	} {
		var in events.RabbitMQEvent
		if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:b","rmqMessagesByQueue":{"q::/":[{"basicProperties":`+properties+`,"data":"eA=="}]}}`), &in); err != nil {
			t.Fatal(err)
		}
		got := ""
		err := batchGuard().RabbitMQ(func(ctx context.Context, _ events.RabbitMQMessage) error { got = lambdaidem.Key(ctx); return nil }, silent[events.RabbitMQMessage])(t.Context(), in)
		if refused := (*lambdaidem.Error)(nil); errors.As(err, &refused) {
			got = string(refused.Code)
		}
		if got != want {
			t.Errorf("%s: %s, %v; want %s", properties, got, err, want)
		}
	}
}

// Messages of two queues or two brokers never share a record. A message whose queue is unknown is
// refused, unless BatchOptions.Operation is set.
func TestF1_QueuesOfABrokerAreApart(t *testing.T) {
	g := batchGuard()
	ids := map[string]string{}
	m := events.RabbitMQMessage{Data: "eA=="}
	m.BasicProperties.MessageID = new("k")
	rabbit := g.RabbitMQ(func(ctx context.Context, _ events.RabbitMQMessage) error {
		ids[lambdaidem.RecordID(ctx)] = "rabbit"
		return nil
	}, silent[events.RabbitMQMessage])
	active := g.ActiveMQ(func(ctx context.Context, _ events.ActiveMQMessage) error {
		ids[lambdaidem.RecordID(ctx)] = "active"
		return nil
	}, silent[events.ActiveMQMessage])
	for _, broker := range []string{"arn:a", "arn:b"} {
		for _, queue := range []string{"q::/", "r::/", "q::/other"} {
			if err := rabbit(t.Context(), events.RabbitMQEvent{EventSourceARN: broker, MessagesByQueue: map[string][]events.RabbitMQMessage{queue: {m}}}); err != nil {
				t.Error(err)
			}
			if err := active(t.Context(), events.ActiveMQEvent{EventSourceARN: broker, Messages: []events.ActiveMQMessage{{MessageID: "k", Data: "eA==", Destination: events.ActiveMQDestination{PhysicalName: queue}}}}); err != nil {
				t.Error(err)
			}
		}
	}
	if len(ids) != 12 || ids[g.RecordID(lambdaidem.Identity{Operation: "rabbitmq:arn:a|q::/", Key: "k", Message: true})] != "rabbit" || ids[g.RecordID(lambdaidem.Identity{Operation: "activemq:arn:a|q::/", Key: "k", Message: true, OwnID: true})] != "active" {
		t.Errorf("%d records: %v", len(ids), ids)
	}
	for name, err := range map[string]error{
		"two queues":     rabbit(t.Context(), events.RabbitMQEvent{EventSourceARN: "arn:a", MessagesByQueue: map[string][]events.RabbitMQMessage{"q::/": {m}, "r::/": {}}}),
		"no broker":      rabbit(t.Context(), events.RabbitMQEvent{MessagesByQueue: map[string][]events.RabbitMQMessage{"q::/": {m}}}),
		"no destination": active(t.Context(), events.ActiveMQEvent{EventSourceARN: "arn:a", Messages: []events.ActiveMQMessage{{MessageID: "k"}}}),
		"no broker's":    active(t.Context(), events.ActiveMQEvent{Messages: []events.ActiveMQMessage{{MessageID: "k", Destination: events.ActiveMQDestination{PhysicalName: "q"}}}}),
	} {
		if !errors.Is(err, lambdaidem.ErrRequestInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var order []string
	several := g.RabbitMQ(func(_ context.Context, m events.RabbitMQMessage) error {
		order = append(order, decoded(m.Data))
		return nil
	}, func(o *lambdaidem.BatchOptions[events.RabbitMQMessage]) {
		o.Operation = "charge"
	})
	queues := map[string][]events.RabbitMQMessage{}
	for i := range 9 {
		text := fmt.Sprint(i)
		one := events.RabbitMQMessage{Data: base64.StdEncoding.EncodeToString([]byte(text))}
		one.BasicProperties.MessageID = &text
		queues["q"+text] = []events.RabbitMQMessage{one}
	}
	if err := several(t.Context(), events.RabbitMQEvent{EventSourceARN: "arn:a", MessagesByQueue: queues}); err != nil || !slices.IsSorted(order) || len(order) != 9 {
		t.Errorf("handled %v, %v", order, err)
	}
}

// Data that is not base64 counts as text.
func TestF5_DataOfABroker(t *testing.T) {
	h := batchGuard().ActiveMQ(func(context.Context, events.ActiveMQMessage) error { return nil }, silent[events.ActiveMQMessage])
	send := func(data string) error {
		return h(t.Context(), events.ActiveMQEvent{EventSourceARN: "arn:a", Messages: []events.ActiveMQMessage{{MessageID: "k", Data: data, Destination: events.ActiveMQDestination{PhysicalName: "q"}}}})
	}
	for data, code := range map[string]lambdaidem.Code{"{": "", "{{": lambdaidem.ErrPayloadMismatch, "": lambdaidem.ErrPayloadMismatch} {
		if err := errors.Join(send("{"), send(data)); code == "" && err != nil || code != "" && !errors.Is(err, code) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// With UpdateLookup, an update that is read again has the document of that moment.
func TestF5_AnUpdateThatIsReadAgain(t *testing.T) {
	runs := 0
	h := batchGuard().DocumentDB(func(context.Context, lambdaidem.DocumentDBChange) error { runs++; return nil }, silent[lambdaidem.DocumentDBChange])
	const description = `"updateDescription":{"updatedFields":{"price":10},"removedFields":[]}`
	for _, c := range []struct {
		rest     string
		mismatch bool
	}{
		{description + `,"fullDocument":{"_id":1,"price":10}`, false},
		{description + `,"fullDocument":{"_id":1,"price":11}`, false},
		{description + `,"fullDocument":null`, false}, // deleted since
		{description, false},
		{strings.Replace(description, "10", "11", 1), true},
	} {
		var e lambdaidem.DocumentDBEvent
		if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:c","events":[{"event":{"_id":{"_data":"1"},"ns":{"db":"d","coll":"c"},"operationType":"update","documentKey":{"_id":1},`+c.rest+`}}]}`), &e); err != nil {
			t.Fatal(err)
		}
		if err := h(t.Context(), e); errors.Is(err, lambdaidem.ErrPayloadMismatch) != c.mismatch || err != nil && !c.mismatch || runs != 1 {
			t.Errorf("%s: %d runs, %v", c.rest, runs, err)
		}
	}
}

// Without an update description, nothing in two updates of a document says that they differ: if both
// are looked up late, even their documents are equal. Only the resume token tells them apart.
func TestF5_AnUpdateWithoutADescription(t *testing.T) {
	for _, description := range []string{"", `,"updateDescription":null`} {
		runs := 0
		h := batchGuard().DocumentDB(func(context.Context, lambdaidem.DocumentDBChange) error { runs++; return nil }, silent[lambdaidem.DocumentDBChange], func(o *lambdaidem.BatchOptions[lambdaidem.DocumentDBChange]) {
			o.Key = func(context.Context, lambdaidem.DocumentDBChange) (string, error) { return "order-1", nil }
		})
		for _, c := range []struct {
			token, document string
			mismatch        bool
		}{
			{"1", `{"_id":1,"price":11}`, false},
			{"1", `{"_id":1,"price":12}`, false}, // read again, after another update
			{"1", `null`, false},                 // deleted since
			{"2", `{"_id":1,"price":11}`, true},  // a second update, before the first one was read
		} {
			var e lambdaidem.DocumentDBEvent
			if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:c","events":[{"event":{"_id":{"_data":"`+c.token+`"},"ns":{"db":"d","coll":"c"},"operationType":"update","documentKey":{"_id":1},"fullDocument":`+c.document+description+`}}]}`), &e); err != nil {
				t.Fatal(err)
			}
			if err := h(t.Context(), e); errors.Is(err, lambdaidem.ErrPayloadMismatch) != c.mismatch || err != nil && !c.mismatch || runs != 1 {
				t.Errorf("%s: %+v: %d runs, %v", description, c, runs, err)
			}
		}
	}
}

// The payload of a change includes its database and collection. A list named SS in a document is
// ordered, although DynamoDB's string set of that name is not.
func TestF5_TheContentOfAChange(t *testing.T) {
	event := func(text string) lambdaidem.DocumentDBEvent {
		var e lambdaidem.DocumentDBEvent
		if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:c","events":[{"event":`+text+`}]}`), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	const first = `{"_id":{"_data":"1"},"ns":{"db":"d","coll":"c"},"operationType":"insert","documentKey":{"_id":1},"fullDocument":{"_id":1,"SS":["a","b"]},"clusterTime":{"t":1}}`
	for change, same := range map[string]bool{
		first: true,
		`{"_id":{"_data":"2"},"ns":{"coll":"c","db":"d"},"operationType":"insert","documentKey":{"_id": 1},"fullDocument":{"SS":["a","b"],"_id":1},"clusterTime":{"t":2}}`:                      true,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"c"},"operationType":"replace","documentKey":{"_id":1},"fullDocument":{"_id":1,"SS":["a","b"]}}`:                                            false,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"c"},"operationType":"insert","documentKey":{"_id":2},"fullDocument":{"_id":1,"SS":["a","b"]}}`:                                             false,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"c"},"operationType":"insert","documentKey":{"_id":1},"fullDocument":{"_id":1,"SS":["b","a"]}}`:                                             false,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"c"},"operationType":"insert","documentKey":{"_id":1}}`:                                                                                     false,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"x"},"operationType":"insert","documentKey":{"_id":1},"fullDocument":{"_id":1,"SS":["a","b"]}}`:                                             false,
		`{"_id":{"_data":"2"},"ns":{"db":"d","coll":"c"},"operationType":"insert","documentKey":{"_id":1},"fullDocument":{"_id":1,"SS":["a","b"]},"updateDescription":{"removedFields":["x"]}}`: false,
	} {
		h := batchGuard().DocumentDB(func(context.Context, lambdaidem.DocumentDBChange) error { return nil }, silent[lambdaidem.DocumentDBChange], func(o *lambdaidem.BatchOptions[lambdaidem.DocumentDBChange]) {
			o.Operation, o.Key = "index", func(context.Context, lambdaidem.DocumentDBChange) (string, error) { return "one", nil }
		})
		if err := h(t.Context(), event(first)); err != nil {
			t.Error(err)
		}
		if err := h(t.Context(), event(change)); errors.Is(err, lambdaidem.ErrPayloadMismatch) == same {
			t.Errorf("%s: %v", change, err)
		}
	}
	g := batchGuard()
	var id string
	h := g.DocumentDB(func(ctx context.Context, _ lambdaidem.DocumentDBChange) error {
		id = lambdaidem.RecordID(ctx)
		return nil
	}, silent[lambdaidem.DocumentDBChange])
	if err := h(t.Context(), event(first)); err != nil || id != g.RecordID(lambdaidem.Identity{Operation: "documentdb:arn:c|d|c", Key: "1", Message: true, OwnID: true}) {
		t.Errorf("the record is %s, %v", id, err)
	}
	nowhere := event(first)
	nowhere.EventSourceARN = ""
	if err := h(t.Context(), nowhere); !errors.Is(err, lambdaidem.ErrRequestInvalid) {
		t.Errorf("from nowhere: %v", err)
	}
	if err := h(t.Context(), event(`{"ns":{"db":"d","coll":"c"}}`)); !errors.Is(err, lambdaidem.ErrKeyMissing) {
		t.Errorf("without an id: %v", err)
	}
}
