package lambdaidem

import (
	"errors"
)

// outcomeOfError returns the outcome of an error that a handler returned. The error may determine
// the outcome, for example by a mark of Permanent; see outcomeOfMarks. Otherwise the policy
// decides: uncertain under Hold, released under Rerun.
//
// innerFailure is the outcome to return if err is the stored failure of a guarded call that the
// handler made. It is normally OutcomeFailed, because every retry gets the same stored failure. For
// the handler of a message it is "", so that the policy decides: the guard never stores a message
// as failed.
func (g *Guard) outcomeOfError(err error, innerFailure Outcome) Outcome {
	if o := g.outcomeOfMarks(err, innerFailure); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// outcomeOfMarks returns the outcome that err or the errors inside err determine, or "" if they
// determine none. If they determine different outcomes, outcomeOfBoth chooses one. These errors
// determine an outcome:
//
//   - An error that Permanent, Uncertain or Retryable has marked.
//   - An error made by Reject, which has the outcome of a response with its status.
//   - An ErrOutcomeUnknown, whose outcome is uncertain.
//   - The stored failure of a guarded call that the handler made. Its outcome is innerFailure.
//
// Any other error has the outcome of the errors that it wraps. Under policy Hold, its outcome is
// OutcomeUncertain if one of the wrapped errors determines no outcome: that wrapped error may come
// from a call that had an effect.
func (g *Guard) outcomeOfMarks(err error, innerFailure Outcome) Outcome {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil, *panicError: // the value of a panic is not a mark
		return ""
	case *innerError:
		if e.stored {
			return innerFailure
		}
		// e is the error of an inner call. Ignore a mark of Permanent, Retryable or Uncertain in e:
		// the mark is about the inner call. attempt.decideOutcome decides how that call changes the
		// handler's outcome.
		return ""
	case *uncertainError:
		return OutcomeUncertain
	case *permanentError:
		return outcomeOfBoth(OutcomeFailed, outcomeWithinMark(e.err))
	case *retryableError:
		return outcomeOfBoth(OutcomeReleased, outcomeWithinMark(e.err))
	case *Error:
		switch {
		case e == nil:
			return ""
		case e.Code == ErrOutcomeUnknown: // a guarded call inside the handler may have had effects
			return OutcomeUncertain
		case e.inner, e.replayed && e.Code != ErrAnswerUnavailable: // the stored failure of an inner call
			return innerFailure
		case e.rejected:
			return g.outcomeOf(problem(e)).orUncertain()
		}
		return g.outcomeOfMarks(e.Err, innerFailure)
	}
	var all Outcome
	for _, one := range children(err) {
		o := g.outcomeOfMarks(one, innerFailure)
		// Under Hold, an error without an outcome may come from a call that had an effect.
		if o == "" && g.opts.Policy == Hold {
			return OutcomeUncertain
		}
		all = outcomeOfBoth(all, o)
	}
	return all
}

// outcomeWithinMark returns the outcome that err, the error inside a mark of Permanent or
// Retryable, determines:
//
//   - OutcomeUncertain, if err wraps an Uncertain error or ErrOutcomeUnknown;
//   - otherwise OutcomeFailed, if err wraps a Permanent error;
//   - otherwise "".
//
// Without a mark, the status of an error made by Reject determines the outcome. Inside a mark, the
// status does not count, so that the application can change the outcome.
func outcomeWithinMark(err error) Outcome {
	if hasOwn[*uncertainError](err) || errors.Is(err, ErrOutcomeUnknown) {
		return OutcomeUncertain
	}
	if hasOwn[*permanentError](err) {
		return OutcomeFailed
	}
	return ""
}

// outcomeOfBoth returns the one of two outcomes that takes precedence: uncertain comes before
// failed, failed before released, and released before succeeded. "" means no outcome.
func outcomeOfBoth(a, b Outcome) Outcome {
	for _, o := range []Outcome{OutcomeUncertain, OutcomeFailed, OutcomeReleased, OutcomeSucceeded} {
		if a == o || b == o {
			return o
		}
	}
	return a + b // both are "", or Options.Outcome has returned an invalid one
}
