package lambdaidem

import (
	"context"
	"errors"
)

// handlerDied finishes the record after the handler has panicked or called
// runtime.Goexit. It releases the record, unless the handler may have had effects that a
// retry would repeat.
func (a *attempt) handlerDied(ctx context.Context) {
	outcome := OutcomeReleased
	if a.leavesStep() || a.g.opts.Policy == Hold {
		outcome = OutcomeUncertain
	}
	if outcome, _ = a.decideOutcome(outcome, mayRepeat); outcome == OutcomeUncertain {
		a.innerEnding = OutcomeUncertain
		a.report(ctx, EventUncertain, errHandlerDied)
		return
	}
	a.innerEnding = a.releasedEnding()
	a.release(ctx, errHandlerDied, false)
}

// Errors that Options.Observer receives after the handler, or other code that the guard calls, has
// panicked or called runtime.Goexit. They do not contain the value of the panic, because formatting
// the value calls its methods, which could panic too.
var (
	errHandlerDied  = errors.New("the handler panicked or called runtime.Goexit")
	errObserverDied = errors.New("Options.Observer panicked or called runtime.Goexit before the handler started")
	errEndingDied   = errors.New("the handler returned; then Options.Outcome, the encoding of its result or the store panicked or called runtime.Goexit")
)
