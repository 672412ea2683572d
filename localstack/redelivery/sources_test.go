package redelivery

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// source is an event source as a function sees it: the events it delivers, and what it does after
// each answer.
type source struct {
	name    string
	kind    Source
	ordered bool // within a group
	stream  bool // redelivers everything from the first failure on
	single  bool // each event has one message, and an error of the invocation reports its failure
	// event returns an event with these messages. places has the position of each message in the
	// order of sending.
	event func(batch []idemtest.Message, places []int) any
	// itemIdentifier returns the JSON by which an answer identifies a message. Default: the
	// sequence number for a stream, otherwise the message's name.
	itemIdentifier func(m idemtest.Message, place int) string
}

var sources = []source{
	{name: "SQS standard", kind: SQS, event: queueEvent("orders")},
	{name: "SQS FIFO", kind: SQS, ordered: true, event: queueEvent("orders.fifo")},
	{name: "SNS", kind: SNS, single: true, event: func(batch []idemtest.Message, _ []int) any { return idemtest.SNS("orders", batch[0]) }},
	{name: "EventBridge", kind: EventBridge, single: true, event: func(batch []idemtest.Message, _ []int) any {
		return idemtest.EventBridge("shop", "order", batch[0])
	}},
	{name: "Kinesis", kind: Kinesis, ordered: true, stream: true, event: func(batch []idemtest.Message, places []int) any {
		e := idemtest.Kinesis("orders", batch...)
		for i := range e.Records {
			e.Records[i].Kinesis.SequenceNumber = sequenceNumber(places[i])
		}
		return e
	}},
	{name: "DynamoDB Streams", kind: DynamoDBStream, ordered: true, stream: true, event: func(batch []idemtest.Message, places []int) any {
		e := idemtest.DynamoDBStream("orders", batch...)
		for i := range e.Records {
			e.Records[i].Change.SequenceNumber = sequenceNumber(places[i])
		}
		return e
	}},
	{name: "Kafka", kind: Kafka, ordered: true, stream: true, event: func(batch []idemtest.Message, places []int) any {
		all := idemtest.Kafka("orders")
		for i, m := range batch {
			partition, r := kafkaRecord(m, places[i])
			all.Records[partition] = append(all.Records[partition], r)
		}
		return all
	}, itemIdentifier: func(m idemtest.Message, place int) string {
		partition, r := kafkaRecord(m, place)
		return fmt.Sprintf(`{"partition":%q,"offset":%d}`, partition, r.Offset)
	}},
}

// kafkaRecord returns a message as a Kafka record, with its partition. The offset of the record
// is place, the message's position in the order of sending.
func kafkaRecord(m idemtest.Message, place int) (partition string, r events.KafkaRecord) {
	for partition, records := range idemtest.Kafka("orders", m).Records {
		r := records[0]
		r.Offset = int64(place)
		return partition, r
	}
	panic("an event without a record")
}

func queueEvent(name string) func([]idemtest.Message, []int) any {
	return func(batch []idemtest.Message, places []int) any {
		e := idemtest.SQS(name, batch...)
		for i, r := range e.Records {
			if _, fifo := r.Attributes["SequenceNumber"]; fifo {
				r.Attributes["SequenceNumber"] = sequenceNumber(places[i])
			}
		}
		return e
	}
}

// sequenceNumber returns the sequence number of the record at this position in the order of
// sending.
func sequenceNumber(place int) string { return fmt.Sprintf("49590338271490256608559%012d", place) }

// identifier returns the JSON by which an answer identifies a message.
func (s source) identifier(m idemtest.Message, place int) string {
	switch {
	case s.itemIdentifier != nil:
		return s.itemIdentifier(m, place)
	case s.stream:
		return strconv.Quote(sequenceNumber(place))
	}
	return strconv.Quote(m.ID)
}

// errorType returns the error type of a failed invocation, or "" if the invocation did not fail.
func errorType(r emulator.Result) string {
	var e struct{ ErrorType string }
	if r.FunctionError == "" || json.Unmarshal(r.Payload, &e) != nil {
		return ""
	}
	return e.ErrorType
}

