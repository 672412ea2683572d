package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file calls the store for an attempt. attempt.go decides what follows from the
// replies.

// spent adds the time since asked to the time spent in the store, which events report.
// The time for storing steps is part of the handler's time instead.
func (a *attempt) spent(asked time.Time) { a.inStore += time.Since(asked) }

// claim asks the store for the lease. over is the record to take over, or the zero
// Record. If another transaction is writing the item, claim retries for up to
// conflictPatience.
func (a *attempt) claim(ctx context.Context, over Record) (Record, error) {
	var patience time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		now := a.g.opts.Clock()
		a.beginLease(now)
		asked := time.Now()
		claim := a.claimAt(now, over)
		a.over, a.bound = claim.Over, claim.Bound
		rec, err := a.g.store.Acquire(ctx, claim)
		a.spent(asked)
		if err == nil {
			return rec, nil
		}
		a.mayHold = a.mayHold || !notApplied(err)
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

// replaced returns the record that the last claim replaces; the zero Record if the claim
// begins a record, or if there was none.
func (a *attempt) replaced() Record {
	if a.over == nil {
		return Record{}
	}
	return *a.over
}

// claimAt returns a claim at now. over is the record to take over, or the zero Record.
func (a *attempt) claimAt(now time.Time, over Record) Claim {
	o := &a.g.opts
	c := Claim{ID: a.id, Scope: a.scope, Fingerprint: a.call.fingerprint, Token: a.token, Now: now, LeaseEnd: a.leaseEnd,
		Invocation: a.invocation}
	if over.State != Absent {
		seen := over // a copy, so that a first claim needs none
		c.Over = &seen
		c.Fingerprint = a.call.fingerprintOver(over)
		if c.Bound = over.Bound; over.State == InProgress && c.Bound != BoundByInnerCall {
			c.Bound = BoundByDeadAttempt
		}
	}
	if o.Policy != Hold { // under Hold, the record of a dead attempt waits for an operator and must not expire
		c.Expires = a.expires(now)
		// The record must not expire before the lease has ended by every clock.
		if least := ceil(a.leaseEnd.Add(o.MaxSkew).Add(time.Second), time.Second); c.Expires.Before(least) {
			c.Expires = least
		}
	}
	return c
}

// expires returns when a record that is finished now expires.
func (a *attempt) expires(now time.Time) time.Time {
	return ceil(now.Add(a.g.opts.TTL), time.Second)
}

// load returns the complete result of a finished record.
func (a *attempt) load(ctx context.Context, rec Record) (Result, error) {
	if rec.Result.Apart == nil {
		return rec.Result, nil
	}
	loader, ok := a.g.store.(Loader)
	if !ok {
		return Result{}, unloadable(fmt.Errorf("the store keeps the answer apart, and %T is no Loader: it may wrap one and not pass Load on", a.g.store))
	}
	asked := time.Now()
	result, err := loader.Load(ctx, rec)
	a.spent(asked)
	if err == nil && result.Apart != nil {
		err = unloadable(fmt.Errorf("the Load of %T left the answer where it was", a.g.store))
	}
	return result, err
}

func unloadable(err error) error {
	return &StoreError{Op: "load", Reason: ReasonForeign, NotApplied: true, Err: err}
}

// result returns the result to store. If the answer can't be encoded, the result says
// so to later callers, and the error says why.
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

// withoutAnswer returns the result to store if the answer can't be stored.
func (a *attempt) withoutAnswer(end ending) Result {
	r := a.emptyResult(end)
	r.Failure = answerNotKept()
	return r
}

// emptyResult returns a result without Value or Failure. Each result of an attempt has a
// different At, so that completed can tell whether the record has this result or an
// earlier one of the same attempt.
func (a *attempt) emptyResult(end ending) Result {
	a.asked = a.g.opts.Clock()
	now := a.asked.Truncate(time.Millisecond)
	if !now.After(a.finishedAt) {
		now = a.finishedAt.Add(time.Millisecond)
	}
	a.finishedAt = now
	return Result{Outcome: end.outcome, At: now, Expires: a.expires(now)}
}

// lease returns the lease with which the attempt finishes its record.
func (a *attempt) lease() Lease {
	l := Lease{ID: a.id, Token: a.token, Scope: a.scope, Expires: a.expires(a.g.opts.Clock()), Bound: a.bound}
	switch {
	case a.inner.anyEffect():
		l.Bound = BoundByInnerCall
	case l.Bound == "" && a.askedForKey.Load():
		l.Bound = BoundByDownstreamKey
	}
	return l
}

// settleRelease releases the record, even if the request's context has ended. why is
// the error to store as the record's last failure; nil if there is none.
func (a *attempt) settleRelease(ctx context.Context, why error) (Record, error) {
	cleaning := a.cleanupContext(ctx)
	defer cleaning.Cancel()
	ctx = cleaning
	failure := failureCode(why)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		asked := time.Now()
		lease := a.lease()
		lease.LastFailure = failure
		rec, err := a.g.store.Release(ctx, lease, a.g.opts.Clock())
		a.spent(asked)
		if err == nil || errors.Is(err, ErrLeaseLost) || a.failedOpen || !a.pause(ctx, pause) {
			return rec, err
		}
	}
}
