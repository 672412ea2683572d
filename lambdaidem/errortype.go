package lambdaidem

import "reflect"

// aws-lambda-go reports the name of an error's Go type as its errorType. The only other way
// to choose the errorType is a messages.InvokeResponse_Error, but that wraps no error, so
// errors.Is and errors.As would not find a Code in it. Therefore each Code has a Go type of
// the same name, and Step Functions can catch each Code by its name.

// coded is the common part of the guard's error types, which all embed it. Each Code of the
// guard has an error type of the same name, because Lambda reports the name of an error's type
// as the errorType.
type coded struct{ err *Error }

func (e coded) Error() string { return e.err.Error() }
func (e coded) Unwrap() error { return e.err }

//nolint:revive,staticcheck // the names are wire format: the errorTypes that invokers see
type (
	idempotency_key_missing        struct{ coded }
	idempotency_key_invalid        struct{ coded }
	idempotency_request_invalid    struct{ coded }
	idempotency_body_unknown       struct{ coded }
	idempotency_body_too_large     struct{ coded }
	idempotency_uri_too_long       struct{ coded }
	idempotency_headers_too_many   struct{ coded }
	idempotency_principal_unknown  struct{ coded }
	idempotency_payload_mismatch   struct{ coded }
	idempotency_in_progress        struct{ coded }
	idempotency_attempt_abandoned  struct{ coded }
	idempotency_store_unavailable  struct{ coded }
	idempotency_out_of_time        struct{ coded }
	idempotency_outcome_unknown    struct{ coded }
	idempotency_answer_unavailable struct{ coded }
	idempotency_answer_unreadable  struct{ coded }
	idempotency_record_foreign     struct{ coded }
	idempotency_streaming_refused  struct{ coded }
	idempotency_condition_failed   struct{ coded }
	idempotency_write_invalid      struct{ coded }
	idempotency_not_begun          struct{ coded }
)

// codedAs maps each Code that has its own error type to the function that makes such an error.
var codedAs = map[Code]func(coded) error{
	ErrKeyMissing:        func(e coded) error { return idempotency_key_missing{e} },
	ErrKeyInvalid:        func(e coded) error { return idempotency_key_invalid{e} },
	ErrRequestInvalid:    func(e coded) error { return idempotency_request_invalid{e} },
	ErrBodyUnknown:       func(e coded) error { return idempotency_body_unknown{e} },
	ErrBodyTooLarge:      func(e coded) error { return idempotency_body_too_large{e} },
	ErrURITooLong:        func(e coded) error { return idempotency_uri_too_long{e} },
	ErrHeadersTooMany:    func(e coded) error { return idempotency_headers_too_many{e} },
	ErrPrincipalUnknown:  func(e coded) error { return idempotency_principal_unknown{e} },
	ErrPayloadMismatch:   func(e coded) error { return idempotency_payload_mismatch{e} },
	ErrInProgress:        func(e coded) error { return idempotency_in_progress{e} },
	ErrAttemptAbandoned:  func(e coded) error { return idempotency_attempt_abandoned{e} },
	ErrStoreUnavailable:  func(e coded) error { return idempotency_store_unavailable{e} },
	ErrOutOfTime:         func(e coded) error { return idempotency_out_of_time{e} },
	ErrOutcomeUnknown:    func(e coded) error { return idempotency_outcome_unknown{e} },
	ErrAnswerUnavailable: func(e coded) error { return idempotency_answer_unavailable{e} },
	ErrAnswerUnreadable:  func(e coded) error { return idempotency_answer_unreadable{e} },
	ErrRecordForeign:     func(e coded) error { return idempotency_record_foreign{e} },
	ErrStreaming:         func(e coded) error { return idempotency_streaming_refused{e} },
	ErrConditionFailed:   func(e coded) error { return idempotency_condition_failed{e} },
	ErrWriteInvalid:      func(e coded) error { return idempotency_write_invalid{e} },
	ErrNotBegun:          func(e coded) error { return idempotency_not_begun{e} },
}

// byGuard reports whether a guard made e: e has one of the guard's Codes and was not made by
// [Reject]. With Reject, an application can make an error that has such a Code too.
func (e *Error) byGuard() bool { return !e.rejected && codedAs[e.Code] != nil }

// byCode converts e to the Go type that belongs to its Code, because Lambda reports the name of an
// error's type as the errorType. If the Code is not in codedAs, such as a Code of the application,
// byCode returns e itself.
func byCode(e *Error) error {
	if as := codedAs[e.Code]; as != nil {
		return as(coded{e})
	}
	return e
}

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
