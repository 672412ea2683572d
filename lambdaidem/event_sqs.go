package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// SQS guards a handler of the messages of an SQS queue, standard or FIFO: the two
// are told apart by the queue's ARN. Each message runs once for its key; those
// that failed are reported, and come back when their visibility timeout ends. The
// event source mapping needs ReportBatchItemFailures, or see
// BatchOptions.WholeBatch.
//
// Of a FIFO queue, nothing of a message group begins after its first failure: those
// messages are reported too, so the order holds. Other groups go on. That is as safe
// as stopping the batch, since SQS orders messages within a group alone, and a group
// that fails for ever can't starve its neighbours; see BatchOptions.StopBatch.
//
// A duplicate that finds its message in progress elsewhere is reported as failed,
// which costs a receive of the queue's maxReceiveCount: have the visibility timeout
// longer than the function's Timeout by more than Options.MaxSkew, best six times as
// long (AWS Lambda, "Configuring a queue to use with Lambda"), so that a lease is
// over when its message comes back.
//
// An error of the handler releases the message, whatever it is marked with
// ([Permanent], [Reject]): it comes back, at last from the dead-letter queue, and
// runs. Under policy [Hold] an error without the mark [Retryable] holds it, as in
// X2: then an operator releases the record before a redrive.
func (g *Guard) SQS(h func(context.Context, events.SQSMessage) error, optFns ...func(*BatchOptions[events.SQSMessage])) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	b := guardMessages(g, source[events.SQSEvent, events.SQSMessage]{
		list: func(e events.SQSEvent) []events.SQSMessage { return e.Records },
		read: sqsMessage,
	}, h, optFns)
	return reported(b, func(names []string) events.SQSEventResponse {
		return events.SQSEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.SQSBatchItemFailure { return events.SQSBatchItemFailure{ItemIdentifier: name} })}
	})
}

// fifoSuffix ends the name of every FIFO queue and topic (Amazon SQS, "FIFO queue
// and message identifiers").
const fifoSuffix = ".fifo"

func sqsMessage(e events.SQSMessage) message {
	m := message{name: e.MessageId, source: e.EventSourceARN, id: e.MessageId, body: []byte(e.Body)}
	if strings.HasSuffix(e.EventSourceARN, fifoSuffix) {
		m.group = e.Attributes["MessageGroupId"]
		m.parts, m.form = []string{m.group}, []string{"group"} // a message of alice's is none of bob's
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
