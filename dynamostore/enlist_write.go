package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Write is one enlisted write. Its methods add a condition, and set the error to return
// if the condition fails.
type Write struct {
	tx        *Tx
	kind      kind
	name      string     // identifies the write in errors
	table     *string    // name or ARN
	key       attributes // nil for a put
	item      attributes // nil unless the write is a put
	update    *string    // the update expression; nil unless the write is an update
	condition *string    // the condition expression; nil if there is none
	names     map[string]string
	values    attributes
	verdict   func(*ConditionFailed) error // see ElseFunc; nil if neither Else nor ElseFunc was called
	err       error                        // why the write can't be made; nil if it can
}

// kind says which action of TransactWriteItems a write is.
type kind uint8

const (
	aPut kind = iota
	anUpdate
	aDelete
	aCheck
)

// If adds a condition to the write. If the write already has a condition, both must hold.
// If args has a placeholder that the write already uses, the guarded call can't commit its
// writes, and fails with [lambdaidem.ErrWriteInvalid].
func (w *Write) If(condition string, args Args) *Write {
	w.tx.mu.Lock()
	defer w.tx.mu.Unlock()
	w.tx.mustBeOpen()
	if w.condition != nil {
		condition = "(" + *w.condition + ") AND (" + condition + ")"
	}
	w.condition = aws.String(condition)
	w.bind(args)
	w.tx.recordError(w, w.err)
	return w
}

// Else sets the error of the guarded call for the case that this write's condition fails. The guard
// treats err as if the handler had returned it:
//
//   - With [lambdaidem.Reject], the client receives an error, which is stored.
//   - With [lambdaidem.Answer], the client receives an ordinary answer.
//   - With [lambdaidem.Retryable], a retry runs the handler again.
//
// Without Else, the call fails with [lambdaidem.ErrConditionFailed]. Under policy Rerun the record
// is released, so that a retry runs the handler again. Under policy Hold the outcome is uncertain,
// because the handler may have called other services.
//
// If the conditions of several writes fail, the write that was enlisted first decides.
func (w *Write) Else(err error) *Write {
	return w.ElseFunc(func(*ConditionFailed) error { return err })
}

// ElseFunc is like [Write.Else], but calls verdict to get the error. The argument of
// verdict contains the item on which the condition failed. So verdict can distinguish a
// missing item from an item with other values. If verdict returns nil, the call fails as
// if ElseFunc had not been called.
func (w *Write) ElseFunc(verdict func(*ConditionFailed) error) *Write {
	w.tx.mu.Lock()
	defer w.tx.mu.Unlock()
	w.tx.mustBeOpen()
	w.verdict = verdict
	return w
}

// action returns the write as an element of a TransactWriteItems request. The element
// asks DynamoDB to return the existing item if the condition fails.
func (w *Write) action() types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.kind {
	case aPut:
		return types.TransactWriteItem{Put: &types.Put{TableName: w.table, Item: w.item, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	case anUpdate:
		return types.TransactWriteItem{Update: &types.Update{TableName: w.table, Key: w.key, UpdateExpression: w.update, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	case aDelete:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: w.table, Key: w.key, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: w.table, Key: w.key, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	}
}
