package lambdaidem

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// How an attempt completes where its handler enlisted writes (E1), or holds no
// lease: one that runs optimistically (E4) or failed open (X5).

// completion is what is to be stored by tx, or by the store alone if that is nil.
func (a *attempt) completion(r Result, tx Tx) *Completion {
	a.first = Completion{Lease: a.lease(), Result: r}
	c := &a.first
	if tx != nil && (a.g.opts.Optimistic || a.open) {
		return a.completionOver(c, Record{})
	}
	return c
}

// completionOver is a completion that claims the record too, over what was seen
// of it.
func (a *attempt) completionOver(c *Completion, seen Record) *Completion {
	next := *c
	now := a.g.opts.Clock()
	claim := a.claimAt(now, seen)
	if claim.LeaseEnd.IsZero() { // it never had one
		claim.LeaseEnd = ceil(now, leaseUnit)
	}
	next.Claim = &claim
	return &next
}

// with is the completion with another result.
func (c *Completion) with(r Result) *Completion {
	next := *c
	next.Result = r
	return &next
}

// carrier is the transaction that completes the attempt: that of the handler's
// writes, if there are any; one without writes for an attempt that has to claim
// its record; else nil.
func (a *attempt) carrier(tx Tx) Tx {
	if tx == nil && (a.g.opts.Optimistic || a.open && a.rejected) {
		return a.g.transact.Begin(a.g.opts.Random)
	}
	return tx
}

// save asks the store for the completion.
func (a *attempt) save(ctx context.Context, tx Tx, c *Completion) (Record, error) {
	defer a.spent(time.Now())
	if tx != nil {
		return tx.Commit(ctx, c)
	}
	return a.g.store.Complete(ctx, c.Lease, c.Result)
}

// completed notes that the answer is stored. What stands in the record may be an
// earlier completion of this attempt's own: of a transaction whose fate was not
// known when it was given up. It never changes (G3), so it is the answer.
func (a *attempt) completed(ctx context.Context, rec Record, c *Completion, end ending, unstorable error) decision {
	if rec.Attempt > 0 { // a transaction's reply has none
		a.number = rec.Attempt
	}
	if c.Claim != nil && c.Claim.Over != nil && c.Claim.Over.State == InProgress {
		a.note(ctx, EventTakenOver, nil)
	}
	if !isResult(rec.Result, c.Result) {
		return a.replay(ctx, rec, EventNew)
	}
	a.rememberOwn(rec, c.Result)
	switch {
	case unstorable != nil:
		a.note(ctx, EventAnswerLost, unstorable)
	default:
		a.note(ctx, EventNew, end.err)
	}
	return decision{}
}

// isResult tells whether a record has the result that was to be stored: no two
// of one attempt are of one moment, see emptyResult.
func isResult(has, meant Result) bool { return has.At.Equal(meant.At) }

// contested decides a completion that had to claim its record and could not: the
// record's reason beats every other (E4). free tells that the record, as it was
// seen, may be claimed after all.
func (a *attempt) contested(ctx context.Context, rec Record) (d decision, seen Record, free bool) {
	found := a.judge(rec)
	if found == isBusy {
		rec, found = a.wait(ctx, rec)
	}
	switch {
	case found == isBusy, found == isOurs:
		return a.inProgress(ctx), rec, false
	case found != isFree:
		return a.overruled(ctx, found, rec), rec, false
	case len(rec.Steps) > 0 && a.open: // who takes the lease goes on after them
		return a.inProgress(ctx), rec, false
	case len(rec.Steps) > 0: // an attempt without a lease can't
		return a.fromRecord(ctx, isAbandoned, rec), rec, false
	}
	if a.contests++; a.contests >= maxClaims {
		return a.inProgress(ctx), rec, false
	}
	return decision{}, rec, true
}

// consult reads the record before an answer goes out that the record knows
// nothing of (E4). known tells whether the record decides the call instead.
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
			a.note(ctx, EventStoreError, err)
			return a.unknown(err), false, err
		}
	}
	found := a.judge(rec)
	if found == isBusy {
		rec, found = a.wait(ctx, rec)
	}
	switch found { //nolint:exhaustive // the others stand in the way for good
	case isFree:
		return decision{}, false, nil
	case isBusy, isOurs:
		return a.inProgress(ctx), true, nil
	}
	return a.overruled(ctx, found, rec), true, nil
}

// overruled answers by the record although the handler has run. None of the writes of
// an optimistic attempt were made then, so its run does not count.
func (a *attempt) overruled(ctx context.Context, found finding, rec Record) decision {
	if a.g.opts.Optimistic {
		runcount.Undo(ctx)
	}
	return a.fromRecord(ctx, found, rec)
}

// hopelessRead tells whether reading again can only end alike.
func hopelessRead(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // every other one may pass
	case ReasonNoTable, ReasonPermission, ReasonInvalid, ReasonForeign:
		return true
	}
	return false
}

// finishOptimistic ends an attempt that nothing is to be stored of (E4).
func (a *attempt) finishOptimistic(ctx context.Context, end ending) decision {
	d, known, err := a.consult(ctx)
	if known || err != nil {
		return d
	}
	if end.outcome == OutcomeReleased && !a.unsettled {
		a.note(ctx, EventReleased, end.err)
		return decision{}
	}
	a.note(ctx, EventUncertain, end.err)
	return decision{refusal: outcomeUnknown(end.err, a.g.opts.RetryAfter)}
}

// diedOptimistic ends an attempt whose handler did not return, having consulted
// the record: where that knows an answer, it stands in for the panic, which else
// goes on with its own value. v is nil after runtime.Goexit, which can't be
// stopped.
func (a *attempt) diedOptimistic(ctx context.Context, v any) decision {
	d, known, _ := a.consult(ctx)
	if known {
		return d
	}
	a.note(ctx, EventReleased, errHandlerDied)
	if v != nil {
		panic(v)
	}
	return decision{}
}
