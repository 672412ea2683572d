package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// What a record says about the attempt that wrote it, so that an operator finds
// the attempt's log: Lambda's request id, and why the attempt was released.

// maxLabel is the longest [Claim.Invocation] and [Lease.LastFailure] that the
// guard writes, in bytes. A request id has 36.
const maxLabel = 128

// invocationOf returns Lambda's request id; outside Lambda it is empty.
func invocationOf(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	return label(lc.AwsRequestID)
}

// failureCode returns what a released record keeps of the error that released
// it: its code, or "http_503" for a response with that status, or "panic", or
// the name of its Go type. It never returns any of the error's text, which may
// hold personal data and secrets.
func failureCode(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errHandlerDied):
		return "panic"
	}
	if p, ok := errors.AsType[*panicError](err); ok && p != nil {
		return "panic"
	}
	if status, ok := errors.AsType[failedStatus](err); ok {
		return fmt.Sprintf("http_%d", int(status))
	}
	cause := unmarked(err)
	if own, ok := errors.AsType[*Error](cause); ok && own != nil {
		return label(string(own.Code))
	}
	if code, ok := errors.AsType[Code](cause); ok {
		return label(string(code))
	}
	return label(goType(cause))
}

// goType returns the name of an error's Go type, "net.OpError" for one. It looks
// behind the types of packages fmt and errors, which are the same for every
// error; of joined errors it takes the first.
func goType(err error) string {
	for {
		t := reflect.TypeOf(err)
		name := strings.TrimPrefix(t.String(), "*")
		var behind error
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

// label returns s as every store can keep it: valid UTF-8 of at most maxLabel
// bytes.
func label(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "") // without a character that the cut left incomplete
}

// failedStatus is the error that stands for a response that is not stored.
type failedStatus int

// Error says what the handler answered.
func (s failedStatus) Error() string {
	return fmt.Sprintf("the handler answered with status %d", int(s))
}
