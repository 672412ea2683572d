package dynamostore

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

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// tuned derives the store's own client: the user's in all but attempts, backoff
// and the time of an attempt, and judged for X8.
// Its retry quota comes along.
func tuned(client *dynamodb.Client, o *Options) (*dynamodb.Client, retry.RateLimiter) {
	users := client.Options()
	quota := ratelimit.NewTokenRateLimit(retry.DefaultRetryRateTokens)
	own := dynamodb.New(users, func(own *dynamodb.Options) {
		own.HTTPClient = newLine(&users) // over the user's: New would give it a pool of connections of its own
		own.Retryer = retryer(o, quota)
		own.RetryMaxAttempts = 0 // the retryer knows
		own.EndpointResolverV2 = remembering(users.EndpointResolverV2)
		own.APIOptions = append(own.APIOptions, func(stack *middleware.Stack) error {
			if err := errors.Join(wants(stack, sdksRetry), wants(stack, sdksIdentity)); err != nil {
				return err
			}
			return errors.Join(
				stack.Serialize.Add(keptBodies{}, middleware.After),
				stack.Finalize.Insert(attemptLimit(o.AttemptTimeout), sdksRetry, middleware.After),
				stack.Finalize.Insert(identityWanted{}, sdksIdentity, middleware.Before),
				stack.Finalize.Insert(identityHad{}, sdksIdentity, middleware.After),
				stack.Deserialize.Add(witness{}, middleware.Before),
			)
		})
	})
	return own, quota
}

// The SDK's middleware beside which ours stands.
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

// retryer is the SDK's standard one with our attempts and jitter.
func retryer(o *Options, quota retry.RateLimiter) aws.Retryer {
	return retry.NewStandard(func(so *retry.StandardOptions) {
		so.RateLimiter = quota
		so.MaxAttempts = o.Attempts
		so.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return backoff(o, attempt), nil
		})
		so.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(retryable)}, so.Retryables...)
	})
}

// retryable says where we differ from the SDK's own rules.
func retryable(err error) aws.Ternary {
	// A refusal is what most calls end with that end in an error, and the SDK
	// asks a dozen questions before it knows.
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return aws.FalseTernary
	}
	// X9: a conflict has a retry of its own, by the guard.
	if reasonByCode[codeOf(err)] == lambdaidem.ReasonConflict {
		return aws.FalseTernary
	}
	// An answer cut short leaves the call unknown; every write here is
	// conditional on its token, so asking again can only settle it (L4).
	if garbled := (*smithy.DeserializationError)(nil); errors.As(err, &garbled) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// backoff is the wait after the given attempt, counted from 1.
func backoff(o *Options, attempt int) time.Duration {
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
	late := false // in the first attempt, which was made already
	if v := verdictOf(ctx); v != nil && v.first != nil {
		late = v.first.late
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
