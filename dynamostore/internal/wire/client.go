package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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
	opts   Options
	sdk    *dynamodb.Client
	http   *HTTP
	quota  retry.RateLimiter
	direct DirectTransport // makes the first attempt of each request; nil if the SDK's client makes all attempts
}

// New returns a Client that sends requests with the settings of client. It replaces three settings
// with those of o: the number of attempts, the timeout of an attempt, and the backoff. The Client
// has its own retry quota. New does not change client.
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

// SDK returns the SDK's client that c uses to send requests.
func (c *Client) SDK() *dynamodb.Client { return c.sdk }

// WithOwnQuota returns an SDK client with the settings of [Client.SDK] and its own retry quota.
// The retries of that client don't use up the quota of c.
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

// The ids of two middlewares of the SDK. This package inserts its own middleware before or after
// them.
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

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
