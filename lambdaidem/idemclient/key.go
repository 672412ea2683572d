package idemclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

type keyOfContext struct{}

// WithKey returns a copy of ctx with an idempotency key, such as the number of an order or a
// lambdaidem.DownstreamKey. A [Transport] adds this key to guarded requests that have the context.
// Use each context for one operation only: a second payload under the same key on the same route
// gets a 422.
//
// A key has 1 to 255 printable ASCII characters, without a space at either end. With any other key,
// even an empty one, Transport.RoundTrip returns an error. Replacing an invalid key with a random
// one could make a second payment.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// headerWithKey returns a copy of the header of a guarded request, with a key added if it has none.
// It returns an error if the header has an empty key or if no valid key can be added.
func (t *Transport) headerWithKey(req *http.Request) (http.Header, error) {
	header := req.Header.Clone()
	if values := t.keysIn(header); len(values) > 0 { // set by the caller, or copied by net/http for a redirect
		for _, v := range values {
			if strings.Trim(v, " \t") == "" {
				return nil, fmt.Errorf("idemclient: the request's header %s is empty", t.opts.KeyHeader)
			}
		}
		return header, nil
	}
	value, err := t.newValue(req)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = make(http.Header)
	}
	header.Set(t.opts.KeyHeader, value)
	return header, nil
}

// newValue returns the value of the key's header for a request that has no such header. It returns
// an error if the key is invalid or if Options.NewKey fails.
func (t *Transport) newValue(req *http.Request) (string, error) {
	if key, ok := req.Context().Value(keyOfContext{}).(string); ok {
		value, err := headerValue(key)
		if err != nil {
			return "", fmt.Errorf("idemclient: the key of WithKey is invalid: %w", err)
		}
		return value, nil
	}
	// A redirected request keeps its key. net/http copies a header that the caller set, but not one
	// that this transport added. So take the key from the request that was redirected.
	if from := lastRedirect(req, t.guards); from != nil {
		if values := t.keysIn(from.Header); len(values) > 0 {
			return values[0], nil
		}
	}
	key, err := t.opts.NewKey(req)
	if err != nil {
		return "", fmt.Errorf("idemclient: Options.NewKey: %w", err)
	}
	value, err := headerValue(key)
	if err != nil {
		return "", fmt.Errorf("idemclient: the key of Options.NewKey is invalid: %w", err)
	}
	return value, nil
}

// keysIn returns the values of the header KeyHeader. It ignores the case of the name, because
// a caller may have set the header without canonicalizing it.
func (t *Transport) keysIn(h http.Header) []string {
	var values []string
	for name, v := range h {
		if strings.EqualFold(name, t.opts.KeyHeader) {
			values = append(values, v...)
		}
	}
	return values
}

// headerValue returns the value of the key's header for a key. Most keys are sent as they are,
// because many servers don't understand anything else. A key with a comma or a double quote is
// sent as a String of RFC 9651, in double quotes. The error says why a key is invalid.
func headerValue(key string) (string, error) {
	switch {
	case key == "":
		return "", errors.New("it is empty")
	case len(key) > 255:
		return "", fmt.Errorf("it has %d characters; at most 255 are allowed", len(key))
	case key[0] == ' ' || key[len(key)-1] == ' ':
		return "", errors.New("it begins or ends with a space")
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", errors.New("only printable ASCII characters are allowed")
		}
	}
	if strings.ContainsAny(key, `,"`) {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`, nil
	}
	return key, nil
}

// RandomKey returns a random UUID of version 4 (RFC 9562, section 5.4). It is the default of
// [Options.NewKey]. If you may have to repeat a request after an error, pass a RandomKey to
// [WithKey] yourself, so that you know the request's key.
func RandomKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
