package lambdaidem

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// failureCode returns a short name for the error that ended an attempt. If the record is released,
// the name becomes Record.LastFailure, which helps an operator find the attempt in the log. The
// name contains nothing from the error's text, which may contain personal data and secrets. The
// name is one of these:
//
//   - "" if err is nil
//   - "panic"
//   - "http_503" for a response with status 503
//   - "inner_refused": the handler returned a final failure, such as a 402, after a guarded call
//     inside it was refused; the failure is not stored, because the inner call may succeed later
//   - "inner_" and the error's code: the handler returned a guard's error, which it received from a
//     guarded call inside it
//   - the error's code or, if it has none, the name of its Go type
func failureCode(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errHandlerDied):
		return "panic"
	case errors.Is(err, errInnerRefused):
		return "inner_refused"
	}
	if hasOwn[*panicError](err) {
		return "panic"
	}
	if status, ok := errors.AsType[failedStatus](err); ok {
		return fmt.Sprintf("http_%d", int(status))
	}
	cause := withoutMarks(err)
	if own := firstError(cause); own != nil {
		if (hasOwn[*innerError](err) || own.replayed) && own.byGuard() {
			return label("inner_" + string(own.Code))
		}
		return label(string(own.Code))
	}
	if code, ok := errors.AsType[Code](cause); ok {
		return label(string(code))
	}
	return label(goType(cause))
}

// goType returns the name of an error's Go type, such as "net.OpError". It unwraps an error if the
// type says nothing: a type of package fmt or errors, or innerError, the wrapper of an inner call's
// error. It uses the first of several joined errors.
func goType(err error) string {
	for {
		t := reflect.TypeOf(err)
		name := strings.TrimPrefix(t.String(), "*")
		var behind error
		if inner, ok := err.(*innerError); ok { //nolint:errorlint // one layer at a time
			err = inner.err
			continue
		}
		if strings.HasPrefix(name, "fmt.") || strings.HasPrefix(name, "errors.") {
			switch e := err.(type) { //nolint:errorlint // one layer at a time
			case interface{ Unwrap() error }:
				behind = e.Unwrap()
			case interface{ Unwrap() []error }:
				if all := e.Unwrap(); len(all) > 0 {
					behind = all[0]
				}
			}
		}
		if behind == nil {
			return name
		}
		err = behind
	}
}

// failedStatus is the error that events and the record show if the handler's response is not
// stored. Its value is the HTTP status of the response.
type failedStatus int

// Error returns a text with the status.
func (s failedStatus) Error() string {
	return fmt.Sprintf("the handler answered with status %d", int(s))
}
