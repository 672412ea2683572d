// Package httpkey puts the idempotency key on outgoing HTTP requests, as the header
// Idempotency-Key. See package propagate for which key that is. Package
// idemclient sends such a request again under that key.
package httpkey

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/lambdaidem/toolkit/propagate"
)

// Header is the header's name.
const Header = "Idempotency-Key"

// Request puts the key of what a guarded handler sends under name on a request. Two
// requests need two names. ctx is the handler's, which the request's own need not
// come from.
//
// The error is [propagate.ErrUnguarded] outside of a guarded handler, or
// [propagate.ErrOtherKey] where the header is there already with another key. The
// request is unchanged then.
func Request(ctx context.Context, name string, r *http.Request) error {
	key, err := propagate.Key(ctx, name)
	if err != nil {
		return err
	}
	return RequestWithKey(key, r)
}

// RequestWithKey puts a key from elsewhere on a request. Its errors are Request's. A
// key with a comma or a double quote is sent as a String of RFC 9651, since its bare
// form is not valid.
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
