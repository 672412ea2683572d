package lambdaidem

import "context"

// acquire acquires the lease on the record. If mayRun is true, the handler may run. Otherwise d is
// what the caller receives instead, such as a replay or a refusal. If Options.Observer panics,
// acquire releases any lease that the attempt may hold, because the handler will not start.
func (a *attempt) acquire(request context.Context) (d decision, mayRun bool) {
	returned := false
	defer func() {
		if !returned {
			a.withdraw(request)
		}
	}()
	d, mayRun = a.tryToAcquire(request)
	returned = true
	return d, mayRun
}

func (a *attempt) tryToAcquire(request context.Context) (d decision, mayRun bool) {
	a.setAnswerTime()
	ctx, cancel := withDeadline(request, a.acquireEnd())
	defer cancel()
	if ctx.Err() != nil {
		return a.outOfTime(ctx, ctx.Err()), false
	}
	a.withdrawUnreleased(ctx)
	var oldRec Record // the record to take over; zero to create one
	for {
		lastOldRec, rec, recMeaning, err := a.claimRepeatedly(ctx, oldRec)
		if err != nil {
			return a.notAcquired(request, lastOldRec, err)
		}
		waited := recMeaning == isBusy
		if waited {
			rec, recMeaning = a.wait(ctx, rec)
			if recMeaning == isFree && a.left()-a.reserve >= a.g.opts.MinRunTime {
				oldRec = rec
				continue
			}
		}
		switch recMeaning {
		case isAcquired:
			if waited && len(rec.Steps) > 0 { // rec is from Store.Get, which may leave out the results of the steps
				a.withdraw(ctx)
				return a.inProgress(ctx), false
			}
			a.acquired(ctx, lastOldRec, rec)
			return decision{}, true
		case isBusy, isFree: // isFree here means that waiting has left too little time to run the handler
			a.withdraw(ctx)
			return a.inProgress(ctx), false
		default:
			return a.fromRecord(ctx, recMeaning, rec), false
		}
	}
}

// claimRepeatedly claims the record until a claim succeeds, the record is not free, or maxClaims
// claims have failed. The first claim takes over oldRec, or creates a record if oldRec is zero.
//
//   - rec is the record after the last claim.
//   - lastOldRec is the record that the last claim was to take over.
//   - recMeaning is what rec means to this call. It is never isFree: after maxClaims failed claims
//     it is isBusy, even if rec is free.
//
// If err is not nil, only lastOldRec and err have a meaning.
func (a *attempt) claimRepeatedly(ctx context.Context, oldRec Record) (lastOldRec, rec Record, recMeaning meaning, err error) {
	for range maxClaims {
		rec, err = a.claim(ctx, oldRec)
		if reasonOf(err) == ReasonConflict {
			return oldRec, rec, isBusy, nil // a transaction of another attempt is writing the record
		}
		if err != nil {
			return oldRec, rec, isBusy, err
		}
		rec = a.withdrawClaimOn(ctx, rec)
		if recMeaning = a.meaningOf(rec); recMeaning != isFree {
			return oldRec, rec, recMeaning, nil
		}
		// The record has changed since it was read, but is free: claim it as it is now.
		oldRec = rec
	}
	// After maxClaims failed claims, the record counts as busy even if it is free.
	return oldRec, rec, isBusy, nil
}

// maxClaims is the maximum number of times that one call claims its record. If other
// attempts take the record each time, the call is refused with ErrInProgress.
const maxClaims = 8

// acquired notes that this attempt now holds the lease on rec. oldRec is the record that the claim
// replaced, or the zero Record if the claim created a record. If oldRec was in progress, acquired
// reports a takeover. If Options.Observer panics during this report, acquired releases the lease,
// because the handler will not start.
func (a *attempt) acquired(ctx context.Context, oldRec, rec Record) {
	a.mayHoldLease = false
	a.number, a.fingerprint, a.steps.results = rec.Attempt, rec.Fingerprint, rec.Steps
	a.holdTo(rec.LeaseEnd)
	if oldRec.State == InProgress {
		noted := false
		defer func() {
			if !noted {
				a.release(ctx, errObserverDied, false)
			}
		}()
		a.report(ctx, EventTakenOver, nil)
		noted = true
	}
}

// inProgress refuses a call because another attempt is running.
func (a *attempt) inProgress(ctx context.Context) decision {
	a.report(ctx, EventInProgress, nil)
	return decision{refusal: inProgress(a.g.opts.RetryAfter)}
}

// outOfTime refuses a call that has no time left to run.
func (a *attempt) outOfTime(ctx context.Context, cause error) decision {
	a.report(ctx, EventOutOfTime, cause)
	return decision{refusal: outOfTime(cause, a.g.opts.RetryAfter)}
}
