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

// Code identifies a kind of error, over HTTP and in Go. An HTTP client finds the Code in the
// "code" member of a problem document. A Go program compares errors with a Code by
// errors.Is, such as errors.Is(err, lambdaidem.ErrInProgress).
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes of the errors that a guard returns, with their HTTP status.
const (
	ErrKeyMissing        Code = "idempotency_key_missing"        // 400
	ErrKeyInvalid        Code = "idempotency_key_invalid"        // 400
	ErrRequestInvalid    Code = "idempotency_request_invalid"    // 400: the event can't be decoded
	ErrBodyUnknown       Code = "idempotency_body_unknown"       // 411 or 500: the guard can't read the whole body before the handler runs
	ErrBodyTooLarge      Code = "idempotency_body_too_large"     // 413
	ErrURITooLong        Code = "idempotency_uri_too_long"       // 414
	ErrHeadersTooMany    Code = "idempotency_headers_too_many"   // 431
	ErrPrincipalUnknown  Code = "idempotency_principal_unknown"  // 403: the guard can't identify the caller
	ErrPayloadMismatch   Code = "idempotency_payload_mismatch"   // 422, or Options.MismatchStatus: the key belongs, or may belong, to another payload
	ErrInProgress        Code = "idempotency_in_progress"        // 409 with Retry-After: another attempt is running
	ErrAttemptAbandoned  Code = "idempotency_attempt_abandoned"  // 409: an attempt died, and the record waits for an operator
	ErrStoreUnavailable  Code = "idempotency_store_unavailable"  // 503 with Retry-After; the handler did not run
	ErrOutOfTime         Code = "idempotency_out_of_time"        // 503 with Retry-After; the handler did not run
	ErrOutcomeUnknown    Code = "idempotency_outcome_unknown"    // 503 with Retry-After; the handler ran, but its outcome could not be recorded
	ErrAnswerUnavailable Code = "idempotency_answer_unavailable" // 500: the handler ran, but its answer could not be stored
	ErrAnswerUnreadable  Code = "idempotency_answer_unreadable"  // 500: the handler ran, but this version of the program can't decode the stored answer
	ErrRecordForeign     Code = "idempotency_record_foreign"     // 500: another program wrote the record, or it is damaged; the handler did not run
	ErrStreaming         Code = "idempotency_streaming_refused"  // 500: a stream can't be stored and replayed
	ErrPermanent         Code = "idempotency_permanent_failure"  // 500: an error that Permanent marked and that has no code of its own
	ErrRetryable         Code = "idempotency_retryable_failure"  // 503: an error that Retryable marked and that has no code of its own
	ErrConditionFailed   Code = "idempotency_condition_failed"   // 500: the condition of an enlisted write failed, and the write has no Else
	ErrWriteInvalid      Code = "idempotency_write_invalid"      // 500: an enlisted write can't be made
	ErrNotBegun          Code = "idempotency_not_begun"          // for a message: an earlier message failed, or too little time was left
	ErrLeaseLost         Code = "idempotency_lease_lost"         // from a Store: another attempt or an operator has replaced the fencing token
)

// Error is an error with a code and the problem document that an HTTP client
// receives for it. errors.Is matches Code, and errors.Is and errors.As also
// examine Err.
type Error struct {
	Code       Code
	Status     int           // HTTP status
	Type       string        // RFC 9457 "type", a URI; if empty, a guard's code links to docs/errors.md, and other codes get "about:blank"
	Detail     string        // RFC 9457 "detail": text for the client, which should not show internals
	RetryAfter time.Duration // the Retry-After header, rounded up to whole seconds; 0 means no header
	Err        error         // the cause, for logs; never sent to the client

	// rejected reports whether Reject made the error. Such an error is the application's
	// decision, so its status decides the outcome, and it may be stored.
	rejected bool
	// unsure is set in an ErrPayloadMismatch if the payload may be the same after all: the
	// record's fingerprint was made under settings that this guard does not know.
	unsure bool
	// unfinished is set if unsure is set and the record is not completed, or is completed with
	// OutcomeFailed. Only BatchOptions.Discard depends on it: an earlier attempt may have begun
	// the same message without finishing it. Only an operator completes the record of a message
	// with OutcomeFailed.
	unfinished bool
	// forNow is set if the guard may accept the call later, because a function of the
	// application, such as Options.Key, has failed to find the key or the principal. The
	// function may succeed when it is called again. A BatchOptions.Key that returns an
	// invalid key counts as failed too.
	forNow bool
	// replayed is set if the error was read from a record.
	replayed     bool
	message      string // if replayed is set: text of the original error, which the method Error returns
	replayedType string // if replayed is set: name of the original error's Go type
}

