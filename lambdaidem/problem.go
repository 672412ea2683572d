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

// The guard's own answers: what each says, and how it is sent.

// problemType is where a code is explained: RFC 9457's "type".
const problemType = "https://github.com/lambdaidem/toolkit/blob/main/docs/errors.md#"

// problem returns an error as an HTTP answer: a problem document of RFC 9457 with
// the code as an extension member.
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

// busy is the guard's answer while another attempt is in progress, written once: it is
// the one that clients get most, and always the same.
var busy = sync.OnceValue(func() *written {
	e := inProgress(0)
	return &written{*e, documentOf(e), statusLine(e.Status)}
})

// written is an error with its problem document and its status line.
type written struct {
	Error
	text, line string
}

// documentOf returns the problem document of an error.
func documentOf(e *Error) string {
	var room [512]byte // enough for the guard's own
	body := append(room[:0], `{"type":`...)
	switch {
	case e.Type != "":
		body = appendText(body, e.Type)
	case strings.HasPrefix(string(e.Code), "idempotency_"):
		body = appendText(body, problemType+string(e.Code))
	default:
		body = append(body, `"about:blank"`...) // RFC 9457, 4.2.1: no more than the status says
	}
	body = appendText(append(body, `,"title":`...), http.StatusText(e.Status))
	body = strconv.AppendInt(append(body, `,"status":`...), int64(e.Status), 10)
	if e.Detail != "" {
		body = appendText(append(body, `,"detail":`...), e.Detail)
	}
	body = append(appendText(append(body, `,"code":`...), string(e.Code)), '}')
	if bytes.ContainsAny(body, "<>&") { // as encoding/json has it: nobody must take it for HTML
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, body)
		body = escaped.Bytes()
	}
	return string(body)
}

// wholeSeconds rounds up: Retry-After has no fractions (RFC 9110, 10.2.3).
func wholeSeconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// ownAnswer returns an answer that the guard makes itself, after the hook.
func (g *Guard) ownAnswer(ctx context.Context, r *Request, e *Error) *Response {
	resp := problem(e)
	if g.opts.OnOwnAnswer != nil {
		g.opts.OnOwnAnswer(ctx, r, resp, e)
	}
	return resp
}

// withStatus returns the Error with an HTTP status that is or is wrapped by err, or nil.
func withStatus(err error) *Error {
	if err == nil { // errors.As would allocate
		return nil
	}
	if e := (*Error)(nil); errors.As(err, &e) && e != nil && e.Status != 0 {
		return e
	}
	return nil
}

// answerOf returns the problem document for an error that a guarded handler returned. It
// returns nil if the error has none, and is to be returned to the server: an error that is
// no Error and has no mark.
func (g *Guard) answerOf(err error, outcome Outcome) *Response {
	if e := withStatus(err); e != nil {
		return problem(e)
	}
	if r := (*retryableError)(nil); errors.As(err, &r) && outcome == OutcomeReleased {
		return problem(&Error{Code: ErrRetryable, Status: http.StatusServiceUnavailable, RetryAfter: g.opts.RetryAfter,
			Detail: "The request was not carried out. Repeat it later."})
	}
	if outcome == OutcomeFailed {
		return problem(&Error{Code: ErrPermanent, Status: http.StatusInternalServerError,
			Detail: "The request failed, and would fail again if it were repeated."})
	}
	return nil
}

func keyMissing(detail string) *Error {
	return &Error{Code: ErrKeyMissing, Status: http.StatusBadRequest, Detail: detail}
}

func keyInvalid(detail string, err error) *Error {
	return &Error{Code: ErrKeyInvalid, Status: http.StatusBadRequest, Detail: detail, Err: err}
}

// keyUnread returns the answer where a function of the application could not say what the key
// is: its own, if [Reject] made it.
func keyUnread(in string, err error) *Error {
	if own := withStatus(err); own != nil {
		return own
	}
	e := keyInvalid("No idempotency key could be found in the "+in+".", err)
	e.forNow = true
	return e
}

// keyKind returns the event that a refusal of a key makes, which may be of the
// application's own making.
func keyKind(e *Error) Kind {
	if e.Code == ErrKeyMissing {
		return EventKeyMissing
	}
	return EventKeyInvalid
}

func requestInvalid(detail string, err error) *Error {
	return &Error{Code: ErrRequestInvalid, Status: http.StatusBadRequest, Detail: detail, Err: err}
}

// notBegun is of a message that was not run.
func notBegun(why error) *Error {
	return &Error{Code: ErrNotBegun, Status: http.StatusServiceUnavailable, Detail: "The message was not begun.", Err: why}
}

func headersTooMany(got, most int) *Error {
	return &Error{Code: ErrHeadersTooMany, Status: http.StatusRequestHeaderFieldsTooLarge,
		Detail: fmt.Sprintf("The request has %d headers; at most %d are allowed.", got, most)}
}

