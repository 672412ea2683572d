package lambdaidem

import "github.com/aws/aws-lambda-go/lambda/messages"

// aws-lambda-go reports the name of an error's Go type as its errorType. The only
// other way to choose one is a messages.InvokeResponse_Error, which wraps nothing:
// errors.Is and errors.As would find no code in it. So each code has a Go type of
// its name, and Step Functions can catch one code apart from the others.

// coded is an *Error that Lambda reports by its code.
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

// byCode returns e as an error whose errorType is its code. An error with a code of
// the application's own stays as it is.
func byCode(e *Error) error {
	if as := codedAs[e.Code]; as != nil {
		return as(coded{e})
	}
	return e
}

// lambdaError returns the error that a Lambda handler returns: errors.Is and
// errors.As find in it what they find in d.err, except for what the store said, which
// invokers must not see.
func (d done[T]) lambdaError() error {
	switch {
	case d.err == nil:
		return nil
	case d.refusal != nil:
		return byCode(d.refusal.withoutCause())
	case d.replay != nil && d.replay.Code != ErrAnswerUnavailable:
		return invokeError(d.replay)
	case d.outcome == OutcomeFailed:
		return invokeError(failureOf(d.err))
	}
	err := d.err
	if p, ok := err.(*passedOn); ok { //nolint:errorlint // what Do itself wrapped
		err = p.err
	}
	switch e := err.(type) { //nolint:errorlint // the error itself alone: what wraps one has an errorType of its own
	case *Error:
		switch {
		case e == nil || e.rejected || codedAs[e.Code] == nil:
		case clientError(e) == nil: // Lambda reports the errorType "Error", so that a state machine does not take it for its own
			return e.withoutCause()
		default: // a guard made it, perhaps that of an inner call
			return byCode(e.withoutCause())
		}
	case *retryableError, *uncertainError, *permanentError:
		err = unmarked(err)
	}
	if e, ok := err.(*Error); ok && e != nil && e.rejected { //nolint:errorlint // as above
		return invokeError(failureOf(e))
	}
	return err
}

// withoutCause returns a copy for the invoker, who is a client: the cause is for the
// observer and the log.
func (e *Error) withoutCause() *Error {
	shown := *e
	shown.Err = nil
	return &shown
}

// invokeError returns an error whose errorType is that of the failure.
func invokeError(f *Failure) error {
	return messages.InvokeResponse_Error{Type: f.Type, Message: f.Message}
}
