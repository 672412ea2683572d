package dynamostore

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/sigv4"
)

// direct is the transport that goes past the SDK's middleware. It makes the first
// attempt of a call itself. If that ends in success, or in a refusal by the
// condition, the call is over. Anything else it hands over to the SDK's client,
// which takes it for the outcome of its own first attempt, and goes on: there is
// one retry loop, one retry quota, one reading of errors.
type direct struct {
	sdk     *dynamodb.Client
	line    *line
	options dynamodb.Options  // of the SDK's client
	timeout time.Duration     // of an attempt
	quota   retry.RateLimiter // of the SDK's client

	rehearsal sync.Once
	head      head // of every request
	// It signs requests itself: the same signatures as the SDK's signer makes, in less time.
	signsItself bool
	signer      sigv4.Signer
	unfit       error // why the SDK serves all the same

	single, several remembered // endpoints, by the kind of request
	trace           traces
}

func newDirect(sdk *dynamodb.Client, timeout time.Duration, quota retry.RateLimiter) *direct {
	d := &direct{sdk: sdk, options: sdk.Options(), timeout: timeout, quota: quota}
	d.line, _ = d.options.HTTPClient.(*line)
	return d
}

// ready returns why the transport can't be used.
func (d *direct) ready() error {
	d.rehearsal.Do(func() {
		d.unfit = errors.New("the rehearsal of its requests did not end") // a panic of the user's code, say
		d.unfit = d.rehearse()
	})
	return d.unfit
}

// send makes the first attempt itself.
func (d *direct) send(ctx context.Context, r request) (found, error) {
	v := verdictOf(ctx)
	if v == nil || d.ready() != nil {
		return r.through(ctx, d.sdk)
	}
	a := &attempt{bytes: v.bytes}
	if a.write(r) && d.attempt(ctx, v, r, a) {
		switch a.status {
		case http.StatusOK:
			if what, ok := r.read(a.body); ok {
				// As the SDK does for a call that succeeded at its first attempt.
				// Refusals earn nothing there, nor here.
				_ = d.quota.AddTokens(retry.DefaultNoRetryIncrement) // no error
				return what, nil
			}
		case http.StatusBadRequest:
			if first(a.header, "X-Amzn-Errortype") != "" {
				break // an error that says what it is in another way
			}
			if refused, err := r.refused(a.body); refused {
				return found{}, err
			}
		}
	}
	v.take(a)
	defer v.drop()
	return r.through(ctx, d.sdk)
}
