package lambdaidem

import (
	"context"
	"errors"
	"time"
)

// release releases the attempt's record, so that a retry runs the handler again. cause is the error
// to report and to store as the record's last failure, or nil. If final is true, the client would
// stop retrying after this failure.
//
// If d is not zero, the client must receive d instead of the failure:
//
//   - a replay, if an earlier transaction of this attempt, whose reply was lost, has stored an
//     answer
//   - ErrOutcomeUnknown, if such a transaction may still be applied, or if final is true and
//     another attempt may carry out the call
//
// If another attempt has taken over the record, takenOver is that record. Otherwise takenOver is
// nil.
func (a *attempt) release(ctx context.Context, cause error, final bool) (d decision, takenOver *Record) {
	rec, err := a.sendRelease(ctx, cause)
	if err != nil && a.failedOpen && a.mayHoldLease {
		a.rememberClaim(ctx, cause, rec, err)
	}
	switch {
	case err == nil:
		a.report(ctx, EventReleased, cause)
	case errors.Is(err, ErrLeaseLost) && rec.State == Completed && rec.Token == a.token: // an earlier request of this attempt has committed
		return a.replay(ctx, rec, EventNew), nil
	case a.failedOpen && (rec.State == Absent || a.txMayCommit && a.meaningOf(rec) == isFree):
		// This attempt runs without a lease, and others may, too. Nothing shows that none of them
		// carries out the call: there is no record, or the release failed.
		a.anotherMayRun = true
		if a.txMayCommit || final {
			a.report(ctx, EventUncertain, cause)
			return a.unknown(shownOnly{cause}), nil
		}
		a.report(ctx, EventReleased, cause)
	case errors.Is(err, ErrLeaseLost):
		a.report(ctx, EventLeaseLost, cause)
		a.innerEnding = outcomeOfBoth(a.innerEnding, OutcomeReleased) // an outer guarded call must treat this call as not settled: the other attempt may carry it out
		return decision{}, &rec
	default:
		defer a.rememberClaim(ctx, cause, rec, err) // deferred, because Options.Observer may panic
		a.report(ctx, EventStoreError, err)
		// The record may be unchanged. An earlier transaction of this attempt may then still commit
		// or, after the end of the lease, another attempt may carry out the call. So the caller
		// must not receive the failure.
		a.anotherMayRun = a.leaseMayHaveEnded()
		if a.anotherMayRun {
			a.innerEnding = outcomeOfBoth(a.innerEnding, OutcomeReleased)
		}
		if a.txMayCommit || final && a.anotherMayRun {
			return a.unknown(err), nil
		}
	}
	return decision{}, nil
}

// releaseAfterRun releases the record after the handler has failed. The caller receives the failure
// if releaseAfterRun returns the zero decision. Otherwise the caller receives the decision, for
// example a replay because another attempt has stored an answer.
func (a *attempt) releaseAfterRun(ctx context.Context, end ending) decision {
	d, takenOver := a.release(ctx, end.err, end.final)
	if takenOver == nil {
		return d
	}
	ctx, cancel := a.finishContext(ctx) // the record may have an answer to load
	defer cancel()
	return a.failedLate(ctx, *takenOver, end)
}

// withdraw releases the record if the reply to a claim was lost and the attempt may therefore hold
// the lease. If the release fails, or the claim may still reach the database, a later call of this
// process tries the release again; see unreleased.go.
func (a *attempt) withdraw(ctx context.Context) {
	if !a.mayHoldLease {
		return
	}
	a.mayHoldLease = false
	rec, err := a.sendRelease(ctx, nil)
	defer a.rememberClaim(ctx, nil, rec, err) // deferred, because Options.Observer may panic
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		a.report(ctx, EventStoreError, err)
	}
}

// sendRelease calls Store.Release, even if ctx has ended, and retries until the time for cleanup is
// over. It stores failureCode(cause) as the record's LastFailure.
func (a *attempt) sendRelease(ctx context.Context, cause error) (Record, error) {
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	failure := failureCode(cause)
	for try := 1; ; try++ {
		start := time.Now()
		lease := a.lease()
		lease.LastFailure = failure
		rec, err := a.g.store.Release(ctx, lease, a.g.opts.Clock())
		a.addStoreTime(start)
		// An attempt that failed open probably has no lease to release, so one try is enough.
		if err == nil || errors.Is(err, ErrLeaseLost) || a.failedOpen || !a.backOff(ctx, try) {
			return rec, err
		}
	}
}

// leaseMayHaveEnded reports whether the attempt's lease has ended by some machine's clock, so that
// another attempt may have taken over the record.
func (a *attempt) leaseMayHaveEnded() bool {
	return !a.g.opts.Clock().Add(a.g.opts.MaxSkew).Before(a.leaseEnd)
}

// lease returns the attempt's lease. The fields Expires and Bound matter only if the lease is
// released. The record then expires at Expires. Bound is the reason why the released record must
// refuse a request with another payload, or "" if the record accepts any payload.
func (a *attempt) lease() Lease {
	l := Lease{ID: a.id, Token: a.token, Scope: a.scope, Expires: a.expires(a.g.opts.Clock()), Bound: a.bound}
	switch {
	case a.inner.anyEffect():
		l.Bound = BoundByInnerCall
	case a.failedOpen && a.steps.any(): // the record does not have the result of a step that has run
		l.Bound = BoundByDeadAttempt
	case l.Bound == "" && a.askedForKey.Load():
		l.Bound = BoundByDownstreamKey
	}
	return l
}

// outcomeLeft returns o, the outcome of the handler's error. But if another attempt has taken over
// the record, outcomeLeft returns OutcomeUncertain, because the result of the call then depends on
// the other attempt. a is nil if the handler ran unguarded.
func (a *attempt) outcomeLeft(o Outcome) Outcome {
	if a != nil && a.anotherMayRun {
		return OutcomeUncertain
	}
	return o
}
