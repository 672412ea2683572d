package lambdaidem

import (
	"mime"
	"net/http"
)

// This file decides which answers end a client's retries. If a failure is not stored, another
// attempt may carry out the call. A client that retries then receives the answer of that attempt. A
// client that stops retrying would not learn of it, so the guard withholds such a failure.

// answerTells classifies a handler's answer: the call succeeded, failed and may be repeated, or
// failed for good.
type answerTells int

const (
	mayRepeat answerTells = iota // the call failed, and the caller may repeat it
	success                      // the call succeeded
	final                        // the call failed, and the caller has no reason to repeat it, such as after a 402
)

// answerOfResponse returns what a response tells the client: success, mayRepeat or final. It
// returns mayRepeat for the responses that package idemclient retries.
func answerOfResponse(r *Response) answerTells {
	switch {
	case 200 <= r.Status && r.Status < 400:
		return success
	case r.value(defaultReplayMark) == "true": // the handler passes on a replay, which never changes
		return final
	case r.Status == http.StatusConflict && isShortProblem(r) && problemCode(r) == ErrInProgress:
		return mayRepeat
	case isTemporary(r.Status) && !isFinalCode(problemCode(r)):
		return mayRepeat
	}
	return final
}

// isShortProblem reports whether r is a problem document (RFC 9457) of at most 64 KiB that is not
// compressed. Package idemclient reads the member "code" of such documents only.
func isShortProblem(r *Response) bool {
	media, _, _ := mime.ParseMediaType(r.value("Content-Type"))
	return media == problemMedia && r.value("Content-Encoding") == "" && len(r.Body) <= 64<<10
}

// isTemporary reports whether a client repeats a request after a response with the given status. If
// a status is not between 200 and 599, the gateway sends a 502 instead.
func isTemporary(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return asksForRetry(status) || status < 200 || status > 599
}

// isFinalCode reports whether a client does not repeat a request after a problem document with the
// given code, whatever its status. A handler may pass on such a document from another guarded
// service.
func isFinalCode(code Code) bool {
	switch code { //nolint:exhaustive // a client repeats a request after all other codes, if the status permits it
	case ErrAnswerUnavailable, ErrAnswerUnreadable, ErrAttemptAbandoned, ErrBodyUnknown, ErrPayloadMismatch,
		ErrPermanent, ErrRecordForeign, ErrRequestInvalid, ErrStreaming, ErrWriteInvalid:
		return true
	}
	return false
}

// answerOfError returns final if err, the error of a handler, tells the caller not to repeat the
// call. Otherwise it returns mayRepeat. e is the result of answeredError for err.
//
// A final *Error of an inner call, such as a 402, makes err final too. A caller of Do, or the
// invoker of a typed handler, could find that *Error and act on it.
func answerOfError(err error, e *Error) answerTells {
	if e != nil && !e.byGuard() && e.isFinal() {
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

// refusesForGood reports whether e is one of the guard's own errors, such as ErrWriteInvalid, and
// ends a client's retries. It returns false if e is nil.
func (e *Error) refusesForGood() bool { return e != nil && e.byGuard() && isFinalCode(e.Code) }

// isFinal reports whether the status of e tells the caller not to repeat the call.
func (e *Error) isFinal() bool { return !isTemporary(e.Status) }
