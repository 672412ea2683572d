package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// Kinesis guards a handler of the records of a Kinesis data stream. Records with the same partition
// key keep their order: after one of them has failed, the handler does not run for later records
// with that key.
//
// The event source mapping needs ReportBatchItemFailures. If records have failed, Lambda retries
// from the lowest sequence number of a failed record, or splits the batch there
// (BisectBatchOnFunctionError). The handler does not run again for records that it has handled.
//
// A shard makes no progress past a record that fails, so configure MaximumRetryAttempts,
// MaximumRecordAgeInSeconds and a destination for failures. Set both limits high enough to outlast
// a lease.
//
// If another invocation is still handling a record, this invocation waits for that invocation. The
// wait ends shortly before this invocation's own deadline, or after BatchOptions.Wait if that is
// set.
//
// A mapping with a tumbling window (TumblingWindowInSeconds) can't be guarded: every invocation
// returns an error and runs no handler. Lambda rebuilds the state of a window from all of its
// records, but the guard would skip the records that are already handled.
func (g *Guard) Kinesis(h func(context.Context, events.KinesisEventRecord) error, optFns ...func(*BatchOptions[events.KinesisEventRecord])) func(context.Context, events.KinesisTimeWindowEvent) (events.KinesisEventResponse, error) {
	b := guardMessages(g, source[events.KinesisTimeWindowEvent, events.KinesisEventRecord]{
		list:           func(e events.KinesisTimeWindowEvent) []events.KinesisEventRecord { return e.Records },
		convert:        kinesisMessage,
		limitedRetries: true,
	}, h, optFns)
	return unwindowed(func(e events.KinesisTimeWindowEvent) events.TimeWindowProperties { return e.TimeWindowProperties }, reported(b, func(names []string) events.KinesisEventResponse {
		return events.KinesisEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.KinesisBatchItemFailure {
			return events.KinesisBatchItemFailure{ItemIdentifier: name}
		})}
	}))
}

func kinesisMessage(_ events.KinesisTimeWindowEvent, e events.KinesisEventRecord) message {
	r := e.Kinesis
	return message{name: r.SequenceNumber, source: e.EventSourceArn, group: r.PartitionKey, id: e.EventID, body: r.Data}
}
