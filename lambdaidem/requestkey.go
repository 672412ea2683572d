package lambdaidem

import (
	"context"
	"errors"
)

// keyOf returns the key of a request from its header or from Options.Key. If the key is missing or
// invalid, keyOf returns the error to send to the client. If Options.Key is set, call outOfBounds
// first: Options.Key must not receive a request that exceeds a limit.
func (g *Guard) keyOf(ctx context.Context, r *Request) (string, *Error) {
	if g.opts.Key != nil {
		return g.keyBy(g.derive(ctx, r))
	}
	var room [1]string
	values := r.headers.appendTo(room[:0], g.opts.KeyHeader)
	if len(values) == 0 {
		return "", keyMissing("This request needs the header " + g.opts.KeyHeader +
			": a value of your own that is unique to the operation and the same in every retry of it.")
	}
	key, invalid := parseKey(values)
	if invalid == nil && key == "" {
		invalid = errors.New("it is empty") // even if ValidateKey accepts an empty key
	}
	if invalid == nil {
		invalid = g.opts.ValidateKey(key)
	}
	if invalid != nil {
		return "", keyInvalid("The header "+g.opts.KeyHeader+" is invalid: "+invalid.Error()+".", nil)
	}
	return key, nil
}

// keyBy returns the key that Options.Key returned. If the key is missing or invalid, keyBy
// returns the error to send to the client.
func (g *Guard) keyBy(d *derivedKey) (string, *Error) {
	if d.err != nil {
		return "", keyUnread("request", d.err)
	}
	if d.key == "" {
		return "", keyMissing("This request has no idempotency key: what its key is made of is missing or empty.")
	}
	if err := g.opts.ValidateKey(d.key); err != nil {
		return "", keyInvalid("The idempotency key of this request is invalid: "+err.Error()+".", nil)
	}
	return d.key, nil
}

// derivedKey has the results of Options.Key for one request.
type derivedKey struct {
	key string
	err error
}

// derive returns the results of Options.Key for a request. It calls Options.Key only once for each
// request, and keeps the results in r.derived.
func (g *Guard) derive(ctx context.Context, r *Request) *derivedKey {
	if r.derived == nil {
		key, err := g.opts.Key(ctx, r)
		r.derived = &derivedKey{key, err}
	}
	return r.derived
}
