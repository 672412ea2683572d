package lambdaidem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// This file makes the guard's own answers: its errors, with the texts that clients see, and the
// problem documents (RFC 9457) that carry the errors to HTTP clients.

// problemType is the URL of the page that explains the guard's codes. Followed by a code, it is
// the "type" of a problem document.
const problemType = "https://github.com/lambdaidem/toolkit/blob/main/docs/errors.md#"

// problem returns the HTTP response for an error: a problem document (RFC 9457) with the code
// as an extension member.
func problem(e *Error) *Response {
	resp := &Response{Status: e.Status}
	if own := busy(); e.Code == own.Code && e.Status == own.Status && e.Type == own.Type && e.Detail == own.Detail {
		resp.Body, resp.reason = own.text, own.line
	} else {
		resp.Body, resp.reason = documentOf(e), statusLine(e.Status)
	}
	if e.RetryAfter > 0 {
		values := []string{problemMedia, strconv.FormatInt(wholeSeconds(e.RetryAfter), 10)}
		resp.Header = map[string][]string{"Content-Type": values[0:1:1], "Retry-After": values[1:2:2]}
	} else {
		resp.Header = map[string][]string{"Content-Type": {problemMedia}}
	}
	return resp
}

const problemMedia = "application/problem+json" // RFC 9457, section 3

// busy returns the problem document of ErrInProgress. It is made only once, because it is
// always the same, and is sent more often than others.
var busy = sync.OnceValue(func() *written {
	e := inProgress(0)
	return &written{*e, documentOf(e), statusLine(e.Status)}
})

// written is an error with two texts for the response: its problem document, and its status line,
// such as "409 Conflict".
type written struct {
	Error
	text, line string
}

// documentOf returns the text of an error's problem document.
func documentOf(e *Error) string {
	var room [512]byte // enough for most documents, so that append does not allocate
	body := append(room[:0], `{"type":`...)
	switch {
	case e.Type != "":
		body = appendText(body, e.Type)
	case strings.HasPrefix(string(e.Code), "idempotency_"):
		body = appendText(body, problemType+string(e.Code))
	default:
		body = append(body, `"about:blank"`...) // the problem means no more than its status (RFC 9457, section 4.2.1)
	}
	body = appendText(append(body, `,"title":`...), http.StatusText(e.Status))
	body = strconv.AppendInt(append(body, `,"status":`...), int64(e.Status), 10)
	if e.Detail != "" {
		body = appendText(append(body, `,"detail":`...), e.Detail)
	}
	if e.Code != "" {
		body = appendText(append(body, `,"code":`...), string(e.Code))
	}
	body = append(body, '}')
	if bytes.ContainsAny(body, "<>&") { // escape these as encoding/json does, so that nobody takes the document for HTML
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, body)
		body = escaped.Bytes()
	}
	return string(body)
}

// wholeSeconds returns d in seconds, rounded up, for Retry-After (RFC 9110, section 10.2.3).
func wholeSeconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// ownAnswer returns the response for an error of the guard: its problem document, which
// Options.OnOwnAnswer may have changed.
func (g *Guard) ownAnswer(ctx context.Context, r *Request, e *Error) *Response {
	resp := problem(e)
	if g.opts.OnOwnAnswer != nil {
		g.opts.OnOwnAnswer(ctx, r, resp, e)
	}
	return resp
}

func keyMissing(detail string) *Error {
	return &Error{Code: ErrKeyMissing, Status: http.StatusBadRequest, Detail: detail}
}

func keyInvalid(detail string, err error) *Error {
	return &Error{Code: ErrKeyInvalid, Status: http.StatusBadRequest, Detail: detail, Err: err}
}

// keyUnread returns the refusal of a call whose key could not be found. err is the error of the
// application's function that finds the key. If err contains an *Error that the client may receive,
// such as one made by Reject, the refusal is that *Error. Otherwise the refusal is an
// ErrKeyInvalid. Its text says that no key was found in the input, which is "request" or "event".
func keyUnread(input string, err error) *Error {
	if own := ownRefusal(err); own != nil {
		return own
	}
	e := keyInvalid("No idempotency key could be found in the "+input+".", err)
	e.forNow = true
	return e
}

func requestInvalid(detail string, err error) *Error {
	return &Error{Code: ErrRequestInvalid, Status: http.StatusBadRequest, Detail: detail, Err: err}
}

// notBegun returns the error of a message whose handler was not started. The parameter cause is the
// error that says why.
func notBegun(cause error) *Error {
	return &Error{Code: ErrNotBegun, Status: http.StatusServiceUnavailable, Detail: "The message was not handled.", Err: cause}
}

