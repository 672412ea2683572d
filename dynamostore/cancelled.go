package dynamostore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Codes of a CancellationReason. A cancelled transaction has one reason for each action,
// in the order of the actions (API reference, "TransactWriteItems"). The codes have no
// suffix "Exception", unlike the names of the corresponding errors of single writes.
const (
	cancelNone      = "None"                   // this action did not fail
	cancelCondition = "ConditionalCheckFailed" // the condition of this action failed
)

// judge returns the result of Commit for a TransactWriteItems request that ended with err. The
// parameter fate says whether this request, or an earlier request of the transaction, may have been
// applied.
//
// If the condition on the record failed, judge returns the results of t.refused and NotApplied,
// because this request wrote nothing. In all other cases, judge returns fate and an error.
func (t *transaction) judge(p *prepared, fate wire.Fate, err error) (lambdaidem.Record, wire.Fate, error) {
	if errors.Is(err, wire.ErrRefused) {
		// The condition on the record failed. t.refused examines the record to find out whether an
		// earlier request was applied. If none was, no delayed request can still be applied: it has
		// the same condition, which fails too.
		rec, err := t.refused(p, &p.request.cancelled.CancellationReasons[0])
		return rec, wire.NotApplied, err
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		failure := failed(opCommit, fate, err)
		if fate == wire.NotApplied && (wire.Code(err) == codeValidation && len(p.writes) > 0 || p.refusedTable(err)) {
			return lambdaidem.Record{}, fate, writeInvalid(p.writeError(err))
		}
		return lambdaidem.Record{}, fate, failure
	}
	reasons := cancelled.CancellationReasons
	if want := p.records() + len(p.writes); len(reasons) != want {
		return lambdaidem.Record{}, fate, failed(opCommit, fate, fmt.Errorf("DynamoDB gave %d reasons for %d writes: %w", len(reasons), want, err))
	}
	// A failure of the action on the record takes precedence over failures of the handler's writes.
	if p.records() > 0 {
		if code := aws.ToString(reasons[0].Code); code != cancelNone && code != "" {
			return lambdaidem.Record{}, fate, recordFailed(fate, &reasons[0], err)
		}
	}
	return lambdaidem.Record{}, fate, p.writeFailed(fate, reasons[p.records():], err)
}

// refusedTable reports whether DynamoDB refused the transaction because of the table of an enlisted
// write: the table does not exist, or the credentials don't allow the write. The error does not
// always name the table. refusedTable returns true only if the error can't concern the store's own
// table.
func (p *prepared) refusedTable(err error) bool {
	// If the completion has no Claim, err can't concern the store's own table. Either the
	// transaction writes no record, or the attempt has already written to that table, to acquire
	// its lease.
	if p.completion.Claim != nil || len(p.writes) == 0 {
		return false
	}
	return reasonOf(err) == lambdaidem.ReasonNoTable || wire.Code(err) == codeDenied
}

// writeError returns the WriteError of a transaction that DynamoDB refused as a whole. The
// parameter err is DynamoDB's error, which does not say which write is wrong. If there are several
// writes, the message of the WriteError therefore lists all of them, with their tables.
func (p *prepared) writeError(err error) *WriteError {
	if len(p.writes) == 1 {
		return &WriteError{Write: p.writes[0].name, Err: fmt.Errorf("to table %s: %w", aws.ToString(p.writes[0].table), err)}
	}
	var all []string
	for _, w := range p.writes {
		all = append(all, fmt.Sprintf("%q to table %s", w.name, aws.ToString(w.table)))
	}
	return &WriteError{Err: fmt.Errorf("one of %s: %w", strings.Join(all, ", "), err)}
}

// refused returns the result of a transaction whose condition on the record failed. The parameter
// reason contains the current item of the record. These are the results:
//
//   - If the item is not a valid record: a StoreError.
//   - If the record was completed under this attempt's token: the record and no error. An earlier
//     request of the transaction was applied.
//   - Otherwise: ErrLeaseLost and the current record.
func (t *transaction) refused(p *prepared, reason *types.CancellationReason) (lambdaidem.Record, error) {
	if len(reason.Item) == 0 {
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	}
	itm, err := t.store.layout.parse(reason.Item)
	if err != nil {
		return lambdaidem.Record{}, failed(opCommit, wire.NotApplied, err)
	}
	rec := t.store.shown(itm)
	switch {
	case rec.State == lambdaidem.Completed && rec.Token == p.token: // an earlier request was applied
		return rec, nil
	case rec.GoneAt(p.now):
		rec = lambdaidem.Record{}
	}
	return rec, lambdaidem.ErrLeaseLost
}

// recordFailed returns the StoreError of a transaction whose action on the record failed for a
// reason other than the action's condition, such as a conflict or throttling.
func recordFailed(fate wire.Fate, reason *types.CancellationReason, cause error) error {
	failure := failed(opCommit, fate, cause)
	failure.Reason = reasonOfCancellation(aws.ToString(reason.Code))
	if failure.Reason == lambdaidem.ReasonInvalid && saysTooLarge(errors.New(aws.ToString(reason.Message))) {
		failure.Reason = lambdaidem.ReasonTooLarge
	}
	failure.Err = fmt.Errorf("the record's completion: %s: %w", aws.ToString(reason.Message), cause)
	return failure
}

// writeFailed returns the error of a transaction that was cancelled because of the handler's
// writes. The parameter reasons has one reason for each write. If a write failed for good, for
// example because of its condition, the error is a Rejected. If writes failed only because of a
// conflict or throttling, so that a retry may succeed, the error is a StoreError. If several writes
// failed for good, or several only temporarily, the error is about the one enlisted first.
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
			// Without a record, it is unknown why the write's condition failed: an earlier request
			// may have made the same write already. So return a StoreError whose NotApplied is
			// false.
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
