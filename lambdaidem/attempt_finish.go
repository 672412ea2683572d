package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// This file runs the handler of an attempt and finishes its record. The file attempt.go
// has the part before that, which acquires the record.

// run calls the handler and finishes the record. Its result is what the caller receives.
func (a *attempt) run(ctx context.Context, w work) (d decision) {
	// While this call runs, no writes may be enlisted in the transactions of outer
	// handlers. A retry of an outer handler replays this call without running it, so writes
	// that were enlisted inside the call would be missing from the retry's transaction.
	for outer := a.outer; outer != nil; outer = outer.outer {
		outer.enlist.pause()
		defer outer.enlist.resume()
	}
	a.setReserved()
	hctx, cancel := a.stepContext(ctx)
	defer cancel()
	if hctx.Err() != nil {
		switch {
		case a.g.opts.Optimistic: // there is no lease to release
		case a.failedOpen:
			a.withdraw(ctx)
		default:
			a.release(ctx, fmt.Errorf("%w: %w", ErrOutOfTime, hctx.Err()))
		}
		return a.outOfTime(ctx, hctx.Err())
	}
	returned, settled := false, false
	defer a.enlist.end(errRunEnded)
	defer func() {
		// After a panic or runtime.Goexit, finish the record. Don't recover, so that the
		// panic continues with its value and stack.
		switch {
		case !settled && a.g.opts.Optimistic: // here recover, because a stored answer may replace the panic
			d = a.handlerDiedOptimistic(ctx, recover())
		case !returned:
			a.handlerDied(ctx)
		case !settled && a.txRejected && !a.txMayCommit: // Rejected.Verdict panicked, and nothing was written
			a.handlerDied(ctx)
		case !settled: // the handler has returned and may have had effects
			a.inner.setHandler(handlerFailed)
			a.innerEnding = OutcomeUncertain
			a.report(ctx, EventUncertain, errEndingDied)
		}
	}()
	a.started = true
	runcount.Add(ctx)
	started := time.Now()
	w.run(hctx)
	a.inHandler = time.Since(started)
	returned = true
	cancel()
	d = a.conclude(ctx, w)
	settled = true
	return d
}

// Errors that Options.Observer receives in the event of a call that panicked. They do not contain the value of the
// panic, because calling one of its methods could panic too.
var (
	errHandlerDied  = errors.New("the handler panicked or called runtime.Goexit")
	errObserverDied = errors.New("Options.Observer panicked or called runtime.Goexit before the handler started")
	errEndingDied   = errors.New("the handler returned; then Options.Outcome, the encoding of its result or the store panicked or called runtime.Goexit")
)

// handlerDied finishes the record after the handler has panicked or called
// runtime.Goexit. It releases the record, unless the handler may have had effects that a
// retry would repeat.
func (a *attempt) handlerDied(ctx context.Context) {
	outcome := OutcomeReleased
	if a.leavesStep() || a.g.opts.Policy == Hold {
		outcome = OutcomeUncertain
	}
	if outcome, _ = a.settle(outcome, mayRepeat); outcome == OutcomeUncertain {
		a.innerEnding = OutcomeUncertain
		a.report(ctx, EventUncertain, errHandlerDied)
		return
	}
	a.innerEnding = a.releasedEnding()
	a.release(ctx, errHandlerDied)
}

