package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// verdict is what one call learns on the wire over all its attempts (X8): the
// SDK itself reports the last error alone.
type verdict struct {
	context.Context // the caller's; the verdict itself is the call's

	op           string // the store's verb, for StoreError.Op
	unidentified bool   // credentials were asked for, and not had
	ambiguous    bool   // an attempt was sent, and no answer says that it was refused

	bytes *sameBody // what the SDK's client is to send; nil: what it writes itself
	first *attempt  // what it is to take for its first attempt; nil: it makes it
}

type verdictKey struct{}

// witnessed returns a context whose SDK call goes into the verdict.
func witnessed(ctx context.Context, op string) (context.Context, *verdict) {
	v := &verdict{Context: ctx, op: op}
	return v, v
}

// Value lets verdictOf find it.
func (v *verdict) Value(key any) any {
	if key == (verdictKey{}) {
		return v
	}
	return v.Context.Value(key)
}

func verdictOf(ctx context.Context) *verdict {
	v, _ := ctx.Value(verdictKey{}).(*verdict)
	return v
}

// storeError is what the guard gets to hear when err is all that came back.
func (v *verdict) storeError(err error) error { return v.failure(err) }

func (v *verdict) failure(err error) *lambdaidem.StoreError {
	reason := reasonOf(err)
	if reason == lambdaidem.ReasonUnknown && v.unidentified {
		reason = lambdaidem.ReasonPermission
	}
	throttle, err := throttling(err)
	return &lambdaidem.StoreError{Op: v.op, Reason: reason, Throttle: throttle, NotApplied: !v.ambiguous, Err: err}
}

// witness is the outermost middleware of the Deserialize step, so that it sees
// each attempt once, as the answer was understood.
type witness struct{}

func (witness) ID() string { return "lambdaidem.Witness" }

func (witness) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	if err := ctx.Err(); err != nil { // nothing was sent, and nothing will be
		return middleware.DeserializeOutput{}, middleware.Metadata{}, &aws.RequestCanceledError{Err: err}
	}
	v := verdictOf(ctx)
	if v == nil {
		return next.HandleDeserialize(ctx, in)
	}
	if first := v.first; first != nil {
		out, meta, err := next.HandleDeserialize(ctx, in)
		v.ambiguous = first.before || err != nil && !first.conn.surelyNotApplied(err)
		return out, meta, err
	}
	var conn connection
	out, meta, err := next.HandleDeserialize(conn.traced(ctx), in)
	if err != nil && !conn.surelyNotApplied(err) {
		v.ambiguous = true
	}
	return out, meta, err
}

// identityWanted and identityHad stand around the SDK's middleware that gets an
// attempt its credentials: how that fails has no error type of its own.
type (
	identityWanted struct{}
	identityHad    struct{}
)

func (identityWanted) ID() string { return "lambdaidem.IdentityWanted" }
func (identityHad) ID() string    { return "lambdaidem.IdentityHad" }

func (identityWanted) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if v := verdictOf(ctx); v != nil {
		v.unidentified = true
	}
	return next.HandleFinalize(ctx, in)
}

func (identityHad) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	if v := verdictOf(ctx); v != nil {
		v.unidentified = false
	}
	return next.HandleFinalize(ctx, in)
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
	switch code := codeOf(err); {
	case !errors.As(err, &answer), code == "":
		return false
	case code == codeInProgress, code == codeOtherBytes: // an earlier one of this transaction may be happening
		return false
	}
	status := answer.HTTPStatusCode()
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError
}

// codeOf is the error code in DynamoDB's answer; "" without one.
func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == unknownCode {
		return ""
	}
	return api.ErrorCode()
}

// unknownCode is what the SDK calls an error answer that names no error.
const unknownCode = "UnknownError"
