package lambdaidem

import "context"

// This file decides whether a handler runs without a lease, because of Options.FailOpen, and what
// the answer of such a run is worth if it is not stored.

// notAcquired decides what follows after the claim of the record, or Preparer.Prepare, has
// failed with err. seen is the record that the claim was to take over. If mayRun is true,
// the handler may run without a lease, which only Options.FailOpen permits. Otherwise d
// refuses the call.
//
// Even with FailOpen, the handler must not run if it might repeat a step that an earlier
// attempt has stored. The handler therefore does not run in these cases:
//
//   - The record seen has steps.
//   - seen is the record of a dead attempt, and the claim may have taken it over. The dead
//     attempt may have stored a step after seen was read.
//   - Before the claim, the function lookUp has read a record that has steps or is damaged,
//     or that the call may not take over.
//
// The handler does not run either if the context has ended, or if the record is damaged or
// belongs to another program.
func (a *attempt) notAcquired(ctx context.Context, seen Record, err error) (d decision, mayRun bool) {
	if reasonOf(err) == ReasonForeign {
		a.report(ctx, EventUnreadable, err)
		a.withdraw(ctx) // the store may have taken the record over before it found the steps unreadable
		return decision{refusal: recordForeign(err), unreturned: true}, false
	}
	a.report(ctx, EventStoreError, err)
	tookOver := seen.State == InProgress && a.mayHoldLease
	if a.g.opts.FailOpen && ctx.Err() == nil && len(seen.Steps) == 0 && !tookOver && !a.needsLease {
		a.failedOpen = true
		a.report(ctx, EventFailedOpen, err)
		return decision{}, true
	}
	a.withdraw(ctx)
	return decision{refusal: storeUnavailable(err, a.g.opts.RetryAfter)}, false
}

// unstoredEnding returns how a call has ended whose handler ran without a lease, because of
// Options.FailOpen, and whose answer is not stored. A failure that is not stored does not settle
// the call: an attempt that the guard knows nothing of may succeed, or have succeeded.
func unstoredEnding(end ending) Outcome {
	if end.outcome == OutcomeFailed {
		return OutcomeReleased
	}
	return end.outcome
}

// mayBeCarriedOut reports whether, according to its record, another attempt may carry out this
// call, or may have done so.
func (a *attempt) mayBeCarriedOut(rec Record) bool {
	return (rec.State == Completed || isHalfDone(rec)) && a.call.comparePayload(rec.Fingerprint) != anotherPayload
}
