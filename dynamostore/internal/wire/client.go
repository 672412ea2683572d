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
	Attempts       int           // of a call
	AttemptTimeout time.Duration // of one attempt
	BackoffBase    time.Duration // upper bound of the wait after the first attempt
	BackoffMax     time.Duration // upper bound of any wait
	Random         func() float64
}

// Client sends requests to DynamoDB. It is safe for concurrent use.
type Client struct {
	opts  Options
	sdk   *dynamodb.Client
	http  *HTTP
	quota retry.RateLimiter
	first First // nil: the SDK's client makes first attempts too
}

// New returns a client that takes everything from the SDK's client it is given, except
// attempts, backoff, the time of an attempt and the retry quota.
func New(client *dynamodb.Client, o Options) *Client {
	users := client.Options()
	c := &Client{
		opts:  o,
		http:  newHTTP(&users), // over the user's: dynamodb.New would make a pool of connections of its own
		quota: ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens),
	}
	c.sdk = dynamodb.New(users, func(own *dynamodb.Options) {
		own.HTTPClient = c.http
		own.Protocol = protocol{own.Protocol}
		own.Retryer = o.retryer(c.quota)
		own.RetryMaxAttempts = 0 // the retryer has it
		own.EndpointResolverV2 = remembering(users.EndpointResolverV2)
		own.APIOptions = append(own.APIOptions, func(stack *middleware.Stack) error {
			if err := errors.Join(wants(stack, sdksRetry), wants(stack, sdksIdentity)); err != nil {
				return err
			}
			return errors.Join(
				stack.Finalize.Insert(attemptLimit(o.AttemptTimeout), sdksRetry, middleware.After),
				stack.Finalize.Insert(identityWanted{}, sdksIdentity, middleware.Before),
				stack.Finalize.Insert(identityHad{}, sdksIdentity, middleware.After),
				stack.Deserialize.Add(witness{}, middleware.Before),
				outsideCalls(stack),
			)
		})
	})
	return c
}

// SDK returns the SDK's client that carries requests, with the settings of c.
func (c *Client) SDK() *dynamodb.Client { return c.sdk }

// WithOwnQuota returns a client like that of SDK whose retries do not use up the quota of
// c's requests.
func (c *Client) WithOwnQuota() *dynamodb.Client {
	return dynamodb.New(c.sdk.Options(), func(own *dynamodb.Options) {
		own.HTTPClient = c.http // dynamodb.New would make a pool of connections of its own
		own.Retryer = c.opts.retryer(ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens))
	})
}

// HTTP returns the HTTP client of all requests.
func (c *Client) HTTP() *HTTP { return c.http }

// AttemptTimeout returns the time that one attempt has.
func (c *Client) AttemptTimeout() time.Duration { return c.opts.AttemptTimeout }

// Middleware of the SDK that this package inserts its own before or after.
const (
	sdksRetry    = "Retry"
	sdksIdentity = "GetIdentity"
)

// wants returns an error if the SDK's middleware of that name is gone.
func wants(stack *middleware.Stack, id string) error {
	if _, ok := stack.Finalize.Get(id); ok {
		return nil
	}
	return fmt.Errorf("one of the APIOptions of the dynamodb.Client took the SDK's %q from its middleware, and the store needs it; "+
		"give dynamostore.New a client that has it", id)
}

// retryer returns the SDK's standard retryer with the attempts and waits of Options.
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

// retryable says where this package differs from the SDK's own rules.
func retryable(err error) aws.Ternary {
	// Most errors are refusals by a condition. The SDK's rules come to the same, more
	// slowly.
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return aws.FalseTernary
	}
	if IsConflict(Code(err)) {
		return aws.FalseTernary
	}
	// An answer that was cut leaves the fate of the attempt unknown. Every write is
	// conditional on its token, so another attempt can only settle it.
	if garbled := (*smithy.DeserializationError)(nil); errors.As(err, &garbled) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// backoff returns the wait after an attempt. The first attempt is 1.
func (o *Options) backoff(attempt int) time.Duration {
	bound := o.BackoffBase
	for range attempt - 1 {
		bound = min(2*bound, o.BackoffMax)
	}
	return time.Duration(o.Random() * float64(bound))
}

// attemptLimit ends each attempt after its time. The SDK's retry loop takes a
// context's own error for the caller's, so the limit has an error of its own.
type attemptLimit time.Duration

func (attemptLimit) ID() string { return "lambdaidem.AttemptLimit" }

func (l attemptLimit) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	late := false // the first attempt's, if it was made already
	if c := callOf(ctx); c != nil && c.first != nil {
		late = c.first.Late
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(l))
	defer cancel()
	out, meta, err := next.HandleFinalize(limited, in)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && (late || limited.Err() != nil) && ctx.Err() == nil {
		err = attemptTimedOut(l)
	}
	return out, meta, err
}

// attemptTimedOut is retryable, and a timeout to the SDK and to reasonOf.
type attemptTimedOut time.Duration

func (e attemptTimedOut) Error() string {
	return fmt.Sprintf("no answer from DynamoDB within the %v of Options.AttemptTimeout", time.Duration(e))
}
func (attemptTimedOut) RetryableError() bool { return true }
func (attemptTimedOut) Timeout() bool        { return true }
func (attemptTimedOut) Temporary() bool      { return true }

// remembering returns a resolver that runs the SDK's endpoint rules once for
// equal parameters: they are a pure function of them, account and table
// included. A resolver of the user's own is left alone.
func remembering(r dynamodb.EndpointResolverV2) dynamodb.EndpointResolverV2 {
	if reflect.TypeOf(r) != reflect.TypeOf(dynamodb.NewDefaultEndpointResolverV2()) {
		return r
	}
	return &rememberingResolver{rules: r}
}

// RunsSDKRules reports whether the endpoint resolver of a Client's SDK client runs the
// SDK's own rules, whose result depends on their parameters alone.
func RunsSDKRules(r dynamodb.EndpointResolverV2) bool {
	_, ok := r.(*rememberingResolver)
	return ok
}

type rememberingResolver struct {
	rules dynamodb.EndpointResolverV2
	last  atomic.Pointer[resolvedEndpoint]
}

type resolvedEndpoint struct {
	params   dynamodb.EndpointParameters
	endpoint smithyendpoints.Endpoint
}

func (r *rememberingResolver) ResolveEndpoint(ctx context.Context, params dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
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
