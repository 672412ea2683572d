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
	recMeaning := a.meaningOf(rec)
	if a.failedOpen {
		// With FailOpen, the caller receives the handler's answer, unless the record has another
		// one. After a final answer, such as a 402, the client would not repeat the request. So the
		// caller does not receive a final answer if another attempt may carry out the call.
		final := end.final || end.outcome == OutcomeFailed
		if recMeaning != isFinished && (!final || !a.mayBeCarriedOut(rec) && !a.mayHaveHadAnswer(ctx)) {
			return decision{}
		}
	}
	a.report(ctx, EventLeaseLost, nil)
	if recMeaning == isFinished || recMeaning == isMismatch {
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	}
	return a.inProgress(ctx)
}

// mayHaveHadAnswer reports whether the record may have had an answer that was alive when this
// attempt began without a lease, and has expired since.
func (a *attempt) mayHaveHadAnswer(ctx context.Context) bool {
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	defer a.addStoreTime(time.Now())
	rec, err := a.g.store.Get(ctx, a.id, a.expiryJudgedAt())
	if err != nil {
		a.report(ctx, EventStoreError, err)
		return false
	}
	return rec.Token != a.token && (a.mayBeCarriedOut(rec) || a.mayHaveReplacedAnswer(rec))
}

// failedLate returns what the caller receives if the handler failed after another attempt had taken
// over the record. If rec, the current record, has an answer or another payload, rec decides.
// Otherwise the caller receives the failure. But ErrInProgress replaces a final failure, such as a
// 402, after which the client would not learn that the other attempt succeeded.
func (a *attempt) failedLate(ctx context.Context, rec Record, end ending) decision {
	recMeaning := a.meaningOf(rec)
	switch {
	case recMeaning == isFinished, recMeaning == isMismatch:
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	case end.final:
		return a.inProgress(ctx)
	}
	return decision{}
}

// fromRecordAfterRun is like fromRecord, for an attempt whose handler has already run. rec is the
// record of another attempt, and decides what the caller receives.
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
// An optimistic handler has no other effects, unless it made a guarded call.
func (a *attempt) mayHaveLeftEffects() bool {
	return a.started && (!a.g.opts.Optimistic || a.inner.anyEffect())
}
