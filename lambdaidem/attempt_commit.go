package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file completes records with a transaction. An attempt needs a transaction if its handler has
// enlisted writes, and in the cases that completingTx lists. If the attempt has no lease, the
// transaction also claims the record.

// completion returns the completion that stores the result r, to be sent with the transaction tx,
// or with Store.Complete if tx is nil. In a transaction of an attempt without a lease, the
// completion also claims the record.
func (a *attempt) completion(r Result, tx Tx) *Completion {
	a.firstCompletion = Completion{Lease: a.lease(), Result: r}
	c := &a.firstCompletion
	if tx != nil && a.withoutLease() {
		// With FailOpen, the attempt's failed claim may have been a takeover. Take over the same
		// record now: a new record would lose data, such as the attempt number.
		return a.completionOver(c, a.recordOfLastClaim())
	}
	return c
}

// withoutLease reports whether the attempt's handler runs without a lease, because of
// Options.Optimistic or Options.FailOpen.
func (a *attempt) withoutLease() bool { return a.g.opts.Optimistic || a.failedOpen }

// expiryJudgedAt returns the time at which the attempt judges whether its record has expired. With
// a lease, this is the current time. Without a lease, it is the time when the attempt began: since
// then, a retry may have completed the record, and the record may have expired. Judged by the
// current time, the record would count as absent, and this attempt would repeat the retry's
// effects.
func (a *attempt) expiryJudgedAt() time.Time {
	if a.withoutLease() {
		return a.clockStart
	}
	return a.g.opts.Clock()
}

// completionOver returns a copy of c for an attempt without a lease. The copy also has a claim, so
// that one write both claims the record and completes it. oldRec is the record that the claim takes
// over, or the zero Record if the write must create the record.
func (a *attempt) completionOver(c *Completion, oldRec Record) *Completion {
	next := *c
	now := a.g.opts.Clock()
	claim := a.claimAt(now, oldRec)
	claim.Now = a.expiryJudgedAt()
	if claim.LeaseEnd.IsZero() { // an optimistic attempt has never claimed a lease
		claim.LeaseEnd = ceil(now, leaseUnit)
	}
	next.Claim, a.fingerprint = &claim, claim.Fingerprint
	return &next
}

// with returns a copy of c with the result r.
func (c *Completion) with(r Result) *Completion {
	next := *c
	next.Result = r
	return &next
}

// completingTx returns the transaction to complete the record with, or nil to call Store.Complete
// instead. tx is the transaction with the handler's writes; completingTx returns tx unless it is
// nil. If the attempt has no lease and its answer must be stored, completingTx begins a new
// transaction.
func (a *attempt) completingTx(tx Tx, end ending) Tx {
	if tx == nil && a.g.transact != nil && a.withoutLease() && a.mustStore(end) {
		// Without a lease, the completion must also claim the record. A transaction can do this,
		// even without the handler's writes; Store.Complete can't.
		return a.g.transact.Begin(a.g.opts.Random)
	}
	return tx
}

// txTooLate ends an attempt without a lease whose handler returned too late to send a transaction.
// last is the error of the last transaction that was sent, or nil. An optimistic attempt first
// calls checkRecord, which may decide what the caller receives. Otherwise the caller receives
// ErrOutcomeUnknown if the handler may have had effects, and ErrOutOfTime if not.
func (a *attempt) txTooLate(ctx context.Context, last error) decision {
	if a.g.opts.Optimistic {
		if _, d, decided, err := a.checkRecord(ctx, false); decided || err != nil {
			return d
		}
	}
	// After ErrLeaseLost, no transaction that this attempt sent earlier can still be applied,
	// because the record has changed.
	mayBeApplied := last != nil && !errors.Is(last, ErrLeaseLost) && !notApplied(last)
	if mayBeApplied || a.txMayCommit || a.mayHaveLeftEffects() {
		a.report(ctx, EventUncertain, errTxTooLate)
		return a.unknown(errTxTooLate)
	}
	return a.outOfTime(ctx, errTxTooLate)
}

var errTxTooLate = fmt.Errorf("the handler ran without a lease and returned too late: a transaction of such an attempt can be sent only within %v after the attempt began; let the handler end with its context", longestWithoutLease)

// save sends the completion to the store: with tx, or with Store.Complete if tx is nil.
func (a *attempt) save(ctx context.Context, tx Tx, c *Completion) (Record, error) {
	defer a.addStoreTime(time.Now())
	if tx != nil {
		return tx.Commit(ctx, c)
	}
	return a.g.store.Complete(ctx, c.Lease, c.Result)
}

// completed ends an attempt after the store has reported its record, rec, as completed. c is the
// completion that was sent last, and the parameter end describes how the handler ended. unstorable
// is the reason why the handler's answer could not be stored, or nil. If the record has an answer
// other than that of c, completed returns a replay. Otherwise it returns the zero decision: the
// caller receives the handler's answer.
func (a *attempt) completed(ctx context.Context, rec Record, c *Completion, end ending, unstorable error) decision {
	if rec.Attempt > 0 { // the reply to a transaction has no attempt number
		a.number = rec.Attempt
	}
	if c.Claim != nil && c.Claim.Over != nil && c.Claim.Over.State == InProgress {
		a.report(ctx, EventTakenOver, nil)
	}
	// An earlier transaction, whose reply was lost, may have stored an answer other than that of c.
	// A completed record never changes, so replay the stored answer.
	if !isResult(rec.Result, c.Result) {
		return a.replay(ctx, rec, EventNew)
	}
	a.innerEnding = c.Result.Outcome
	a.rememberOwn(rec, c.Result)
	switch {
	case unstorable != nil:
		a.report(ctx, EventAnswerLost, unstorable)
	default:
		a.report(ctx, EventNew, end.err)
	}
	return decision{}
}
