package lambdaidem

import (
	"net/http"
)

// withStatus returns the first *Error in err's tree of wrapped errors, even if it comes from an
// inner call. The result is nil if there is no *Error, or if the first one has no HTTP status.
func withStatus(err error) *Error {
	if e := firstError(err); e != nil && e.Status != 0 {
		return e
	}
	return nil
}

// clientError returns the *Error that the client receives for err, the error of a handler. The
// result is nil if err contains no *Error with an HTTP status, or if that *Error would mislead the
// client. After a 422 that refused a guarded call made by the handler, for example, the client
// would repeat its request with a new key. The request would then be carried out twice.
func (g *Guard) clientError(err error) *Error {
	e := withStatus(err)
	switch {
	case e == nil, e.Code == ErrPermanent: // the latter is the stored failure of an inner call, and this request may be repeated
		return nil
	// Don't show the client an inner call's failure, such as a 402, if it is not stored: a retry
	// may succeed, but after a 402 the client would not retry.
	case !e.byGuard() && DefaultOutcome(problem(e)) == OutcomeFailed && isUnstored(err, e):
		return nil
	}
	return forClient(e, err)
}

// isUnstored reports whether e, which is in the handler's error err, comes from an inner call that
// has not stored its error.
func isUnstored(err error, e *Error) bool {
	return anyIn(err, func(err error) bool {
		inner, ok := err.(*innerError) //nolint:errorlint // anyIn walks the tree
		return ok && !inner.stored && firstError(inner.err) == e
	})
}

// answeredError returns the *Error to send to the client for err, the error of a guarded handler.
// The parameter outcome is the outcome of err. If the record stores err, the result is the *Error
// that gives the record its code and status, so that the first answer equals the replays. Otherwise
// it is the result of clientError. If there is no such *Error, or it has no HTTP status, the result
// is nil, and answerOf decides what the client receives.
func (g *Guard) answeredError(err error, outcome Outcome) *Error {
	if outcome != OutcomeFailed && outcome != OutcomeSucceeded {
		return g.clientError(err)
	}
	e := g.decidingError(err, outcome, unmarked)
	if e == nil || e.Status == 0 {
		return nil
	}
	return e
}

// decidingError returns the first *Error in err's tree whose code and status the guard may store
// for err, or nil if there is none. It skips each *Error that would ask the client to repeat the
// request. The parameter outcome is the outcome of the handler's error: OutcomeFailed or
// OutcomeSucceeded. The parameter mark says whether err is inside a Permanent, a Retryable, or
// neither.
func (g *Guard) decidingError(err error, outcome Outcome, mark markAround) *Error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *innerError:
		switch {
		case e.stored:
			return e.storedAs
		case mark == markedPermanent: // the handler has marked the inner call's error as final
			return applicationsError(e)
		default: // the error is not final: a retry of the inner call may succeed
			return nil
		}
	case *permanentError:
		return g.decidingError(e.err, outcome, markedPermanent)
	case *retryableError:
		// A Permanent around e takes precedence over e.
		return g.decidingError(e.err, outcome, max(mark, markedRetryable))
	case *Error:
		switch {
		case isRefusal(e) && !e.ofOwnWrites(): // the refusal of an inner call
			return nil
		case mark == markedRetryable: // e asks the client to repeat the request
			return nil
		// If e is not inside a mark, its own outcome counts. Skip e if that is not the given
		// outcome, for example if e is a 503 made by Reject.
		case mark == unmarked && g.outcomeOfMarks(e, OutcomeFailed) != outcome:
			return nil
		case e.replayed && e.Code == ErrPermanent: // the error of an inner call, which the handler took out of its wrapper
			return nil
		}
		return e
	}
	for _, one := range children(err) {
		if found := g.decidingError(one, outcome, mark); found != nil {
			return found
		}
	}
	return nil
}

// markAround says which marks are around an error in a tree of wrapped errors. It is
// markedPermanent if the error is inside a Permanent, otherwise markedRetryable if the error is
// inside a Retryable, and otherwise unmarked.
type markAround int

const (
	unmarked markAround = iota
	markedRetryable
	markedPermanent
)

// forClient returns the *Error that the client receives for e, which is in err's tree of wrapped
// errors. It returns nil if e is nil, or if the client must not receive e.
func forClient(e *Error, err error) *Error {
	if e == nil || !e.byGuard() {
		return e
	}
	switch e.Code { //nolint:exhaustive // all other refusals are about the key, the payload or the answer of the inner call
	case ErrInProgress, ErrAttemptAbandoned, ErrOutcomeUnknown:
		return e
	case ErrStoreUnavailable, ErrOutOfTime:
		// e refuses a guarded call that the handler made. Replace its text, which says that the
		// call was not carried out: the client would apply this to its own request, which may have
		// had effects.
		shown := *e
		shown.Detail = "A part of the request could not be completed now. Repeat the request later with the same key."
		return &shown
	case ErrConditionFailed, ErrWriteInvalid:
		if !hasOwn[*innerError](err) { // the rejected writes are the handler's own
			return e
		}
	}
	return nil
}

// innerRefused returns the error that replaces err, the refusal of a request that one guarded
// handler sent to another. The result has no code: if the first handler passed a code on, its
// client would take the code to be about the client's own request.
func innerRefused(err error) *Error {
	return &Error{Status: http.StatusInternalServerError, Err: err, Detail: partRefused}
}

// partRefused tells a client that a guarded call inside its request was refused, and asks the
// client to repeat the request.
const partRefused = partFailed + " Repeat the request with the same key."

// partFailed tells a client that a guarded call inside its request was refused, or has failed. The
// text may be stored with a failure, so it does not ask the client to repeat the request.
const partFailed = "A part of the request was refused."

// answerOf returns the problem document that an HTTP client receives for err, a handler's error
// with the given outcome. If there is no such document, answerOf returns nil, and the guard passes
// on err itself. a is the handler's attempt, or nil if the handler runs unguarded.
func (g *Guard) answerOf(a *attempt, err error, outcome Outcome) *Response {
	if e := g.answeredError(err, outcome); e != nil {
		return problem(e)
	}
	if outcome == OutcomeReleased && hasOwn[*retryableError](err) {
		return problem(&Error{Code: ErrRetryable, Status: http.StatusServiceUnavailable, RetryAfter: g.opts.RetryAfter,
			Detail: "The request could not be completed now. Repeat it later with the same key."})
	}
	if outcome == OutcomeFailed {
		e := &Error{Code: ErrPermanent, Status: http.StatusInternalServerError, Detail: "The request failed, and would fail again if it were repeated."}
		if a.isInner() { // the handler that made the request may pass on the response, and its own client may repeat its request
			e = &Error{Status: e.Status, Detail: partFailed}
		}
		return problem(e)
	}
	return nil
}

// ownRefusal returns the *Error in err that the guard may use as its refusal of the request, or
// nil. err comes from a function of the application, such as Options.Key. If that function made a
// guarded call that was refused, ownRefusal does not return that refusal. A refusal with the status
// 422, for example, would make the client send its request again with a new key.
func ownRefusal(err error) *Error {
	e := withStatus(err)
	if e == nil || !e.byGuard() {
		return e
	}
	switch e.Code { //nolint:exhaustive // all other codes are about another call
	case ErrKeyMissing, ErrKeyInvalid, ErrRequestInvalid, ErrPrincipalUnknown:
		return e
	}
	return nil
}
