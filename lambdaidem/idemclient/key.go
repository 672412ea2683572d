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

// WithKey gives the guarded requests that are made under ctx this key: an order's
// number say, or what lambdaidem.DownstreamKey returns. A context is for one
// operation: on one route, one key with two payloads is a mismatch, 422.
//
// A key is 1 to 255 printable ASCII characters without spaces at the ends. Any
// other is RoundTrip's error, the empty one too: whoever meant to give a key would
// otherwise get a random one in silence, and with it a second payment.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// keyed returns the header of a guarded request's attempts: req's own, with a key.
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

// unkeyed returns an unguarded request as it may be sent. A redirect from a given host
// to another one loses its key: net/http copies the header of the first request to
// every host, and with it a key that the caller has set, whatever the method.
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

// headerValue returns a key as its header carries it: bare where that is clear,
// since many servers read nothing else, and a String of RFC 9651 where a comma or a
// double quote would make the bare form invalid.
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

// RandomKey returns a random UUID of version 4 (RFC 9562, 5.4), as a request gets that has
// no key. With [WithKey] it is for callers who want to ask again after an error,
// under a key that they know then.
func RandomKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
