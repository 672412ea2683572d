package lambdaidem

import (
	"context"
	"errors"
)

// What runs unguarded has no record. What it enlists is committed all the same,
// in a transaction of its own (E1): it is never lost in silence.

// unguarded is a run without a record; attemptOf doesn't find it.
func (g *Guard) unguarded(ctx context.Context) *attempt {
	return &attempt{g: g, outer: runOf(ctx), budget: newBudget(ctx, &g.opts)}
}

// bypass runs a call unguarded. Its own answer stands, unless what it enlisted
// could not be committed.
func (g *Guard) bypass(ctx context.Context, w work) decision {
	return g.unguarded(ctx).runAlone(ctx, w)
}

func (a *attempt) runAlone(ctx context.Context, w work) decision {
	a.keepBack()
	defer a.enlist.end(errRunEnded)
	w.run(a.inContext(ctx))
	return a.commitAlone(ctx, w)
}

// commitAlone commits what an unguarded run enlisted. It tries for no longer than
// Options.CleanupTimeout: no record keeps a repeated request from running meanwhile,
// so an early 503 costs less than a late one.
func (a *attempt) commitAlone(ctx context.Context, w work) decision {
	if a.enlist.end(errRunEnded) == nil {
		return decision{} // as it is, and its ending is not even asked for
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

// rejectAlone has an unguarded run end with err, since nothing it enlisted was
// written.
func (a *attempt) rejectAlone(ctx context.Context, w work, err error) {
	a.note(ctx, EventReleased, err)
	w.rejected(err)
}

// hopeless tells whether another try of a transaction can only end alike.
func hopeless(err error) bool {
	switch reasonOf(err) { //nolint:exhaustive // only what was sent can be that
	case ReasonTooLarge, ReasonEncoding:
		return notApplied(err)
	}
	return hopelessRead(err) && notApplied(err)
}
