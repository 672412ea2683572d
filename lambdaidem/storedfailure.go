package lambdaidem

import (
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// failureOf returns the parts of err that a record stores. It replaces invalid UTF-8,
// because a store may return such bytes changed. The first caller of a typed handler also
// receives the result of failureOf, so the first caller and every replay get the same text. A
// refusal that asks to repeat the call gives no code: the failure is final.
func failureOf(err error) *Failure {
	f := &Failure{Code: ErrPermanent, Message: err.Error(), Status: http.StatusInternalServerError}
	cause := withoutMarks(err)
	f.Type = typeName(cause)
	if own, ok := cause.(messages.InvokeResponse_Error); ok { //nolint:errorlint // Lambda doesn't unwrap the error either
		f.Type, f.Message = own.Type, own.Message
	}
	if own, ok := cause.(*Error); ok && own != nil { //nolint:errorlint // what wraps an *Error has a type of its own
		switch {
		case own.byGuard(): // the refusal of an inner call, whose text is not about this call
			f.Message = own.ofPart().Error()
		case own.replayed: // returned by a Do inside the handler; report the type of the original error
			f.Type = own.replayedType
		case own.rejected && codedAs[own.Code] == nil: // the application may not report one of the guard's own codes as a type
			f.Type = string(own.Code)
		}
	}
	f.Type, f.Message = strings.ToValidUTF8(f.Type, "\ufffd"), strings.ToValidUTF8(f.Message, "\ufffd")
	if own := lasting(err); own != nil {
		f.Code, f.Status = own.Code, own.Status
	}
	return f
}

// err returns the stored failure as an error, for a replay.
func (f *Failure) err() *Error {
	return &Error{Code: f.Code, Status: f.Status, replayed: true, message: f.Message, replayedType: f.Type}
}