func headersTooMany(count, limit int) *Error {
	return &Error{Code: ErrHeadersTooMany, Status: http.StatusRequestHeaderFieldsTooLarge,
		Detail: fmt.Sprintf("The request has %d headers; at most %d are allowed.", count, limit)}
}

func bodyTooLarge(limit int64) *Error {
	return &Error{Code: ErrBodyTooLarge, Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("The body is larger than %d bytes.", limit)}
}

func bodyUnknown(status int, detail string, err error) *Error {
	return &Error{Code: ErrBodyUnknown, Status: status, Detail: detail, Err: err}
}

// guardedTwice returns the refusal of a guarded call with the same record as the guarded handler
// that makes the call. If the call were allowed, it would wait for the handler to return, while the
// handler waits for the call.
func guardedTwice() *Error {
	return &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
		Detail: "The request is guarded twice.",
		Err: errors.New("this call has the same record as the guarded handler that makes it, so it would wait for itself: " +
			"guard the handler once, or give the inner call another operation, another key or a guard with another Namespace")}
}

func uriTooLong(size, limit int) *Error {
	return &Error{Code: ErrURITooLong, Status: http.StatusRequestURITooLong,
		Detail: fmt.Sprintf("The request's target has %d bytes; at most %d are allowed.", size, limit)}
}

// principalUnknown returns the refusal of a request whose caller could not be identified.
func principalUnknown(err error) *Error {
	return &Error{Code: ErrPrincipalUnknown, Status: http.StatusForbidden,
		Detail: "The caller could not be identified.", Err: err}
}

// payloadMismatch returns the refusal of a call whose record has another payload.
func payloadMismatch(status int) *Error {
	return &Error{Code: ErrPayloadMismatch, Status: status,
		Detail: "This idempotency key was used with another request. Send a new key with a new request, and the same request with the same key."}
}

// payloadMismatchAfterRun returns the refusal of a call whose handler had already run when the
// guard found that the record has another payload. The attempt had no lease, or lost it. The text
// must not tell the client to use a new key: the enlisted writes were dropped, but a new request
// would repeat the handler's other effects.
func payloadMismatchAfterRun(status int) *Error {
	return &Error{Code: ErrPayloadMismatch, Status: status, Err: errMismatchAfterRun,
		Detail: "This idempotency key was used with another request, and this request may have been carried out in part. Do not send it with a new key until you know what it did."}
}

// payloadReplaced returns the refusal of a call whose record now has another payload. The later
// attempt that wrote that payload may have replaced an answer to this call. So the text must not
// tell the client to use a new key: the request might then be carried out twice.
func payloadReplaced(status int) *Error {
	return &Error{Code: ErrPayloadMismatch, Status: status, Err: errAnswerReplaced, unfinished: true,
		Detail: "This idempotency key was used with another request, and this request may have been carried out before. Do not send it with a new key until you know whether it was."}
}

// payloadUnsure returns the refusal of a call whose payload can't be compared with the record's.
// The text must not tell the client to use a new key: if the payload is the same, the request
// would be carried out twice.
func payloadUnsure(status int) *Error {
	return &Error{Code: ErrPayloadMismatch, Status: status, Err: errOtherSettings, unsure: true,
		Detail: "This idempotency key was used before, and this version of the service can't tell whether the request was the same. Do not send it with a new key until you know whether it was carried out."}
}

// inProgress returns the refusal of a call while another attempt is running with the same record.
func inProgress(retryAfter time.Duration) *Error {
	return &Error{Code: ErrInProgress, Status: http.StatusConflict, RetryAfter: retryAfter,
		Detail: "A request with this idempotency key is in progress. Repeat this request later to get its answer."}
}

// attemptAbandoned returns the refusal of a call after an earlier attempt died under policy Hold.
// The record stays in progress until an operator decides.
func attemptAbandoned() *Error {
	return &Error{Code: ErrAttemptAbandoned, Status: http.StatusConflict,
		Detail: "An earlier attempt of this request ended without a known outcome. An operator must examine it before the key can be used again."}
}

// stepsRemain returns the error of a call with Options.Optimistic whose record has steps of an
// earlier attempt. The handler has run without these steps. Its answer and its enlisted writes are
// not stored, because the writes might repeat the effects of the steps. err is the cause, for logs.
func stepsRemain(err error) *Error {
	return &Error{Code: ErrAttemptAbandoned, Status: http.StatusConflict, Err: err,
		Detail: "An earlier attempt of this request has completed some of its steps, and this version of the service can't continue after them. An operator must examine it before the key can be used again."}
}

