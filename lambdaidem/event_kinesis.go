package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Kinesis guards a handler of the records of a Kinesis data stream (V2). Records of
// one partition key keep their order: none begins after one that failed. The event
// source mapping needs ReportBatchItemFailures: Lambda then goes on from the lowest
// sequence number that is reported, or splits the batch there
// (BisectBatchOnFunctionError), and what was done after it replays without running.
//
// A shard waits for its oldest failure, so a record that fails for ever must end
// somewhere: let the mapping have MaximumRetryAttempts, MaximumRecordAgeInSeconds and
// a destination on failure, with room for a lease: a record that is in progress
// elsewhere waits for it, within the invocation's deadline, unless Options.Wait says
// for how long.
func (g *Guard) Kinesis(h func(context.Context, events.KinesisEventRecord) error, optFns ...func(*BatchOptions[events.KinesisEventRecord])) func(context.Context, events.KinesisEvent) (events.KinesisEventResponse, error) {
	b := guardMessages(g, source[events.KinesisEvent, events.KinesisEventRecord]{
		list:  func(e events.KinesisEvent) []events.KinesisEventRecord { return e.Records },
		read:  kinesisMessage,
		lasts: true,
	}, h, optFns)
	return reported(b, func(names []string) events.KinesisEventResponse {
		return events.KinesisEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.KinesisBatchItemFailure {
			return events.KinesisBatchItemFailure{ItemIdentifier: name}
		})}
	})
}

func kinesisMessage(e events.KinesisEventRecord) message {
	r := e.Kinesis
	return message{name: r.SequenceNumber, source: e.EventSourceArn, group: r.PartitionKey, id: e.EventID, body: r.Data}
}
