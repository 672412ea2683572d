package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

const kafkaARN = "arn:aws:kafka:eu-west-1:111122223333:cluster/payments/e9f754c6-d29a-4430-a7db-958a19fd2c54-4"

// kafkaEvent returns an event of one cluster with the given records.
func kafkaEvent(records ...events.KafkaRecord) events.KafkaEvent {
	e := events.KafkaEvent{EventSource: "aws:kafka", EventSourceARN: kafkaARN, Records: map[string][]events.KafkaRecord{}}
	for _, r := range records {
		name := fmt.Sprint(r.Topic, "-", r.Partition)
		e.Records[name] = append(e.Records[name], r)
	}
	return e
}

// kafkaRecord returns a record with the given value and a fixed timestamp.
func kafkaRecord(topic string, partition, offset int64, value string) events.KafkaRecord {
	return events.KafkaRecord{Topic: topic, Partition: partition, Offset: offset, Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(1764000000987)},
		Value: base64.StdEncoding.EncodeToString([]byte(value))}
}

// withHeader returns the record with one more header.
func withHeader(r events.KafkaRecord, name, value string) events.KafkaRecord {
	r.Headers = append(r.Headers, map[string]events.JSONNumberBytes{name: []byte(value)})
	return r
}

// The response has the form that AWS documents: the topic and the partition are one string, and the
// offset is a number (AWS Lambda, "Configuring error handling controls for Kafka event sources").
func TestV2_TheResponseToAKafkaEvent(t *testing.T) {
	var in events.KafkaEvent
	if err := json.Unmarshal(fixture(t, "kafka"), &in); err != nil {
		t.Fatal(err)
	}
	broken := true
	h := batchGuard().Kafka(func(_ context.Context, r events.KafkaRecord) error {
		if broken && (r.Offset == 15 || r.Topic == "refunds") {
			return errBroken
		}
		return nil
	}, silent[events.KafkaRecord])
	for _, want := range []string{
		`{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-0","offset":15}},{"itemIdentifier":{"partition":"orders-0","offset":16}},{"itemIdentifier":{"partition":"refunds-3","offset":9007199254740993}}]}`,
		`{"batchItemFailures":[]}`,
	} {
		out, err := h(t.Context(), in)
		if text := string(mustJSON(t, out)); err != nil || text != want {
			t.Errorf("the answer is %s, %v; want %s", text, err, want)
		}
		broken = false
	}
}

// The partitions of an event run in the order of their names, although they arrive in a map.
func TestV2_PartitionsRunInOneOrder(t *testing.T) {
	var want []string
	var all []events.KafkaRecord
	for partition := range int64(9) {
		for offset := range int64(2) {
			value := fmt.Sprint(partition, "/", offset)
			want, all = append(want, value), append(all, kafkaRecord("orders", partition, offset, value))
		}
	}
	for range 20 {
		var got []string
		h := batchGuard().Kafka(func(_ context.Context, r events.KafkaRecord) error {
			got = append(got, fmt.Sprint(r.Partition, "/", r.Offset))
			return nil
		})
		if _, err := h(t.Context(), kafkaEvent(all...)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("handled %v, %v; want %v", got, err, want)
		}
	}
}

// Two Kafka records never share a record of the guard if they differ in their cluster, topic,
// partition, offset or timestamp. A self-managed cluster is identified by its list of bootstrap
// servers, whose order does not matter.
func TestF1_KafkaRecordsAreApart(t *testing.T) {
	g := batchGuard()
	runs := 0
	h := g.Kafka(func(context.Context, events.KafkaRecord) error { runs++; return nil })
	one := kafkaRecord("orders", 1, 2, "x")
	again := one // as in a topic that was deleted and created again
	again.Timestamp.Time = one.Timestamp.Add(time.Millisecond)
	self := kafkaEvent(one)
	self.EventSourceARN, self.BootstrapServers = "", "b:9092,a:9092"
	other := self
	other.BootstrapServers = "c:9092"
	elsewhere := kafkaEvent(one)
	elsewhere.EventSourceARN += "5"
	all := []events.KafkaEvent{kafkaEvent(one), kafkaEvent(again), self, other, elsewhere,
		kafkaEvent(kafkaRecord("orders", 1, 3, "x")), kafkaEvent(kafkaRecord("orders", 2, 2, "x")), kafkaEvent(kafkaRecord("refunds", 1, 2, "x")), kafkaEvent(kafkaRecord("orders-1", 2, 2, "x"))}
	for i, e := range all {
		for range 2 {
			if out, err := h(t.Context(), e); err != nil || len(out.BatchItemFailures) > 0 {
				t.Errorf("%d: %+v, %v", i, out, err)
			}
		}
		if runs != i+1 {
			t.Fatalf("after %d events the handler ran %d times", i+1, runs)
		}
	}
	self.BootstrapServers = "a:9092,b:9092"
	if _, err := h(t.Context(), self); err != nil || runs != len(all) {
		t.Errorf("with the servers in another order, the handler ran: %v, %v", runs != len(all), err)
	}
}

