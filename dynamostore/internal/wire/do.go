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

// An Operation is an operation of DynamoDB's API, by the API's name.
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
	// Tables are the names or ARNs of the tables that Body names, in its order. A
	// request that is not a transaction has one. Endpoint rules may look at them.
	Tables []string
	// Body is the request in JSON. HTTP clients may read it after Do has returned, so
	// it must not be changed.
	Body []byte
	// Answer decodes what DynamoDB answers.
	Answer Answer

	altered []byte // the body as the user's middleware wants it, if it differs
}

// An Answer decodes the body of DynamoDB's answer to a request. The methods may be
// called once for each attempt. They may keep parts of body.
type Answer interface {
	// Success decodes the answer to a request that DynamoDB carried out. It reports
	// false for a body that is not such an answer, which is retried like a connection
	// that was cut.
	Success(body string) bool
	// Refusal decodes an error answer and reports whether it says that the condition of
	// the request does not hold. Do then returns [ErrRefused].
	Refusal(body string) bool
}

// ErrRefused is the error of a request whose condition does not hold. The error that
// Do returns may wrap the SDK's own as well.
var ErrRefused = errors.New("the condition does not hold")

// Do sends a request until DynamoDB has answered it, an error is not worth another
// attempt, or the attempts of Options are used up. It returns ErrRefused where the
// request's Answer says so, and otherwise the SDK's error of the last attempt.
//
// The fate covers all attempts of the call. Beside ErrRefused it is [Unknown] if an
// earlier attempt may have been applied.
func (c *Client) Do(ctx context.Context, r *Request) (Fate, error) {
	var made *Attempt
	if c.first != nil {
		if made = c.first.Attempt(ctx, r); made != nil {
			switch {
			case made.succeeded(r):
				// As the SDK does after a call that succeeded at its first attempt.
				_ = c.quota.AddTokens(retry.DefaultNoRetryIncrement) // never fails
				return Applied, nil
			case made.refused(r):
				return NotApplied, ErrRefused
			}
		}
	}
	call := &call{Context: ctx, request: r, first: made}
	if made != nil {
		// Until the SDK's client has seen the outcome, which it does not if the
		// caller's time is over.
		call.unknown = !made.conn.neverHad()
	}
	err := call.send(c.sdk)
	return call.fate(err), call.refusal(err)
}

// Watch watches the attempts of a call of the SDK's typed client. send makes one call with
// the context that it is given, by the client that Client.SDK returns or by one with the
// same options.
func Watch(ctx context.Context, send func(context.Context) error) (Fate, error) {
	call := &call{Context: ctx}
	err := send(call)
	return call.fate(err), call.identified(err)
}

// call is what the attempts of one call through the SDK's client share. The SDK offers
// no other way to reach its middleware from outside than the context, so call is the
// context of the SDK's call.
type call struct {
	context.Context //nolint:containedctx // see above

	request *Request // nil: the call is a typed one
	first   *Attempt // the first attempt, if the SDK's client need not make it
	body    string   // of the last error answer

	unknown    bool // an attempt may have been applied
	noIdentity bool // the last attempt failed to get credentials
}

type callKey struct{}

// Value lets callOf find the call.
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

// outsideCalls keeps a request for DynamoDB's endpoints out of the call that it is made
// for. With endpoint discovery, the SDK makes one in a goroutine of its own, with the
// context of the call.
func outsideCalls(stack *middleware.Stack) error {
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

// send makes the call.
func (c *call) send(sdk *dynamodb.Client) error {
	in, err := c.request.input()
	if err != nil {
		return err
	}
	return in.send(c, sdk)
}

// refusal returns the error of a call that ended with err.
func (c *call) refusal(err error) error {
	switch Code(err) {
	case "ConditionalCheckFailedException", "TransactionCanceledException":
		if c.request.Answer.Refusal(c.body) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return c.identified(err)
}

// succeeded reports whether the attempt got an answer that says that the request was
// carried out.
func (a *Attempt) succeeded(r *Request) bool {
	return a.whole() && a.Status == http.StatusOK && r.Answer.Success(a.Body)
}

// refused reports whether the attempt got an answer that says that the condition does
// not hold. An answer that names its error in a header field is left to the SDK.
func (a *Attempt) refused(r *Request) bool {
	return a.whole() && a.Status == http.StatusBadRequest && first(a.Header, "X-Amzn-Errortype") == "" && r.Answer.Refusal(a.Body)
}
