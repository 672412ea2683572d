package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What an attempt reads from its record and writes to it. What follows from the
// answers is decided in attempt.go.

// spent adds up how long the store took, for events (O1). Steps are asked for in
// the handler, and are a part of its time.
func (a *attempt) spent(asked time.Time) { a.stored += time.Since(asked) }

// claim asks the store for the lease, over the record that was seen if there
// was one. While a transaction holds the item it asks again, for a short time
// (X9).
func (a *attempt) claim(ctx context.Context, over Record) (Record, error) {
	var patience time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		now := a.g.opts.Clock()
		a.beginLease(now)
		asked := time.Now()
		claim := a.claimAt(now, over)
		a.replaces = over.Token
		a.payload = Record{Fingerprint: claim.Fingerprint, Payloads: claim.Payloads}.payload()
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

func (a *attempt) claimAt(now time.Time, over Record) Claim {
	o := &a.g.opts
	c := Claim{ID: a.id, Scope: a.scope, Fingerprint: a.call.fingerprint, Token: a.token, Now: now, LeaseEnd: a.leaseEnd,
		Invocation: a.invocation}
	if over.State != Absent {
		seen := over // a copy, so that a first claim needs none
		c.Over = &seen
		c.Fingerprint, c.Payloads = a.call.recordedOver(over)
	}
	if o.Policy != Hold { // L6: a held record does not expire
		c.Expires = a.expires(now)
		// L7: not before the lease is over by every clock.
		if least := ceil(a.leaseEnd.Add(o.MaxSkew).Add(time.Second), time.Second); c.Expires.Before(least) {
			c.Expires = least
		}
	}
	return c
}

// expires is when a record that is finished now expires.
func (a *attempt) expires(now time.Time) time.Time {
	return ceil(now.Add(a.g.opts.TTL), time.Second)
}

// wait polls until the record is not busy any more, and judges it then (L8).
// acquire's context ends it in time to answer before the invocation's deadline.
func (a *attempt) wait(ctx context.Context, rec Record) (Record, finding) {
	if a.g.opts.Wait == 0 {
		return rec, isBusy
	}
	ctx, cancel := a.waitContext(ctx)
	defer cancel()
	var unread error // why the last read that was given its time failed
	for pause := firstPause; ; pause = min(pause+pause/2, longestPause) {
		if !a.pause(ctx, pause) {
			if unread != nil {
				a.note(ctx, EventStoreError, unread)
			}
			return rec, isBusy
		}
		asked := time.Now()
		now, err := a.g.store.Get(ctx, a.id, a.g.opts.Clock())
		a.spent(asked)
		if ctx.Err() == nil {
			unread = err
		}
		if err != nil {
			continue // it was in progress when last seen: look again while there is time
		}
		now = a.freed(ctx, now)
		if found := a.judge(now); found != isBusy {
			return now, found
		}
	}
}

// load returns the result of a finished record whole (R3).
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

// result is what the record is to keep of an ending. The error tells why the
// answer can't be kept, if it can't (X4).
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

// withoutAnswer is the result of an attempt whose answer can't be kept (X4).
func (a *attempt) withoutAnswer(end ending) Result {
	r := a.emptyResult(end)
	r.Failure = answerNotKept()
	return r
}

// emptyResult is a result but for what it replays. Each of an attempt has a
// moment of its own, by which it can be told from an earlier one that was stored
// after all.
func (a *attempt) emptyResult(end ending) Result {
	a.asked = a.g.opts.Clock()
	now := a.asked.Truncate(time.Millisecond)
	if !now.After(a.finishedAt) {
		now = a.finishedAt.Add(time.Millisecond)
	}
	a.finishedAt = now
	return Result{Outcome: end.outcome, At: now, Expires: a.expires(now)}
}

// lease is what finishes the record.
func (a *attempt) lease() Lease {
	return Lease{ID: a.id, Token: a.token, Scope: a.scope, Expires: a.expires(a.g.opts.Clock())}
}

// settleRelease writes the release, even if the request's context has ended.
// why is the error that the record names as its last failure; nil: none.
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
		if err == nil || errors.Is(err, ErrLeaseLost) || a.open || !a.pause(ctx, pause) {
			return rec, err
		}
	}
}