// Error returns the code, the detail and the cause in one text. For a replayed error, it
// returns the text of the original error.
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

// Reject returns an error with which a handler refuses a request. An HTTP client
// receives a problem document (RFC 9457) with the given status; the caller of [Do]
// receives an *Error. The error has the same outcome as a response with that status; see
// [DefaultOutcome] and Options.Outcome. By default, a 404 is stored and replayed, and a 503
// releases the record. [Handler] reports code as the errorType of the error. Reject panics
// if status is not between 400 and 599.
func Reject(status int, code Code, detail string) error {
	if status < 400 || status > 599 {
		panic(fmt.Sprintf("lambdaidem: Reject: status is %d; it must be 400 to 599", status))
	}
	return &Error{Code: code, Status: status, Detail: detail, rejected: true}
}

// Permanent marks an error with which every retry would fail too. The error is stored,
// and a retry receives the stored error without running the handler.
//
// Over HTTP, the first response and every replay are the same problem document. From a
// typed handler, they have the same Lambda errorType and message. From [Do], a replay is an
// *[Error] with the same code and message, which does not wrap err.
//
// The error is not stored if the outcome of a guarded call that the handler made is
// unknown, or if such a call was refused and may succeed later; see docs/effects.md,
// "Guarded calls inside a handler". Permanent(nil) returns nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// Uncertain marks an error after which nobody knows whether the handler had its effect,
// such as a timeout of the card network. The attempt keeps its lease, so that no
// other attempt runs until the lease ends. Then Options.Policy decides: under [Rerun]
// the next request runs the handler again; under [Hold] no request runs it until an
// operator has decided. Uncertain(nil) returns nil.
func Uncertain(err error) error {
	if err == nil {
		return nil
	}
	return &uncertainError{err}
}

// Retryable marks an error after which the handler certainly had no effect. The record is
// released, whether the policy is [Rerun] or [Hold], and a retry runs the handler again.
// Use Retryable under policy Hold in particular. There, an error that no function of this
// package has marked is uncertain, because most errors of a call to another service don't
// say whether the call took effect.
//
// Over HTTP, the response is the problem document of an *[Error] in err, such as one from
// [Reject], or else a 503 with Retry-After.
//
// If the handler made a guarded call whose outcome is unknown, the mark does not count, and
// the record is not released. The outcome of the handler is then uncertain, as after
// [Uncertain].
//
// If the function of a [Do] inside a guarded handler returns a marked error, the mark counts
// only for the record of that Do, because the guarded handler may have had effects of its
// own. If the guarded handler had none, it can call Retryable on the error that Do returned.
//
// Retryable(nil) returns nil.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err}
}

// Answer returns an error that the guard treats as if the handler had returned v instead.
// With Answer, a request can be a success even if the condition of an enlisted write fails.
// For example, give a payment's write the error Answer(v), where v says "already paid" (see
// dynamostore.Write.Else). If the write's condition fails, the client receives v and no
// error.
//
// v must have the type that the handler returns. A nil v means the nil value of that type,
// if the type has one. For net/http, v is an http.Handler, and the guard calls it with the
// request to write the response. [Key], [RecordID] and [DownstreamKey] work in this
// http.Handler as in the guarded handler, but it can't enlist writes. An error that wraps
// an Answer is an ordinary error.
func Answer(v any) error { return &answerError{v} }

type answerError struct{ v any }

func (e *answerError) Error() string { return fmt.Sprintf("answer with a %T", e.v) }

// answerAs converts v, the argument of Answer, to the type that the handler returns.
// The error says that v has another type.
func answerAs[T any](v any) (T, error) {
	if t, ok := v.(T); ok {
		return t, nil
	}
	var none T
	if v == nil {
		switch reflect.TypeFor[T]().Kind() { //nolint:exhaustive // values of all other kinds can't be nil
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
			return none, nil
		}
	}
	return none, isNotTheAnswer[T](v)
}

