package lowlevel

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// AppendAction appends item, one write of a transaction, in DynamoDB's JSON. It returns false if
// item does not have exactly one action (a Put, Update, Delete or ConditionCheck), if the action
// has no table, if a Put has no item, or if another action has no key. It also returns false if
// [AppendValue] returns false for a value.
func AppendAction(b []byte, item *types.TransactWriteItem) ([]byte, bool) {
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

// action is one write of a transaction, of any kind.
type action struct {
	head      string // the JSON before the table's name
	table     *string
	attrsHead string     // the JSON before attrs, which names the member Item or Key
	attrs     Attributes // the item to put, or the key of the item to write
	update    *string    // the UpdateExpression; nil except for an update
	condition *string
	names     map[string]string
	values    Attributes
	returnOld types.ReturnValuesOnConditionCheckFailure
}

func (a *action) appendTo(b []byte) (_ []byte, ok bool) {
	if a.table == nil || a.attrs == nil {
		return b, false
	}
	b = AppendString(append(b, a.head...), *a.table)
	if b, ok = AppendAttributes(append(b, a.attrsHead...), a.attrs); !ok {
		return b, false
	}
	b = appendOptional(b, `,"UpdateExpression":`, a.update)
	b, ok = appendCondition(b, a.condition, a.names, a.values, a.returnOld)
	return append(b, "}}"...), ok
}

// appendCondition appends the members that all kinds of conditional writes can have, each preceded
// by a comma. returnOld is the value of ReturnValuesOnConditionCheckFailure: whether DynamoDB
// returns the existing item if the condition fails. ok is false if a value can't be encoded.
func appendCondition(b []byte, condition *string, names map[string]string, values Attributes, returnOld types.ReturnValuesOnConditionCheckFailure) (_ []byte, ok bool) {
	b = appendOptional(b, `,"ConditionExpression":`, condition)
	if names != nil {
		b = AppendNames(append(b, `,"ExpressionAttributeNames":`...), names)
	}
	if values != nil {
		if b, ok = AppendAttributes(append(b, `,"ExpressionAttributeValues":`...), values); !ok {
			return b, false
		}
	}
	if returnOld != "" {
		b = AppendString(append(b, `,"ReturnValuesOnConditionCheckFailure":`...), string(returnOld))
	}
	return b, true
}

func appendOptional(b []byte, member string, text *string) []byte {
	if text == nil {
		return b
	}
	return AppendString(append(b, member...), *text)
}
