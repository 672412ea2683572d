package lambdaidem

import (
	"context"
	"errors"
)

// claimFailed decides how an attempt without a lease continues. The database has refused the write
// that claims and completes the record, because the current record, rec, does not permit the claim.
// If mayRetry is true, the attempt may send another such write, whose claim takes over oldRec.
// Otherwise the attempt ends, and the caller of the guarded call receives d.
func (a *attempt) claimFailed(ctx context.Context, rec Record) (d decision, oldRec Record, mayRetry bool) {
	rec, recMeaning := a.meaningWithoutLease(ctx, rec)
	switch {
	case recMeaning == isBusy, recMeaning == isAcquired:
		return a.inProgress(ctx), rec, false
	case recMeaning != isFree:
		return a.fromRecordAfterRun(ctx, recMeaning, rec), rec, false
	case a.mayHaveReplacedAnswer(rec), rec.StartedAt.After(a.clockStart): // after a later attempt has failed, this one must not succeed
		return a.inProgress(ctx), rec, false
	case len(rec.Steps) > 0 && a.failedOpen: // a retry with a lease can use the stored steps
		return a.inProgress(ctx), rec, false
	case len(rec.Steps) > 0:
		a.number = rec.Attempt
		a.report(ctx, EventAbandoned, errStepsRemain)
		return decision{refusal: stepsRemain(errStepsRemain)}, rec, false
	}
	if a.failedClaims++; a.failedClaims >= maxClaims {
		return a.inProgress(ctx), rec, false
	}
	return decision{}, rec, true
}

// meaningWithoutLease is like meaningOf, for an attempt whose handler has run without a lease. If
// another attempt is running, meaningWithoutLease first waits for that attempt, and returns the
// record as it is then.
func (a *attempt) meaningWithoutLease(ctx context.Context, rec Record) (Record, meaning) {
	rec = a.withdrawClaimOn(ctx, rec)
	recMeaning := a.meaningOf(rec)
	if recMeaning == isBusy {
		rec, recMeaning = a.wait(ctx, rec)
	}
	return rec, recMeaning
}

// mayHaveReplacedAnswer reports whether rec may have taken the place of a record whose answer
// expired after this attempt began. If so, a completion of this attempt would repeat the effects of
// the attempt that stored the expired answer.
func (a *attempt) mayHaveReplacedAnswer(rec Record) bool {
	// Only an attempt that began after the expiry replaces an expired answer. Expiries are whole
	// seconds, so compare whole seconds.
	startedAt := rec.StartedAt
	if rec.Attempt > 1 { // an earlier attempt may have replaced the answer, by a clock that was ahead
		startedAt = startedAt.Add(a.g.opts.MaxSkew)
	}
	return startedAt.Unix() > a.clockStart.Unix()
}

// errStepsRemain is the error that events report if the record of an optimistic attempt has steps.
// A deployment without Options.Optimistic has stored the steps. An optimistic attempt can't use
// stored steps, so it does not complete the record. The client never receives this text.
var errStepsRemain = errors.New("the record has steps of a version without Options.Optimistic, and an optimistic attempt can't continue after steps: see docs/operate.md, \"Something changes in a deployment\"")
