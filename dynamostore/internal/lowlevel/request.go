package lowlevel

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The requests. Each function appends the request's JSON to b, or reports false
// for an input with a member, or a value, that it does not know.

// AppendPutItem writes a PutItem.
func AppendPutItem(b []byte, in *dynamodb.PutItemInput) (_ []byte, ok bool) {
	if in.ConditionalOperator != "" || in.Expected != nil || in.ReturnConsumedCapacity != "" || in.ReturnItemCollectionMetrics != "" ||
		in.ReturnValues != "" || in.Item == nil || in.TableName == nil {
		return b, false
	}
	b = appendString(append(b, `{"TableName":`...), *in.TableName)
	if b, ok = appendAttributes(append(b, `,"Item":`...), in.Item); !ok {
		return b, false
	}
	b, ok = appendCondition(b, in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure)
	return append(b, '}'), ok
}

// AppendUpdateItem writes an UpdateItem.
func AppendUpdateItem(b []byte, in *dynamodb.UpdateItemInput) (_ []byte, ok bool) {
	if in.AttributeUpdates != nil || in.ConditionalOperator != "" || in.Expected != nil || in.ReturnConsumedCapacity != "" ||
		in.ReturnItemCollectionMetrics != "" || in.Key == nil || in.TableName == nil {
		return b, false
	}
	b = appendString(append(b, `{"TableName":`...), *in.TableName)
	if b, ok = appendAttributes(append(b, `,"Key":`...), in.Key); !ok {
		return b, false
	}
	b = appendOptional(b, `,"UpdateExpression":`, in.UpdateExpression)
	if in.ReturnValues != "" {
		b = appendString(append(b, `,"ReturnValues":`...), string(in.ReturnValues))
	}
	b, ok = appendCondition(b, in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues, in.ReturnValuesOnConditionCheckFailure)
	return append(b, '}'), ok
}

// AppendGetItem writes a GetItem.
func AppendGetItem(b []byte, in *dynamodb.GetItemInput) (_ []byte, ok bool) {
	if in.AttributesToGet != nil || in.ExpressionAttributeNames != nil || in.ProjectionExpression != nil || in.ReturnConsumedCapacity != "" ||
		in.Key == nil || in.TableName == nil {
		return b, false
	}
	b = appendString(append(b, `{"TableName":`...), *in.TableName)
	if b, ok = appendAttributes(append(b, `,"Key":`...), in.Key); !ok {
		return b, false
	}
	if in.ConsistentRead != nil {
		b = appendBool(append(b, `,"ConsistentRead":`...), *in.ConsistentRead)
	}
	return append(b, '}'), true
}

// AppendTransactWriteItems writes a TransactWriteItems.
func AppendTransactWriteItems(b []byte, in *dynamodb.TransactWriteItemsInput) (_ []byte, ok bool) {
	if in.ReturnConsumedCapacity != "" || in.ReturnItemCollectionMetrics != "" || in.TransactItems == nil || in.ClientRequestToken == nil {
		return b, false
	}
	b = appendString(append(b, `{"ClientRequestToken":`...), *in.ClientRequestToken)
	b = append(b, `,"TransactItems":[`...)
	for i := range in.TransactItems {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = appendAction(b, &in.TransactItems[i]); !ok {
			return b, false
		}
	}
	return append(b, "]}"...), true
}

func appendAction(b []byte, item *types.TransactWriteItem) ([]byte, bool) {
	var a action
	switch put, update, del, check := item.Put, item.Update, item.Delete, item.ConditionCheck; {
	case put != nil && update == nil && del == nil && check == nil:
		a = action{`{"Put":{"TableName":`, put.TableName, `,"Item":`, put.Item, nil, put.ConditionExpression,
			put.ExpressionAttributeNames, put.ExpressionAttributeValues, put.ReturnValuesOnConditionCheckFailure}
	case put == nil && update != nil && del == nil && check == nil:
		a = action{`{"Update":{"TableName":`, update.TableName, `,"Key":`, update.Key, update.UpdateExpression, update.ConditionExpression,
			update.ExpressionAttributeNames, update.ExpressionAttributeValues, update.ReturnValuesOnConditionCheckFailure}
	case put == nil && update == nil && del != nil && check == nil:
		a = action{`{"Delete":{"TableName":`, del.TableName, `,"Key":`, del.Key, nil, del.ConditionExpression,
			del.ExpressionAttributeNames, del.ExpressionAttributeValues, del.ReturnValuesOnConditionCheckFailure}
	case put == nil && update == nil && del == nil && check != nil:
		a = action{`{"ConditionCheck":{"TableName":`, check.TableName, `,"Key":`, check.Key, nil, check.ConditionExpression,
			check.ExpressionAttributeNames, check.ExpressionAttributeValues, check.ReturnValuesOnConditionCheckFailure}
	default:
		return b, false
	}
	return a.appendTo(b)
}

// action is one write of a transaction.
type action struct {
	head      string // up to the table's name
	table     *string
	of        string // the member that has the attributes
	attrs     Attributes
	update    *string
	condition *string
	names     map[string]string
	values    Attributes
	old       types.ReturnValuesOnConditionCheckFailure
}

func (a *action) appendTo(b []byte) (_ []byte, ok bool) {
	if a.table == nil || a.attrs == nil {
		return b, false
	}
	b = appendString(append(b, a.head...), *a.table)
	if b, ok = appendAttributes(append(b, a.of...), a.attrs); !ok {
		return b, false
	}
	b = appendOptional(b, `,"UpdateExpression":`, a.update)
	b, ok = appendCondition(b, a.condition, a.names, a.values, a.old)
	return append(b, "}}"...), ok
}

// appendCondition writes what all conditional writes have, each member with a
// comma before it.
func appendCondition(b []byte, condition *string, names map[string]string, values Attributes, old types.ReturnValuesOnConditionCheckFailure) (_ []byte, ok bool) {
	b = appendOptional(b, `,"ConditionExpression":`, condition)
	if names != nil {
		b = appendNames(append(b, `,"ExpressionAttributeNames":`...), names)
	}
	if values != nil {
		if b, ok = appendAttributes(append(b, `,"ExpressionAttributeValues":`...), values); !ok {
			return b, false
		}
	}
	if old != "" {
		b = appendString(append(b, `,"ReturnValuesOnConditionCheckFailure":`...), string(old))
	}
	return b, true
}

func appendOptional(b []byte, member string, text *string) []byte {
	if text == nil {
		return b
	}
	return appendString(append(b, member...), *text)
}