// read sets the fields of d that follow from the result of the invocation. nameOf maps the
// identifiers in the answer to the names of messages.
func (s source) read(d *Delivery, r emulator.Result, nameOf map[string]string) {
	kind := errorType(r)
	d.TimedOut = kind == "Sandbox.Timedout"
	d.Lost = d.TimedOut || kind == "Runtime.ExitError"
	switch {
	case d.Lost:
	case s.single && r.FunctionError != "":
		d.Reported = d.Batch
	case r.FunctionError != "":
		d.Odd = "the error " + string(r.Payload)
	case !s.single:
		var answer struct {
			Failures *[]struct{ ItemIdentifier json.RawMessage } `json:"batchItemFailures"`
		}
		if err := json.Unmarshal(r.Payload, &answer); err != nil || answer.Failures == nil {
			d.Odd = "the answer " + string(r.Payload)
			return
		}
		for _, f := range *answer.Failures {
			name, known := nameOf[string(f.ItemIdentifier)]
			if !known {
				name = "?" + string(f.ItemIdentifier)
			}
			d.Reported = append(d.Reported, name)
		}
	}
}

// again returns the messages of a batch that the source delivers again.
func (s source) again(d Delivery) []string {
	if d.Lost || d.Odd != "" {
		return d.Batch
	}
	reported := map[string]bool{}
	for _, name := range d.Reported {
		reported[name] = true
	}
	var again []string
	for i, name := range d.Batch {
		switch {
		case reported[name] && s.stream:
			return d.Batch[i:]
		case reported[name]:
			again = append(again, name)
		}
	}
	return again
}

func TestSource_ReadsAnswersAsTheSourceDoes(t *testing.T) {
	nameOf := map[string]string{`"id-a"`: "a", `"id-b"`: "b", `"id-c"`: "c", `{"partition":"orders-1","offset":2}`: "b"}
	failure := func(errorType string) emulator.Result {
		return emulator.Result{FunctionError: "Unhandled", Payload: fmt.Appendf(nil, `{"errorType":%q,"errorMessage":"m"}`, errorType)}
	}
	answer := func(text string) emulator.Result { return emulator.Result{Payload: []byte(text)} }
	tests := []struct {
		name   string
		source source
		result emulator.Result
		want   string // reported messages, Lost, TimedOut, whether Odd is set, redelivered messages
	}{
		{"queue, all done", sources[0], answer(`{"batchItemFailures":[]}`), "[] false false false []"},
		{"queue, a part", sources[1], answer(`{"batchItemFailures":[{"itemIdentifier":"id-b"}]}`), "[b] false false false [b]"},
		{"stream, a part", sources[4], answer(`{"batchItemFailures":[{"itemIdentifier":"id-b"}]}`), "[b] false false false [b c]"},
		{"queue, died", sources[0], failure("Runtime.ExitError"), "[] true false false [a b c]"},
		{"stream, timed out", sources[5], failure("Sandbox.Timedout"), "[] true true false [a b c]"},
		{"queue, an error", sources[0], failure("errorString"), "[] false false true [a b c]"},
		{"queue, null", sources[0], answer(`{"batchItemFailures":null}`), "[] false false true [a b c]"},
		{"queue, no list", sources[0], answer(`{}`), "[] false false true [a b c]"},
		{"queue, no JSON", sources[0], answer(`x`), "[] false false true [a b c]"},
		{"queue, a stranger", sources[0], answer(`{"batchItemFailures":[{"itemIdentifier":"id-z"}]}`), `[?"id-z"] false false false []`},
		{"partition, a part", sources[6], answer(`{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-1","offset":2}}]}`), "[b] false false false [b c]"},
		{"topic, done", sources[2], answer(`{}`), "[] false false false []"},
		{"topic, an error", sources[2], failure("errorString"), "[a b c] false false false [a b c]"},
		{"bus, died", sources[3], failure("Runtime.ExitError"), "[] true false false [a b c]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Delivery{Batch: []string{"a", "b", "c"}}
			tt.source.read(&d, tt.result, nameOf)
			if got := fmt.Sprint(d.Reported, d.Lost, d.TimedOut, d.Odd != "", tt.source.again(d)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if a, b := sources[4].identifier(idemtest.Message{ID: "a"}, 9), sources[4].identifier(idemtest.Message{ID: "b"}, 10); strings.Compare(a, b) >= 0 || len(a) != len(b) {
		t.Errorf("%s is not before %s", a, b)
	}
}
