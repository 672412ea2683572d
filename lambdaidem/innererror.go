package lambdaidem

import (
	"errors"
	"reflect"
	"slices"
)

// innerError wraps the error err that an inner call, a guarded call inside a guarded handler,
// returns to the outer handler. The outer guard ignores marks in err, such as Retryable, and the
// status of an error made by Reject, because they describe only the inner call.
//
// errors.Is and errors.As find the errors that the inner call's function made. They skip codes and
// errors that a guard returned to that function, for a step or a guarded call inside it. The outer
// handler could mistake such a code for a refusal of the inner call, whose function has in fact
// run.
type innerError struct {
	err error
	// byGuard is set if the guard of the inner call, and not the function of that call, made err.
	// err is then a refusal, a stored failure, or an error about rejected writes, and the outer
	// handler can find the code of err.
	byGuard bool
	// retryable is set if the inner call's record was released because the inner call's function
	// had marked err with [Retryable].
	retryable bool
	// stored is set if the inner call's record has err as its failure, so that every retry of the
	// inner call gets err again. storedAs is the *Error that gave the stored failure its code and
	// status. storedAs is nil if the stored failure has the code ErrPermanent, or if stored is not
	// set.
	stored   bool
	storedAs *Error
}

func (e *innerError) Error() string { return e.err.Error() }

// Is is called by errors.Is. It reports whether target matches one of these:
//
//   - ErrRetryable, if e.retryable is set;
//   - an error in e.err's tree of wrapped errors. But if the inner call's function has made guarded
//     calls of its own, their codes and errors don't match: the outer handler would mistake them
//     for those of the inner call. See anyShown.
//
// If e.stored is set, a target that is a Code or an *Error can match only the stored failure.
func (e *innerError) Is(target error) bool {
	switch target := target.(type) {
	case Code:
		if target == ErrRetryable && e.retryable {
			return true
		}
		if e.stored {
			return target == e.code()
		}
	case *Error:
		if e.stored {
			return target == e.storedAs || e.storedAs.Is(target)
		}
	}
	isComparable := reflect.TypeOf(target).Comparable()
	return e.anyShown(func(err error) bool {
		if isComparable && err == target {
			return true
		}
		is, ok := err.(interface{ Is(target error) bool })
		return ok && !isGuardsCode(target) && is.Is(target) // the method Is may find the code of a guarded call that the function made
	})
}

// As is called by errors.As. It searches the same errors as Is, those that e.anyShown visits. If it
// finds an error of the type that target points to, it sets the value behind target to that error
// and returns true. As never finds the mark that Permanent, Retryable or Uncertain adds, because
// the mark describes only the inner call. If e.stored is set, As finds a Code or an *Error only in
// the stored failure.
func (e *innerError) As(target any) bool {
	switch to := target.(type) {
	case **permanentError, **uncertainError, **retryableError:
		return false // a mark describes only the inner call
	case **Error:
		if e.storedAs != nil {
			stored := *e.storedAs
			stored.inner = e.stored
			*to = &stored
			return true
		}
		if e.stored && !e.byGuard {
			return false // no *Error in err has decided
		}
	case *Code:
		if e.stored {
			*to = e.code()
			return true
		}
	}
	to := reflect.ValueOf(target).Elem()
	return e.anyShown(func(err error) bool {
		if reflect.TypeOf(err).AssignableTo(to.Type()) {
			to.Set(reflect.ValueOf(err))
			return true
		}
		as, ok := err.(interface{ As(target any) bool })
		if !ok || !as.As(target) {
			return false
		}
		found, _ := to.Interface().(error)
		_, own := found.(*Error)       //nolint:errorlint // the error itself: one that only As finds has decided nothing
		if own || saidByGuard(found) { // what a guard said is about a guarded call that the function made
			to.SetZero()
			return false
		}
		return true
	})
}

