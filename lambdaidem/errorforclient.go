package lambdaidem

import (
	"errors"
	"net/http"
)

// withStatus returns the first *Error in err's tree of wrapped errors. It returns nil if there
// is no *Error, or if the first one has no HTTP status.
func withStatus(err error) *Error {
	if err == nil { // skip errors.As, which allocates
		return nil
	}
	if e := (*Error)(nil); errors.As(err, &e) && e != nil && e.Status != 0 {
		return e
	}
	return nil
}

// clientError returns the *Error that the client receives for err, the error of a handler. It
// returns nil if err contains no *Error with an HTTP status, or if the client must not receive
// that *Error.
//
// The handler may have made an inner call, that is, a guarded call of its own, and err may be
// the guard's refusal of that call. If the client received that refusal, it would believe that
// its own request was refused. After a 422 about the inner call's payload, for example, the
// client would send its request with a new key, and the request would be carried out twice.
// After a 500 that says that the inner call's answer can't be read, the client would not repeat
// its request.
func clientError(err error) *Error {
	e := withStatus(err)
	if e == nil || !e.byGuard() {
		return e
	}
	switch e.Code { //nolint:exhaustive // all other refusals are about the key, the payload or the answer of the inner call
	case ErrInProgress, ErrAttemptAbandoned, ErrOutcomeUnknown:
		return e
	}
	_, inner := errors.AsType[*passedOn](err)
	switch e.Code { //nolint:exhaustive // as above
	case ErrStoreUnavailable, ErrOutOfTime:
		if !inner {
			return e
		}
		// The refusal is about an inner call, that is, a guarded call that the handler
		// made. Replace its text: the client would take the text for a statement about
		// the client's own request.
		shown := *e
		shown.Detail = "A part of the request could not be completed now. Repeat the request later with the same key."
		return &shown
	case ErrConditionFailed, ErrWriteInvalid: // the rejected writes are the inner call's if inner is true, else the handler's
		if !inner {
			return e
		}
	}
	return nil
}

// innerRefused returns an error that replaces err. err is the guard's refusal of an inner
// request, that is, of a guarded request that a guarded handler made. That handler may pass on
// the response to its own client, and err would mislead the client; see clientError. The new error
// has no code, because the client would relate a code to its own request.
func innerRefused(err error) *Error {
	return &Error{Status: http.StatusInternalServerError, Err: err,
		Detail: "A part of the request was refused. Repeat the request with the same key."}
}

// answerOf returns the problem document that an HTTP client receives for err, the error of a
// guarded handler. The text of the document depends on outcome, the outcome of err. If answerOf
// returns nil, there is no document for err, and the guard passes on err itself.
func (g *Guard) answerOf(err error, outcome Outcome) *Response {
	if e := clientError(err); e != nil {
		return problem(e)
	}
	if outcome == OutcomeReleased && hasMark[*retryableError](err) {
		return problem(&Error{Code: ErrRetryable, Status: http.StatusServiceUnavailable, RetryAfter: g.opts.RetryAfter,
			Detail: "The request could not be completed now. Repeat it later with the same key."})
	}
	if outcome == OutcomeFailed {
		return problem(&Error{Code: ErrPermanent, Status: http.StatusInternalServerError,
			Detail: "The request failed, and would fail again if it were repeated."})
	}
	return nil
}

// ownRefusal returns the *Error in err with which the guard may refuse the request, or nil if
// there is none. err comes from a function of the application that finds the key or the caller
// of the request, such as Options.Key.
//
// The function may have made a guarded call, and err may be the guard's refusal of that call.
// The client must not receive such a refusal: after a 422 about the payload of that call, for
// example, the client would send its own request with a new key.
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
