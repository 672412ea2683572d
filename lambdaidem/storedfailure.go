package lambdaidem

import (
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// failureOf returns the Failure that a record stores for the error err. The parameter outcome is
// what the guard has decided about err.
func (g *Guard) failureOf(err error, outcome Outcome) *Failure {
	f := failureText(err)
	f.Code, f.Status = ErrPermanent, http.StatusInternalServerError
	if e := g.decidingError(err, outcome, unmarked); e != nil {
		f.Code, f.Status = e.Code, e.Status
	}
	return f
}

// failureText returns a Failure with the Type and the Message under which a record stores err. The
// first caller of a typed handler receives the same Type and Message as every replay. failureText
// replaces invalid UTF-8 in both, because a store might change such bytes.
func failureText(err error) *Failure {
	f := &Failure{Message: err.Error()}
	cause := withoutMarks(err)
	f.Type = typeName(cause)
	if own, ok := cause.(messages.InvokeResponse_Error); ok { //nolint:errorlint // Lambda doesn't unwrap the error either
		f.Type, f.Message = own.Type, own.Message
	}
	if refusesPart(err) {
		f.Message = partFailed
	}
	if own, ok := cause.(*Error); ok && own != nil { //nolint:errorlint // what wraps an *Error has a type of its own
		switch {
		case own.replayed: // returned by a Do inside the handler; report the type of the original error
			f.Type = own.replayedType
		case own.rejected && codedAs[own.Code] == nil: // the application may not report one of the guard's own codes as a type
			f.Type = string(own.Code)
		}
	}
	f.Type, f.Message = strings.ToValidUTF8(f.Type, "\ufffd"), strings.ToValidUTF8(f.Message, "\ufffd")
	return f
}

// err returns the stored failure as an error, for a replay.
func (f *Failure) err() *Error {
	return &Error{Code: f.Code, Status: f.Status, replayed: true, message: f.Message, replayedType: f.Type}
}
