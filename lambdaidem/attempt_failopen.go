package lambdaidem

import "context"

// This file decides whether a handler runs without a lease, because of Options.FailOpen, and how
// such a run counts if its answer is not stored.

// notAcquired decides what happens after a claim or Preparer.Prepare has failed with err. seen is
// the record that the claim was to take over, or the zero Record if there is none. If mayRun is
// true, the handler may run without a lease, which only Options.FailOpen permits. Otherwise d
// refuses the call.
//
// A guarded call inside another guarded handler never runs without a lease, because a retry of the
// outer handler could not know what the inner call did.
//
// Even with FailOpen, the handler must not repeat a step that an earlier attempt has stored. It
// therefore does not run in these cases:
//
//   - seen.Steps is not empty.
//   - seen is the record of a dead attempt, and it is not known whether the failed claim took the
//     record over. The dead attempt may have stored a step after seen was read.
//   - The method lookUp has read the record before the claim, and the record has steps, is
//     damaged, or does not permit this call to run the handler, for example because another
//     attempt holds the lease.
//
// The handler does not run either if the context has ended, or if err says that the record is
// damaged or belongs to another program.
func (a *attempt) notAcquired(ctx context.Context, seen Record, err error) (d decision, mayRun bool) {
	if reasonOf(err) == ReasonForeign {
		a.report(ctx, EventUnreadable, err)
		a.withdraw(ctx) // the store may have taken the record over before it found the steps unreadable
		return decision{refusal: recordForeign(err), unreturned: true}, false
	}
	a.report(ctx, EventStoreError, err)
	tookOver := seen.State == InProgress && a.mayHoldLease
	if a.g.opts.FailOpen && !a.isInner() && ctx.Err() == nil && len(seen.Steps) == 0 && !tookOver && !a.needsLease {
		a.failedOpen = true
		a.report(ctx, EventFailedOpen, err)
		return decision{}, true
	}
	a.withdraw(ctx)
	return decision{refusal: storeUnavailable(err, a.g.opts.RetryAfter)}, false
}

// mayBeCarriedOut reports whether another attempt may have carried out this call, or may still do
// so. rec is the current record. The result is true if both of the following hold:
//
//   - rec is completed, or an attempt for rec may have had an effect; see isHalfDone.
//   - The payload of rec is the payload of this call, or the two can't be compared.
func (a *attempt) mayBeCarriedOut(rec Record) bool {
	return (rec.State == Completed || isHalfDone(rec)) && a.call.comparePayload(rec.Fingerprint) != anotherPayload
}
