package lambdaidem

import (
	"context"
	"errors"

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
//
// The event is what events.KinesisEvent is, with the fields of a tumbling window. A
// mapping with one (TumblingWindowInSeconds) is refused by an error on every
// invocation, and no handler runs: Lambda rebuilds a window's state from all of its
// records, and a record that was done before is not run again.
func (g *Guard) Kinesis(h func(context.Context, events.KinesisEventRecord) error, optFns ...func(*BatchOptions[events.KinesisEventRecord])) func(context.Context, events.KinesisTimeWindowEvent) (events.KinesisEventResponse, error) {
	b := guardMessages(g, source[events.KinesisTimeWindowEvent, events.KinesisEventRecord]{
		list:  func(e events.KinesisTimeWindowEvent) []events.KinesisEventRecord { return e.Records },
		read:  kinesisMessage,
		lasts: true,
	}, h, optFns)
	return unwindowed(func(e events.KinesisTimeWindowEvent) events.TimeWindowProperties { return e.TimeWindowProperties }, reported(b, func(names []string) events.KinesisEventResponse {
		return events.KinesisEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.KinesisBatchItemFailure {
			return events.KinesisBatchItemFailure{ItemIdentifier: name}
		})}
	}))
}

// unwindowed returns a handler of a stream's events that refuses those of a mapping with
// a tumbling window. Lambda counts a response without the window's state as a failed
// invocation, and a state would miss the records that replay: without an error the
// shard would stand still, and nothing would say why.
func unwindowed[E, R any](window func(E) events.TimeWindowProperties, h func(context.Context, E) (R, error)) func(context.Context, E) (R, error) {
	return func(ctx context.Context, e E) (R, error) {
		if w := window(e); w.State != nil || w.ShardID != "" || w.IsFinalInvokeForWindow || w.IsWindowTerminatedEarly || !w.Window.End.IsZero() {
			var none R
			return none, errWindow
		}
		return h(ctx, e)
	}
}

var errWindow = errors.New("lambdaidem: the event source mapping has a tumbling window, which can't be guarded: " +
	"a record that is done runs no second time, so a window that Lambda rebuilds would miss it; " +
	"remove TumblingWindowInSeconds, or leave this handler unguarded")

func kinesisMessage(e events.KinesisEventRecord) message {
	r := e.Kinesis
	return message{name: r.SequenceNumber, source: e.EventSourceArn, group: r.PartitionKey, id: e.EventID, body: r.Data}
}