// anyShown reports whether match returns true for e.err or for an error that e.err wraps, including
// the errors of guarded calls inside the inner call. It skips codes and errors that a guard
// returned to the inner call's function.
func (e *innerError) anyShown(match func(error) bool) bool {
	if !e.byGuard {
		return anyByApplication(e.err, match)
	}
	// The guard of the inner call made e.err, so its code is about that call. Skip codes and errors
	// only in the errors of guarded calls inside the inner call.
	return anyIn(e.err, func(err error) bool {
		if inner, ok := err.(*innerError); ok { //nolint:errorlint // anyIn walks the tree
			return anyByApplication(inner.err, match)
		}
		return match(err)
	})
}

// code returns the code that the record stores for the error. Call it only if e.stored is set.
func (e *innerError) code() Code {
	if e.storedAs != nil {
		return e.storedAs.Code
	}
	return ErrPermanent
}

// differs reports whether errors.Is or errors.As finds other codes or errors in e than in e.err,
// the error that e wraps. These are the differences:
//
//   - e.err contains a code or an error of a guard that e hides.
//   - The record stores e.err as a failure, and e.err lacks the stored code or contains other codes
//     or *Errors. e shows only the stored code and *Error.
//   - e matches ErrRetryable, but e.err does not.
func (e *innerError) differs() bool {
	hides := func(code Code) bool { return errors.Is(e.err, code) && !errors.Is(e, code) }
	for code := range codedAs {
		if hides(code) {
			return true
		}
	}
	if hides(ErrPermanent) || hides(ErrRetryable) || hidesType[Code](e) || hidesType[*Error](e) {
		return true
	}
	if e.byGuard || !e.stored {
		return e.retryable && !errors.Is(e.err, ErrRetryable)
	}
	return !errors.Is(e.err, e.code()) || anyIn(e.err, func(err error) bool {
		switch err := err.(type) { //nolint:errorlint // anyIn walks the tree
		case Code:
			return err != e.code()
		case *Error:
			return err != e.storedAs
		}
		return false
	})
}

// hidesType reports whether e hides an error of type E that a guard made: errors.As finds that
// error in e.err, but does not find the same error in e.
func hidesType[E error](e *innerError) bool {
	found, ok := errors.AsType[E](e.err)
	if !ok || !saidByGuard(found) {
		return false
	}
	shown, _ := errors.AsType[E](e)
	return error(shown) != error(found) //nolint:errorlint // the very same error
}

// saidByGuard reports whether err itself is a *StoreError, one of the guard's codes, or an *Error
// that a guard made. It does not look at the errors that err wraps.
func saidByGuard(err error) bool {
	_, byStore := err.(*StoreError) //nolint:errorlint // the error itself alone
	return byStore || isGuardsCode(err) || isRefusal(err) || isPermanentReplay(err)
}

// isRetryable reports whether Retryable has marked err as a whole. If err joins several errors,
// isRetryable returns true only if all of them are marked, because an error without the mark may
// come from a call that had an effect.
func isRetryable(err error) bool {
	if _, ok := err.(*retryableError); ok { //nolint:errorlint // the tree is walked here
		return true
	}
	all := children(err)
	return len(all) > 0 && !slices.ContainsFunc(all, func(one error) bool { return !isRetryable(one) })
}

// withoutInnerError returns the error inside err if err itself is an innerError, the wrapper of an
// inner call's error. Any other error is returned unchanged. An error that the handler made around
// an innerError is also returned unchanged, because Lambda must report the type of the handler's
// error.
func withoutInnerError(err error) error {
	for {
		p, ok := err.(*innerError) //nolint:errorlint // the error itself alone
		if !ok {
			return err
		}
		err = p.err
	}
}

// innerRefusal says which guarded call inside a handler was refused, and why. When the guard
// refuses such a call with an Error, it sets the Error's field Err to an innerRefusal. If the
// handler then returns the Error as its own, the event that reports it has this text.
type innerRefusal struct {
	route  string // the operation or route
	record string // the record's id
	err    error  // the cause of the refusal; nil if its code says all
}

func (e *innerRefusal) Error() string {
	s := "the guarded call " + e.route + " inside the handler, record " + e.record
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *innerRefusal) Unwrap() error { return e.err }
