package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// An Operation is the name of an operation of DynamoDB's API.
type Operation string

// The operations that Do sends.
const (
	PutItem            Operation = "PutItem"
	UpdateItem         Operation = "UpdateItem"
	GetItem            Operation = "GetItem"
	TransactWriteItems Operation = "TransactWriteItems"
)

// A Request is one request to DynamoDB. It may be sent several times.
type Request struct {
	Operation Operation
	// Tables has the names or ARNs of the tables in Body, in the same order. A transaction can
	// have several tables, any other request has one. The SDK's endpoint rules can depend on
	// them.
	Tables []string
	// Body is the request in JSON. It must not be changed after Do was called, because
	// HTTP clients may read it even after Do has returned.
	Body []byte
	// Answer decodes DynamoDB's response.
	Answer Answer
	// MayRetry is called before each attempt but the first. If it returns an error, Do makes
	// no further attempt and returns that error. A nil MayRetry allows every retry.
	MayRetry func() error

	altered []byte // the body to send instead of Body if the user's middleware has changed the request; otherwise nil
}

// An Answer receives DynamoDB's response to a request. Its methods decode the body of the response.
// They may be called once for each attempt, and may retain parts of body.
type Answer interface {
	// Success decodes the response to a successful request. It returns false if body is
	// not such a response. The request is then retried, as if the connection had been
	// closed before the end of the response.
	Success(body string) bool
	// Refusal decodes an error response. It reports whether the request failed because its
	// condition does not hold. If so, Do returns [ErrRefused].
	Refusal(body string) bool
}

// ErrRefused is the error of a request whose condition failed. The error that Do returns
// may wrap the SDK's error too.
var ErrRefused = errors.New("the condition does not hold")

// Do sends a request, and sends it again after an error that is worth a retry: at most
// Options.Attempts times in total. It returns nil if the request succeeded, [ErrRefused] if its
// condition failed, and otherwise the SDK's error of the last attempt.
//
// The Fate says whether any attempt was applied. It can be [Unknown] even with ErrRefused: the
// condition of the last attempt may have failed because an earlier attempt, whose reply was lost,
// was applied.
func (c *Client) Do(ctx context.Context, r *Request) (Fate, error) {
	var made *Attempt
	if c.direct != nil {
		if made = c.direct.Attempt(ctx, r); made != nil {
			switch {
			case made.succeeded(r):
				// Add to the retry quota, as the SDK does after a call that succeeded
				// at its first attempt.
				_ = c.quota.AddTokens(retry.DefaultNoRetryIncrement) // never fails
				return Applied, nil
			case made.refused(r):
				return NotApplied, ErrRefused
			}
		}
	}
	call := &call{Context: ctx, request: r, first: made}
	if made != nil {
		// If the attempt was sent, assume for now that it may have been applied. The middleware
		// witness corrects call.unknown when it gets the outcome of the attempt. If ctx has ended,
		// witness does not do so, and the assumption stays.
		call.unknown = !made.conn.neverSent()
	}
	err := call.send(c.sdk)
	return call.fate(err), call.refusal(err)
}

// Watch runs the function send, which makes one call of the SDK's typed client. Watch returns the
// error of that call, and a Fate that says whether DynamoDB has applied the request.
//
// send must use the client that [Client.SDK] returns, or a client with the same options. It must
// pass its context to the client, because the middleware of this package finds the state of the
// call in the context.
func Watch(ctx context.Context, send func(context.Context) error) (Fate, error) {
	call := &call{Context: ctx}
	err := send(call)
	return call.fate(err), call.identified(err)
}

// call is the state that all attempts of one call of Client.Do or Watch share. It implements
// context.Context, because the context is the only value that the SDK passes from the caller to the
// middleware.
type call struct {
	context.Context //nolint:containedctx // see above

	request *Request // the request that Do sends; nil for a call of Watch
	first   *Attempt // the first attempt if the direct transport made it; set to nil when HTTP.Do gives its outcome to the SDK
	body    string   // the body of the last error response

	attempts   int  // the number of attempts so far
	unknown    bool // an attempt may have been applied
	noIdentity bool // the last attempt failed to get credentials
}

type callKey struct{}

// Value implements context.Context. It returns the call itself for callKey.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call whose context ctx is derived from, or nil.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// hideCallFromDiscovery adds a middleware that removes the call from the context of a
// DescribeEndpoints request. With endpoint discovery, the SDK sends such a request in another
// goroutine, with the context of the call that needs the endpoint. Without the middleware, the
// request would count as an attempt of that call.
func hideCallFromDiscovery(stack *middleware.Stack) error {
	if stack.ID() != "DescribeEndpoints" {
		return nil
	}
	//nolint:wrapcheck // New joins it with others
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("lambdaidem.OutsideCalls", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error,
	) {
		return next.HandleInitialize(context.WithValue(ctx, callKey{}, nil), in)
	}), middleware.Before)
}

// send sends the request through the SDK's client, with all its retries.
func (c *call) send(sdk *dynamodb.Client) error {
	in, err := c.request.input()
	if err != nil {
		return err
	}
	return in.send(c, sdk)
}

// refusal returns the error that Do returns for err, the error of the SDK's client. If the
// request's condition failed, the result wraps both ErrRefused and err. Otherwise the result is
// err, or an IdentityError that wraps err if the last attempt got no credentials.
func (c *call) refusal(err error) error {
	switch Code(err) {
	case "ConditionalCheckFailedException", "TransactionCanceledException":
		if c.request.Answer.Refusal(c.body) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return c.identified(err)
}

// succeeded reports whether the response is complete and says that the request succeeded.
func (a *Attempt) succeeded(r *Request) bool {
	return a.whole() && a.Status == http.StatusOK && r.Answer.Success(a.Body)
}

// refused reports whether the response is complete and says that the request's condition failed. If
// the header has an error code, refused returns false, and the SDK's client decodes the response.
// For the SDK, a code in the header overrides the code in the body, but Answer.Refusal reads only
// the body.
func (a *Attempt) refused(r *Request) bool {
	return a.whole() && a.Status == http.StatusBadRequest && first(a.Header, "X-Amzn-Errortype") == "" && r.Answer.Refusal(a.Body)
}
