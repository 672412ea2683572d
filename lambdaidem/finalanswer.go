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

// answerOfError returns what an error of the handler tells the client: that the client may
// repeat the call, or that the call failed for good. outcome is the outcome of err.
func (g *Guard) answerOfError(err error, outcome Outcome) answerTells {
	e := g.answeredError(err, outcome)
	switch {
	case e == nil, serverFailed(e.Status), asksForRetry(e.Status):
		return mayRepeat
	case e.byGuard(): // the refusal of an inner call that may be repeated; see clientError
		return mayRepeat
	}
	return final
}
