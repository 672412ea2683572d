package lambdaidem

import (
	"context"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// lost returns what the caller receives if this attempt's answer was not stored, because
// another attempt has taken over or completed the record. rec is the current record. The
// parameter end describes how this attempt's handler ended.
func (a *attempt) lost(ctx context.Context, rec Record, end ending) decision {
	if a.failedOpen {
		return a.notStored(ctx, end, rec)
	}
	recMeaning := a.meaningOf(rec)
	a.report(ctx, EventLeaseLost, nil)
	if recMeaning == isFinished || recMeaning == isMismatch {
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	}
	return a.inProgress(ctx)
}

// failedLate returns what the caller receives if the handler failed after another attempt had taken
// over the record. If rec, the current record, has an answer or another payload, the caller
// receives a replay or a refusal; see fromRecord. Otherwise the caller receives the failure. But
// ErrInProgress replaces a final failure, such as a 402: the client would not retry, although the
// other attempt may succeed. After a run with FailOpen, notStored decides.
func (a *attempt) failedLate(ctx context.Context, rec Record, end ending) decision {
	if a.failedOpen {
		return a.notStored(ctx, end, rec)
	}
	a.takenOver = true
	recMeaning := a.meaningOf(rec)
	switch {
	case recMeaning == isFinished, recMeaning == isMismatch:
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	case end.final:
		return a.inProgress(ctx)
	}
	return decision{}
}

// fromRecordAfterRun is like fromRecord, but for an attempt whose handler has already run. The
// caller does not receive the handler's answer.
func (a *attempt) fromRecordAfterRun(ctx context.Context, recMeaning meaning, rec Record) decision {
	if a.g.opts.Optimistic {
		// The handler's writes were not committed, so package idemtest must not count the run.
		runcount.Undo(ctx)
	}
	a.leftEffects = a.mayHaveLeftEffects()
	return a.fromRecord(ctx, recMeaning, rec)
}

// mayHaveLeftEffects reports whether the handler may have had effects that remain although its
// answer is dropped, such as calls to other services. Enlisted writes are dropped with the answer.
// With Options.Optimistic, a handler has no effects but its enlisted writes, unless it made a
// guarded call.
func (a *attempt) mayHaveLeftEffects() bool {
	return a.started && (!a.g.opts.Optimistic || a.inner.anyEffect())
}
