package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
)

// DynamoDBStream guards a handler of the records of a DynamoDB stream, for example a handler that
// publishes each change of an outbox table. Records of the same item keep their order: after one of
// them has failed, the handler does not run for later records of that item. The changes of one
// DynamoDB transaction arrive as separate records, and other records may come between them. For
// failures, retries and tumbling windows, see [Guard.Kinesis].
func (g *Guard) DynamoDBStream(h func(context.Context, events.DynamoDBEventRecord) error, optFns ...func(*BatchOptions[events.DynamoDBEventRecord])) func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error) {
	b := guardMessages(g, source[events.DynamoDBTimeWindowEvent, events.DynamoDBEventRecord]{
		list:           func(e events.DynamoDBTimeWindowEvent) []events.DynamoDBEventRecord { return e.Records },
		convert:        streamRecord,
		limitedRetries: true,
	}, h, optFns)
	return unwindowed(func(e events.DynamoDBTimeWindowEvent) events.TimeWindowProperties { return e.TimeWindowProperties }, reported(b, func(names []string) events.DynamoDBEventResponse {
		return events.DynamoDBEventResponse{BatchItemFailures: failuresOf(names, func(name string) events.DynamoDBBatchItemFailure {
			return events.DynamoDBBatchItemFailure{ItemIdentifier: name}
		})}
	}))
}

func streamRecord(_ events.DynamoDBTimeWindowEvent, e events.DynamoDBEventRecord) message {
	type images = map[string]events.DynamoDBAttributeValue
	c := e.Change
	return message{name: c.SequenceNumber, source: e.EventSourceArn, group: mustJSON(c.Keys), id: e.EventID,
		body: []byte(mustJSON([]images{c.Keys, c.OldImage, c.NewImage})), parts: []string{e.EventName}}
}
