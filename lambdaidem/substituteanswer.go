package lambdaidem

import (
	"fmt"
	"reflect"
)

// Answer returns an error that the guard treats as if the handler had returned v instead. With
// Answer, a request can be a success even if the condition of an enlisted write fails. For example,
// v may say "already paid"; see dynamostore.Write.Else.
//
// v must have the type that the handler returns. A nil v means the nil value of that type, if the
// type has one. For net/http, v is an http.Handler, which writes the response. [Key], [RecordID]
// and [DownstreamKey] work in this http.Handler as in the guarded handler, but it can't enlist
// writes.
//
// If the handler wraps this error in another one, the guard treats it like any other error.
func Answer(v any) error { return &answerError{v} }

type answerError struct{ v any }

func (e *answerError) Error() string { return fmt.Sprintf("answer with a %T", e.v) }

// answerAs returns v, the argument of Answer, as a T, the type that the handler returns. A nil v
// becomes a nil T if there is one. If v has another type, answerAs returns an error.
func answerAs[T any](v any) (T, error) {
	if t, ok := v.(T); ok {
		return t, nil
	}
	var none T
	if v == nil {
		switch reflect.TypeFor[T]().Kind() { //nolint:exhaustive // values of all other kinds can't be nil
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
			return none, nil
		}
	}
	return none, isNotTheAnswer[T](v)
}

// isNotTheAnswer returns the error for a handler that called Answer with a value v of the
// wrong type. T is the type that the handler returns.
func isNotTheAnswer[T any](v any) error {
	return fmt.Errorf("lambdaidem.Answer was given a %T, where the handler returns a %s", v, reflect.TypeFor[T]())
}
