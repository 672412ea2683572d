package lambdaidem

import (
	"context"
	"time"
)

// claim asks the store for the lease, and returns the record that Store.Acquire returns. oldRec is
// the record to take over, or the zero Record to create one. If a transaction of another attempt
// is writing the record, claim retries for up to conflictPatience.
func (a *attempt) claim(ctx context.Context, oldRec Record) (Record, error) {
	var patience time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		now := a.g.opts.Clock()
		a.beginLease(now)
		start := time.Now()
		claim := a.claimAt(now, oldRec)
		a.lastClaimOver, a.bound = claim.Over, claim.Bound
		rec, err := a.g.store.Acquire(ctx, claim)
		a.addStoreTime(start)
		if err == nil {
			return rec, nil
		}
		a.mayHoldLease = a.mayHoldLease || !notApplied(err)
		if reasonOf(err) != ReasonConflict {
			return rec, err
		}
		a.needsLease = true // another attempt is writing the record, so don't run beside it
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

// claimAt returns a claim to be sent at the given time. The claim takes over oldRec, or creates a
// record if oldRec is the zero Record.
func (a *attempt) claimAt(now time.Time, oldRec Record) Claim {
	o := &a.g.opts
	c := Claim{ID: a.id, Scope: a.scope, Fingerprint: a.call.fingerprint, Token: a.token, Now: now, LeaseEnd: a.leaseEnd,
		Invocation: a.invocation}
	if oldRec.State != Absent {
		oldCopy := oldRec // only the copy escapes to the heap, so a claim that creates a record allocates nothing
		c.Over = &oldCopy
		c.Fingerprint = a.call.fingerprintOver(oldRec)
		c.Bound = boundOver(oldRec)
	}
	if o.Policy != Hold { // under Hold, the record of a dead attempt must not expire before an operator decides
		c.Expires = a.expires(now)
		// The record must not expire before the lease has ended, even on a machine whose clock is
		// ahead by MaxSkew. Expiries are whole seconds, so allow one more second.
		if least := ceil(a.leaseEnd.Add(o.MaxSkew).Add(time.Second), time.Second); c.Expires.Before(least) {
			c.Expires = least
		}
	}
	return c
}

// boundOver returns the Claim.Bound of a claim that takes over rec: the reason why the record
// refuses another payload, or "" if the record accepts any payload. That is rec.Bound, except that
// a record in progress, whose attempt must have died, is bound by this dead attempt. If there are
// two reasons, BoundByInnerCall comes first; see Record.Bound.
func boundOver(rec Record) string {
	if rec.State == InProgress && rec.Bound != BoundByInnerCall {
		return BoundByDeadAttempt
	}
	return rec.Bound
}
