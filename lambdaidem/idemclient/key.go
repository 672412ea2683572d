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

// WithKey returns a context whose guarded requests have this key, such as the number of an
// order or a lambdaidem.DownstreamKey. Use a context for one operation: two payloads under one
// key on one route are a mismatch, 422.
//
// A key has 1 to 255 printable ASCII characters, without a space at either end. With any other
// key, even an empty one, RoundTrip returns an error. A random key in its place could mean a
// second payment.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// keyed returns a copy of the request's header with a key.
func (t *Transport) keyed(req *http.Request) (http.Header, error) {
	header := req.Header.Clone()
	if values := t.keysIn(header); len(values) > 0 { // the caller's; or of a redirect, and copied by net/http
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

// newValue returns the header's value for a request that has none.
func (t *Transport) newValue(req *http.Request) (string, error) {
	if key, ok := req.Context().Value(keyOfContext{}).(string); ok {
		value, err := headerValue(key)
		if err != nil {
			return "", fmt.Errorf("idemclient: the key of WithKey is invalid: %w", err)
		}
		return value, nil
	}
	// net/http copies the header of the first request, without the key that this
	// transport added to it. That key is in the request of the redirecting response.
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

// lastRedirect returns the latest request before req in its chain of redirects for
// which match reports true, or nil.
func lastRedirect(req *http.Request, match func(*http.Request) bool) *http.Request {
	for resp := req.Response; resp != nil && resp.Request != nil; resp = resp.Request.Response {
		if match(resp.Request) {
			return resp.Request
		}
	}
	return nil
}

// unkeyed returns an unguarded request for sending. A redirect to a host that may not have the
// key loses it: net/http copies the header of the first request to every host, and with it a
// key that the caller has set.
func (t *Transport) unkeyed(req *http.Request) *http.Request {
	if len(t.keysIn(req.Header)) == 0 || t.given(req) || lastRedirect(req, t.given) == nil {
		return req
	}
	out := req.WithContext(req.Context())
	out.Header = req.Header.Clone()
	for name := range req.Header {
		if strings.EqualFold(name, t.opts.KeyHeader) {
			delete(out.Header, name)
		}
	}
	return out
}

// keysIn returns the values of the key's header, under its name in any case.
func (t *Transport) keysIn(h http.Header) []string {
	var values []string
	for name, v := range h {
		if strings.EqualFold(name, t.opts.KeyHeader) {
			values = append(values, v...)
		}
	}
	return values
}

// headerValue returns the value of the header for a key. It is the key itself, because many
// servers read nothing else, or a String of RFC 9651 if the key has a comma or a double
// quote.
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

// RandomKey returns a random UUID of version 4 (RFC 9562, 5.4). Requests without a key get one.
// Callers who may want to repeat a request after an error use it with [WithKey], so that they
// know the key.
func RandomKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
