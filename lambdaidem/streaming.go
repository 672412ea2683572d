package lambdaidem

import (
	"errors"
	"io"
	"net/http"
	"reflect"
)

// streams reports whether T is an io.Reader, such as the streaming responses of API Gateway
// and Function URLs. A stream can't be stored and replayed.
func streams[T any]() bool {
	t := reflect.TypeFor[T]()
	reader := reflect.TypeFor[io.Reader]()
	return t.Implements(reader) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reader)
}

func streamRefused(subject string) *Error {
	return &Error{Code: ErrStreaming, Status: http.StatusInternalServerError,
		Detail: "A streaming response can't be stored and replayed.",
		Err:    errors.New(subject + " is a stream; return the whole response, or leave this handler unguarded")}
}
