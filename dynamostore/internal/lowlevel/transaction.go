package lowlevel

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// AppendAction appends one write of a transaction. It reports false for a write that has
// none of the four kinds or more than one, no table, no item or key, or a value that this
// package does not know.
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
	b = AppendString(append(b, a.head...), *a.table)
	if b, ok = AppendAttributes(append(b, a.of...), a.attrs); !ok {
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
		b = AppendNames(append(b, `,"ExpressionAttributeNames":`...), names)
	}
	if values != nil {
		if b, ok = AppendAttributes(append(b, `,"ExpressionAttributeValues":`...), values); !ok {
			return b, false
		}
	}
	if old != "" {
		b = AppendString(append(b, `,"ReturnValuesOnConditionCheckFailure":`...), string(old))
	}
	return b, true
}

func appendOptional(b []byte, member string, text *string) []byte {
	if text == nil {
		return b
	}
	return AppendString(append(b, member...), *text)
}
