package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Settle completes a record with an answer from the operator. Every retry then gets this answer,
// and none runs the handler. The record may be in progress or released or, if OperatorOptions.Again
// is set, settled before. The record keeps its fingerprint and lasts for at least
// OperatorOptions.TTL. An attempt that is still running can no longer complete the record.
//
// Settle uses the Outcome and the Value or Failure of result. They must fit the kind of the record;
// see [lambdaidem.CheckResult].
//
// inspected is the record as the operator has read it, for example by [Store.Inspect]. The write is
// conditional: the token and the state of the record must still be those of inspected.Record.
//
// If Settle succeeds, it returns the record as it is now. The error is one of these:
//   - [ErrRecordChanged], with the record as it is now
//   - [ErrRecordCompleted] or [ErrRecordGone]
//   - [ErrRecordSettled], unless OperatorOptions.Again is set
//   - [ErrNotEncrypted], if the answer must be encrypted and the store has no encryption key
//   - [*LeaseLiveError], unless OperatorOptions.Force is set
//   - [*lambdaidem.StoreError]. If its NotApplied is false, the record may have been settled;
//     inspect it again.
//   - another error, if result does not fit the record, if inspected.Record was not read from the
//     store, or if OperatorOptions.Random failed; the record is then unchanged
func (o *Operator) Settle(ctx context.Context, inspected Inspected, result lambdaidem.Result) (Inspected, error) {
	write := &operatorWrite{op: opOperatorSettle, sets: completion, condition: isStillWhatWasSeen}
	var forced bool
	var err error
	if inspected.settled() {
		write.condition = isStillWhatWasSettled
		err = o.maySettleAgain(inspected)
	} else {
		forced, err = o.mayChange(inspected)
	}
	if err != nil {
		return inspected, err
	}
	if err := o.mayStore(inspected, result); err != nil {
		return inspected, err
	}
	itm, err := o.nextItem(inspected, OperationSettled, forced)
	if err != nil {
		return inspected, err
	}
	result.At, result.Expires = inspected.At().Truncate(time.Millisecond), o.expires(inspected)
	kept, err := o.s.prepare(ctx, lambdaidem.Lease{ID: itm.ID, Token: itm.Token, Scope: inspected.Record.Scope}, result)
	if err != nil {
		return inspected, err
	}
	itm.finish(kept)
	return o.write(ctx, inspected, write, itm)
}

// settled reports whether the record has an answer that an operator gave.
func (i Inspected) settled() bool {
	return isSettled(i.Record.State, i.Record.Token, i.Operations)
}

// isSettled reports whether a record with this state, token and list of operations has an answer
// that an operator gave. Such a record is completed, and its last operation is an OperationSettled
// with the record's token. A later change, such as a purge, adds another operation or replaces the
// token.
func isSettled(state lambdaidem.State, token string, did []Operation) bool {
	n := len(did)
	return state == lambdaidem.Completed && n > 0 && did[n-1].What == OperationSettled && did[n-1].Token == token
}

// maySettleAgain returns an error if an answer that an operator has given must not be replaced.
// That is so if OperatorOptions.Again is not set, if the record has expired, or if inspected.Record
// was not read from the store.
func (o *Operator) maySettleAgain(inspected Inspected) error {
	switch {
	case inspected.readAt.IsZero():
		return errNotInspected
	case inspected.Record.GoneAt(inspected.At()):
		return ErrRecordGone
	case !o.opts.Again:
		return ErrRecordSettled
	}
	return nil
}

// mayStore returns an error if the result is not valid for the record; see lambdaidem.CheckResult.
// It also returns an error if the function that took the record's lease encrypts answers and the
// operator's store has no encryption key. A result without an answer (lambdaidem.NoAnswer) needs no
// key.
func (o *Operator) mayStore(inspected Inspected, result lambdaidem.Result) error {
	if err := lambdaidem.CheckResult(inspected.Record.Scope, result); err != nil {
		return fmt.Errorf("dynamostore: Settle: %w", err)
	}
	if inspected.Encrypted && o.s.keys == nil && !saysNoAnswer(result.Failure) {
		return ErrNotEncrypted
	}
	return nil
}
