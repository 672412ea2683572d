package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// operatorWrite describes the conditional write of Release or Settle.
type operatorWrite struct {
	op        string  // StoreError.Op in its errors
	sets      updates // the attributes to set or remove, in addition to token and operations
	condition string  // its ConditionExpression
}

// write makes the conditional UpdateItem that request describes, with the new values in itm.
// inspected is the record as the operator read it.
//
// write returns the record as it is now. If the record has changed since it was read, the error is
// ErrRecordChanged. Any other error is a StoreError.
func (o *Operator) write(ctx context.Context, inspected Inspected, request *operatorWrite, itm *item) (Inspected, error) {
	values := (&given{now: inspected.At(), oldRec: &inspected.Record}).attributes()
	if request.condition == isStillWhatWasSettled {
		did := operations(inspected.Operations)
		values[":seen_operations"] = did.write()
		delete(values, ":seen_state") // DynamoDB refuses values that no expression uses
		delete(values, ":seen_end")
	}
	out, fate, err := o.s.updateAttributes(ctx, &attributeUpdate{sets: request.sets, also: []string{attrToken, attrOperations}, condition: request.condition,
		returns: types.ReturnValueAllNew}, itm, values)
	if err == nil {
		now, err := o.s.inspected(ctx, out.Attributes, out.ResultMetadata)
		if err != nil { // the write was applied, but the reply can't be read
			return Inspected{}, failed(request.op, wire.Unknown, err)
		}
		return now, nil
	}
	refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return inspected, failed(request.op, fate, err)
	}
	now := inspected.clock().inspected(lambdaidem.Record{}, nil)
	if len(refused.Item) > 0 {
		current, err := o.s.layout.parse(refused.Item)
		if err != nil {
			return inspected, failed(request.op, fate, err)
		}
		o.s.inspect(ctx, &now, current)
	}
	if slices.ContainsFunc(now.Operations, func(did Operation) bool { return did.Token == itm.Token }) {
		return now, nil // an earlier try of this write was applied, and its reply was lost
	}
	if fate == wire.Unknown && !isSameAttempt(now.Record, inspected.Record) {
		return now, failed(request.op, fate, errChangedOrApplied)
	}
	return now, ErrRecordChanged
}

// isSameAttempt reports whether current and oldRec, two states of a record, are of the same
// attempt. An operator's change was made to oldRec, its reply was lost, and the change is not in
// the list of operations of the current record. If isSameAttempt returns true, the change was not
// applied. Otherwise it may have been applied: the record may then have expired, and a later
// attempt may have created it again, with an empty list.
func isSameAttempt(current, oldRec lambdaidem.Record) bool {
	return current.State != lambdaidem.Absent && current.Attempt == oldRec.Attempt && current.StartedAt.Equal(oldRec.StartedAt)
}

// nextItem returns an item for the update of an inspected record. The item has a new token, and the
// record's Operations with a new Operation of the kind opKind at the end. The caller sets the
// item's other attributes. nextItem returns an error if OperatorOptions.Random fails.
func (o *Operator) nextItem(inspected Inspected, opKind OperationKind, forced bool) (*item, error) {
	own, err := o.newToken()
	if err != nil {
		return nil, err
	}
	rec := inspected.Record
	done := Operation{What: opKind, By: o.name, Reason: o.reason, At: inspected.At().Truncate(time.Millisecond), Attempt: rec.Attempt, Token: own, Forced: forced}
	return &item{ID: rec.ID, Token: own, Operations: withOperation(inspected.Operations, done)}, nil
}

func (o *Operator) newToken() (string, error) {
	var token [16]byte
	if _, err := io.ReadFull(o.opts.Random, token[:]); err != nil {
		return "", fmt.Errorf("dynamostore: OperatorOptions.Random: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(token[:]), nil
}
