package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// This file runs the handler of an attempt and finishes its record. The file
// attempt_acquire.go has the part before that, which acquires the record.

// run calls the handler and finishes the record. Its result is what the caller receives.
func (a *attempt) run(ctx context.Context, w work) (d decision) {
	// While this call runs, refuse writes to the transactions of outer handlers. A retry of an
	// outer handler replays this call without running it, and would miss these writes.
	for outer := a.outer; outer != nil; outer = outer.outer {
		outer.enlist.pause()
		defer outer.enlist.resume()
	}
	if a.withoutLease() {
		a.endsWithoutLease()
	}
	a.setAnswerTime()
	hctx, cancel := a.stepContext(ctx)
	defer cancel()
	if hctx.Err() != nil {
		switch {
		case a.g.opts.Optimistic: // there is no lease to release
		case a.failedOpen:
			a.withdraw(ctx)
		default:
			a.release(ctx, fmt.Errorf("%w: %w", ErrOutOfTime, hctx.Err()), false)
		}
		return a.outOfTime(ctx, hctx.Err())
	}
	if a.failedOpen {
		a.reportFailedOpen(ctx)
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

// finish ends the attempt as end.outcome says: it completes the record, releases it, or leaves it
// in progress. If end.withheld is set, the handler's answer could mislead the caller, for example
// because the outcome of an inner call is unknown. The caller then receives a replay or a refusal
// instead, such as ErrOutcomeUnknown.
func (a *attempt) finish(ctx context.Context, w work, end ending) decision {
	if end.withheld != nil {
		end.err = errors.Join(end.withheld, end.err)
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
		d = a.releaseAfterRun(ctx, end)
	default:
		a.report(ctx, EventUncertain, end.err)
		switch {
		case a.failedOpen:
			end.final = end.final || a.txMayCommit
			d = a.uncertainAfterFailOpen(ctx, end)
		case a.txMayCommit:
			d = a.unknown(shownOnly{end.err})
		case end.final && a.leaseMayHaveEnded(): // another attempt may carry out the call
			d = a.unknown(shownOnly{end.err})
		}
	}
	if end.withheld == nil || d.refusal != nil || d.replays {
		return d
	}
	// Replace the handler's answer. After a 402, for example, the client would not repeat the
	// request, although the outcome of an inner call is unknown.
	d = a.unknown(shownOnly{end.err})
	d.replaced = true
	if end.outcome == OutcomeReleased { // the record is released, so the caller need not wait for the end of the lease
		d.refusal.RetryAfter = a.g.opts.RetryAfter
	}
	return d
}

// unknown refuses a call with ErrOutcomeUnknown, because the handler may have had effects. cause is
// the error that says why. Retry-After is the time until the lease ends, but at least
// Options.RetryAfter.
func (a *attempt) unknown(cause error) decision {
	return decision{refusal: outcomeUnknown(cause, max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter))}
}

// shownOnly is the cause of an ErrOutcomeUnknown that replaces a handler's error. Logs show the
// text of the handler's error, but errors.Is and errors.As don't find it. Otherwise a caller who
// found a code such as "card_declined" would take the outcome as certain.
type shownOnly struct{ err error }

func (e shownOnly) Error() string { return e.err.Error() }

// complete stores the answer in the record. If tx is not nil, complete also commits tx, the
// transaction with the handler's writes. The caller normally receives the handler's answer.
// complete repeats a failed store request while there is time, unless the request would fail again.
// If no store request succeeds, the caller receives ErrOutcomeUnknown, because a retry may not get
// the answer.
//
// After a run with FailOpen, the store may still be failing. If the handler has enlisted no writes,
// complete then spends less time:
//
//   - It tries to store a success only once, and the caller receives the success even if it is not
//     stored; see mustStore.
//   - For any other answer, it gives up after Options.CleanupTimeout, and the caller receives
//     ErrOutcomeUnknown.
func (a *attempt) complete(ctx context.Context, w work, end ending, tx Tx) decision {
	request := ctx
	var cancel context.CancelFunc
	if a.failedOpen && tx == nil {
		ctx, cancel = a.cleanupContext(ctx)
	} else {
		ctx, cancel = a.finishContext(ctx)
	}
	defer cancel()
	result, unstorable := a.result(w, end)
	mustStore := tx != nil || a.mustStore(end)
	tx = a.completingTx(tx, end)
	c := a.completion(result, tx)
	var err error
	for try := 1; ; try++ {
		if c.Claim != nil && !a.maySendTx() {
			return a.txTooLate(ctx, err)
		}
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
				return a.lost(ctx, rec, mustStore)
			}
			d, oldRec, mayRetry := a.claimFailed(ctx, rec)
			if !mayRetry {
				return d
			}
			c = a.completionOver(c, oldRec)
			continue
		}
		if r := reasonOf(err); unstorable == nil && (r == ReasonTooLarge || r == ReasonEncoding) {
			unstorable = err
			c = c.with(a.withoutAnswer(end))
			continue
		}
		// Try again if the answer must be stored. Otherwise try again only if both are true: the
		// record may be in progress because of this attempt's claim, whose reply was lost, and the
		// error is a conflict with another transaction, which passes quickly.
		mayRetry := mustStore || a.mayHoldLease && reasonOf(err) == ReasonConflict
		if !mayRetry || tx != nil && commitFailsAgain(err) || !a.backOff(ctx, try) {
			break
		}
	}
	a.report(ctx, EventStoreError, err)
	if !mustStore {
		return decision{}
	}
	a.report(ctx, EventUncertain, err)
	return a.unknown(err)
}
