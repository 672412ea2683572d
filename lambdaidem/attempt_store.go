package lambdaidem

import (
	"context"
	"errors"
	"time"
)

// This file has the calls that an attempt makes to its store: which values they send, and
// how they are retried. The callers in the other files of attempt decide what follows from
// the replies.

// spent adds the time of one store call to inStore, the time spent in the store, which
// events report. asked is when the call began. The time for storing steps counts as the
// handler's time instead.
func (a *attempt) spent(asked time.Time) { a.inStore += time.Since(asked) }

// claim asks the store for the lease, and returns the record as Store.Acquire does. over is
// the record to take over, or the zero Record to create one. If a transaction of another
// attempt is writing the record, claim retries for up to conflictPatience.
func (a *attempt) claim(ctx context.Context, over Record) (Record, error) {
	var patience time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		now := a.g.opts.Clock()
		a.beginLease(now)
		asked := time.Now()
		claim := a.claimAt(now, over)
		a.lastClaimOver, a.bound = claim.Over, claim.Bound
		rec, err := a.g.store.Acquire(ctx, claim)
		a.spent(asked)
		if err == nil {
			return rec, nil
		}
		a.mayHoldLease = a.mayHoldLease || !notApplied(err)
		if reasonOf(err) != ReasonConflict {
			return rec, err
		}
		if patience.IsZero() {
			patience = time.Now().Add(conflictPatience)
		}
		if time.Until(patience) < pause || !a.pause(ctx, pause) {
			return rec, err
		}
	}
}

// recordOfLastClaim returns the record that the last claim takes over. It returns the
// zero Record if that claim creates a record, or if the attempt has made no claim.
func (a *attempt) recordOfLastClaim() Record {
	if a.lastClaimOver == nil {
		return Record{}
	}
	return *a.lastClaimOver
}

// claimAt returns a claim to send at the time now. over is the record to take over, or the
// zero Record to create one.
func (a *attempt) claimAt(now time.Time, over Record) Claim {
	o := &a.g.opts
	c := Claim{ID: a.id, Scope: a.scope, Fingerprint: a.call.fingerprint, Token: a.token, Now: now, LeaseEnd: a.leaseEnd,
		Invocation: a.invocation}
	if over.State != Absent {
		seen := over // only the copy escapes to the heap, so a claim that creates a record allocates nothing
		c.Over = &seen
		c.Fingerprint = a.call.fingerprintOver(over)
		c.Bound = boundOver(over)
	}
	if o.Policy != Hold { // under Hold, the record of a dead attempt must not expire before an operator decides
		c.Expires = a.expires(now)
		// Even on a machine whose clock is ahead by MaxSkew, the record must not expire
		// before the lease has ended.
		if least := ceil(a.leaseEnd.Add(o.MaxSkew).Add(time.Second), time.Second); c.Expires.Before(least) {
			c.Expires = least
		}
	}
	return c
}

// boundOver returns Claim.Bound for a claim that takes over the record rec. If rec is in progress,
// its attempt has died, because a live lease can't be taken over. The result is then
// BoundByDeadAttempt, unless rec has BoundByInnerCall, which has priority. If rec is not in
// progress, the result is rec.Bound.
func boundOver(rec Record) string {
	if rec.State == InProgress && rec.Bound != BoundByInnerCall {
		return BoundByDeadAttempt
	}
	return rec.Bound
}

// expires returns the expiry of a record that is completed or released at now: Options.TTL
// later, in whole seconds.
func (a *attempt) expires(now time.Time) time.Time {
	return ceil(now.Add(a.g.opts.TTL), time.Second)
}

// result returns the result to store. The result has the handler's encoded answer if
// end.encoded is true, and otherwise the handler's error as a failure.
//
// If the answer can't be encoded, result returns the reason as its error. The result then
// has the failure ErrAnswerUnavailable in place of the answer, and every later call
// receives that failure.
func (a *attempt) result(w work, end ending) (Result, error) {
	r := a.emptyResult(end)
	if !end.encoded {
		r.Failure = failureOf(end.err)
		return r, nil
	}
	value, err := w.encode()
	if err != nil {
		return a.withoutAnswer(end), err
	}
	r.Value = value
	return r, nil
}

// withoutAnswer returns the result to store for an answer that can't be encoded or is too
// large. Later calls get ErrAnswerUnavailable, and the handler does not run again.
func (a *attempt) withoutAnswer(end ending) Result {
	r := a.emptyResult(end)
	r.Failure = answerNotKept()
	return r
}

// emptyResult returns a result without Value or Failure. The caller adds one of them. Each
// result of an attempt has a different time in the field At, by which isResult
// distinguishes the results of one attempt. emptyResult also sets lastResultMade to the
// current time. If the result is stored, its age in the cache counts from that time.
func (a *attempt) emptyResult(end ending) Result {
	a.lastResultMade = a.g.opts.Clock()
	now := a.lastResultMade.Truncate(time.Millisecond)
	if !now.After(a.lastResultAt) {
		now = a.lastResultAt.Add(time.Millisecond)
	}
	a.lastResultAt = now
	return Result{Outcome: end.outcome, At: now, Expires: a.expires(now)}
}

// lease returns the attempt's lease. Only a release uses the fields Expires and Bound, and
// stores them in the record. Expires is when a record that is released now expires. Bound
// says why the released record must refuse a request with another payload; it is empty if
// the record accepts such a request.
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

// sendRelease calls Store.Release, even if ctx has ended. It retries a failed call until
// the time for cleanup is over. why is the error to store as the record's last failure; nil
// if there is none.
//
// If the attempt runs without a lease because of Options.FailOpen, sendRelease tries only
// once. It still tries, because the attempt may hold the lease after all: the reply to its
// claim may have been lost.
func (a *attempt) sendRelease(ctx context.Context, why error) (Record, error) {
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	failure := failureCode(why)
	for try := 1; ; try++ {
		asked := time.Now()
		lease := a.lease()
		lease.LastFailure = failure
		rec, err := a.g.store.Release(ctx, lease, a.g.opts.Clock())
		a.spent(asked)
		if err == nil || errors.Is(err, ErrLeaseLost) || a.failedOpen || !a.backOff(ctx, try) {
			return rec, err
		}
	}
}
