package wire

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
)

// Options are the settings of a Client.
type Options struct {
	Attempts       int            // the maximum number of attempts of a call, including the first
	AttemptTimeout time.Duration  // the timeout of one attempt
	BackoffBase    time.Duration  // the maximum wait after the first attempt; doubled for each further one
	BackoffMax     time.Duration  // the maximum of any wait
	Random         func() float64 // returns a number of at least 0 and below 1, to choose a random wait up to the maximum
}

// Client sends requests to DynamoDB. It is safe for concurrent use.
type Client struct {
	opts  Options
	sdk   *dynamodb.Client
	http  *HTTP
	quota retry.RateLimiter
	first First // makes the first attempt of each request; nil if the SDK's client makes all attempts
}

// New returns a Client with the settings of client, which it leaves unchanged. But the number of
// attempts, the timeout of an attempt and the backoff are those of o, and the Client has a retry
// quota of its own.
func New(client *dynamodb.Client, o Options) *Client {
	users := client.Options()
	c := &Client{
		opts:  o,
		http:  newHTTP(&users), // sends through the user's HTTP client, to share its pool of connections
		quota: ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens),
	}
	c.sdk = dynamodb.New(users, func(own *dynamodb.Options) {
		own.HTTPClient = c.http
		own.Protocol = protocol{own.Protocol}
		own.Retryer = o.retryer(c.quota)
		own.RetryMaxAttempts = 0 // the retryer limits the attempts
		own.EndpointResolverV2 = cacheEndpoint(users.EndpointResolverV2)
		own.APIOptions = append(own.APIOptions, func(stack *middleware.Stack) error {
			if err := errors.Join(requireMiddleware(stack, sdksRetry), requireMiddleware(stack, sdksIdentity)); err != nil {
				return err
			}
			return errors.Join(
				stack.Finalize.Insert(attemptLimit(o.AttemptTimeout), sdksRetry, middleware.After),
				stack.Finalize.Insert(beforeIdentity{}, sdksIdentity, middleware.Before),
				stack.Finalize.Insert(afterIdentity{}, sdksIdentity, middleware.After),
				stack.Deserialize.Add(witness{}, middleware.Before),
				hideCallFromDiscovery(stack),
			)
		})
	})
	return c
}

// SDK returns the SDK's client with which c sends requests.
func (c *Client) SDK() *dynamodb.Client { return c.sdk }

// WithOwnQuota returns an SDK client like the one that [Client.SDK] returns, but with a retry
// quota of its own, so that its retries don't use up the quota of c.
func (c *Client) WithOwnQuota() *dynamodb.Client {
	return dynamodb.New(c.sdk.Options(), func(own *dynamodb.Options) {
		own.HTTPClient = c.http // otherwise dynamodb.New would create another pool of connections
		own.Retryer = c.opts.retryer(ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens))
	})
}

// HTTP returns the HTTP client that sends all requests.
func (c *Client) HTTP() *HTTP { return c.http }

// AttemptTimeout returns the timeout of one attempt.
func (c *Client) AttemptTimeout() time.Duration { return c.opts.AttemptTimeout }

// The ids of the SDK's middleware before or after which this package inserts its own.
const (
	sdksRetry    = "Retry"
	sdksIdentity = "GetIdentity"
)

// requireMiddleware returns an error if the stack lacks the SDK's middleware with this id,
// because an APIOption of the user's client has removed it.
func requireMiddleware(stack *middleware.Stack, id string) error {
	if _, ok := stack.Finalize.Get(id); ok {
		return nil
	}
	return fmt.Errorf("one of the APIOptions of the dynamodb.Client took the SDK's %q from its middleware, and the store needs it; "+
		"give dynamostore.New a client that has it", id)
}

// retryer returns the SDK's standard retryer with the attempts and the backoff of o.
func (o *Options) retryer(quota retry.RateLimiter) aws.Retryer {
	return retry.NewStandard(func(so *retry.StandardOptions) {
		so.RateLimiter = quota
		so.MaxAttempts = o.Attempts
		so.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return o.backoff(attempt), nil
		})
		so.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(retryable)}, so.Retryables...)
	})
}

// retryable reports whether an error is worth another attempt. For errors about which this
// package has no rule, it returns aws.UnknownTernary, and the SDK's rules decide.
func retryable(err error) aws.Ternary {
	// Most errors are failed conditions, so check for them first. The SDK's rules would
	// not retry them either, but take longer to find out.
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return aws.FalseTernary
	}
	if IsConflict(Code(err)) {
		return aws.FalseTernary
	}
	// If a response was incomplete or damaged, it is unknown whether the attempt was
	// applied. Another attempt can find out, and does no harm: each request is conditional,
	// or has the same effect if it is applied twice.
	if garbled := (*smithy.DeserializationError)(nil); errors.As(err, &garbled) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// backoff returns the random time to wait after an attempt. The first attempt has the
