package lambdaidem

import (
	"context"
	"errors"
)

// A handler that runs unguarded has no record. The writes that it enlists are committed
// in a transaction without a record, so that they are never lost unnoticed.

// unguarded returns an attempt without an id, for a handler that runs unguarded. runOf
// finds the attempt in the handler's context; attemptOf does not.
func (g *Guard) unguarded(ctx context.Context) *attempt {
	outer := runOf(ctx)
	return &attempt{g: g, outer: outer, budget: newBudget(ctx, outer, &g.opts)}
}

// bypass runs a call unguarded. The caller receives the handler's answer, unless the
// enlisted writes can't be committed.
func (g *Guard) bypass(ctx context.Context, w work) decision {
	return g.unguarded(ctx).runAlone(ctx, w)
}

func (a *attempt) runAlone(ctx context.Context, w work) decision {
	a.setReserved()
	defer a.enlist.end(errRunEnded)
	w.run(a.inContext(ctx))
	return a.commitAlone(ctx, w)
}

// commitAlone commits the writes that an unguarded handler enlisted. It tries for at most
// Options.CleanupTimeout: no record stops a retry of the client from running meanwhile,
// so it is better to return a 503 early.
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
	committing := a.cleanupContext(ctx)
	defer committing.Cancel()
	ctx = committing
	c := &Completion{Alone: true}
	var err error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if _, err = a.save(ctx, tx, c); err == nil {
			return decision{}
		}
		if rejected := (*Rejected)(nil); errors.As(err, &rejected) && !rejected.Unsettled {
			a.rejectAlone(ctx, w, rejected.verdict())
			return decision{}
		}
		if hopeless(err) || !a.pause(ctx, pause) {
			break
		}
	}
	a.note(ctx, EventStoreError, err)
	a.note(ctx, EventUncertain, err)
	return a.unknown(err)
}

// rejectAlone replaces the answer of an unguarded handler by err, because none of its
// enlisted writes were made.
func (a *attempt) rejectAlone(ctx context.Context, w work, err error) {
	a.note(ctx, EventReleased, err)
	w.rejected(err)
}

// hopeless reports whether a transaction that failed with err was not applied and would
// fail the same way if it were sent again.
func hopeless(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // a read can't fail for these reasons; see hopelessRead for the others
	case ReasonTooLarge, ReasonEncoding:
		return notApplied(err)
	}
	return hopelessRead(err) && notApplied(err)
}
