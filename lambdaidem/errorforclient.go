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
func clientError(err error) *Error { return forClient(withStatus(err), err) }

// answeredError is like clientError, for an error of a handler with the given outcome. If the outcome
// is OutcomeFailed, every retry gets the same answer, so answeredError skips refusals that ask the
// client to repeat the request.
func answeredError(err error, outcome Outcome) *Error {
	if outcome != OutcomeFailed {
		return clientError(err)
	}
	e := lasting(err)
	if e == nil || e.Status == 0 {
		return nil
	}
	return forClient(e, err)
}

// lasting returns the first *Error in err's tree of wrapped errors that is not a temporary refusal
// of a guarded call. It returns nil if there is none. It does not look for causes of such refusals.
func lasting(err error) *Error {
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case *Error:
		if e == nil || e.byGuard() && e.temporary() {
			return nil
		}
		return e
	case interface{ Unwrap() error }:
		return lasting(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if found := lasting(one); found != nil {
				return found
			}
		}
	}
	return nil
}

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
		// The text says that a call was not carried out. The client would take that for a
		// statement about its own request, and that request may have had effects.
		shown := *e
		shown.Detail = "A part of the request could not be completed now. Repeat the request later with the same key."
		return &shown
	case ErrConditionFailed, ErrWriteInvalid:
		if _, inner := errors.AsType[*passedOn](err); !inner { // the rejected writes are the handler's own
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
	return &Error{Status: http.StatusInternalServerError, Err: err, Detail: partRefused}
}

// partRefused tells a client that a guarded call inside its request was refused.
const partRefused = "A part of the request was refused. Repeat the request with the same key."

// answerOf returns the problem document that an HTTP client receives for err, the error of a
// guarded handler. The text of the document depends on outcome, the outcome of err. If answerOf
// returns nil, there is no document for err, and the guard passes on err itself.
func (g *Guard) answerOf(err error, outcome Outcome) *Response {
	if e := answeredError(err, outcome); e != nil {
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
