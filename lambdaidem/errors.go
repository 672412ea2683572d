package lambdaidem

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// Code names an error. It is wire code and sentinel at once: it stands as
// "code" in the problem document that a client gets, and
// errors.Is(err, lambdaidem.ErrInProgress) holds for what a handler, a replay
// or [Do] returns.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of the guard's own answers, with their HTTP status.
const (
	ErrKeyMissing        Code = "idempotency_key_missing"        // 400 (K3)
	ErrKeyInvalid        Code = "idempotency_key_invalid"        // 400 (K1, K2)
	ErrRequestInvalid    Code = "idempotency_request_invalid"    // 400: the event can't be decoded (S2)
	ErrBodyUnknown       Code = "idempotency_body_unknown"       // 411 or 500: the body can't be known whole (F3)
	ErrBodyTooLarge      Code = "idempotency_body_too_large"     // 413 (S2)
	ErrURITooLong        Code = "idempotency_uri_too_long"       // 414 (S2)
	ErrHeadersTooMany    Code = "idempotency_headers_too_many"   // 431 (S2)
	ErrPrincipalUnknown  Code = "idempotency_principal_unknown"  // 403: the caller can't be told apart from others (F2)
	ErrPayloadMismatch   Code = "idempotency_payload_mismatch"   // 422, or 409 by option (F5)
	ErrInProgress        Code = "idempotency_in_progress"        // 409 with Retry-After (L8)
	ErrAttemptAbandoned  Code = "idempotency_attempt_abandoned"  // 409: held for an operator (L6)
	ErrStoreUnavailable  Code = "idempotency_store_unavailable"  // 503 with Retry-After; the handler did not run (X5)
	ErrOutOfTime         Code = "idempotency_out_of_time"        // 503 with Retry-After; the handler did not run (L5)
	ErrOutcomeUnknown    Code = "idempotency_outcome_unknown"    // 503 with Retry-After; the handler ran (X4)
	ErrAnswerUnavailable Code = "idempotency_answer_unavailable" // 500: it ran, its answer could not be kept (X4)
	ErrAnswerUnreadable  Code = "idempotency_answer_unreadable"  // 500: it ran, what was stored of its answer does not fit this program (R1)
	ErrRecordForeign     Code = "idempotency_record_foreign"     // 500: the record is not ours, or damaged (D4)
	ErrStreaming         Code = "idempotency_streaming_refused"  // 500: a stream can't be stored and replayed (V1)
	ErrPermanent         Code = "idempotency_permanent_failure"  // 500: what Permanent marked, if it has no code of its own (X2)
	ErrRetryable         Code = "idempotency_retryable_failure"  // 503: what Retryable marked, if it has no code of its own (X2)
	ErrConditionFailed   Code = "idempotency_condition_failed"   // 500: a condition of an enlisted write failed, and nothing says what that means (E2)
	ErrWriteInvalid      Code = "idempotency_write_invalid"      // 500: an enlisted write can't be made (E3)
	ErrNotBegun          Code = "idempotency_not_begun"          // of a message: an earlier one failed, or too little time was left (V2)
	ErrLeaseLost         Code = "idempotency_lease_lost"         // from a Store: the token was replaced (L3)
)

// Error is an error with a code and with what an HTTP client is told of it.
// errors.Is matches its Code, errors.As and errors.Is reach Err.
type Error struct {
	Code       Code
	Status     int           // HTTP status
	Type       string        // RFC 9457 "type", a URI; empty: the code's page in this project's documentation
	Detail     string        // RFC 9457 "detail": a sentence for the client; no internals
	RetryAfter time.Duration // 0: no Retry-After header; sent in whole seconds, rounded up
	Err        error         // the cause, for logs; never sent

	// rejected marks what Reject made: the application's own verdict, which the
	// outcome rule may store. An Error that a guard made is never stored, even
	// when a handler passes it on (from a Do inside it, say).
	rejected bool
	// replayed marks what a record kept of an error, and message is its whole
	// text, as the first one had it.
	replayed bool
	message  string
	// replayedType is the Go type of the error that is replayed.
	replayedType string
}

