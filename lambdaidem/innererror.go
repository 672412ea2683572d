package lambdaidem

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

// innerCallError names a guarded call that a handler made and that a guard refused. Handlers often
// return such a refusal as their own error. innerCallError is the Err of the refusal, so the event
// that reports the handler's error then shows which of its calls was refused, and why.
type innerCallError struct {
	what   string // the operation or route
	record string // the record's id
	err    error  // the cause of the refusal; nil if its code says all
}

func (e *innerCallError) Error() string {
	s := "the guarded call " + e.what + " inside the handler, record " + e.record
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *innerCallError) Unwrap() error { return e.err }