// isNotTheAnswer returns the error for a handler that called Answer with a value v of the
// wrong type. T is the type that the handler returns.
func isNotTheAnswer[T any](v any) error {
	return fmt.Errorf("lambdaidem.Answer was given a %T, where the handler returns a %s", v, reflect.TypeFor[T]())
}

type retryableError struct{ err error }

func (e *retryableError) Error() string { return e.err.Error() }

func (e *retryableError) Unwrap() []error {
	if own := (*Error)(nil); errors.As(e.err, &own) {
		return []error{e.err} // err has a code already
	}
	return []error{e.err, ErrRetryable}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() []error {
	if own := (*Error)(nil); errors.As(e.err, &own) {
		return []error{e.err} // err has a code already, which is stored and replayed
	}
	return []error{e.err, ErrPermanent}
}

type uncertainError struct{ err error }

func (e *uncertainError) Error() string { return e.err.Error() }
func (e *uncertainError) Unwrap() error { return e.err }

// typeName returns the name that Lambda reports as the errorType of v, which is an error
// or the value of a panic: the name of its Go type, without package.
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

// passedOn wraps the error that an inner call, a guarded call inside a guarded handler,
// returns to the outer handler. Marks in err, such as Retryable, and the status of an error
// made by Reject describe only the inner call. The wrapper hides them, so that they don't
// decide about the record of the outer handler, which may have had effects of its own.
type passedOn struct {
	err    error
	stored bool // the inner call's record has the error as its failure, so every retry gets it again
}

func (e *passedOn) Error() string { return e.err.Error() }
func (e *passedOn) Unwrap() error { return e.err }

// withoutPassedOn returns the error inside err if err itself is a passedOn, the wrapper of
// an inner guarded call's error. Any other error is returned unchanged. An error that the
// handler made around a passedOn is also returned unchanged, because Lambda must report the
// type of the handler's error.
func withoutPassedOn(err error) error {
	for {
		p, ok := err.(*passedOn) //nolint:errorlint // the error itself alone
		if !ok {
			return err
		}
		err = p.err
	}
}

// withoutMarks returns the error whose type Lambda reports as the errorType. If err has a
// mark, this is the error that was passed to Permanent, Uncertain or Retryable. Otherwise it
// is err. If this error has more marks, or is a passedOn, the wrapper of an inner call's
// error, withoutMarks removes these too.
func withoutMarks(err error) error {
	for {
		if p := (*permanentError)(nil); errors.As(err, &p) {
			err = p.err
		} else if u := (*uncertainError)(nil); errors.As(err, &u) {
			err = u.err
		} else if r := (*retryableError)(nil); errors.As(err, &r) {
			err = r.err
		} else {
			return withoutPassedOn(err)
		}
	}
}

// failureOf returns the parts of err that a record stores. It replaces invalid UTF-8,
// because a store may return such bytes changed. The first caller of a typed handler also
// receives the result of failureOf, so the first caller and every replay get the same text.
func failureOf(err error) *Failure {
	f := &Failure{Code: ErrPermanent, Message: err.Error(), Status: http.StatusInternalServerError}
	cause := withoutMarks(err)
	f.Type = typeName(cause)
	if own, ok := cause.(messages.InvokeResponse_Error); ok { //nolint:errorlint // Lambda doesn't unwrap the error either
		f.Type, f.Message = own.Type, own.Message
	}
	if own, ok := cause.(*Error); ok && own != nil { //nolint:errorlint // what wraps an *Error has a type of its own
		switch {
		case own.replayed: // returned by a Do inside the handler; report the type of the original error
			f.Type = own.replayedType
		case own.rejected && codedAs[own.Code] == nil: // the application may not report one of the guard's own codes as a type
			f.Type = string(own.Code)
		}
	}
	f.Type, f.Message = strings.ToValidUTF8(f.Type, "\ufffd"), strings.ToValidUTF8(f.Message, "\ufffd")
	if own := (*Error)(nil); errors.As(err, &own) && own != nil {
		f.Code, f.Status = own.Code, own.Status
	}
	return f
}

// err returns the stored failure as an error, for a replay.
func (f *Failure) err() *Error {
	return &Error{Code: f.Code, Status: f.Status, replayed: true, message: f.Message, replayedType: f.Type}
}
