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

// Fate says whether a call's request was applied. Its zero value is Unknown.
type Fate int

const (
	// Unknown means that DynamoDB may have applied the request, or may still apply it.
	Unknown Fate = iota
	// NotApplied means that DynamoDB has not applied the request in any attempt, and will not apply
	// it later.
	NotApplied
	// Applied means that DynamoDB has confirmed that the request was applied.
	Applied
)

// fate returns the Fate of a call that ended with err: whether its request was applied, was not
// applied, or may have been applied.
func (c *call) fate(err error) Fate {
	switch {
	case err == nil:
		return Applied
	case c.unknown:
		return Unknown
	}
	return NotApplied
}

// witness is the middleware that sets call.unknown, which is true if DynamoDB may have applied one
// of the call's attempts. It is the outermost middleware of the Deserialize step, so it runs once
// for each attempt and gets the decoded response or the error.
type witness struct{}

func (witness) ID() string { return "lambdaidem.Witness" }

func (witness) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	if err := ctx.Err(); err != nil { // nothing is sent now, so this attempt can't change call.unknown
		return middleware.DeserializeOutput{}, middleware.Metadata{}, &aws.RequestCanceledError{Err: err}
	}
	c := callOf(ctx)
	if c == nil {
		return next.HandleDeserialize(ctx, in)
	}
	if made := c.first; made != nil { // the direct transport has made this attempt already; HTTP.Do returns its outcome and sends nothing
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

// connection counts the connections over which an attempt may have been sent. The attempt's error
// does not show whether the attempt was sent: the SDK replaces the error when a context ends, and
// an HTTP client that retries by itself returns only the last of several errors.
type connection struct {
	wanted   atomic.Bool  // the HTTP client has asked for a connection
	obtained atomic.Int32 // the number of connections that it got
	hooks    httptrace.ClientTrace
}

// traced returns a copy of ctx with hooks of net/http/httptrace. The hooks count, in c, the
// connections of the HTTP request that is sent with this copy.
func (c *connection) traced(ctx context.Context) context.Context {
	c.hooks.GetConn = func(string) { c.wanted.Store(true) }
	c.hooks.GotConn = func(httptrace.GotConnInfo) { c.obtained.Add(1) }
	return httptrace.WithClientTrace(ctx, &c.hooks)
}

// neverSent reports whether the request was certainly not sent: the HTTP client asked for a
// connection and got none in the whole attempt. If the HTTP client does not call the hooks
// of net/http/httptrace, neverSent returns false.
func (c *connection) neverSent() bool { return c.wanted.Load() && c.obtained.Load() == 0 }

// surelyNotApplied reports whether an attempt that failed with err certainly wrote nothing, because
// it was never sent or because DynamoDB refused it. If the attempt used several connections, a
// refusal is no proof: the HTTP client may have sent the request several times, and DynamoDB
// refused only one.
func (c *connection) surelyNotApplied(err error) bool {
	return c.neverSent() || c.obtained.Load() <= 1 && surelyRefused(err)
}

// surelyRefused reports whether err is DynamoDB's refusal of a request: a 4xx response with an
// error code. After any other error, the request may have been applied. Even a failed dial proves
// nothing: an HTTP client that retries by itself may already have sent the request over another
// connection.
func surelyRefused(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	switch code := Code(err); {
	case !errors.As(err, &answer), code == "":
		return false
	case code == codeInProgress, code == codeOtherBytes: // an earlier attempt of this transaction may have committed, or may still commit
		return false
	}
	status := answer.HTTPStatusCode()
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}