func bodyTooLarge(limit int64) *Error {
	return &Error{Code: ErrBodyTooLarge, Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("The body is larger than %d bytes.", limit)}
}

func bodyUnknown(status int, detail string, err error) *Error {
	return &Error{Code: ErrBodyUnknown, Status: status, Detail: detail, Err: err}
}

// guardedTwice returns the answer to a call that the handler of the same record makes.
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

// principalUnknown returns the answer to a caller who can't be told apart from others.
func principalUnknown(err error) *Error {
	return &Error{Code: ErrPrincipalUnknown, Status: http.StatusForbidden,
		Detail: "The caller can't be told apart from others.", Err: err}
}

// payloadMismatch returns the answer where the record belongs to another payload.
func payloadMismatch(status int) *Error {
	return &Error{Code: ErrPayloadMismatch, Status: status,
		Detail: "This idempotency key was used with another request. Send a new key with a new request, and the same request with the same key."}
}

// inProgress returns the answer while another attempt is in progress.
func inProgress(retryAfter time.Duration) *Error {
	return &Error{Code: ErrInProgress, Status: http.StatusConflict, RetryAfter: retryAfter,
		Detail: "A request with this idempotency key is in progress. Repeat this request later to get its answer."}
}

// attemptAbandoned returns the answer where an operator must decide.
func attemptAbandoned() *Error {
	return &Error{Code: ErrAttemptAbandoned, Status: http.StatusConflict,
		Detail: "An earlier attempt of this request ended without a known outcome. It has to be looked into before the key can be used again."}
}

// stepsRemain refuses a request whose earlier attempt has stored steps, because an
// optimistic attempt would have the effects of those steps again.
func stepsRemain(err error) *Error {
	return &Error{Code: ErrAttemptAbandoned, Status: http.StatusConflict, Err: err,
		Detail: "An earlier attempt of this request has completed some of its steps, and this version of the service can't continue after them. It has to be looked into before the key can be used again."}
}

// storeUnavailable returns the answer where the store could not be asked.
func storeUnavailable(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The request was not carried out, since it can't be told now whether it was before. Repeat it later."}
}

// outOfTime returns the answer where no time is left to run.
func outOfTime(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrOutOfTime, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The request was not carried out, since no time was left for it. Repeat it."}
}

// outcomeUnknown returns the answer where a completion could not be written.
func outcomeUnknown(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrOutcomeUnknown, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "What became of the request could not be recorded. Repeat it with the same key to learn it."}
}

// conditionFailed returns the answer where a condition of an enlisted write failed, and
// its author gave an error that is no answer.
func conditionFailed(err error) *Error {
	return &Error{Code: ErrConditionFailed, Status: http.StatusInternalServerError, Err: err,
		Detail: "Nothing that the request would have written was written, since what it depends on is not as it should be. Repeat it with the same key."}
}

// answerNotKept returns what a record keeps instead of an answer that can't be kept.
func answerNotKept() *Failure {
	return &Failure{Code: ErrAnswerUnavailable, Status: http.StatusInternalServerError,
		Message: string(ErrAnswerUnavailable) + ": the operation was carried out, but its answer could not be kept"}
}

// answerUnavailable returns what a record answers whose answer could not be kept.
func answerUnavailable(f *Failure) *Error {
	return &Error{Code: f.Code, Status: f.Status, Detail: "The request was carried out, but its answer could not be kept. It will not be carried out again.", replayed: true, message: f.Message}
}

// answerGone returns the answer where the record is ours and its answer, which is
// kept apart from it, is missing or damaged.
func answerGone(err error) *Error {
	return &Error{Code: ErrAnswerUnavailable, Status: http.StatusInternalServerError, Err: err,
		Detail: "The request was carried out, but its stored answer is lost. It will not be carried out again."}
}

// answerUnread returns the answer where a stored answer could not be read now.
func answerUnread(err error, retryAfter time.Duration) *Error {
	return &Error{Code: ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter, Err: err,
		Detail: "The request was carried out before, but its answer can't be read now. Repeat it later to get that answer."}
}

// answerUnreadable returns the answer where a record of ours keeps an answer that
// this program can't read: another version stored it, or it is damaged.
func answerUnreadable(err error) *Error {
	return &Error{Code: ErrAnswerUnreadable, Status: http.StatusInternalServerError, Err: err,
		Detail: "The request was carried out, but its stored answer can't be read by this version of the service. It will not be carried out again."}
}

// recordForeign returns the answer where the record is not ours, or damaged.
func recordForeign(err error) *Error {
	return &Error{Code: ErrRecordForeign, Status: http.StatusInternalServerError,
		Detail: "What is stored under this key can't be read. The request was not carried out.", Err: err}
}
