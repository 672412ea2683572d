package lambdaidem

import (
	"context"
	"time"
)

// prepare calls Preparer.Prepare, if the store has this method. It is for optimistic attempts,
// which run the handler without a lease (Options.Optimistic): they don't call Store.Acquire, which
// would prepare the store. If mayRun is true, the handler may run. Otherwise d refuses the call.
func (a *attempt) prepare(request context.Context) (d decision, mayRun bool) {
	store, ok := a.g.store.(Preparer)
	if !ok {
		return decision{}, true
	}
	a.setAnswerTime()
	ctx, cancel := withDeadline(request, a.acquireEnd())
	defer cancel()
	start := time.Now()
	err := store.Prepare(ctx)
	a.addStoreTime(start)
	if err == nil {
		return decision{}, true
	}
	return a.notAcquired(request, Record{}, err)
}

// finishOptimistic ends an optimistic attempt whose answer is not stored, because end.outcome is
// OutcomeReleased or OutcomeUncertain. The handler has run without a lease, so another attempt may
// be running, or may have stored an answer. If so, finishOptimistic returns a refusal, or a replay
// of the stored answer.
func (a *attempt) finishOptimistic(ctx context.Context, end ending) decision {
	rec, d, decided, err := a.checkRecord(ctx, end.final)
	if decided || err != nil {
		return d
	}
	if end.outcome == OutcomeReleased && !a.txMayCommit {
		if rec.State == InProgress {
			// The lease in the record has ended, but the attempt that held it may still be running.
			// Take over the record, so that this attempt can't complete it after the caller has
			// been told of the failure.
			finish, cancel := a.finishContext(ctx)
			defer cancel()
			if d, acquired := a.acquire(finish); !acquired {
				return d
			}
			return a.releaseAfterRun(ctx, end)
		}
		a.report(ctx, EventReleased, end.err)
		return decision{}
	}
	a.report(ctx, EventUncertain, end.err)
	return decision{refusal: outcomeUnknown(shownOnly{end.err}, a.g.opts.RetryAfter)}
}

// handlerDiedOptimistic ends an optimistic attempt whose handler panicked with v, or called
// runtime.Goexit; v is then nil. It returns a replay or a refusal if another attempt's record
// demands one. Otherwise, it panics with v again or, after Goexit, returns the zero decision.
func (a *attempt) handlerDiedOptimistic(ctx context.Context, v any) decision {
	a.inner.setHandler(handlerFailed)
	a.innerEnding = a.innerOutcome()
	_, d, decided, unread := a.checkRecord(ctx, false)
	switch {
	case decided:
		return d
	case a.txMayCommit || unread != nil:
		a.innerEnding = OutcomeUncertain
		a.report(ctx, EventUncertain, errEndingDied)
	default:
		a.innerEnding = a.releasedEnding()
		a.report(ctx, EventReleased, errHandlerDied)
	}
	// After runtime.Goexit, v is nil and the result does not matter: the goroutine exits anyway.
	if v != nil {
		panic(v)
	}
	return decision{}
}

// checkRecord reads the record of an optimistic attempt that has no answer to store. Another
// attempt may have stored an answer or taken the lease, because this attempt has no lease. A record
// is free for a call if meaningOf returns isFree.
//
//   - If the record is free for this call, decided is false, err is nil, and rec is the record.
//   - If the record can't be read, decided is false, err is not nil, and d refuses the call.
//   - Otherwise decided is true, and d is what the caller receives.
//
// final says that a client who receives this attempt's failure will not repeat the request. The
// client must then not receive the failure if the request may have been answered before. So a
// record that may have replaced an expired answer does not count as free; see
// mayHaveReplacedAnswer.
func (a *attempt) checkRecord(ctx context.Context, final bool) (rec Record, d decision, decided bool, err error) {
	ctx, cancel := a.finishContext(ctx)
	defer cancel()
	for try := 1; ; try++ {
		start := time.Now()
		rec, err = a.g.store.Get(ctx, a.id, a.expiryJudgedAt())
		a.addStoreTime(start)
		if err == nil {
			break
		}
		if readFailsAgain(err) || !a.backOff(ctx, try) {
			a.report(ctx, EventStoreError, err)
			return rec, a.unknown(err), false, err
		}
	}
	rec, recMeaning := a.meaningWithoutLease(ctx, rec)
	switch recMeaning { //nolint:exhaustive // the record decides the call in all other cases
	case isFree:
		if final && a.mayHaveReplacedAnswer(rec) {
			return rec, a.inProgress(ctx), true, nil
		}
		a.bound = boundOver(rec)
		a.steps.results = rec.Steps
		return rec, decision{}, false, nil
	case isBusy, isAcquired:
		return rec, a.inProgress(ctx), true, nil
	}
	return rec, a.fromRecordAfterRun(ctx, recMeaning, rec), true, nil
}
