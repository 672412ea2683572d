package lambdaidem

import (
	"context"
	"fmt"
	"time"
)

// replay returns the decision to send the answer of a finished record, or to refuse the call if the
// answer can't be loaded or decoded. If the answer is sent, replay reports an event of the given
// kind: EventReplayed, or EventNew if this attempt has stored the answer.
func (a *attempt) replay(ctx context.Context, rec Record, kind Kind) decision {
	switch result, err := a.load(ctx, rec); {
	case err == nil:
		rec.Result = result
		a.remember(rec)
		d := decision{replays: true, value: result.Value, failure: result.Failure, outcome: result.Outcome, entry: a.entry}
		if err := a.work.replay(d); err != nil {
			a.report(ctx, EventUnreadable, err)
			return decision{refusal: answerUnreadable(err, result.Outcome), unreturned: true}
		}
		a.report(ctx, kind, nil)
		return d
	case reasonOf(err) == ReasonForeign: // another read would fail too
		a.report(ctx, EventUnreadable, err)
		return decision{refusal: answerGone(err, rec.Result.Outcome), unreturned: true}
	default:
		a.report(ctx, EventStoreError, err)
		if a.started {
			return decision{refusal: answerUnreadAfterRun(err, rec.Result.Outcome, a.g.opts.RetryAfter), unreturned: true}
		}
		return decision{refusal: answerUnread(err, rec.Result.Outcome, a.g.opts.RetryAfter), unreturned: true}
	}
}

// load returns the result of a finished record. If the store keeps the answer outside the record,
// load gets the answer from the store's method Load. It returns an error if Load fails or does not
// return the answer, or if the store does not implement Loader.
func (a *attempt) load(ctx context.Context, rec Record) (Result, error) {
	if rec.Result.Apart == nil {
		return rec.Result, nil
	}
	loader, ok := a.g.store.(Loader)
	if !ok {
		return Result{}, unloadable(fmt.Errorf("the store keeps the answer apart, and %T is no Loader: it may wrap one and not pass Load on", a.g.store))
	}
	start := time.Now()
	result, err := loader.Load(ctx, rec)
	a.addStoreTime(start)
	if err == nil && result.Apart != nil {
		err = unloadable(fmt.Errorf("the Load of %T left the answer where it was", a.g.store))
	}
	return result, err
}

func unloadable(err error) error {
	return &StoreError{Op: "load", Reason: ReasonForeign, NotApplied: true, Err: err}
}
