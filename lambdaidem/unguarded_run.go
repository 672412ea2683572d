package lambdaidem

import (
	"context"
	"errors"
)

// This file runs handlers unguarded, that is, without a record. Such a handler can enlist
// writes too, and they must not be lost. The guard commits them in a transaction of their
// own, before the answer is sent.

// unguarded returns an attempt for a handler that runs without a record. The attempt is in the
// handler's context, where TxOf finds it to enlist the handler's writes. The attempt has no record
// id. Functions that need a record, such as RecordID and Step, therefore work as they do without a
// guard; see attemptOf.
func (g *Guard) unguarded(ctx context.Context) *attempt {
	outer := runOf(ctx)
	return &attempt{g: g, outer: outer, budget: newBudget(ctx, outer, &g.opts)}
}

// bypass runs the handler of w without a record, and commits the writes that the handler
// enlists. The zero decision means that the caller receives the handler's answer.
func (g *Guard) bypass(ctx context.Context, w work) decision {
	return g.unguarded(ctx).runAlone(ctx, w)
}

// runAlone does the work of bypass. Its receiver is a new attempt, made by Guard.unguarded.
func (a *attempt) runAlone(ctx context.Context, w work) decision {
	a.setAnswerTime()
	defer a.enlist.end(errRunEnded)
	w.run(a.inContext(ctx))
	return a.commitAlone(ctx, w)
}

// commitAlone commits the writes that an unguarded handler enlisted. If the store fails, the caller
// gets a 503. If the database rejects a write, the caller gets the error of the rejection.
func (a *attempt) commitAlone(ctx context.Context, w work) decision {
	if a.enlist.end(errRunEnded) == nil {
		return decision{} // nothing was enlisted
	}
	end := w.ending()
	tx, dropped := a.enlist.seal(end.outcome)
	if dropped > 0 && end.success {
		a.rejectAlone(ctx, w, successWithoutWrites(end.outcome, dropped))
	}
	if tx == nil {
		return decision{}
	}
	// Try to commit for at most Options.CleanupTimeout. If this took longer, the client might send
	// the request again, and no record would prevent the retry from running at the same time.
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	c := &Completion{Alone: true}
	var err error
	for try := 1; ; try++ {
		if _, err = a.save(ctx, tx, c); err == nil {
			return decision{}
		}
		if rejected := (*Rejected)(nil); errors.As(err, &rejected) && !rejected.Unsettled {
			a.rejectAlone(ctx, w, rejected.verdict())
			return decision{}
		}
		if commitFailsAgain(err) || !a.backOff(ctx, try) {
			break
		}
	}
	a.report(ctx, EventStoreError, err)
	a.report(ctx, EventUncertain, err)
	if _, rejected := errors.AsType[*Rejected](err); rejected {
		// The database rejected the last try, but an earlier one may still be applied. A caller who
		// found the error of the rejected write would believe that nothing was written. So hide err
		// from errors.Is and errors.As, but keep its text for logs.
		err = shownOnly{err}
	}
	return a.unknown(err)
}

// rejectAlone replaces the answer of an unguarded handler with the error err, because none of the
// handler's enlisted writes were made.
func (a *attempt) rejectAlone(ctx context.Context, w work, err error) {
	a.report(ctx, EventReleased, err)
	w.rejected(err)
}
