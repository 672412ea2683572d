package lambdaidem

import (
	"context"
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// This file completes attempts by a transaction: those whose handler enlisted writes,
// and those without a lease, which are optimistic or run because of Options.FailOpen.

// completion returns the completion to commit with tx, or with Store.Complete if tx is
// nil. An attempt that runs because of Options.FailOpen may have taken a record over
// without knowing, so its completion replaces the same record as its last claim. The
// record then keeps what a new record would lose, such as its attempt number.
func (a *attempt) completion(r Result, tx Tx) *Completion {
	a.first = Completion{Lease: a.lease(), Result: r}
	c := &a.first
	if tx != nil && (a.g.opts.Optimistic || a.failedOpen) {
		return a.completionOver(c, a.replaced())
	}
	return c
}

// completionOver returns a copy of the completion that also claims the record. seen is
// the record that the claim replaces; the zero Record if none was seen.
func (a *attempt) completionOver(c *Completion, seen Record) *Completion {
	next := *c
	now := a.g.opts.Clock()
	claim := a.claimAt(now, seen)
	if claim.LeaseEnd.IsZero() { // the attempt never claimed a lease
		claim.LeaseEnd = ceil(now, leaseUnit)
	}
	next.Claim = &claim
	return &next
}

// with returns a copy of the completion with another result.
func (c *Completion) with(r Result) *Completion {
	next := *c
	next.Result = r
	return &next
}

// carrier returns the transaction that completes the attempt: tx if the handler
// enlisted writes, or a transaction without writes if the completion must claim the
// record. It returns nil if Store.Complete can complete the attempt.
func (a *attempt) carrier(tx Tx) Tx {
	if tx == nil && (a.g.opts.Optimistic || a.failedOpen && a.rejected) {
		return a.g.transact.Begin(a.g.opts.Random)
	}
	return tx
}

// save sends the completion to the store.
func (a *attempt) save(ctx context.Context, tx Tx, c *Completion) (Record, error) {
	defer a.spent(time.Now())
	if tx != nil {
		return tx.Commit(ctx, c)
	}
	return a.g.store.Complete(ctx, c.Lease, c.Result)
}

// completed ends an attempt whose record is completed. The record may have an earlier
// answer of this attempt, stored by a transaction that was given up although it might
// still commit. A completed record never changes, so the caller receives that answer.
func (a *attempt) completed(ctx context.Context, rec Record, c *Completion, end ending, unstorable error) decision {
	if rec.Attempt > 0 { // 0 in the reply to a transaction
		a.number = rec.Attempt
	}
	if c.Claim != nil && c.Claim.Over != nil && c.Claim.Over.State == InProgress {
		a.report(ctx, EventTakenOver, nil)
	}
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

// isResult reports whether the result in a record is the one that was to be stored. Two
// results of one attempt differ in At; see emptyResult.
func isResult(has, meant Result) bool { return has.At.Equal(meant.At) }

// errStepsRemain is why an optimistic attempt leaves a record with steps alone.
var errStepsRemain = errors.New("the record has steps of a version without Options.Optimistic, and an optimistic attempt can't continue after steps: see docs/operate.md, \"Something changes in a deployment\"")

// contested handles a completion that failed to claim its record. If the record means
// that the call must not complete, d is the decision about the call. Otherwise free is
// true, and the completion may be tried again over seen.
func (a *attempt) contested(ctx context.Context, rec Record) (d decision, seen Record, free bool) {
	rec = a.freed(ctx, rec)
	found := a.judge(rec)
	if found == isBusy {
		rec, found = a.wait(ctx, rec)
	}
	switch {
	case found == isBusy, found == isOurs:
		return a.inProgress(ctx), rec, false
	case found != isFree:
		return a.overruled(ctx, found, rec), rec, false
	case len(rec.Steps) > 0 && a.failedOpen: // a retry that gets the lease continues after the steps
		return a.inProgress(ctx), rec, false
	case len(rec.Steps) > 0:
		a.number = rec.Attempt
		a.report(ctx, EventAbandoned, errStepsRemain)
		return decision{refusal: stepsRemain(errStepsRemain)}, rec, false
	}
	if a.contests++; a.contests >= maxClaims {
		return a.inProgress(ctx), rec, false
	}
	return decision{}, rec, true
}

// consult reads the record before an optimistic attempt sends an answer that it does
// not store. known reports whether the record decides the call, by d. If the record
// can't be read, d refuses the call and err is not nil.
func (a *attempt) consult(ctx context.Context) (d decision, known bool, err error) {
	finishing := a.finishContext(ctx)
	defer finishing.Cancel()
	ctx = finishing
	var rec Record
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		asked := time.Now()
		rec, err = a.g.store.Get(ctx, a.id, a.g.opts.Clock())
		a.spent(asked)
		if err == nil {
			break
		}
		if hopelessRead(err) || !a.pause(ctx, pause) {
			a.report(ctx, EventStoreError, err)
			return a.unknown(err), false, err
		}
	}
	rec = a.freed(ctx, rec)
	found := a.judge(rec)
	if found == isBusy {
		rec, found = a.wait(ctx, rec)
	}
	switch found { //nolint:exhaustive // the record decides the call in all other cases
	case isFree:
		return decision{}, false, nil
	case isBusy, isOurs:
		return a.inProgress(ctx), true, nil
	}
	return a.overruled(ctx, found, rec), true, nil
}

// overruled decides a call by its record although the handler has run. None of an
// optimistic attempt's writes were made, so overruled takes its run off the count of
// runs that package idemtest checks.
func (a *attempt) overruled(ctx context.Context, found finding, rec Record) decision {
	if a.g.opts.Optimistic {
		runcount.Undo(ctx)
	}
	return a.fromRecord(ctx, found, rec)
}

// hopelessRead reports whether repeating a failed read would fail the same way.
func hopelessRead(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // all other reasons may be temporary
	case ReasonNoTable, ReasonPermission, ReasonInvalid, ReasonForeign:
		return true
	}
	return false
}

// finishOptimistic ends an optimistic attempt whose answer is not stored.
func (a *attempt) finishOptimistic(ctx context.Context, end ending) decision {
	d, known, err := a.consult(ctx)
	if known || err != nil {
		return d
	}
	if end.outcome == OutcomeReleased && !a.unsettled {
		a.report(ctx, EventReleased, end.err)
		return decision{}
	}
	a.report(ctx, EventUncertain, end.err)
	return decision{refusal: outcomeUnknown(end.err, a.g.opts.RetryAfter)}
}

// diedOptimistic ends an optimistic attempt whose handler panicked with v, or called
// runtime.Goexit, in which case v is nil. If the record decides the call, its decision
// replaces the panic. Otherwise diedOptimistic panics with v again. Nothing can stop
// runtime.Goexit.
func (a *attempt) diedOptimistic(ctx context.Context, v any) decision {
	a.inner.setHandler(handlerFailed)
	a.innerEnding = a.innerOutcome()
	d, known, _ := a.consult(ctx)
	if known {
		return d
	}
	a.report(ctx, EventReleased, errHandlerDied)
	if v != nil {
		panic(v)
	}
	return decision{}
}
