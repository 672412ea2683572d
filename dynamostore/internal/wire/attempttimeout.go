package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go/middleware"
)

// attemptLimit is a middleware that limits the duration of each attempt. If an attempt times out,
// attemptLimit replaces context.DeadlineExceeded with attemptTimedOut. The SDK's retry loop would
// take context.DeadlineExceeded for the end of the caller's context, and would not retry.
type attemptLimit time.Duration

func (attemptLimit) ID() string { return "lambdaidem.AttemptLimit" }

func (l attemptLimit) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	c := callOf(ctx)
	if err := mayRetry(c); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	// late reports whether the direct transport made this attempt, before the SDK's client was
	// called, and the attempt timed out.
	late := c != nil && c.first != nil && c.first.Late
	limited, cancel := context.WithTimeout(ctx, time.Duration(l))
	defer cancel()
	out, meta, err := next.HandleFinalize(limited, in)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && (late || limited.Err() != nil) && ctx.Err() == nil {
		err = attemptTimedOut(l)
	}
	return out, meta, err
}

// attemptTimedOut is the error of an attempt that took longer than Options.AttemptTimeout. Its
// method RetryableError tells the SDK to retry the attempt. Its method Timeout tells callers that
// the attempt timed out.
type attemptTimedOut time.Duration

func (e attemptTimedOut) Error() string {
	return fmt.Sprintf("no answer from DynamoDB within the %v of Options.AttemptTimeout", time.Duration(e))
}
func (attemptTimedOut) RetryableError() bool { return true }
func (attemptTimedOut) Timeout() bool        { return true }
func (attemptTimedOut) Temporary() bool      { return true }