// finish ends the attempt as end.outcome says. It completes the record with the handler's
// answer, releases the record, or leaves it in progress.
//
// If end.changed is set, the handler's answer is not stored, for example because the
// outcome of a guarded call inside the handler is unknown. The handler's answer could then
// mislead the caller: after a 402, for example, a client would not repeat the request. The
// caller therefore receives ErrOutcomeUnknown instead.
func (a *attempt) finish(ctx context.Context, w work, end ending) decision {
	if end.changed != nil {
		end.err = errors.Join(end.changed, end.err)
	}
	tx, dropped := a.enlist.seal(end.outcome)
	if dropped > 0 && end.success {
		end = w.rejected(successWithoutWrites(end.outcome, dropped))
	}
	switch end.outcome {
	case OutcomeSucceeded, OutcomeFailed:
		return a.complete(ctx, w, end, tx)
	case OutcomeReleased:
		a.innerEnding = a.releasedEnding()
	case OutcomeUncertain:
		a.innerEnding = OutcomeUncertain
	default: // keep the lease, because the handler may have had effects
		a.innerEnding = OutcomeUncertain
		end.err = fmt.Errorf("Options.Outcome returned %q, which is no outcome", end.outcome)
	}
	var d decision
	switch {
	case a.g.opts.Optimistic:
		d = a.finishOptimistic(ctx, end)
	case end.outcome == OutcomeReleased:
		var takenOver *Record
		if d, takenOver = a.release(ctx, end.err); takenOver != nil {
			late, cancel := a.finishContext(ctx) // failedLate may load an answer
			d = a.failedLate(late, *takenOver, end)
			cancel()
		}
	default:
		a.report(ctx, EventUncertain, end.err)
		if a.txMayCommit {
			d = a.unknown(shownOnly{end.err})
		}
	}
	if end.changed == nil || d.refusal != nil || d.replays {
		return d
	}
	d = a.unknown(shownOnly{end.err})
	d.replaced = true
	if end.outcome == OutcomeReleased { // the record is released, so the caller need not wait for the end of the lease
		d.refusal.RetryAfter = a.g.opts.RetryAfter
	}
	return d
}

// unknown refuses a call with ErrOutcomeUnknown, because the handler may have had effects.
// Retry-After is the time until the lease ends, but at least Options.RetryAfter.
func (a *attempt) unknown(why error) decision {
	return decision{refusal: outcomeUnknown(why, max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter))}
}

// shownOnly is a cause that only logs can use. When an ErrOutcomeUnknown replaces the
// handler's error err, its cause is a shownOnly with the text of err. errors.Is and
// errors.As don't find err in a shownOnly. Otherwise a caller could find a code of the
// handler, such as "card_declined", and take the unknown outcome for a definite one.
type shownOnly struct{ err error }

func (e shownOnly) Error() string { return e.err.Error() }

// complete stores the answer in the record and commits the handler's enlisted writes, if
// there are any. tx is the transaction with these writes, or nil. complete retries a failed
// request as long as there is time. It does not retry a transaction that would fail again
// for the same reason. If no request succeeds, later calls may not get this answer, so the
// caller receives ErrOutcomeUnknown instead.
//
// An attempt that runs without a lease because of Options.FailOpen is an exception if it
// needs no transaction. complete then tries only once, and the caller receives the
// handler's answer even if the answer was not stored.
func (a *attempt) complete(ctx context.Context, w work, end ending, tx Tx) decision {
	request := ctx
	ctx, cancel := a.finishContext(ctx)
	defer cancel()
	result, unstorable := a.result(w, end)
	tx = a.completingTx(tx)
	c := a.completion(result, tx)
	var err error
	for try := 1; ; try++ {
		var rec Record
		rec, err = a.save(ctx, tx, c)
		if err == nil {
			a.storedByTx = tx != nil
			return a.completed(ctx, rec, c, end, unstorable)
		}
		if rejected := (*Rejected)(nil); errors.As(err, &rejected) { // the database refused a write of the handler
			cancel()
			a.enlist.drop()
			a.txRejected, a.txMayCommit = true, a.txMayCommit || rejected.Unsettled
			a.inner.setHandler(handlerRunning) // allow guarded calls: the verdict may be an Answer with an http.Handler that makes some
			return a.finish(request, w, w.rejected(rejected.verdict()))
		}
		if errors.Is(err, ErrLeaseLost) {
			if c.Claim == nil {
				return a.lost(ctx, rec, end)
			}
			d, over, mayRetry := a.claimFailed(ctx, rec)
			if !mayRetry {
				return d
			}
			c = a.completionOver(c, over)
			continue
		}
		if r := reasonOf(err); unstorable == nil && (r == ReasonTooLarge || r == ReasonEncoding) {
			unstorable = err
			c = c.with(a.withoutAnswer(end))
			continue
		}
		if a.failedOpen && tx == nil || tx != nil && commitFailsAgain(err) || !a.backOff(ctx, try) {
			break
		}
	}
	a.report(ctx, EventStoreError, err)
	if a.failedOpen && tx == nil {
		a.innerEnding = unstoredEnding(end)
		return decision{} // with FailOpen, the caller receives the handler's answer even if it was not stored
	}
	a.report(ctx, EventUncertain, err)
	return a.unknown(err)
}

