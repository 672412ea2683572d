package dynamostore

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Why DynamoDB cancelled a transaction, for each of its actions in their order
// (API reference, "TransactWriteItems"): spelled without the "Exception" of the
// errors of single writes.
const (
	cancelNone      = "None"
	cancelCondition = "ConditionalCheckFailed"
)

// judge examines the error of a transaction. It returns the record if its condition failed,
// and what is then known about the fate of all requests of the transaction.
//
// The record's condition decides before any other reason, and another failure of the
// action on the record before the handler's writes.
func (t *transaction) judge(p *prepared, fate wire.Fate, err error) (lambdaidem.Record, wire.Fate, error) {
	if errors.Is(err, wire.ErrRefused) {
		// The record shows whether an earlier request was applied. One that was not
		// can't be any more.
		rec, err := t.refused(p, &p.request.cancelled.CancellationReasons[0])
		return rec, wire.NotApplied, err
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		if fate == wire.NotApplied && wire.Code(err) == codeValidation {
			return lambdaidem.Record{}, fate, writeInvalid(&WriteError{Err: err}) // the request as a whole
		}
		return lambdaidem.Record{}, fate, failed(opCommit, fate, err)
	}
	reasons := cancelled.CancellationReasons
	if want := p.records() + len(p.writes); len(reasons) != want {
		return lambdaidem.Record{}, fate, failed(opCommit, fate, fmt.Errorf("DynamoDB gave %d reasons for %d writes: %w", len(reasons), want, err))
	}
	if p.records() > 0 {
		if code := aws.ToString(reasons[0].Code); code != cancelNone && code != "" {
			return lambdaidem.Record{}, fate, recordFailed(fate, &reasons[0], err)
		}
	}
	return lambdaidem.Record{}, fate, p.writeFailed(fate, reasons[p.records():], err)
}

// refused returns the result of a transaction in which the record's condition failed.
func (t *transaction) refused(p *prepared, reason *types.CancellationReason) (lambdaidem.Record, error) {
	if len(reason.Item) == 0 {
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	}
	it, err := t.store.layout.parse(reason.Item)
	if err != nil {
		return lambdaidem.Record{}, failed(opCommit, wire.NotApplied, err)
	}
	rec := t.store.shown(it)
	switch {
	case rec.State == lambdaidem.Completed && rec.Token == p.token: // an earlier request was applied
		return rec, nil
	case rec.GoneAt(p.now):
		rec = lambdaidem.Record{}
	}
	return rec, lambdaidem.ErrLeaseLost
}

// recordFailed returns the error of a transaction in which the action on the record failed
// although its condition held.
func recordFailed(fate wire.Fate, reason *types.CancellationReason, cause error) error {
	failure := failed(opCommit, fate, cause)
	failure.Reason = reasonOfCancellation(aws.ToString(reason.Code))
	if failure.Reason == lambdaidem.ReasonInvalid && saysTooLarge(errors.New(aws.ToString(reason.Message))) {
		failure.Reason = lambdaidem.ReasonTooLarge
	}
	failure.Err = fmt.Errorf("the record's completion: %s: %w", aws.ToString(reason.Message), cause)
	return failure
}

// writeFailed returns the error of a transaction that the handler's writes cancelled. A
// write that was refused decides before one that failed only because of a conflict or
// throttling. Among several of a kind, the write enlisted first decides.
func (p *prepared) writeFailed(fate wire.Fate, reasons []types.CancellationReason, cause error) error {
	var busy *lambdaidem.StoreError
	for i := range reasons {
		w, reason := p.writes[i], &reasons[i]
		code := aws.ToString(reason.Code)
		switch r := reasonOfCancellation(code); {
		case code == cancelNone || code == "":
		case r == lambdaidem.ReasonConflict || r == lambdaidem.ReasonThrottled:
			if busy == nil {
				busy = failed(opCommit, fate, cause)
				busy.Reason, busy.Err = r, fmt.Errorf("the enlisted write %q: %s: %w", w.name, aws.ToString(reason.Message), cause)
			}
		case fate == wire.Unknown && p.records() == 0:
			// Without a record, nothing shows whether an earlier request was or will be applied.
			return failed(opCommit, fate, cause)
		default:
			rejected := writeInvalid(&WriteError{Write: w.name, Err: fmt.Errorf("%s: %s", code, aws.ToString(reason.Message))})
			if code == cancelCondition {
				rejected = w.conditionFailed(reason.Item)
			}
			rejected.Unsettled = fate == wire.Unknown
			return rejected
		}
	}
	if busy != nil {
		return busy
	}
	return failed(opCommit, fate, cause)
}
