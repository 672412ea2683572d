package lambdaidem

import (
	"context"
	"time"
)

// This file decides whether a handler runs without a lease, because of Options.FailOpen, and
// whether its caller may receive an answer that is not stored.

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
		if !a.mayHoldLease {
			a.leaseEnd = time.Time{} // a retry need not wait for the end of a lease; see unknown
		}
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

// mustStore reports whether the caller must not receive the answer if it can't be stored. With a
// lease, mustStore always returns true. After a run with FailOpen, it returns true for two kinds of
// answers:
//
//   - A failure, even if its status is 200. Another attempt may carry out the call, and a client
//     that stops retrying would not learn of it. The record may also be of another payload, so that
//     a retry is refused.
//   - An answer that says that the database has rejected the handler's writes. Another attempt may
//     make the same writes successfully.
func (a *attempt) mustStore(end ending) bool {
	return !a.failedOpen || a.txRejected || !end.success || end.outcome == OutcomeFailed
}

// uncertainAfterFailOpen returns what the caller receives if the handler ran because of FailOpen
// and failed, and nobody knows whether it had an effect. uncertainAfterFailOpen reads the record.
// If the record has an answer or is of another payload, the caller receives a replay or a refusal;
// see fromRecord. Otherwise the caller receives the failure, or ErrOutcomeUnknown in place of a
// final failure.
func (a *attempt) uncertainAfterFailOpen(ctx context.Context, end ending) decision {
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	start := time.Now()
	rec, err := a.g.store.Get(ctx, a.id, a.g.opts.Clock())
	a.addStoreTime(start)
	if err != nil {
		a.report(ctx, EventStoreError, err)
	}
	recMeaning := a.meaningOf(rec)
	switch {
	case recMeaning == isFinished, recMeaning == isMismatch:
		a.report(ctx, EventLeaseLost, nil)
		return a.fromRecordAfterRun(ctx, recMeaning, rec)
	case end.final: // another attempt may carry out the call
		return a.unknown(shownOnly{end.err})
	}
	return decision{}
}