// number 1.
func (o *Options) backoff(attempt int) time.Duration {
	bound := o.BackoffBase
	for range attempt - 1 {
		bound = min(2*bound, o.BackoffMax)
	}
	return time.Duration(o.Random() * float64(bound))
}

// attemptLimit is a middleware that limits the duration of each attempt. If an attempt
// times out, attemptLimit replaces context.DeadlineExceeded by attemptTimedOut. The SDK's
// retry loop would take context.DeadlineExceeded for the end of the caller's context, and
// would not retry.
type attemptLimit time.Duration

func (attemptLimit) ID() string { return "lambdaidem.AttemptLimit" }

func (l attemptLimit) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	c := callOf(ctx)
	if err := mayRetry(c); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	// A First may have made this attempt already, without the SDK, and it may have timed out.
	late := c != nil && c.first != nil && c.first.Late
	limited, cancel := context.WithTimeout(ctx, time.Duration(l))
	defer cancel()
	out, meta, err := next.HandleFinalize(limited, in)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && (late || limited.Err() != nil) && ctx.Err() == nil {
		err = attemptTimedOut(l)
	}
	return out, meta, err
}

// mayRetry counts the attempts of the call, and returns an error if the next attempt must not be
// made. The middleware attemptLimit calls mayRetry before each attempt. For every attempt except
// the first, mayRetry calls Request.MayRetry and returns its error.
//
// A [First] may have made the first attempt without the SDK. The SDK's client then receives the
// outcome as that of its own first attempt, so mayRetry counts that attempt too.
func mayRetry(c *call) error {
	if c == nil {
		return nil
	}
	c.attempts++
	if c.attempts == 1 || c.request == nil || c.request.MayRetry == nil {
		return nil
	}
	return c.request.MayRetry()
}

// attemptTimedOut is the error of an attempt that took longer than Options.AttemptTimeout.
// Its methods tell the SDK that it is retryable, and callers that it is a timeout.
type attemptTimedOut time.Duration

func (e attemptTimedOut) Error() string {
	return fmt.Sprintf("no answer from DynamoDB within the %v of Options.AttemptTimeout", time.Duration(e))
}
func (attemptTimedOut) RetryableError() bool { return true }
func (attemptTimedOut) Timeout() bool        { return true }
func (attemptTimedOut) Temporary() bool      { return true }

// cacheEndpoint returns an endpoint resolver that caches the last result of r, if r runs the
// SDK's own endpoint rules. Their result depends only on the parameters, which include the
// account and the table. Any other resolver is returned unchanged.
func cacheEndpoint(r dynamodb.EndpointResolverV2) dynamodb.EndpointResolverV2 {
	if reflect.TypeOf(r) != reflect.TypeOf(dynamodb.NewDefaultEndpointResolverV2()) {
		return r
	}
	return &cachingResolver{rules: r}
}

// RunsSDKRules reports whether r runs the SDK's own endpoint rules. The result of such a
// resolver depends only on the parameters, so it can be cached.
//
// r must be the EndpointResolverV2 of the client that [Client.SDK] returns. That client wraps
// the SDK's rules in a cachingResolver, and RunsSDKRules looks for this type.
func RunsSDKRules(r dynamodb.EndpointResolverV2) bool {
	_, ok := r.(*cachingResolver)
	return ok
}

type cachingResolver struct {
	rules dynamodb.EndpointResolverV2
	last  atomic.Pointer[resolvedEndpoint] // the most recent result; nil at first
}

type resolvedEndpoint struct {
	params   dynamodb.EndpointParameters
	endpoint smithyendpoints.Endpoint
}

func (r *cachingResolver) ResolveEndpoint(ctx context.Context, params dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	if last := r.last.Load(); last != nil && sameParameters(&last.params, &params) {
		return last.endpoint, nil
	}
	endpoint, err := r.rules.ResolveEndpoint(ctx, params)
	if err == nil {
		r.last.Store(&resolvedEndpoint{params, endpoint})
	}
	return endpoint, err
}

func sameParameters(a, b *dynamodb.EndpointParameters) bool {
	return same(a.Region, b.Region) && same(a.UseDualStack, b.UseDualStack) && same(a.UseFIPS, b.UseFIPS) &&
		same(a.Endpoint, b.Endpoint) && same(a.AccountId, b.AccountId) && same(a.AccountIdEndpointMode, b.AccountIdEndpointMode) &&
		same(a.ResourceArn, b.ResourceArn) && slices.Equal(a.ResourceArnList, b.ResourceArnList) &&
		same(a.IsSearchOperation, b.IsSearchOperation)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