// Error returns code, detail and cause.
func (e *Error) Error() string {
	if e == nil {
		return "a nil *lambdaidem.Error, returned as an error"
	}
	if e.replayed {
		return e.message
	}
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	if e == nil {
		return nil
	}
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// Reject is what a handler returns to answer with an error of the application:
// over HTTP a problem document (RFC 9457) with this status, from [Do] an *Error.
// It goes through the outcome rule like any response with that status (X1): a
// 404 is stored and replayed, a 503 is released. status must be 400 to 599;
// Reject panics otherwise.
func Reject(status int, code Code, detail string) error {
	if status < 400 || status > 599 {
		panic(fmt.Sprintf("lambdaidem: Reject: status is %d; it must be 400 to 599", status))
	}
	return &Error{Code: code, Status: status, Detail: detail, rejected: true}
}

// Permanent marks an error as one that every retry would meet again: it is
// stored, and replays instead of running the handler (X2). Over HTTP the first
// answer and every replay are the same problem document; from a typed handler
// they are the same Lambda errorType and message; from [Do] a replay is an
// *[Error] with the same code and message, which is all that survives of err.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Uncertain marks an error after which it is not known whether the handler had
// its effect: the card network timed out, say. The lease is kept, so nothing
// runs before it ends, and then the policy decides: [Rerun] or [Hold] (X2, L6).
// Uncertain(nil) is nil.
func Uncertain(err error) error {
	if err == nil {
		return nil
	}
	return &uncertainError{err}
}

// Retryable marks an error after which it is sure that nothing happened: the
// attempt is released, under either policy, and a retry runs again (X2). Under
// policy [Hold] an error without this mark is uncertain, since most errors of an
// outside call don't say whether it happened. Over HTTP the answer is a problem
// document: that of an [*Error] in err, [Reject]'s for one, else a 503 with
// Retry-After. Retryable(nil) is nil.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err}
}

// Answer returns an error that stands for the handler having returned v: what a
// failed condition becomes where that is no failure, "already paid" say (E2). v has
// the type that the handler returns; a nil v stands for the nil of a type that has
// one. For net/http v is an http.Handler that writes the answer. It is called with
// the request, in whose context [Key], [RecordID] and [DownstreamKey] work as in the
// guarded handler, and nothing can be enlisted. An error that wraps an Answer is an
// ordinary error.
func Answer(v any) error { return &answerError{v} }

type answerError struct{ v any }

func (e *answerError) Error() string { return fmt.Sprintf("answer with a %T", e.v) }

// answerAs returns v, which was given to Answer, as the type that the handler
// returns. The error says that it is of another type.
func answerAs[T any](v any) (T, error) {
	if t, ok := v.(T); ok {
		return t, nil
	}
	var none T
	if v == nil {
		switch reflect.TypeFor[T]().Kind() { //nolint:exhaustive // the others have no nil
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
			return none, nil
		}
	}
	return none, isNotTheAnswer[T](v)
}

// isNotTheAnswer is the error of an Answer of another type than T.
func isNotTheAnswer[T any](v any) error {
	return fmt.Errorf("lambdaidem.Answer was given a %T, where the handler returns a %s", v, reflect.TypeFor[T]())
}

type retryableError struct{ err error }

func (e *retryableError) Error() string { return e.err.Error() }

func (e *retryableError) Unwrap() []error {
	if own := (*Error)(nil); errors.As(e.err, &own) {
		return []error{e.err} // it has a code of its own
	}
	return []error{e.err, ErrRetryable}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() []error {
	if own := (*Error)(nil); errors.As(e.err, &own) {
		return []error{e.err} // it has a code of its own, which is the one that replays
	}
	return []error{e.err, ErrPermanent}
}

type uncertainError struct{ err error }

func (e *uncertainError) Error() string { return e.err.Error() }
func (e *uncertainError) Unwrap() error { return e.err }

// typeName is the name that Lambda reports as the errorType of an error, or of a
// panic's value.
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return "nil"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// passedOn is what a Do inside a guarded handler returns where it was released:
// that nothing happened is true of the inner call, not of what the handler did
// around it (G2).
type passedOn struct{ err error }

func (e *passedOn) Error() string { return e.err.Error() }
func (e *passedOn) Unwrap() error { return e.err }

// unmarked is the error that was marked, if it was: Lambda's errorType is that
// of the cause, not of the mark, nor of a mark of a mark.
func unmarked(err error) error {
	for {
		if p := (*permanentError)(nil); errors.As(err, &p) {
			err = p.err
		} else if u := (*uncertainError)(nil); errors.As(err, &u) {
			err = u.err
		} else if r := (*retryableError)(nil); errors.As(err, &r) {
			err = r.err
		} else {
			return err
		}
	}
}

// failureOf keeps of err what a record can keep: a text that is not UTF-8 would
// come back from a store as another one than the first caller got (R1).
func failureOf(err error) *Failure {
	f := &Failure{Code: ErrPermanent, Message: err.Error(), Status: http.StatusInternalServerError}
	cause := unmarked(err)
	f.Type = typeName(cause)
	if own, ok := cause.(messages.InvokeResponse_Error); ok { //nolint:errorlint // Lambda too takes it unwrapped alone
		f.Type, f.Message = own.Type, own.Message
	}
	if own, ok := cause.(*Error); ok && own != nil && own.replayed { //nolint:errorlint // of a Do inside: it was that type at first
		f.Type = own.replayedType
	}
	f.Type, f.Message = strings.ToValidUTF8(f.Type, "\ufffd"), strings.ToValidUTF8(f.Message, "\ufffd")
	if own := (*Error)(nil); errors.As(err, &own) && own != nil {
		f.Code, f.Status = own.Code, own.Status
	}
	return f
}

// err rebuilds the error that the failure was made of, as far as it survives.
func (f *Failure) err() *Error {
	return &Error{Code: f.Code, Status: f.Status, replayed: true, message: f.Message, replayedType: f.Type}
}