// lost returns what the caller receives if this attempt's answer was not stored, because
// another attempt has taken over or completed the record. rec is the current record. The
// parameter end describes how this attempt's handler ended.
func (a *attempt) lost(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	if a.failedOpen {
		a.innerEnding = unstoredEnding(end)
		// With FailOpen, the caller receives the handler's answer, with two exceptions. If
		// the record has an answer, the caller receives that answer. If the handler's answer
		// is final, such as a 402, and another attempt may carry out the call, or may have
		// done so, the caller is refused. After a final answer, the client would not repeat
		// the request, and would not learn what became of the other attempt.
		if means != isFinished && (!end.final || !a.mayBeCarriedOut(rec)) {
			return decision{}
		}
	}
	a.report(ctx, EventLeaseLost, nil)
	if means == isFinished || means == isMismatch {
		return a.fromRecord(ctx, means, rec)
	}
	return a.inProgress(ctx)
}

// failedLate returns what the caller receives if the handler failed after another attempt
// had taken over the record. If the other attempt has finished, the caller receives the
// other attempt's answer. If the record has another payload, the caller receives
// ErrPayloadMismatch.
//
// Otherwise the call may still succeed in another attempt. The caller receives the failure
// of this handler, unless that failure is final, such as a 402. After a final failure, the
// client would not repeat the request, and would not learn of a later success. The caller
// therefore receives ErrInProgress instead of a final failure.
func (a *attempt) failedLate(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	switch {
	case means == isFinished, means == isMismatch:
		return a.fromRecord(ctx, means, rec)
	case end.final:
		return a.inProgress(ctx)
	}
	return decision{}
}

// release releases the record of an attempt that had no effects, so that a retry runs the
// handler again. The parameter why is the error to report; nil if there is none. If another
// attempt has taken over the record, release changes nothing, and takenOver is the current
// record.
//
// For an attempt that runs without a lease because of Options.FailOpen, takenOver is set only
// if another attempt may carry out this call, or may have done so.
func (a *attempt) release(ctx context.Context, why error) (d decision, takenOver *Record) {
	switch rec, err := a.sendRelease(ctx, why); {
	case err == nil:
		a.report(ctx, EventReleased, why)
	case errors.Is(err, ErrLeaseLost) && rec.State == Completed && rec.Token == a.token: // an earlier request of this attempt has committed
		return a.replay(ctx, rec, EventNew), nil
	case a.failedOpen: // with FailOpen there may be no record to release
		if a.mayHoldLease {
			a.rememberClaim(ctx, why, rec, err)
		}
		// An outer guarded call must treat this call as not settled. Another attempt may carry
		// it out, or may have done so, and steps that have run in this attempt are not stored.
		a.innerEnding = outcomeOfBoth(a.innerEnding, OutcomeReleased)
		if a.txMayCommit {
			a.report(ctx, EventUncertain, why)
			return a.unknown(shownOnly{why}), nil
		}
		a.report(ctx, EventReleased, why)
		if errors.Is(err, ErrLeaseLost) && a.mayBeCarriedOut(rec) {
			return decision{}, &rec
		}
	case errors.Is(err, ErrLeaseLost):
		a.report(ctx, EventLeaseLost, why)
		a.innerEnding = outcomeOfBoth(a.innerEnding, OutcomeReleased) // an outer guarded call must treat this call as not settled: the other attempt may carry it out
		return decision{}, &rec
	default:
		defer a.rememberClaim(ctx, why, rec, err) // deferred, because Options.Observer may panic
		a.report(ctx, EventStoreError, err)
		if a.txMayCommit { // the record is unchanged, so the transaction may still commit
			return a.unknown(err), nil
		}
	}
	return decision{}, nil
}

// withdraw releases the record if this attempt may hold the lease because the reply to a
// claim was lost. If the release fails, or the claim may still reach the database, a later
// call of this process tries the release again; see unreleased.go.
func (a *attempt) withdraw(ctx context.Context) {
	if !a.mayHoldLease {
		return
	}
	a.mayHoldLease = false
	rec, err := a.sendRelease(ctx, nil)
	defer a.rememberClaim(ctx, nil, rec, err) // deferred, because Options.Observer may panic
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		a.report(ctx, EventStoreError, err)
	}
}
