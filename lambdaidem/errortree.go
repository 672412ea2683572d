package lambdaidem

import (
	"errors"
	"reflect"
	"slices"
)

// children returns the errors that err wraps, one level deep. An innerError has no children,
// because the errors inside it describe only the inner call.
//
// If err has a method As, the result also has the marks and the innerError that only this method
// finds. If there are any, the result ends with errUnseen, which stands for further errors that the
// method may find.
func children(err error) []error {
	if _, ok := err.(*innerError); ok { //nolint:errorlint // err itself
		return nil
	}
	all := unwrapAll(err)
	e, ok := err.(interface{ As(target any) bool })
	if !ok {
		return all
	}
	hidden := slices.DeleteFunc(errorsByAs(e), func(one error) bool {
		return slices.ContainsFunc(all, func(err error) bool { return leadsTo(err, one) })
	})
	if len(hidden) == 0 {
		return all
	}
	return append(append(all, hidden...), errUnseen)
}

// unwrapAll returns the errors directly inside err: those that its method Unwrap returns, and the
// list that its method WrappedErrors or Errors returns, if it has one.
func unwrapAll(err error) []error {
	var all, list []error
	switch e := err.(type) { //nolint:errorlint // err itself
	case interface{ Unwrap() error }:
		all = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		all = slices.Clone(e.Unwrap())
	}
	switch e := err.(type) { //nolint:errorlint // err itself
	case interface{ WrappedErrors() []error }: // github.com/hashicorp/go-multierror
		list = slices.Clone(e.WrappedErrors())
	case interface{ Errors() []error }: // go.uber.org/multierr and k8s.io/apimachinery
		list = slices.Clone(e.Errors())
	}
	list = slices.DeleteFunc(list, func(one error) bool { return one == nil || same(one, err) })
	all = slices.DeleteFunc(all, func(one error) bool {
		return one == nil || slices.ContainsFunc(list, func(listed error) bool { return same(one, listed) }) || len(list) > 0 && isView(one)
	})
	return append(all, list...)
}

// isView reports whether err is a cursor over a list of errors: the methods Is and As examine only
// the first error, and Unwrap returns a cursor over the others. A list of
// github.com/hashicorp/go-multierror unwraps to such a cursor. The cursor is redundant, because the
// list's method WrappedErrors returns all errors.
func isView(err error) bool {
	e, ok := err.(interface {
		Is(target error) bool
		As(target any) bool
		Unwrap() error
	})
	if !ok {
		return false
	}
	others := e.Unwrap()
	return others == nil || reflect.TypeOf(others) == reflect.TypeOf(err)
}

// leadsTo reports whether target is err, or an error inside err at any depth; see unwrapAll.
// It does not call children, which itself calls leadsTo: each level would search all levels below
// again.
func leadsTo(err, target error) bool {
	return same(err, target) || slices.ContainsFunc(unwrapAll(err), func(one error) bool { return leadsTo(one, target) })
}

// same reports whether a and b are the same error. Errors that can't be compared, such as slices,
// are never the same.
func same(a, b error) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b //nolint:errorlint // the errors themselves
}

// errUnseen stands for errors that children can't list, because only a method As can find them.
// Such an error may come from a call that had an effect. So isRetryable returns false for an error
// that contains errUnseen.
var errUnseen = errors.New("errors that can't be seen")

// errorsByAs returns the errors that e.As finds, at most one of each of these types: innerError,
// and the marks uncertainError, permanentError and retryableError.
func errorsByAs(e interface{ As(target any) bool }) []error {
	return slices.Concat(errorByAs[*innerError](e), errorByAs[*uncertainError](e), errorByAs[*permanentError](e), errorByAs[*retryableError](e))
}

// errorByAs calls e.As with a target of type *E. It returns a slice with the error that As stores
// in the target, or nil if As returns false.
func errorByAs[E error](e interface{ As(target any) bool }) []error {
	var one E
	if !e.As(&one) {
		return nil
	}
	return []error{one}
}

// anyIn reports whether match returns true for err or for an error that err wraps. It does not look
// into an innerError, because the errors inside it describe only the inner call.
func anyIn(err error, match func(error) bool) bool {
	if err == nil || match(err) {
		return err != nil
	}
	return slices.ContainsFunc(children(err), func(one error) bool { return anyIn(one, match) })
}

