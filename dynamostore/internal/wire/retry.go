package wire

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

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
	// After an incomplete or damaged response, another attempt finds out whether this one was
	// applied. It does no harm: each request is conditional or idempotent.
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

// mayRetry is called before each attempt of a call and counts the attempts. It returns nil for the
// first attempt, and the result of Request.MayRetry for each further one. An attempt by a
// [DirectTransport] counts as the first.
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
