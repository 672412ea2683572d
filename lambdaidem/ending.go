package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// The second half of the protocol: an attempt that may run, runs, and finishes its
// record. The first half, and what a record means, is in attempt.go.

// run runs the handler under the lease and finishes the record.
func (a *attempt) run(ctx context.Context, w work) (d decision) {
	for outer := a.outer; outer != nil; outer = outer.outer { // their retries get this call's stored answer
		outer.enlist.pause()
		defer outer.enlist.resume()
	}
	a.keepBack()
	hctx := a.stepContext(ctx)
	defer hctx.Cancel()
	if hctx.Err() != nil {
		switch {
		case a.g.opts.Optimistic: // there is nothing to give back
		case a.open:
			a.withdraw(ctx)
		default:
			a.release(ctx, fmt.Errorf("%w: %w", ErrOutOfTime, hctx.Err()))
		}
		return a.outOfTime(ctx, hctx.Err())
	}
	returned, settled := false, false
	defer a.enlist.end(errRunEnded)
	defer func() {
		// A panic, or runtime.Goexit: it goes on by itself, with its own value
		// and stack, since nothing recovers it here (X2).
		switch {
		case !settled && a.g.opts.Optimistic: // but here, unless the record knows better (E4)
			d = a.diedOptimistic(ctx, recover())
		case !returned:
			a.died(ctx)
		case !settled && a.rejected && !a.unsettled: // in the author's verdict; nothing was written
			a.died(ctx)
		case !settled: // X4: the handler had its effect
			a.note(ctx, EventUncertain, errEndingDied)
		}
	}()
	a.started = true
	runcount.Add(ctx)
	started := time.Now()
	w.run(hctx)
	a.handler = time.Since(started)
	returned = true
	hctx.Cancel()
	d = a.conclude(ctx, w)
	settled = true
	return d
}

// What stands for a panic in events; its value is not touched.
var (
	errHandlerDied = errors.New("the handler panicked or called runtime.Goexit")
	errEndingDied  = errors.New("the handler returned; then Options.Outcome, the encoding of its result or the store panicked or called runtime.Goexit")
)

// died ends an attempt whose handler did not return.
func (a *attempt) died(ctx context.Context) {
	if a.leavesStep() || a.g.opts.Policy == Hold {
		a.note(ctx, EventUncertain, errHandlerDied)
		return
	}
	a.release(ctx, errHandlerDied)
}

// finish settles the record by how the handler ended.
func (a *attempt) finish(ctx context.Context, w work, end ending) decision {
	tx, dropped := a.enlist.seal(end.outcome)
	if dropped > 0 && end.success {
		end = w.rejected(successWithoutWrites(end.outcome, dropped))
	}
	if a.steps.left && end.outcome == OutcomeReleased { // it would not be true that nothing happens
		end.outcome, end.err = OutcomeUncertain, errors.Join(errHandlerReturned, end.err)
	}
	switch end.outcome {
	case OutcomeSucceeded, OutcomeFailed:
		return a.complete(ctx, w, end, tx)
	case OutcomeReleased, OutcomeUncertain:
	default: // keep the lease: whether there were effects isn't known
		end.err = fmt.Errorf("Options.Outcome returned %q, which is no outcome", end.outcome)
	}
	switch {
	case a.g.opts.Optimistic:
		return a.finishOptimistic(ctx, end)
	case end.outcome == OutcomeReleased:
		return a.release(ctx, end.err)
	}
	a.note(ctx, EventUncertain, end.err)
	if a.unsettled {
		return a.unknown(end.err)
	}
	return decision{}
}

// unknown refuses a call of which nobody can tell what it did (X4).
func (a *attempt) unknown(why error) decision {
	return decision{refusal: outcomeUnknown(why, max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter))}
}

// complete stores the answer, with what the handler enlisted in tx if it did, for
// as long as there is time (X4).
func (a *attempt) complete(ctx context.Context, w work, end ending, tx Tx) decision {
	request, finishing := ctx, a.finishContext(ctx)
	defer finishing.Cancel()
	ctx = finishing
	result, unstorable := a.result(w, end)
	tx = a.carrier(tx)
	c := a.completion(result, tx)
	var err error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var rec Record
		rec, err = a.save(ctx, tx, c)
		if err == nil {
			return a.completed(ctx, rec, c, end, unstorable)
		}
		if rejected := (*Rejected)(nil); errors.As(err, &rejected) { // E2: nothing was written
			finishing.Cancel()
			a.enlist.drop()
			a.rejected, a.unsettled = true, a.unsettled || rejected.Unsettled
			return a.finish(request, w, w.rejected(rejected.verdict()))
		}
		if errors.Is(err, ErrLeaseLost) {
			if c.Claim == nil {
				return a.lost(ctx, rec)
			}
			d, over, free := a.contested(ctx, rec)
			if !free {
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
		if a.open && tx == nil || tx != nil && hopeless(err) || !a.pause(ctx, pause) {
			break
		}
	}
	a.note(ctx, EventStoreError, err)
	if a.open && tx == nil {
		return decision{} // X5: it ran without the store from the start
	}
	a.note(ctx, EventUncertain, err)
	return a.unknown(err)
}

// lost decides a call whose lease another attempt took before it ended: its own
// answer is not the truth any more (X6).
func (a *attempt) lost(ctx context.Context, rec Record) decision {
	if a.open && rec.State != Completed {
		return decision{} // X5: it ran without the store, and nobody knows better
	}
	a.note(ctx, EventLeaseLost, nil)
	if found := a.judge(rec); found == isFinished || found == isMismatch {
		return a.fromRecord(ctx, found, rec)
	}
	return a.inProgress(ctx)
}

// release ends an attempt without effect, so that a retry runs again.
func (a *attempt) release(ctx context.Context, why error) decision {
	switch rec, err := a.settleRelease(ctx, why); {
	case err == nil:
		a.note(ctx, EventReleased, why)
	case errors.Is(err, ErrLeaseLost) && rec.State == Completed && rec.Token == a.token: // a transaction of ours happened after all
		return a.replay(ctx, rec, EventNew)
	case a.open && a.unsettled:
		a.note(ctx, EventUncertain, why)
		return a.unknown(why)
	case a.open: // X5: there may have been nothing to release
		a.note(ctx, EventReleased, why)
	case errors.Is(err, ErrLeaseLost):
		a.note(ctx, EventLeaseLost, why)
	default:
		a.note(ctx, EventStoreError, err)
		if !a.started {
			a.leaveBehind(ctx, rec, err)
		}
		if a.unsettled { // nothing keeps the transaction from happening yet
			return a.unknown(err)
		}
	}
	return decision{}
}

// withdraw releases the record that a claim may have taken although its reply is
// missing. If that can't be done now, or the claim may still arrive, a later call
// of this process tries again.
func (a *attempt) withdraw(ctx context.Context) {
	if !a.mayHold {
		return
	}
	a.mayHold = false
	rec, err := a.settleRelease(ctx, nil)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		a.note(ctx, EventStoreError, err)
	}
	a.leaveBehind(ctx, rec, err)
}
