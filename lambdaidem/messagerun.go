package lambdaidem

import (
	"cmp"
	"context"
	"runtime/debug"
)

// messageWork implements the interface "work" for one message: it runs the message's
// handler.
type messageWork struct {
	g       *Guard
	attempt *attempt // the attempt that runs the handler; nil if it runs unguarded
	fn      func(context.Context) error
	ran     bool // the handler has been called
	err     error
	refused bool    // the database has rejected the writes that the handler enlisted
	outcome Outcome // how the message has ended; empty before that, and if it runs unguarded
}

// run calls the handler. A panic fails this message, but not the others of its batch.
func (w *messageWork) run(ctx context.Context) {
	w.attempt, w.ran = attemptOf(ctx), true
	returned := false
	defer func() {
		if v := recover(); !returned {
			w.err = safeError(&panicError{v, debug.Stack()})
		}
		w.answered()
	}()
	err := w.fn(ctx)
	returned = true
	w.err = safeError(err)
}

// answered sets w.err to nil if the function Answer made w.err. Such an error means that the call
// succeeds with the argument of Answer as its result. A message has no result, so it just succeeds.
func (w *messageWork) answered() {
	if _, ok := w.err.(*answerError); ok { //nolint:errorlint // an error that wraps an Answer is an ordinary error
		w.err = nil
	}
}

func (*messageWork) replay(decision) error { return nil }

func (w *messageWork) rejected(err error) ending {
	w.err, w.refused = safeError(err), true
	w.answered()
	return w.ending()
}

// ending returns how the handler has ended. The outcome is never OutcomeFailed, not even for an
// error that the handler marked as Permanent, so the guard never stores an error as the answer. A
// message must run again if it is redriven from a dead-letter queue after the cause of the error
// was fixed.
func (w *messageWork) ending() ending {
	if w.err == nil {
		o, _ := w.attempt.decideOutcome(OutcomeSucceeded, success)
		return ending{outcome: o, success: true, encoded: true}
	}
	outcome := OutcomeReleased
	if o := w.g.outcomeOfError(w.err, ""); o != OutcomeSucceeded && o != OutcomeFailed {
		outcome = o
	}
	outcome, withheld := w.attempt.decideOutcome(outcome, mayRepeat)
	w.outcome = outcome
	return ending{outcome: outcome, err: w.err, withheld: withheld}
}

func (*messageWork) encode() ([]byte, error) { return []byte("{}"), nil }

// takeMessage runs fn, the handler of a message, under the guard, as Do does for a function. It
// returns how the call ended.
func (g *Guard) takeMessage(ctx context.Context, c call, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	d := g.handleCall(ctx, c, w)
	switch {
	case d.refusal != nil:
		refused := refusedDo[struct{}](d.refusal)
		refused.ran = w.ran && w.attempt.mayHaveLeftEffects()
		return refused
	case d.replays && d.outcome == OutcomeFailed:
		// An operator has completed the record as failed, so the message may not have been handled.
		// d.failure should never be nil, because CheckResult refuses a failed record without a
		// Failure. NoAnswer is a precaution.
		failure := cmp.Or(d.failure, NoAnswer("an operator settled the message as failed"))
		return refusedDo[struct{}](answerUnavailable(failure, d.outcome))
	case d.replays: // an earlier attempt has handled the message
		return done[struct{}]{}
	}
	return done[struct{}]{err: w.err, outcome: w.attempt.outcomeLeft(w.outcome), rejected: w.refused}
}

// passMessage runs fn, the handler of a message, unguarded. It returns how the call ended.
func (g *Guard) passMessage(ctx context.Context, fn func(context.Context) error) done[struct{}] {
	w := &messageWork{g: g, fn: fn}
	merged := attemptOf(ctx) != nil
	if merged { // made inside a guarded handler, whose guard commits the enlisted writes
		w.run(ctx)
	} else if d := g.bypass(ctx, w); d.refusal != nil {
		return refusedDo[struct{}](d.refusal)
	}
	return done[struct{}]{err: w.err, outcome: OutcomeReleased, rejected: w.refused, merged: merged}
}
