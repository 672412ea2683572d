// Package httpkey adds an idempotency key to an HTTP request that a guarded handler sends,
// as the header Idempotency-Key. Package propagate describes the key. An HTTP client of
// package idemclient retries such a request with the same key.
package httpkey

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/lambdaidem/toolkit/propagate"
)

// Header is the name of the header that contains the key.
const Header = "Idempotency-Key"

// Request adds an idempotency key to a request that a guarded handler sends. ctx is the
// handler's context; the request can have another context. The key is derived from name.
// Each request that the handler sends needs a different name, which must be the same in
// every attempt.
//
// The error is [propagate.ErrUnguarded] if ctx is not the context of a guarded handler. It
// is [propagate.ErrOtherKey] if the request already has the header with another key, or more
// than once. After an error the request is unchanged.
func Request(ctx context.Context, name string, r *http.Request) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return RequestWithKey(key, r)
}

// RequestWithKey is like [Request], but adds the given key instead of a key that is derived
// from a name. It needs no guarded handler. It returns an error if the key is not valid; see
// [propagate.Check].
//
// The header's value is the key itself. A key with a comma or a double quote is sent as a
// quoted String of RFC 9651, because a guard refuses such a key without quotes.
func RequestWithKey(key string, r *http.Request) error {
	if err := propagate.Check(key); err != nil {
		return err
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
	value := key
	if strings.ContainsAny(key, `,"`) {
		value = quoted
	}
	n := 0
	for name, values := range r.Header {
		if !strings.EqualFold(name, Header) {
			continue
		}
		for _, v := range values {
			if n++; v != value && v != quoted || n > 1 {
				return fmt.Errorf("%w: the header %s", propagate.ErrOtherKey, name)
			}
		}
	}
	if n == 1 {
		return nil
	}
	header := r.Header.Clone()
	if header == nil {
		header = make(http.Header, 1)
	}
	header.Set(Header, value)
	r.Header = header
	return nil
}
