package lambdaidem

import (
	"context"
	"time"
)

// This file decides about the record of an attempt that died under policy Hold. Such a record waits
// for an operator, and must not expire before the operator has decided.

// abandoned refuses a call, because the attempt that holds its record has died and the record waits
// for an operator. If the record has changed since it was read, the caller receives what the
// changed record implies, for example a replay of its answer.
func (a *attempt) abandoned(ctx context.Context, rec Record) decision {
	current, err := a.hold(ctx, rec)
	if err != nil {
		return a.notHeld(err)
	}
	switch recMeaning := a.meaningOf(current); {
	case recMeaning == isFinished, recMeaning == isMismatch:
		return a.fromRecord(ctx, recMeaning, current)
	case recMeaning != isAbandoned:
		return a.inProgress(ctx)
	}
	a.report(ctx, EventAbandoned, nil)
	return decision{refusal: attemptAbandoned()}
}

// hold makes rec, the record of a dead attempt, wait for an operator if Options.Policy is Hold. It
// removes the expiry, which only a record acquired under Rerun has, and returns the current record.
// After the expiry, a retry would repeat what the dead attempt may have done. If the store does not
// implement Holder, hold changes nothing.
func (a *attempt) hold(ctx context.Context, rec Record) (Record, error) {
	store, ok := a.g.store.(Holder)
	if !ok || a.g.opts.Policy != Hold || rec.Held() {
		return rec, nil
	}
	start := time.Now()
	current, err := store.Hold(ctx, rec, a.g.opts.Clock())
	a.addStoreTime(start)
	if err != nil {
		a.report(ctx, EventStoreError, err)
	}
	return current, err
}

// notHeld refuses a call because the expiry of a dead attempt's record could not be removed: the
// method hold has returned err. Nothing else needs to be done, because the next retry calls hold
// again.
func (a *attempt) notHeld(err error) decision {
	if a.started { // with FailOpen, the handler has run
		return a.unknown(err)
	}
	return decision{refusal: storeUnavailable(err, a.g.opts.RetryAfter)}
}
