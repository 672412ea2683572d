package lambdaidem

import (
	"mime"
	"net/http"
)

// This file decides which answers end a client's retries. A failure that a client repeats does no
// harm if nothing is stored: the client gets the answer of the record in the end. After a final
// failure, the client would not learn that another attempt has carried out the call.

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
	case r.value("X-Idempotency-Replayed") == "true": // the handler passes on a replay, which never changes
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
	return media == "application/problem+json" && r.value("Content-Encoding") == "" && len(r.Body) <= 64<<10
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

// refusesForGood reports whether the guard answers err, the error of a handler, with one of its own
// errors that end a client's retries, such as ErrWriteInvalid. outcome is what err means for the
// record.
func (g *Guard) refusesForGood(err error, outcome Outcome) bool {
	e := g.answeredError(err, outcome)
	return e != nil && e.byGuard() && isFinalCode(e.Code)
}

// isFinal reports whether the status of e tells the caller not to repeat the call.
func (e *Error) isFinal() bool { return !isTemporary(e.Status) }