// storeUnavailable returns the refusal of a call whose record could not be acquired: the store
// did not reply, or reported an error.
func storeUnavailable(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The request was not carried out, because it is not known at the moment whether an earlier one with this key was. Repeat it later."}
}

// outOfTime returns the refusal of a call that has too little time left to run its handler.
func outOfTime(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrOutOfTime, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The request was not carried out this time, because too little time was left. Repeat it."}
}

// outcomeUnknown returns the error that replaces the answer of a handler if the caller must not
// rely on that answer. For example, the store could not record the outcome, or a guarded call
// that the handler made was refused or has an unknown outcome; see attempt.decideOutcome.
func outcomeUnknown(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrOutcomeUnknown, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The outcome of the request could not be recorded. Repeat it with the same key to get its outcome."}
}

// conditionFailed returns the error that replaces the response of a net/http handler after the
// database has rejected the handler's writes. err is the error that the handler gave for the failed
// condition, or the guard's own. If err says what to send, because [Reject] or [Answer] made it,
// the guard sends that, and does not call conditionFailed.
func conditionFailed(err error) *Error {
	return &Error{Code: ErrConditionFailed, Status: http.StatusInternalServerError, Err: err,
		Detail: "The request was not completed, because a condition that it requires is not met. Repeat it with the same key."}
}

// answerNotKept returns the Failure that a record stores in place of an answer that can't be
// encoded or is too large.
func answerNotKept() *Failure {
	return &Failure{Code: ErrAnswerUnavailable, Status: http.StatusInternalServerError,
		Message: string(ErrAnswerUnavailable) + ": the operation was carried out, but its answer could not be stored"}
}

// answerUnavailable returns the refusal of a call whose completed record has the failure f instead
// of an answer. If outcome is OutcomeFailed, the handler's failure could not be stored, or an
// operator completed the record without an answer. The text then leaves open whether the request
// was carried out.
func answerUnavailable(f *Failure, outcome Outcome) *Error {
	detail := "The request was carried out, but there is no answer to repeat. Do not send it again."
	if outcome == OutcomeFailed {
		detail = "The request has ended, and there is no answer to repeat: it is not known here whether it was carried out. Do not send it again."
	}
	return &Error{Code: f.Code, Status: f.Status, Detail: detail, replayed: true, message: f.Message}
}

// answerGone returns the refusal of a call whose answer was stored outside the record, and is now
// missing or damaged.
func answerGone(err error, outcome Outcome) *Error {
	return &Error{Code: ErrAnswerUnavailable, Status: http.StatusInternalServerError, Err: err,
		Detail: hasEnded(outcome) + ", but its stored answer is lost. It will not be carried out again."}
}

// answerUnread returns the refusal of a call whose stored answer could not be read. The read may
// succeed later.
func answerUnread(err error, outcome Outcome, retryAfter time.Duration) *Error {
	return &Error{Code: ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: hasEnded(outcome) + " before, but its answer can't be read now. Repeat it later to get that answer."}
}

// answerUnreadAfterRun returns the refusal of a call whose handler had already run when its attempt
// found a stored answer, which could not be read. The read may succeed later.
func answerUnreadAfterRun(err error, outcome Outcome, retryAfter time.Duration) *Error {
	e := answerUnread(err, outcome, retryAfter)
	e.Code = ErrOutcomeUnknown
	return e
}

// answerUnreadable returns the refusal of a call whose stored answer this program can't decode,
// because another version of the program stored it, or because it is damaged.
func answerUnreadable(err error, outcome Outcome) *Error {
	return &Error{Code: ErrAnswerUnreadable, Status: http.StatusInternalServerError, Err: err,
		Detail: hasEnded(outcome) + ", but its stored answer can't be read by this version of the service. It will not be carried out again."}
}

// hasEnded returns the beginning of a text for a client that can't receive the stored answer, such
// as "The request was carried out". After OutcomeFailed, the text does not say whether the request
// was carried out: the handler may have refused it, or an operator may have ended the record.
func hasEnded(outcome Outcome) string {
	if outcome == OutcomeSucceeded {
		return "The request was carried out"
	}
	return "The request has ended"
}

// recordForeign returns the refusal of a call whose record was written by another program or is
// damaged.
func recordForeign(err error) *Error {
	return &Error{Code: ErrRecordForeign, Status: http.StatusInternalServerError,
		Detail: "The record for this idempotency key can't be read, so the request was not carried out now.", Err: err}
}
