package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// units has the capacity units that requests consumed.
type units struct {
	write, read float64 // units of the tables, as DynamoDB reported them
	index       float64 // write units of the tables' indexes
	refused     float64 // write units of refused writes, for which DynamoDB reports nothing, computed by AWS's rule
}

func (u units) plus(v units) units {
	return units{u.write + v.write, u.read + v.read, u.index + v.index, u.refused + v.refused}
}

// meter counts the units that the requests of its watched clients consume. Only one guarded request
// may run at a time, but the requests for the parts of its answer may be concurrent.
type meter struct {
	items *dynamodb.Client // a client that is not counted, for reading the items of refused writes
	spent chan units       // has a single element, the sum so far

	// computes is true if the tables have no index of leases. The units of the index are then
	// computed by AWS's rule.
	computes bool
}

func newMeter(items *dynamodb.Client) *meter {
	m := &meter{items: items, spent: make(chan units, 1)}
	m.spent <- units{}
	return m
}

// take returns the units consumed since its last call.
func (m *meter) take() units {
	spent := <-m.spent
	m.spent <- units{}
	return spent
}

// watched returns a copy of the client whose requests are counted.
func (m *meter) watched(client *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = client.Options().HTTPClient
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("bench.Meter", m.handle), middleware.After)
		})
	})
}

// handle asks DynamoDB to report the capacity that a request consumes, and adds it to the sum.
func (m *meter) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	middleware.InitializeOutput, middleware.Metadata, error,
) {
	const total = types.ReturnConsumedCapacityIndexes
	switch p := in.Parameters.(type) {
	case *dynamodb.PutItemInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.UpdateItemInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.GetItemInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.TransactWriteItemsInput:
		p.ReturnConsumedCapacity = total
	case *dynamodb.QueryInput:
		p.ReturnConsumedCapacity = total
	default:
		return middleware.InitializeOutput{}, middleware.Metadata{}, fmt.Errorf("a %T is not counted", p)
	}
	before, uncounted := m.entry(ctx, in.Parameters)
	if uncounted != nil {
		return middleware.InitializeOutput{}, middleware.Metadata{}, uncounted
	}
	out, meta, err := next.HandleInitialize(ctx, in)
	spent, uncounted := m.consumed(ctx, in.Parameters, out.Result, err)
	if uncounted == nil && err == nil {
		var after entry
		after, uncounted = m.entry(ctx, in.Parameters)
		spent.index += changed(before, after)
		if _, transacts := in.Parameters.(*dynamodb.TransactWriteItemsInput); transacts {
			spent.index += changed(before, after) // DynamoDB Local counts the index twice in a transaction; AWS's pages don't say
		}
	}
	if uncounted != nil {
		return out, meta, errors.Join(err, uncounted)
	}
	m.spent <- (<-m.spent).plus(spent)
	return out, meta, err
}

func (m *meter) consumed(ctx context.Context, in, out any, err error) (units, error) {
	if err != nil {
		refused, uncounted := m.refused(ctx, in, err)
		return units{refused: refused}, uncounted
	}
	var u units
	add := func(to *float64, reported ...types.ConsumedCapacity) {
		for _, r := range reported {
			*to += aws.ToFloat64(r.CapacityUnits)
			for _, index := range r.GlobalSecondaryIndexes { // CapacityUnits includes the indexes
				*to -= aws.ToFloat64(index.CapacityUnits)
				u.index += aws.ToFloat64(index.CapacityUnits)
			}
		}
	}
	switch out := out.(type) {
	case *dynamodb.PutItemOutput:
		add(&u.write, *out.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		add(&u.write, *out.ConsumedCapacity)
	case *dynamodb.GetItemOutput:
		add(&u.read, *out.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		add(&u.write, out.ConsumedCapacity...)
	case *dynamodb.QueryOutput: // a query consumes read units, of the table or of an index
		u.read += aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
	}
	return u, nil
}

// refused returns the write units that a refused write consumed. A write whose condition fails
// consumes as much as a successful one, by the size of the larger of the existing item and the new
// one ("DynamoDB read and write operations"). A canceled transaction consumes as much as one that
// is committed. refused returns an error if the request is of another kind, or failed for another
// reason.
func (m *meter) refused(ctx context.Context, in any, err error) (float64, error) {
	var single *types.ConditionalCheckFailedException
	var several *types.TransactionCanceledException
	switch p := in.(type) {
	case *dynamodb.PutItemInput:
		if errors.As(err, &single) {
			return m.writeUnits(ctx, p.TableName, p.Item)
		}
	case *dynamodb.UpdateItemInput:
		if errors.As(err, &single) {
			return m.writeUnits(ctx, p.TableName, p.Key)
		}
	case *dynamodb.TransactWriteItemsInput:
		if !errors.As(err, &several) {
			break
		}
		sum := 0.0
		for _, action := range p.TransactItems {
			table, item := target(action)
			n, err := m.writeUnits(ctx, table, item)
			if err != nil {
				return 0, err
			}
			sum += 2 * n // once to prepare, once to commit
		}
		return sum, nil
	}
	return 0, fmt.Errorf("what this error consumed is not known: %w", err)
}

// target returns the table of an action, and the item that the action puts or the key of the item
// that it changes.
func target(action types.TransactWriteItem) (table *string, item map[string]types.AttributeValue) {
	switch {
	case action.Put != nil:
		return action.Put.TableName, action.Put.Item
	case action.Update != nil:
		return action.Update.TableName, action.Update.Key
	case action.Delete != nil:
		return action.Delete.TableName, action.Delete.Key
	default:
		return action.ConditionCheck.TableName, action.ConditionCheck.Key
	}
}

// writeUnits returns the units of a write, by the size of the larger of the existing item and the
// given one. item is the whole new item, or only its key.
func (m *meter) writeUnits(ctx context.Context, table *string, item map[string]types.AttributeValue) (float64, error) {
	found, err := m.items.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: table, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"id": item["id"]},
	})
	if err != nil {
		return 0, err
	}
	larger := max(sizeOf(found.Item), sizeOf(item))
	return float64(max(1, (larger+1023)/1024)), nil
}
