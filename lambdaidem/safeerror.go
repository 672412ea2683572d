package lambdaidem

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// safeError returns an error that other code can examine without a panic. It returns err unless a
// method of err, or of an error that err wraps, panics. In that case it returns an error that
// describes the panic.
func safeError(err error) (safe error) {
	defer func() {
		if v := recover(); v != nil {
			safe = &panicError{fmt.Sprintf("a method of the error %T: %v", err, v), debug.Stack()}
		}
	}()
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, &absentError{})
		_ = errors.As(err, new(*absentError))
	}
	return err
}

// absentError is an error type that no error contains. safeError searches an error for it
// with errors.Is and errors.As. The search never finds it, so it calls the methods Is, As
// and Unwrap of every wrapped error. safeError thus learns whether one of them panics.
type absentError struct{ _ byte }

func (*absentError) Error() string { return "" }

// panicError is the error of a message whose handler panicked.
type panicError struct {
	value any
	stack []byte
}

// Error includes the stack, which is logged nowhere else.
func (e *panicError) Error() string { return fmt.Sprintf("a panic: %v\n%s", e.value, e.stack) }

func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// reported returns the error to report to Lambda. Like the error of a panic in an unguarded
// handler, it has the type and the text of the panic's value. The stack trace is left out: the
// guard logs e.Error(), which includes the trace.
func (e *panicError) reported() error {
	return messages.InvokeResponse_Error{Type: typeName(e.value), Message: fmt.Sprint(e.value)}
}
