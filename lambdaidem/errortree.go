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

// anyVisible is like anyIn, but it also looks into the errors of inner calls. There it skips what
// comes from a guard; see saidByGuard.
func anyVisible(err error, match func(error) bool) bool {
	return anyIn(err, func(err error) bool {
		if inner, ok := err.(*passedOn); ok { //nolint:errorlint // anyIn walks the tree
			return anyVisible(inner.err, func(err error) bool { return !saidByGuard(err) && match(err) })
		}
		return match(err)
	})
}

// saidByGuard reports whether err itself, without the errors that it wraps, is the refusal of a
// call, a code of the guard, or a mark. The code ErrRetryable is not among them, because
// passedOn.Is has looked for it before.
func saidByGuard(err error) bool {
	switch e := err.(type) { //nolint:errorlint // the error itself alone
	case *Error:
		return e == nil || e.byGuard()
	case Code:
		return codedAs[e] != nil || e == ErrPermanent
	case *permanentError, *retryableError, *uncertainError:
		return true
	}
	return false
}

// refusesPart reports whether err contains the refusal of an inner call.
func refusesPart(err error) bool {
	return anyIn(err, func(err error) bool {
		inner, ok := err.(*passedOn) //nolint:errorlint // anyIn walks the tree
		return ok && (anyIn(inner.err, isRefusal) || refusesPart(inner.err))
	})
}

func isRefusal(err error) bool {
	e, ok := err.(*Error) //nolint:errorlint // the error itself alone
	return ok && e != nil && e.byGuard()
}
