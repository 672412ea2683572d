package lambdaidem

import (
	"context"
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// This file completes records by a transaction. An attempt needs a transaction in three
// cases: its handler has enlisted writes, Options.Optimistic is set, or the attempt runs
// without a lease because of Options.FailOpen and the database has rejected its earlier
// transaction. If the attempt has no lease, the transaction also claims the record.

// completion returns the completion that stores r: by tx, or by Store.Complete if tx is nil.
// If tx is not nil and the attempt has no lease, the completion also claims the record.
//
// With Options.FailOpen, the attempt may have sent a claim whose reply was lost. That claim
// may have taken over a record. The completion therefore takes over the same record. If it
// created a record instead, the data of the old one would be lost, such as the attempt
// number.
func (a *attempt) completion(r Result, tx Tx) *Completion {
	a.firstCompletion = Completion{Lease: a.lease(), Result: r}
	c := &a.firstCompletion
	if tx != nil && (a.g.opts.Optimistic || a.failedOpen) {
		return a.completionOver(c, a.recordOfLastClaim())
	}
	return c
}

// completionOver returns a copy of c that also claims the record. seen is the record that
// the claim takes over, or the zero Record to create one.
func (a *attempt) completionOver(c *Completion, seen Record) *Completion {
	next := *c
	now := a.g.opts.Clock()
	claim := a.claimAt(now, seen)
	if claim.LeaseEnd.IsZero() { // an optimistic attempt has never claimed a lease
		claim.LeaseEnd = ceil(now, leaseUnit)
	}
	next.Claim = &claim
	return &next
}

// with returns a copy of c with the result r.
func (c *Completion) with(r Result) *Completion {
	next := *c
	next.Result = r
	return &next
}

// completingTx returns the transaction that completes the record: tx if it is not nil, or a
// transaction without writes if the completion must also claim the record. It returns nil
// if Store.Complete can complete the record.
func (a *attempt) completingTx(tx Tx) Tx {
	if tx == nil && (a.g.opts.Optimistic || a.failedOpen && a.txRejected) {
		return a.g.transact.Begin(a.g.opts.Random)
	}
	return tx
}

// save sends the completion to the store: by tx, or by Store.Complete if tx is nil.
func (a *attempt) save(ctx context.Context, tx Tx, c *Completion) (Record, error) {
	defer a.spent(time.Now())
	if tx != nil {
		return tx.Commit(ctx, c)
	}
	return a.g.store.Complete(ctx, c.Lease, c.Result)
}

// completed ends an attempt after the store has reported its record, rec, as completed.
// unstorable is why the handler's answer could not be stored; nil if it could.
//
// The record may have another answer than c. That happens if the database rejected a
// transaction of this attempt, but applied an earlier request for the same transaction
// after all. A completed record never changes, so the caller receives the answer in the
// record.
func (a *attempt) completed(ctx context.Context, rec Record, c *Completion, end ending, unstorable error) decision {
	if rec.Attempt > 0 { // the reply to a transaction has no attempt number
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

// isResult reports whether has, the result in a record, is meant, the result that this
// attempt sent. It compares only At, because any two results of one attempt have different
// times.
func isResult(has, meant Result) bool { return has.At.Equal(meant.At) }

// errStepsRemain is why an optimistic attempt can't complete a record that has steps. It is
// sent in an event and never to the client.
var errStepsRemain = errors.New("the record has steps of a version without Options.Optimistic, and an optimistic attempt can't continue after steps: see docs/operate.md, \"Something changes in a deployment\"")

// claimFailed decides what follows if a completion could not claim its record, whose
// current state is rec. If mayRetry is true, the caller may try the completion again,
// with a claim that takes over seen. Otherwise d is what the caller of the guarded call
// receives.
func (a *attempt) claimFailed(ctx context.Context, rec Record) (d decision, seen Record, mayRetry bool) {
	rec = a.withdrawClaimOn(ctx, rec)
	means := a.meaningOf(rec)
	if means == isBusy {
		rec, means = a.wait(ctx, rec)
	}
	switch {
	case means == isBusy, means == isAcquired:
		return a.inProgress(ctx), rec, false
	case means != isFree:
		return a.fromRecordAfterRun(ctx, means, rec), rec, false
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

// checkRecord reads the record of an optimistic attempt whose answer is not stored. If
// decided is true, the record decides the call, and d is what the caller receives: for
// example, the answer that another attempt has stored. If the record can't be read, err
// is not nil, and d refuses the call.
func (a *attempt) checkRecord(ctx context.Context) (d decision, decided bool, err error) {
	ctx, cancel := a.finishContext(ctx)
	defer cancel()
	var rec Record
	for try := 1; ; try++ {
		asked := time.Now()
		rec, err = a.g.store.Get(ctx, a.id, a.g.opts.Clock())
		a.spent(asked)
		if err == nil {
			break
		}
		if readFailsAgain(err) || !a.backOff(ctx, try) {
			a.report(ctx, EventStoreError, err)
			return a.unknown(err), false, err
		}
	}
	rec = a.withdrawClaimOn(ctx, rec)
	means := a.meaningOf(rec)
	if means == isBusy {
		rec, means = a.wait(ctx, rec)
	}
	switch means { //nolint:exhaustive // the record decides the call in all other cases
	case isFree:
		return decision{}, false, nil
	case isBusy, isAcquired:
		return a.inProgress(ctx), true, nil
	}
	return a.fromRecordAfterRun(ctx, means, rec), true, nil
}

// fromRecordAfterRun is like fromRecord, for a call whose handler has run. It assumes that
// none of the writes of an optimistic attempt's handler were made, and therefore subtracts
// the run from the number of runs that package idemtest checks.
func (a *attempt) fromRecordAfterRun(ctx context.Context, means meaning, rec Record) decision {
	if a.g.opts.Optimistic {
		runcount.Undo(ctx)
	}
	return a.fromRecord(ctx, means, rec)
}

// readFailsAgain reports whether a read that failed with err would fail the same way if it
// were repeated.
func readFailsAgain(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // all other reasons may be temporary
	case ReasonNoTable, ReasonPermission, ReasonInvalid, ReasonForeign:
		return true
	}
	return false
}

// finishOptimistic ends an optimistic attempt whose outcome is released or uncertain, so
// that its answer is not stored. If another attempt has taken or completed the record
// meanwhile, the caller receives what that record calls for, such as a replay.
func (a *attempt) finishOptimistic(ctx context.Context, end ending) decision {
	d, decided, err := a.checkRecord(ctx)
	if decided || err != nil {
		return d
	}
	if end.outcome == OutcomeReleased && !a.txMayCommit {
		a.report(ctx, EventReleased, end.err)
		return decision{}
	}
	a.report(ctx, EventUncertain, end.err)
	return decision{refusal: outcomeUnknown(shownOnly{end.err}, a.g.opts.RetryAfter)}
}

// handlerDiedOptimistic ends an optimistic attempt whose handler panicked with the value
// v. If the record decides the call, that decision replaces the panic. Otherwise
// handlerDiedOptimistic panics with v again. If the handler called runtime.Goexit, v is
// nil, and the goroutine exits in either case.
func (a *attempt) handlerDiedOptimistic(ctx context.Context, v any) decision {
	a.inner.setHandler(handlerFailed)
	a.innerEnding = a.innerOutcome()
	d, decided, _ := a.checkRecord(ctx)
	switch {
	case decided:
		return d
	case a.txMayCommit:
		a.innerEnding = OutcomeUncertain
		a.report(ctx, EventUncertain, errEndingDied)
	default:
		a.report(ctx, EventReleased, errHandlerDied)
	}
	if v != nil {
		panic(v)
	}
	return decision{}
}
