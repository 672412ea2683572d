package lambdaidem

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// DynamoDBStream guards a handler of the records of a DynamoDB stream, for example one that
// publishes each change of an outbox table. Records of the same item keep their order: after
// one of them has failed, no later record of that item begins. The changes of one DynamoDB
// transaction arrive as separate records, and other records may come between them. Failures,
// retries and tumbling windows are as for [Guard.Kinesis].
func (g *Guard) DynamoDBStream(h func(context.Context, events.DynamoDBEventRecord) error, optFns ...func(*BatchOptions[events.DynamoDBEventRecord])) func(context.Context, events.DynamoDBTimeWindowEvent) (events.DynamoDBEventResponse, error) {
	b := guardMessages(g, source[events.DynamoDBTimeWindowEvent, events.DynamoDBEventRecord]{
		list:           func(e events.DynamoDBTimeWindowEvent) []events.DynamoDBEventRecord { return e.Records },
		read:           streamRecord,
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

// mustJSON returns v, a part of a stream record, as JSON. It sorts the members of sets: a set
// of DynamoDB has no order, but equal sets must yield equal JSON. It panics if v can't be
// encoded. That does not happen, because Lambda has decoded v from JSON.
func mustJSON(v any) string {
	text, err := toJSON(v)
	var tree any
	if err == nil {
		tree, err = fromJSON[any](text, true)
	}
	if err == nil {
		text, err = toJSON(sortedSets(tree))
	}
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: a record of a stream can't be written as JSON again: %v", err))
	}
	return string(text)
}

// sortedSets sorts the members of every set in v and returns v. Equal sets then yield equal JSON,
// although the members of a DynamoDB set have no order.
//
// v is decoded JSON of DynamoDB attribute values. In such JSON, a set is a list under the name SS,
// NS or BS. No other list has such a name.
func sortedSets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = sortedSets(member)
			if list, ok := member.([]any); ok && (name == "SS" || name == "NS" || name == "BS") {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	case []any:
		for i, member := range v {
			v[i] = sortedSets(member)
		}
	}
	return v
}
