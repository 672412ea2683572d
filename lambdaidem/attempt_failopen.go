package lambdaidem

import (
	"context"
	"time"
)

// This file decides whether a handler runs without a lease, because of Options.FailOpen, and how
// such a run counts if its answer is not stored.

// notAcquired decides what happens after a claim or Preparer.Prepare has failed with err. oldRec is
// the record that the claim was to take over, or the zero Record. If mayRun is true, the handler
// may run without a lease. Only Options.FailOpen permits that, and only if the handler can't repeat
// a step that an earlier attempt has stored. Otherwise d refuses the call.
func (a *attempt) notAcquired(ctx context.Context, oldRec Record, err error) (d decision, mayRun bool) {
	if reasonOf(err) == ReasonForeign {
		a.report(ctx, EventUnreadable, err)
		a.withdraw(ctx) // the store may have taken the record over before it found the steps unreadable
		return decision{refusal: recordForeign(err), unreturned: true}, false
	}
	a.report(ctx, EventStoreError, err)
	// Without a lease, don't continue after a claim that may have taken over the record of a dead
	// attempt: that attempt may have stored a step after oldRec was read.
	tookOver := oldRec.State == InProgress && a.mayHoldLease
	// An inner call never runs without a lease: a retry of the outer handler could not know what
	// the inner call did.
	if a.g.opts.FailOpen && !a.isInner() && ctx.Err() == nil && len(oldRec.Steps) == 0 && !tookOver && !a.needsLease {
		a.failedOpen, a.openedBy = true, err
		return decision{}, true
	}
	a.withdraw(ctx)
	return decision{refusal: storeUnavailable(err, a.g.opts.RetryAfter)}, false
}

// reportFailedOpen reports that the handler is about to run without a lease. If Options.Observer
// panics then, reportFailedOpen withdraws the claim, because the handler will not start.
func (a *attempt) reportFailedOpen(ctx context.Context) {
	reported := false
	defer func() {
		if !reported {
			a.withdraw(ctx)
		}
	}()
	a.report(ctx, EventFailedOpen, a.openedBy)
	reported = true
}

// notStored returns what the caller receives if a handler ran without a lease, because of
// Options.FailOpen, and its answer is not stored. Another attempt may have carried out this call,
// so notStored reads the record. known is the record that a refused write has returned, or the zero
// Record; it counts if the read fails. The caller receives the handler's answer (the zero
// decision), except in these cases:
//
//   - The record has an answer to this call. The caller receives a replay.
//   - The handler's answer is final, such as a 402, and another attempt may have carried out the
//     call or may still do so. The caller receives a refusal: after a final answer, the client
//     would not retry.
func (a *attempt) notStored(ctx context.Context, end ending, known Record) decision {
	judgedAt := a.g.opts.Clock()
	if end.endsRetries() { // find also an answer that has expired during the run
		judgedAt = a.expiryJudgedAt()
	}
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	if due := a.attemptEnd.Add(-a.sendTime() / 2); time.Until(due) > 0 { // leave time for sending the answer
		ctx, cancel = withDeadline(ctx, due)
		defer cancel()
	}
	mayMislead := end.endsRetries() || isRetryable(end.err) // if the record is not read
	var rec Record
	var err error
	for try := 1; ; try++ {
		start := time.Now()
		rec, err = a.g.store.Get(ctx, a.id, judgedAt)
		a.addStoreTime(start)
		if err == nil || !mayMislead || !mayPass(err) || time.Until(a.finishEnd()) <= 0 || !a.backOff(ctx, try) {
			break
		}
	}
	if err != nil {
		a.report(ctx, EventStoreError, err)
		rec = known
	}
	a.takenOver = rec.Token != a.token && (a.conflicted || a.mayBeCarriedOut(rec))
	switch recMeaning := a.meaningOf(rec); {
	case rec.Token == a.token:
	case recMeaning == isFinished:
		a.report(ctx, EventLeaseLost, nil)
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	case !end.endsRetries():
	case a.takenOver:
		return a.inProgress(ctx)
	case !a.mayHaveReplacedAnswer(rec):
	case recMeaning == isMismatch:
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	default:
		return a.inProgress(ctx)
	}
	return decision{}
}

// mayBeCarriedOut reports whether another attempt may have carried out this call, or may still do
// so. rec is the current record. If rec has another payload, the result is false. Payloads that
// can't be compared count as the same.
func (a *attempt) mayBeCarriedOut(rec Record) bool {
	return (rec.State == Completed || isHalfDone(rec)) && a.call.comparePayload(rec.Fingerprint) != anotherPayload
}
