package lambdaidem

// anyIn reports whether match returns true for err or for an error that err wraps. It does not
// look into a passedOn, the error of an inner call: what is inside describes only that call.
func anyIn(err error, match func(error) bool) bool {
	if err == nil || match(err) {
		return err != nil
	}
	switch e := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() error }:
		return anyIn(e.Unwrap(), match)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if anyIn(one, match) {
				return true
			}
		}
	}
	return false
}

// hasOwn reports whether err, or an error that it wraps, is an M. M is *panicError, or the type of
// a mark such as *permanentError. Like anyIn, hasOwn does not look into the error of an inner call.
func hasOwn[M error](err error) bool {
	return anyIn(err, func(err error) bool {
		_, ok := err.(M) //nolint:errorlint // anyIn walks the tree
		return ok
	})
}

// anyVisible reports whether match returns true for err or for an error that err wraps. It looks into
// the errors of inner calls too. It skips refusals and codes that come from a guard; those in err
// itself it skips only if byGuard is false.
func anyVisible(err error, byGuard bool, match func(error) bool) bool {
	if inner, ok := err.(*passedOn); ok { //nolint:errorlint // the tree is walked here
		return anyVisible(inner.err, false, match)
	}
	switch {
	case err == nil, !byGuard && isRefusal(err): // the cause of a refusal is about the refused call too
		return false
	case (byGuard || !isGuardsCode(err)) && match(err):
		return true
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return anyVisible(e.Unwrap(), byGuard, match)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if anyVisible(one, byGuard, match) {
				return true
			}
		}
	}
	return false
}

// isGuardsCode reports whether err itself is one of the guard's codes.
func isGuardsCode(err error) bool {
	code, ok := err.(Code) //nolint:errorlint // the error itself alone
	return ok && (codedAs[code] != nil || code == ErrPermanent || code == ErrRetryable)
}

// isRefusal reports whether err itself is an *Error that a guard made.
func isRefusal(err error) bool {
	e, ok := err.(*Error) //nolint:errorlint // the error itself alone
	return ok && (e == nil || e.byGuard())
}

// refusesPart reports whether err, the error of a handler, contains the refusal of an inner call. The
// text about rejected writes is true of the handler too, so it is no such refusal.
func refusesPart(err error) bool {
	return anyIn(err, func(err error) bool {
		switch e := err.(type) { //nolint:errorlint // anyIn walks the tree
		case *passedOn:
			return refusesPart(e.err)
		case *Error:
			return isRefusal(err) && !e.ofOwnWrites()
		}
		return false
	})
}

// ofOwnWrites reports whether e may be about writes that the handler itself has enlisted.
func (e *Error) ofOwnWrites() bool {
	return e != nil && (e.Code == ErrConditionFailed || e.Code == ErrWriteInvalid)
}

// firstError returns the first *Error in err's tree of wrapped errors, those of inner calls
// included, or nil if there is none.
func firstError(err error) (first *Error) {
	anyIn(err, func(err error) bool {
		switch e := err.(type) { //nolint:errorlint // anyIn walks the tree
		case *passedOn:
			first = firstError(e.err)
		case *Error:
			first = e
		}
		return first != nil
	})
	return first
}

// applicationsError returns the first *Error in err's tree of wrapped errors that no guard made, or
// nil if there is none.
func applicationsError(err error) (first *Error) {
	anyVisible(err, false, func(err error) bool {
		first, _ = err.(*Error) //nolint:errorlint // anyVisible walks the tree
		return first != nil
	})
	return first
}
