package queue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lambdaidem/toolkit/localstack/queue"
)

// The form is that of "Using Lambda with Amazon SQS", example FIFO message event.
func TestEvent_IsLambdasRecord(t *testing.T) {
	bubble(t, queue.Options{Region: "eu-west-1", AccountID: "123456789012"}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := createFIFO(t, s, nil)
		sent := send(t, q, queue.Outgoing{
			Body: "x", GroupID: "a", DeduplicationID: "d", TraceHeader: "Root=1",
			Attributes: map[string]queue.Attribute{
				"s": {DataType: "String", StringValue: "v"}, "b": {DataType: "Binary", BinaryValue: []byte{1}},
			},
		})
		time.Sleep(time.Second)
		m := receive(t, q, 1)[0]
		got, err := json.Marshal(m.Event())
		if err != nil {
			t.Fatal(err)
		}
		want := `{"messageId":"` + sent.MessageID + `","receiptHandle":"` + m.ReceiptHandle + `","body":"x","md5OfBody":"9dd4e461268c8034f5c8564e155c67a6",` +
			`"md5OfMessageAttributes":"` + sent.MD5OfAttributes + `","attributes":{"AWSTraceHeader":"Root=1","ApproximateFirstReceiveTimestamp":"946684801000",` +
			`"ApproximateReceiveCount":"1","MessageDeduplicationId":"d","MessageGroupId":"a","SenderId":"AIDALOCALLOCALLOCAL00",` +
			`"SentTimestamp":"946684800000","SequenceNumber":"` + sent.SequenceNumber + `"},` +
			`"messageAttributes":{"b":{"binaryValue":"AQ==","stringListValues":[],"binaryListValues":[],"dataType":"Binary"},` +
			`"s":{"stringValue":"v","stringListValues":[],"binaryListValues":[],"dataType":"String"}},` +
			`"eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:orders.fifo","eventSource":"aws:sqs","awsRegion":"eu-west-1"}`
		expect(t, "record", string(got), want)
	})
}

func TestEvent_OfAPlainMessage(t *testing.T) {
	bubble(t, queue.Options{}, func(t *testing.T, s *queue.Service, _ *sqs.Client) {
		q := create(t, s, "orders", nil)
		sendAll(t, q, "", "x")
		var names []string
		record := receive(t, q, 1)[0].Event()
		for _, name := range []string{"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"} {
			if record.Attributes[name] != "" {
				names = append(names, name)
			}
		}
		expect(t, "attributes", len(names), len(record.Attributes))
		expect(t, "attributes", len(names), 4)
		got, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{record}})
		expect(t, "error", err, nil)
		expect(t, "no message attributes", strings.Contains(string(got), `"messageAttributes":{},`), true)
		expect(t, "an empty message", queue.Message{}.Event().AWSRegion, "")
	})
}
