package lambdaidem

import (
	"context"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// lost returns what the caller receives if this attempt's answer was not stored, because
// another attempt has taken over or completed the record. rec is the current record. The
// parameter end describes how this attempt's handler ended.
func (a *attempt) lost(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	if a.failedOpen {
		// With FailOpen, the caller receives the handler's answer, with two exceptions. If
		// the record has an answer, the caller receives that answer. If the handler's answer
		// is final, such as a 402, and another attempt may carry out the call, or may have
		// done so, the caller is refused. After a final answer, the client would not repeat
		// the request, and would not learn what became of the other attempt.
		if means != isFinished && (!end.final || !a.mayBeCarriedOut(rec)) {
			return decision{}
		}
	}
	a.report(ctx, EventLeaseLost, nil)
	if means == isFinished || means == isMismatch {
		return a.fromRecordAfterRun(ctx, means, rec)
	}
	return a.inProgress(ctx)
}

// failedLate returns what the caller receives if the handler failed after another attempt
// had taken over the record. If the other attempt has finished, the caller receives the
// other attempt's answer. If the record has another payload, the caller receives
// ErrPayloadMismatch, with a text that tells the client not to use a new key.
//
// Otherwise the call may still succeed in another attempt. The caller receives the failure
// of this handler, unless that failure is final, such as a 402. After a final failure, the
// client would not repeat the request, and would not learn of a later success. The caller
// therefore receives ErrInProgress instead of a final failure.
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

// fromRecordAfterRun is like fromRecord, but for an attempt whose handler has already run: it
// returns what the caller receives according to the record of another attempt. If this attempt is
// optimistic, the transaction with the handler's writes was not committed, so the run had no
// effects. Package idemtest must not count such a run, so fromRecordAfterRun subtracts the run from
// the number of runs.
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