// The same key in two topics identifies two records. An operator can compute the id of a record
// with Guard.RecordID.
func TestV3_TheDefaultOperationOfKafka(t *testing.T) {
	g := batchGuard()
	var ids []string
	h := g.Kafka(func(ctx context.Context, _ events.KafkaRecord) error {
		ids = append(ids, lambdaidem.RecordID(ctx))
		return nil
	})
	for _, r := range []events.KafkaRecord{withHeader(kafkaRecord("orders", 0, 1, "x"), lambdaidem.MessageKey, "k"), withHeader(kafkaRecord("refunds", 0, 1, "x"), lambdaidem.MessageKey, "k"), kafkaRecord("orders", 0, 2, "x")} {
		if out, err := h(t.Context(), kafkaEvent(r)); err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("%+v, %v", out, err)
		}
	}
	want := []string{
		g.RecordID(lambdaidem.Identity{Operation: "kafka:" + kafkaARN + "|orders", Key: "k", Message: true}),
		g.RecordID(lambdaidem.Identity{Operation: "kafka:" + kafkaARN + "|refunds", Key: "k", Message: true}),
		g.RecordID(lambdaidem.Identity{Operation: "kafka:" + kafkaARN + "|orders", Key: "orders-0-2-1764000000987", Message: true, OwnID: true}),
	}
	if !slices.Equal(ids, want) {
		t.Errorf("the records are %q; want %q", ids, want)
	}
}

// The payload of a Kafka record is its value and its Kafka key, but not its partition, offset,
// timestamp or headers. White space and the order of members in a JSON value don't matter.
func TestV3_TheContentOfAKafkaRecord(t *testing.T) {
	const value = `{"amount":1,"to":"alice"}`
	first := withHeader(kafkaRecord("orders", 0, 1, value), lambdaidem.MessageKey, "k")
	first.Key = "YWxpY2U="
	for name, c := range map[string]struct {
		change func(*events.KafkaRecord)
		same   bool
	}{
		"sent again":           {func(r *events.KafkaRecord) { r.Partition, r.Offset, r.Timestamp.Time = 3, 9, time.UnixMilli(5) }, true},
		"with a tracer's":      {func(r *events.KafkaRecord) { *r = withHeader(*r, "traceparent", "00-1") }, true},
		"in another order":     {func(r *events.KafkaRecord) { r.Value = kafkaRecord("", 0, 0, `{ "to": "alice", "amount": 1 }`).Value }, true},
		"another value":        {func(r *events.KafkaRecord) { r.Value = kafkaRecord("", 0, 0, `{"amount":2,"to":"alice"}`).Value }, false},
		"another key":          {func(r *events.KafkaRecord) { r.Key = "Ym9i" }, false},
		"no key":               {func(r *events.KafkaRecord) { r.Key = "" }, false},
		"a tombstone":          {func(r *events.KafkaRecord) { r.Value = "" }, false},
		"a value in no base64": {func(r *events.KafkaRecord) { r.Value = "{" }, false},
		"the value as a text":  {func(r *events.KafkaRecord) { r.Value = value }, false},
	} {
		h := batchGuard().Kafka(func(context.Context, events.KafkaRecord) error { return nil }, silent[events.KafkaRecord])
		again := first
		again.Headers = slices.Clone(first.Headers)
		c.change(&again)
		for i, r := range []events.KafkaRecord{first, again} {
			out, err := h(t.Context(), kafkaEvent(r))
			if failed := len(out.BatchItemFailures) > 0; err != nil || failed != (i == 1 && !c.same) {
				t.Errorf("%s: delivery %d failed: %v, %v", name, i, failed, err)
			}
		}
	}
}

