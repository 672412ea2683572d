package dynamostore

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Why DynamoDB cancelled a transaction, for each of its actions in their order
// (API reference, "TransactWriteItems"): spelled without the "Exception" of the
// errors of single writes.
const (
	cancelNone      = "None"
	cancelCondition = "ConditionalCheckFailed"
)

// verdict reads what came back instead of success, in the order of rule E2: our
// own completion, then the record's reason, then the handler's, then what is worth
// another try.
func (t *transaction) verdict(p *prepared, v *verdict, err error) (lambdaidem.Record, error) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		if !v.ambiguous && (codeOf(err) == codeValidation || refusedBySDK(err)) {
			return lambdaidem.Record{}, writeInvalid(&WriteError{Err: err}) // the request as a whole
		}
		return lambdaidem.Record{}, v.storeError(err)
	}
	reasons := cancelled.CancellationReasons
	if want := p.records() + len(p.writes); len(reasons) != want {
		return lambdaidem.Record{}, v.storeError(fmt.Errorf("DynamoDB gave %d reasons for %d writes: %w", len(reasons), want, err))
	}
	if p.records() > 0 {
		if rec, settled, err := t.recordsVerdict(p, v, &reasons[0], err); settled {
			return rec, err
		}
	}
	return lambdaidem.Record{}, t.writesVerdict(p, v, reasons[p.records():], err)
}

// recordsVerdict examines the reason for the action on the record. settled reports
// whether that reason decides the result of the transaction. It does not if the record's
// condition held.
func (t *transaction) recordsVerdict(p *prepared, v *verdict, reason *types.CancellationReason, cause error) (rec lambdaidem.Record, settled bool, err error) {
	switch code := aws.ToString(reason.Code); code {
	case cancelNone, "":
		return lambdaidem.Record{}, false, nil
	case cancelCondition:
		v.ambiguous = false // the record shows whether an earlier request was applied; one that was not can't be any more
		old, err := t.store.standing(v, found{attrs: reason.Item})
		rec = t.store.shown(old)
		switch {
		case err != nil:
			return lambdaidem.Record{}, true, err
		case rec.State == lambdaidem.Completed && rec.Token == p.token: // an earlier request was applied
			return rec, true, nil
		case rec.GoneAt(p.now):
			rec = lambdaidem.Record{}
		}
		return rec, true, lambdaidem.ErrLeaseLost
	default:
		failure := v.failure(cause)
		failure.Reason = reasonOfCancellation(code)
		if failure.Reason == lambdaidem.ReasonInvalid && saysTooLarge(errors.New(aws.ToString(reason.Message))) {
			failure.Reason = lambdaidem.ReasonTooLarge
		}
		failure.Err = fmt.Errorf("the record's completion: %s: %w", aws.ToString(reason.Message), cause)
		return lambdaidem.Record{}, true, failure
	}
}

// writesVerdict examines the reasons for the handler's writes. A write that was refused
// decides before one that failed only because of a conflict or throttling. Among several
// of a kind, the write enlisted first decides.
func (t *transaction) writesVerdict(p *prepared, v *verdict, reasons []types.CancellationReason, cause error) error {
	var busy *lambdaidem.StoreError
	for i := range reasons {
		w, reason := p.writes[i], &reasons[i]
		code := aws.ToString(reason.Code)
		switch r := reasonOfCancellation(code); {
		case code == cancelNone || code == "":
		case r == lambdaidem.ReasonConflict || r == lambdaidem.ReasonThrottled:
			if busy == nil {
				busy = v.failure(cause)
				busy.Reason, busy.Err = r, fmt.Errorf("the enlisted write %q: %s: %w", w.name, aws.ToString(reason.Message), cause)
			}
		case v.ambiguous && p.records() == 0:
			// Without a record, nothing shows whether an earlier request was or will be applied.
			return v.storeError(cause)
		default:
			rejected := writeInvalid(&WriteError{Write: w.name, Err: fmt.Errorf("%s: %s", code, aws.ToString(reason.Message))})
			if code == cancelCondition {
				rejected = w.conditionFailed(reason.Item)
			}
			rejected.Unsettled = v.ambiguous
			return rejected
		}
	}
	if busy != nil {
		return busy
	}
	return v.storeError(cause)
}

// refusedBySDK reports whether the SDK did not send a request because of what is in
// it: a parameter is missing, or can't be written.
func refusedBySDK(err error) bool {
	if _, missing := errors.AsType[*smithy.InvalidParamsError](err); missing {
		return true
	}
	_, unwritable := errors.AsType[*smithy.SerializationError](err)
	return unwritable
}
