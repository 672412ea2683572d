package emulator

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	if len(body) > maxBodyBytes {
		return nil, errBodyTooLarge
	}
	return body, nil
}

// maxBodyBytes is API Gateway's payload quota. The 6 MB of Lambda apply to the
// event made of the request, and are checked there.
const maxBodyBytes = 10 * 1024 * 1024

// errBodyTooLarge is a request body over maxBodyBytes.
var errBodyTooLarge = errors.New("the request body is too large")

func drained(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		_, _ = io.CopyN(io.Discard, r.Body, maxDrainBytes) // its end is an error too
	})
}

// maxDrainBytes bounds what is read of a body that was refused, so that the
// client can finish sending and read the answer instead of a reset connection.
const maxDrainBytes = 64 * 1024 * 1024
