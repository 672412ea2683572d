package lambdaidem

// answerTells is what a handler's answer tells its caller: whether the call succeeded, and
// whether to repeat it.
type answerTells int

const (
	mayRepeat answerTells = iota // the call failed, and the caller may repeat it
	success                      // the call succeeded
	final                        // the call failed, and the caller has no reason to repeat it, such as after a 402
)

// answerOfResponse returns what a response tells the client: that the call succeeded, that the
// client may repeat the call, or that the call failed for good.
func answerOfResponse(r *Response) answerTells {
	switch defaultOutcome(r, Rerun) { //nolint:exhaustive // under Rerun, no response is uncertain
	case OutcomeSucceeded:
		return success
	case OutcomeReleased:
		return mayRepeat
	}
	return final
}

// answerOfError returns what an error of the handler tells its caller: mayRepeat or final. outcome
// is the outcome of err. If err contains a final *Error of an inner call, such as a 402, the result
// is final too, because a caller of Do, or the invoker of a typed handler, can find that *Error.
func (g *Guard) answerOfError(err error, outcome Outcome) answerTells {
	if e := g.answeredError(err, outcome); e != nil && !e.byGuard() && e.isFinal() {
		return final
	}
	if anyVisible(err, false, func(err error) bool {
		e, ok := err.(*Error) //nolint:errorlint // anyVisible walks the tree
		return ok && e.isFinal()
	}) {
		return final
	}
	return mayRepeat
}

// isFinal reports whether the status of e tells the caller not to repeat the call.
func (e *Error) isFinal() bool { return !serverFailed(e.Status) && !asksForRetry(e.Status) }
