package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// SQS guards a handler of the messages of a standard or FIFO SQS queue. The handler runs once for
// each key. The response reports the messages that failed, and SQS delivers them again after their
// visibility timeout. The event source mapping needs ReportBatchItemFailures; without it, set
// BatchOptions.WholeBatch.
//
// The default key is the message attribute [MessageKey], else the message's id, which is the same
// in every delivery.
//
// After a message of a FIFO queue has failed, the handler does not run for later messages of the
// same message group. They are reported as failed too, so the group keeps its order. The handler
// still runs for other groups. To stop the whole batch instead, set BatchOptions.StopBatch.
//
// If SQS delivers a message while another invocation is still handling it, the new delivery is
// reported as failed, and counts towards the queue's maxReceiveCount. To avoid such deliveries,
// make the visibility timeout longer than the function's timeout by more than Options.MaxSkew. AWS
// recommends six times the function's timeout (AWS Lambda, "Configuring a queue to use with
// Lambda").
//
// If the handler returns an error, the guard releases the record, even if [Permanent] marked the
// error or [Reject] made it. The handler then runs again when SQS delivers the message again, also
// after a redrive from the dead-letter queue. The record is not released in these cases:
//
//   - [Uncertain] marked the error.
//   - The policy is [Hold], and the handler panicked, returned an error that this package neither
//     made nor marked, or returned one that [Reject] made with a status of 500 or above. An
//     operator must then release the record before a redrive.
func (g *Guard) SQS(h func(context.Context, events.SQSMessage) error, optFns ...func(*BatchOptions[events.SQSMessage])) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	b := guardMessages(g, source[events.SQSEvent, events.SQSMessage]{
		list:    func(e events.SQSEvent) []events.SQSMessage { return e.Records },
		convert: sqsMessage,
	}, h, optFns)
	return reported(b, func(names []string) events.SQSEventResponse {
		return events.SQSEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.SQSBatchItemFailure { return events.SQSBatchItemFailure{ItemIdentifier: name} })}
	})
}

// fifoSuffix ends the name of every FIFO queue and topic (Amazon SQS, "FIFO queue and
// message identifiers").
const fifoSuffix = ".fifo"

func sqsMessage(_ events.SQSEvent, e events.SQSMessage) message {
	m := message{name: e.MessageId, source: e.EventSourceARN, id: e.MessageId, body: []byte(e.Body)}
	if strings.HasSuffix(e.EventSourceARN, fifoSuffix) {
		m.group = e.Attributes["MessageGroupId"]
		m.parts, m.form = []string{m.group}, []string{"group"} // equal messages of two groups are different
	}
	for name, a := range e.MessageAttributes {
		value := string(a.BinaryValue)
		if a.StringValue != nil {
			value = *a.StringValue
		}
		m.attribute(name, a.DataType, value)
	}
	m.unwrap()
	return m
}