// firstOwn returns the first M among err and the errors that it wraps. M is *panicError, or the
// type of a mark such as *permanentError. Like anyIn, firstOwn does not look into the error of an
// inner call.
func firstOwn[M error](err error) (first M, ok bool) {
	ok = anyIn(err, func(err error) bool {
		m, is := err.(M) //nolint:errorlint // anyIn walks the tree
		if is {
			first = m
		}
		return is
	})
	return first, ok
}

// hasOwn reports whether firstOwn finds an M.
func hasOwn[M error](err error) bool {
	_, ok := firstOwn[M](err)
	return ok
}

// anyByApplication reports whether match returns true for err or for an error that err wraps,
// including the errors of inner calls. It skips the codes and refusals that guards made, and the
// errors that such a refusal wraps, because they are about the refused call.
func anyByApplication(err error, match func(error) bool) bool {
	if inner, ok := err.(*innerError); ok { //nolint:errorlint // the tree is walked here
		return anyByApplication(inner.err, match)
	}
	switch {
	case err == nil, isRefusal(err):
		return false
	case !isGuardsCode(err) && !isPermanentReplay(err) && match(err):
		return true
	}
	return slices.ContainsFunc(children(err), func(one error) bool { return anyByApplication(one, match) })
}

// isGuardsCode reports whether err itself is one of the guard's codes.
func isGuardsCode(err error) bool {
	return isCodeOfRefusal(err) || err == ErrPermanent || err == ErrRetryable //nolint:errorlint // the error itself alone
}

// isCodeOfRefusal reports whether err itself, not an error that it wraps, is a Code with which a
// guard may refuse a call. This does not prove that a call was refused, because [Step] uses some of
// these codes too: it returns ErrAnswerUnreadable if it can't read the stored result of a step.
func isCodeOfRefusal(err error) bool {
	code, ok := err.(Code) //nolint:errorlint // the error itself alone
	return ok && codedAs[code] != nil
}

// isPermanentReplay reports whether err itself, not an error that it wraps, is a stored failure
// with the code ErrPermanent, as a replay returns it.
func isPermanentReplay(err error) bool {
	e, ok := err.(*Error) //nolint:errorlint // the error itself alone
	return ok && e != nil && e.replayed && e.Code == ErrPermanent
}

// isRefusal reports whether err itself is an *Error that a guard made.
func isRefusal(err error) bool {
	e, ok := err.(*Error) //nolint:errorlint // the error itself alone
	return ok && (e == nil || e.byGuard())
}

// refusesPart reports whether err, the error of a handler, contains the refusal of an inner call, a
// part of the handler's work. ErrConditionFailed and ErrWriteInvalid don't count, because they may
// be about writes of the handler itself.
func refusesPart(err error) bool {
	return anyIn(err, func(err error) bool {
		switch e := err.(type) { //nolint:errorlint // anyIn walks the tree
		case *innerError:
			return refusesPart(e.err)
		case *Error:
			return isRefusal(err) && !e.ofOwnWrites()
		}
		return false
	})
}

// isOwnRejection reports whether err itself is an *Error that a guard made about writes that the
// handler has enlisted.
func isOwnRejection(err error) bool {
	e, ok := err.(*Error) //nolint:errorlint // the error itself alone
	return ok && e != nil && e.byGuard() && e.ofOwnWrites()
}

// ofOwnWrites reports whether the code of e is about enlisted writes that were not made. The
// handler itself may have enlisted them, rather than an inner call.
func (e *Error) ofOwnWrites() bool {
	return e != nil && (e.Code == ErrConditionFailed || e.Code == ErrWriteInvalid)
}

// firstError returns the first *Error in err's tree of wrapped errors, even if it comes from an
// inner call, or nil if there is none.
func firstError(err error) (first *Error) {
	anyIn(err, func(err error) bool {
		switch e := err.(type) { //nolint:errorlint // anyIn walks the tree
		case *innerError:
			first = firstError(e.err)
		case *Error:
			first = e
		}
		return first != nil
	})
	return first
}

// applicationsError returns the first *Error in err's tree that the application made, and not a
// guard. It returns nil if there is none.
func applicationsError(err error) (first *Error) {
	anyByApplication(err, func(err error) bool {
		first, _ = err.(*Error) //nolint:errorlint // anyByApplication walks the tree
		return first != nil
	})
	return first
}
