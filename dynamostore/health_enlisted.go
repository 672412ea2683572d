package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// EnlistedTable tells a [HealthCheck] about a table that handlers enlist writes to. The store
// does not know these tables.
type EnlistedTable struct {
	Table string // the name or ARN of the table; required

	// Key is the primary key in the requests that test the Actions. Required. The names and
	// types of its attributes must be those of the table's key. Their values don't matter,
	// because the requests change nothing. A key that no item has is best: the requests then
	// cost least and can't conflict with other transactions.
	Key map[string]types.AttributeValue

	// Actions lists the actions on the table that handlers enlist in transactions: at least
	// one of PutItem, UpdateItem, DeleteItem and ConditionCheckItem.
	Actions []string
}

func (e *EnlistedTable) problem() string {
	switch {
	case !isTableName(e.Table) && !strings.HasPrefix(e.Table, "arn:"):
		return fmt.Sprintf("Table is %q; it must be a table's name (3 to 255 of A-Z a-z 0-9 _ . -) or its ARN", e.Table)
	case len(e.Key) == 0 || len(e.Key) > 2:
		return fmt.Sprintf("Key has %d attributes; it must have the table's partition key, and its sort key if there is one", len(e.Key))
	case len(e.Actions) == 0:
		return "Actions is empty; name what handlers enlist"
	}
	for _, action := range e.Actions {
		if e.write(action) == nil {
			return fmt.Sprintf("Actions has %q; it may have PutItem, UpdateItem, DeleteItem and ConditionCheckItem", action)
		}
	}
	return ""
}

// write returns a transaction's action of the given kind, such as "PutItem", on the item with the
// key e.Key. The action's condition never holds, so it writes nothing. write returns nil if action
// is not one of the four names that Actions may contain.
func (e *EnlistedTable) write(action string) *types.TransactWriteItem {
	table, condition := aws.String(e.Table), aws.String(neverTrue)
	names := map[string]string{"#id": slices.Sorted(maps.Keys(e.Key))[0]}
	switch action {
	case "PutItem":
		return &types.TransactWriteItem{Put: &types.Put{TableName: table, Item: e.Key, ConditionExpression: condition, ExpressionAttributeNames: names}}
	case "UpdateItem":
		return &types.TransactWriteItem{Update: &types.Update{
			TableName: table, Key: e.Key, UpdateExpression: aws.String("SET #probe = #id"), ConditionExpression: condition, ExpressionAttributeNames: withProbe(names)}}
	case "DeleteItem":
		return &types.TransactWriteItem{Delete: &types.Delete{TableName: table, Key: e.Key, ConditionExpression: condition, ExpressionAttributeNames: names}}
	case "ConditionCheckItem":
		return &types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: table, Key: e.Key, ConditionExpression: condition, ExpressionAttributeNames: names}}
	}
	return nil
}

// enlistedProbes returns a probe for each action on the table. Each probe sends its own
// transaction, because if one action of a transaction is not allowed, DynamoDB does not say
// whether the others are.
func (c *HealthCheck) enlistedProbes(e *EnlistedTable) []*probe {
	var all []*probe
	for _, action := range e.Actions {
		all = append(all, &probe{name: action, table: e.Table, cacheFor: c.opts.WritesEvery, run: func(ctx context.Context) Check {
			_, err := wire.Watch(ctx, func(ctx context.Context) error {
				_, err := c.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{*e.write(action)}})
				return err
			})
			const keyHint = "HealthOptions.Enlisted must have the table's own key, by names and types"
			cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
			if !ok || len(cancelled.CancellationReasons) == 0 {
				return c.resultOf(action, e.Table, keyHint, err)
			}
			return c.resultOfCancellation(action, e.Table, keyHint, &cancelled.CancellationReasons[0], err)
		}})
	}
	return all
}

// resultOfCancellation returns the result of a check whose transaction was cancelled for the given
// reason. If DynamoDB refused the action as invalid, the key in the request is probably wrong.
// Check.Detail then includes keyHint, a text that says what the primary key must be.
func (c *HealthCheck) resultOfCancellation(action, table, keyHint string, reason *types.CancellationReason, err error) Check {
	found := func(status HealthStatus, code TableCode, says string) Check {
		return Check{Status: status, Code: code, Err: err, Detail: fmt.Sprintf("%s on table %q %s (cause: %s: %s)",
			action, table, says, aws.ToString(reason.Code), aws.ToString(reason.Message))}
	}
	reasonCode := reasonOfCancellation(aws.ToString(reason.Code))
	if reasonCode == lambdaidem.ReasonThrottled {
		return found(HealthWarn, Throttled, "is throttled; requests that meet this on every try are answered with 503")
	}
	if reasonCode == lambdaidem.ReasonInvalid {
		return found(HealthFail, WrongKey, "is refused as invalid; "+keyHint)
	}
	return Check{Status: HealthPass} // the condition failed or another transaction was in conflict, so the action is allowed
}
