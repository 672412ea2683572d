package lambdaidem

import (
	"errors"
)

// outcomeOfError returns the outcome of an error that a handler returned. The error itself may
// ask for an outcome, for example because Permanent has marked it; see outcomeOfMarks.
// Otherwise the policy decides: uncertain under Hold, released under Rerun.
//
// innerFailure is the outcome that an error asks for if it is the stored failure of an inner
// call. It is normally OutcomeFailed, because every retry gets the same stored failure again.
// For the handler of a message it is "", and the policy decides: the failure of a message is not
// stored, because the message must run again.
func (g *Guard) outcomeOfError(err error, innerFailure Outcome) Outcome {
	if o := g.outcomeOfMarks(err, innerFailure); o != "" {
		return o
	}
	if g.opts.Policy == Hold {
		return OutcomeUncertain
	}
	return OutcomeReleased
}

// outcomeOfMarks returns the outcome that err asks for, or "" if it asks for none. These errors
// ask for an outcome:
//
//   - An error that Permanent, Uncertain or Retryable has marked.
//   - An error made by Reject. It has the outcome of a response with its status.
//   - An ErrOutcomeUnknown. Its outcome is uncertain.
//   - The stored failure of an inner call, that is, of a guarded call that the handler made. It
//     has the outcome innerFailure; see outcomeOfError.
//
// outcomeOfMarks also examines the errors that err wraps. If they ask for different outcomes,
// outcomeOfBoth chooses one. There is one more rule under policy Hold: if one of them asks for no
// outcome, the result is uncertain. That error may come from a call that had an effect.
func (g *Guard) outcomeOfMarks(err error, innerFailure Outcome) Outcome {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case nil, *panicError: // the value of a panic is no mark
		return ""
	case *passedOn:
		if e.stored {
			return innerFailure
		}
		// e is the error of a guarded call that the handler made. A mark in e, such as
		// Permanent, is about that call and not about the handler, so e asks for no
		// outcome. attempt.settle decides how the result of that call changes the outcome
		// of the handler.
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
	for _, one := range wrapped(err) {
		o := g.outcomeOfMarks(one, innerFailure)
		if o == "" && g.opts.Policy == Hold {
			return OutcomeUncertain
		}
		all = outcomeOfBoth(all, o)
	}
	return all
}

// outcomeWithinMark returns the outcome that err asks for, or "" if err asks for none. err is
// the error inside a mark, that is, the argument of Permanent or Retryable. The mark has an
// outcome of its own; outcomeOfMarks combines the two outcomes.
//
//   - If err wraps an Uncertain error or ErrOutcomeUnknown, the result is OutcomeUncertain.
//   - Otherwise, if err wraps a Permanent error, the result is OutcomeFailed.
//   - In all other cases the result is "". The marks of an inner call's error do not count, because
//     they describe only that call. The status of an error made by Reject does not count either:
//     the application can change the outcome of such an error by a mark.
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
