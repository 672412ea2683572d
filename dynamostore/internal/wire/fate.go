package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
)

// Fate says whether a write was applied. Its zero value is Unknown.
type Fate int

const (
	// Unknown means that an attempt was sent and that no answer says what became of it.
	Unknown Fate = iota
	// NotApplied means that no attempt was applied, nor will be.
	NotApplied
	// Applied means that DynamoDB said that the request was carried out.
	Applied
)

// fate returns the fate of a call that ended with err.
func (c *call) fate(err error) Fate {
	switch {
	case err == nil:
		return Applied
	case c.unknown:
		return Unknown
	}
	return NotApplied
}

// witness is the outermost middleware of the Deserialize step, so it sees the outcome of
// each attempt once, after the answer was decoded.
type witness struct{}

func (witness) ID() string { return "lambdaidem.Witness" }

func (witness) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	if err := ctx.Err(); err != nil { // nothing was sent, and nothing will be
		return middleware.DeserializeOutput{}, middleware.Metadata{}, &aws.RequestCanceledError{Err: err}
	}
	c := callOf(ctx)
	if c == nil {
		return next.HandleDeserialize(ctx, in)
	}
	if made := c.first; made != nil { // the HTTP client returns what came of it
		out, meta, err := next.HandleDeserialize(ctx, in)
		c.unknown = err != nil && !made.conn.surelyNotApplied(err)
		return out, meta, err
	}
	var conn connection
	out, meta, err := next.HandleDeserialize(conn.traced(ctx), in)
	if err != nil && !conn.surelyNotApplied(err) {
		c.unknown = true
	}
	return out, meta, err
}

// connection counts the connections that an attempt was given to be sent over. The
// error does not say: the SDK replaces it when a context ends, and an HTTP client that
// retries by itself returns the last of several errors.
type connection struct {
	wanted atomic.Bool
	had    atomic.Int32
	hooks  httptrace.ClientTrace
}

func (c *connection) traced(ctx context.Context) context.Context {
	c.hooks.GetConn = func(string) { c.wanted.Store(true) }
	c.hooks.GotConn = func(httptrace.GotConnInfo) { c.had.Add(1) }
	return httptrace.WithClientTrace(ctx, &c.hooks)
}

// neverHad reports whether the request was never sent: a connection was asked for, and
// none was had in the whole attempt. It reports false if the HTTP client does not call
// the hooks of net/http/httptrace, since nothing is known then.
func (c *connection) neverHad() bool { return c.wanted.Load() && c.had.Load() == 0 }

// surelyNotApplied reports whether an attempt that failed with err certainly wrote
// nothing: the request was never sent, or DynamoDB refused it. A refusal counts only
// if there was at most one connection: it answers the last delivery, and an HTTP client
// that retries by itself may have delivered the request before.
func (c *connection) surelyNotApplied(err error) bool {
	return c.neverHad() || c.had.Load() <= 1 && surelyRefused(err)
}

// surelyRefused reports whether DynamoDB's own answer says that an attempt wrote
// nothing: it is a 4xx with an error code. Every other error is ambiguous: a cut
// connection, a timeout, a 5xx, an answer that can't be read. A failed dial is too,
// because an HTTP client that retries by itself may have delivered the request before:
// see connection.neverHad.
func surelyRefused(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	switch code := Code(err); {
	case !errors.As(err, &answer), code == "":
		return false
	case code == codeInProgress, code == codeOtherBytes: // an earlier attempt of this transaction may be in progress
		return false
	}
	status := answer.HTTPStatusCode()
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}
