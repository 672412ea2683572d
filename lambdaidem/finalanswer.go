package lambdaidem

// answerTells classifies a handler's answer: the call succeeded, failed and may be repeated, or
// failed for good.
type answerTells int

const (
	mayRepeat answerTells = iota // the call failed, and the caller may repeat it
	success                      // the call succeeded
	final                        // the call failed, and the caller has no reason to repeat it, such as after a 402
)

// answerOfResponse returns what a response tells the client: success, mayRepeat or final.
func answerOfResponse(r *Response) answerTells {
	switch defaultOutcome(r, Rerun) { //nolint:exhaustive // under Rerun, no response is uncertain
	case OutcomeSucceeded:
		return success
	case OutcomeReleased:
		return mayRepeat
	}
	return final
}

// answerOfError returns final if err, the error of a handler, tells the caller not to repeat the
// call. Otherwise it returns mayRepeat. The parameter outcome is the outcome of err.
//
// A final *Error of an inner call, such as a 402, makes err final too. A caller of Do, or the
// invoker of a typed handler, could find that *Error and act on it.
func (g *Guard) answerOfError(err error, outcome Outcome) answerTells {
	if e := g.answeredError(err, outcome); e != nil && !e.byGuard() && e.isFinal() {
		return final
	}
	if anyByApplication(err, func(err error) bool {
		e, ok := err.(*Error) //nolint:errorlint // anyByApplication walks the tree
		return ok && e.isFinal()
	}) {
		return final
	}
	return mayRepeat
}

// isFinal reports whether the status of e tells the caller not to repeat the call.
func (e *Error) isFinal() bool { return !serverFailed(e.Status) && !asksForRetry(e.Status) }
