package lambdaidem

import "github.com/aws/aws-lambda-go/lambda/messages"

// lambdaError returns the error that a guarded Lambda handler returns to Lambda for d, the result
// of a call. It returns nil if d has no error. Lambda reports the Go type of the error as the
// errorType, unless the error is a messages.InvokeResponse_Error.
func (d done[T]) lambdaError() error {
	switch {
	case d.err == nil:
		return nil
	case d.refusal != nil:
		return byCode(d.refusal.withoutCause())
	case d.replay != nil && d.replay.Code != ErrAnswerUnavailable:
		return invokeError(d.replay)
	case d.replay != nil: // the answer of the call itself could not be stored
		return byCode(d.replay.err())
	case d.outcome == OutcomeFailed, d.outcome == OutcomeSucceeded:
		return invokeError(failureText(d.err))
	}
	// Remove marks, such as that of Permanent, and the wrapper *innerError around the error. Lambda
	// would report the type of the mark or wrapper as the errorType.
	err := withoutInnerError(d.err)
	switch err.(type) { //nolint:errorlint // the error itself alone: what wraps one has an errorType of its own
	case *retryableError, *uncertainError, *permanentError:
		err = withoutMarks(err)
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // as above
		shown := forClient(e, d.err)
		switch {
		case e == nil:
		case shown == nil, e.isFinal() && isUnstored(d.err, e): // Lambda reports the errorType "Error", so that a state machine does not take the code of an inner call for that of its own call
			return &Error{Code: e.Code, Status: e.Status, Detail: partRefused}
		case e.rejected:
			return invokeError(failureText(e))
		case !e.byGuard():
		default: // a guard made the error, perhaps the guard of an inner call
			return byCode(shown.withoutCause())
		}
	}
	// The error's text may quote a guard's refusal of an inner call, which would mislead the
	// invoker. Keep only the error's type.
	if refusesPart(err) {
		return invokeError(&Failure{Type: typeName(err), Message: partRefused})
	}
	return err
}

// withoutCause returns a copy of e without Err, for the invoker. Only the observer and the
// log may show the cause.
func (e *Error) withoutCause() *Error {
	shown := *e
	shown.Err = nil
	return &shown
}

// invokeError returns an error that Lambda reports with the errorType and the message of f.
func invokeError(f *Failure) error {
	return messages.InvokeResponse_Error{Type: f.Type, Message: f.Message}
}
