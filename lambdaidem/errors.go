package lambdaidem

import (
	"fmt"
	"time"
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
	ErrOutOfTime         Code = "idempotency_out_of_time"        // 503 with Retry-After; the handler did not run, or an optimistic one returned too late and wrote nothing
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
	// unfinished is set, in addition to unsure, if an earlier attempt may have begun the same
	// message without finishing it: the record is not completed, or an operator has completed it
	// with OutcomeFailed. The guard must then not call BatchOptions.Discard.
	unfinished bool
	// forNow is set if the refusal is not final: a function of the application, such as
	// Options.Key, has failed to find the key or the principal, and may succeed when it is called
	// again. A BatchOptions.Key that returns an invalid key counts as failed too.
	forNow bool
	// inner marks an Error that errors.As copied from the stored failure of an inner call; see
	// innerError.As. In a handler's error, the copy counts as that failure; see outcomeOfMarks.
	inner bool
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

// Is reports whether target was made by [Reject] and has the same code and status as e. It returns
// false if a guard made e. Because errors.Is calls Is, a handler can compare the error of [Do] with
// a variable that holds a result of Reject, even in a replay.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t != nil && e != nil && t.rejected && !e.byGuard() && t.Code == e.Code && t.Status == e.Status
}

// Reject returns an error for a handler that refuses a request. An HTTP client receives a problem
// document (RFC 9457) with the given status. The caller of [Do] receives an *Error. The invoker of
// a function made by [Handler] receives a Lambda error whose errorType is the given code, or
// "Error" if guards use that code for their own refusals.
//
// The error has the outcome of a response with the same status; see [DefaultOutcome] and
// Options.Outcome. By default, a 404 is stored and replayed, and a 503 releases the record.
// errors.Is reports true for two errors that Reject made with the same code and status. Reject
// panics if status is not between 400 and 599.
func Reject(status int, code Code, detail string) error {
	if status < 400 || status > 599 {
		panic(fmt.Sprintf("lambdaidem: Reject: status is %d; it must be 400 to 599", status))
	}
	return &Error{Code: code, Status: status, Detail: detail, rejected: true}
}
