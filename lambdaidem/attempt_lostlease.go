package lambdaidem

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// lost returns what the caller receives if this attempt's answer was not stored, because
// another attempt has taken over or completed the record. rec is the current record. The
// parameter end describes how this attempt's handler ended.
func (a *attempt) lost(ctx context.Context, rec Record, end ending) decision {
	if a.failedOpen && rec.State == Absent { // the record may have expired since the attempt began
		rec = a.read(ctx)
	}
	means := a.meaningOf(rec)
	if a.failedOpen {
		// With FailOpen, the caller receives the handler's answer, except in two cases. First, if
		// the record has an answer, the caller receives that answer. Second, the call is refused
		// if the handler's answer is final, such as a 402, and another attempt may have carried
		// out the call or may still do so. After a final answer, the client would not repeat the
		// request, and would not learn the result of the other attempt.
		final := end.final || end.outcome == OutcomeFailed
		if means != isFinished && (!final || !a.mayBeCarriedOut(rec)) {
			return decision{}
		}
	}
	a.report(ctx, EventLeaseLost, nil)
	if means == isFinished || means == isMismatch {
		return a.fromRecordAfterRun(ctx, means, rec)
	}
	return a.inProgress(ctx)
}

// read returns the record, or the zero Record if the store does not return it. A record that has
// expired may still count; see expiryJudgedAt.
func (a *attempt) read(ctx context.Context) Record {
	defer a.spent(time.Now())
	rec, err := a.g.store.Get(ctx, a.id, a.expiryJudgedAt())
	if err != nil {
		a.report(ctx, EventStoreError, err)
		return Record{}
	}
	return rec
}

// failedLate returns what the caller receives if the handler failed after another attempt had
// taken over the record. If the other attempt has finished, the caller receives the other
// attempt's answer. If the record has another payload, the caller receives ErrPayloadMismatch,
// with a text that tells the client not to use a new key.
//
// Otherwise the call may still succeed in the other attempt. The caller receives this handler's
// failure, unless the failure is final, such as a 402. A client that received a final failure
// would not repeat the request, and would not learn that the other attempt succeeded. In place of
// a final failure, the caller receives ErrInProgress.
func (a *attempt) failedLate(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	switch {
	case means == isFinished, means == isMismatch:
		return a.fromRecordAfterRun(ctx, means, rec)
	case end.final:
		return a.inProgress(ctx)
	}
	return decision{}
}

// fromRecordAfterRun returns what the caller receives according to rec, the record of another
// attempt. It is like fromRecord, but for an attempt whose handler has already run. If this attempt
// is optimistic, its handler ran without a lease, and the handler's writes were not committed.
// Package idemtest must not count such a run, so fromRecordAfterRun subtracts the run from the
// counter of handler runs.
func (a *attempt) fromRecordAfterRun(ctx context.Context, means meaning, rec Record) decision {
	if a.g.opts.Optimistic {
		runcount.Undo(ctx)
	}
	a.leftEffects = a.mayHaveLeftEffects()
	return a.fromRecord(ctx, means, rec)
}

// mayHaveLeftEffects reports whether the attempt's handler has run and may have had effects that
// remain even if its answer is dropped. The handler's enlisted writes are dropped with the answer,
// but not its calls to other services. The handler of an optimistic attempt has no effects besides
// enlisted writes, unless it made a guarded call.
func (a *attempt) mayHaveLeftEffects() bool {
	return a.started && (!a.g.opts.Optimistic || a.inner.anyEffect())
}