// A tombstone is handled like any other record. Tombstones of two Kafka keys have two payloads.
func TestV3_Tombstones(t *testing.T) {
	var handled []string
	h := batchGuard().Kafka(func(_ context.Context, r events.KafkaRecord) error {
		handled = append(handled, r.Key+"="+r.Value)
		return nil
	}, silent[events.KafkaRecord])
	var in events.KafkaEvent
	if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:c","records":{"t-0":[{"topic":"t","partition":0,"offset":1,"timestamp":1,"key":"YQ==","value":null,"headers":[{"x-idempotency-key":[107]}]},
		{"topic":"t","partition":0,"offset":2,"timestamp":2,"key":"YQ=="},{"topic":"t","partition":0,"offset":3,"timestamp":3,"key":"Yg==","value":null,"headers":[{"x-idempotency-key":[107]}]}]}}`), &in); err != nil {
		t.Fatal(err)
	}
	out, err := h(t.Context(), in)
	if err != nil || len(out.BatchItemFailures) != 1 || out.BatchItemFailures[0].ItemIdentifier.Offset != 3 {
		t.Errorf("%+v, %v; want the third, which has the key of the first and another content", out, err)
	}
	if want := []string{"YQ==", "YQ=="}; !slices.Equal(handled, []string{want[0] + "=", want[1] + "="}) {
		t.Errorf("handled %q", handled)
	}
}

// If a record has the header but no single valid key in it, the key is invalid, and not missing.
func TestV3_KafkaHeadersThatAreNoKeys(t *testing.T) {
	g := batchGuard(func(o *lambdaidem.Options) { o.KeyOptional = true })
	for name, headers := range map[string]string{
		"empty": `[{"x-idempotency-key":[]}]`, "null": `[{"x-idempotency-key":null}]`, "not UTF-8": `[{"x-idempotency-key":[-1]}]`,
		"twice": `[{"x-idempotency-key":[107]},{"x-idempotency-key":[107]}]`, "in two spellings": `[{"x-idempotency-key":[107],"X-Idempotency-Key":[107]}]`,
	} {
		var got error
		h := g.Kafka(func(context.Context, events.KafkaRecord) error { return nil }, func(o *lambdaidem.BatchOptions[events.KafkaRecord]) {
			o.OnFailure = func(_ context.Context, _ events.KafkaRecord, err error) { got = err }
		})
		var in events.KafkaEvent
		if err := json.Unmarshal([]byte(`{"eventSourceArn":"arn:c","records":{"t-0":[{"topic":"t","partition":0,"offset":1,"timestamp":1,"value":"eA==","headers":`+headers+`}]}}`), &in); err != nil {
			t.Fatal(err)
		}
		if out, err := h(t.Context(), in); err != nil || len(out.BatchItemFailures) != 1 || !errors.Is(got, lambdaidem.ErrKeyInvalid) {
			t.Errorf("%s: %+v, %v, %v", name, out, err, got)
		}
	}
}

// An event that does not name its cluster is refused, unless BatchOptions.Operation is set. A record
// without a topic can't be reported, so its failure is an error of the whole batch.
func TestV3_MalformedKafkaEvents(t *testing.T) {
	var got error
	option := func(o *lambdaidem.BatchOptions[events.KafkaRecord]) {
		o.OnFailure = func(_ context.Context, _ events.KafkaRecord, err error) { got = err }
	}
	nowhere := kafkaEvent(kafkaRecord("orders", 0, 1, "x"))
	nowhere.EventSourceARN = ""
	out, err := batchGuard().Kafka(func(context.Context, events.KafkaRecord) error { return nil }, option)(t.Context(), nowhere)
	if err != nil || len(out.BatchItemFailures) != 1 || !errors.Is(got, lambdaidem.ErrRequestInvalid) {
		t.Errorf("from nowhere: %+v, %v, %v", out, err, got)
	}
	_, err = batchGuard().Kafka(func(context.Context, events.KafkaRecord) error { return errBroken }, option)(t.Context(), kafkaEvent(kafkaRecord("", 0, 1, "x")))
	if all := (*lambdaidem.BatchError)(nil); !errors.As(err, &all) {
		t.Errorf("without a topic: %v", err)
	}
	if out, err := batchGuard().Kafka(func(context.Context, events.KafkaRecord) error { return nil }, option)(t.Context(), events.KafkaEvent{}); err != nil || out.BatchItemFailures == nil {
		t.Errorf("without records: %+v, %v", out, err)
	}
}
