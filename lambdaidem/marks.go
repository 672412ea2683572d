package lambdaidem

// Permanent marks an error that would occur again in every retry. The error is stored, and a retry
// receives the stored error without running the handler. Permanent(nil) returns nil.
//
// Over HTTP, the first response and every replay are the same problem document. From a typed
// handler, they have the same Lambda errorType and message. From [Do], a replay is an *[Error] with
// the same code and message, which does not wrap err.
//
// The error is not stored if a guarded call that the handler made has an unknown outcome, or was
// refused and may succeed later; see docs/effects.md, "Guarded calls inside a handler".
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err, hasOwn[*Error](err)}
}

// Uncertain marks an error that leaves open whether the handler had its effect, such as a timeout
// of the card network. The attempt keeps its lease, so that no other attempt runs until the lease
// ends. Then Options.Policy decides: under [Rerun] the next request runs the handler again; under
// [Hold] no request runs it until an operator has decided. Uncertain(nil) returns nil.
func Uncertain(err error) error {
	if err == nil {
		return nil
	}
	return &uncertainError{err}
}

// Retryable marks err to say that the handler certainly had no effect. The record is released,
// whether the policy is [Rerun] or [Hold], and a retry runs the handler. Without a mark, an error
// is uncertain under Hold. Retryable(nil) returns nil.
//
// Over HTTP, the response is the problem document of an *[Error] in err, such as one from [Reject],
// or else a 503 with Retry-After.
//
// The mark does not count if the handler made a guarded call whose outcome is unknown. The outcome
// of the handler is then uncertain, as after [Uncertain].
//
// If the function of a [Do] inside a guarded handler returns a marked error, the mark counts only
// for the record of that Do. A guarded handler without effects of its own can call Retryable on the
// error that Do returned.
func Retryable(err error) error {
	if err == nil {
		return nil
	}
	return &retryableError{err, hasOwn[*Error](err)}
}

type permanentError struct {
	err      error
	hasError bool // err is or wraps an *Error, whose code is stored and replayed
}

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() []error {
	if e.hasError {
		return []error{e.err}
	}
	return []error{e.err, ErrPermanent}
}

type uncertainError struct{ err error }

func (e *uncertainError) Error() string { return e.err.Error() }
func (e *uncertainError) Unwrap() error { return e.err }

type retryableError struct {
	err      error
	hasError bool // err is or wraps an *Error, which has a code of its own
}

func (e *retryableError) Error() string { return e.err.Error() }

func (e *retryableError) Unwrap() []error {
	if e.hasError {
		return []error{e.err}
	}
	return []error{e.err, ErrRetryable}
}

// withoutMarks returns the error inside the mark if err is or wraps an error that Permanent,
// Uncertain or Retryable marked. Otherwise it returns err. An error around the mark, such as one
// made by fmt.Errorf, is dropped too. Lambda reports the type of the result as the errorType.
//
// If err or the marked error is an innerError, the wrapper of an inner call's error, withoutMarks
// also removes the innerError and the marks in it. If the handler has wrapped the innerError in an
// error of its own, withoutMarks returns that error, whose type is the one to report.
func withoutMarks(err error) error {
	for {
		if p, ok := firstOwn[*permanentError](err); ok {
			err = p.err
		} else if u, ok := firstOwn[*uncertainError](err); ok {
			err = u.err
		} else if r, ok := firstOwn[*retryableError](err); ok {
			err = r.err
		} else if inner, ok := err.(*innerError); ok { //nolint:errorlint // what wraps an innerError has a type of its own
			err = inner.err
		} else {
			return err
		}
	}
}
