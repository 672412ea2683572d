package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Headers that a demonstration may send. The fingerprint does not cover them. They have an
// effect only if the environment variable DEMO is 1, which template.yaml does not set.
const (
	// crashHeader names the point at which the first attempt kills its own process with
	// SIGKILL.
	crashHeader = "x-demo-crash"
	// policyHeader selects policy Hold for the request if its value is "hold".
	policyHeader = "x-demo-policy"
)

// point is a point in the handler at which a demonstration can crash it.
type point string

// The points where a crash does the most harm: after an effect, and before the effect is
// recorded.
const (
	reserved point = "reserved" // the money is reserved, and the clearing house was not called
	cleared  point = "cleared"  // the clearing house has answered, and the step is not stored
	ending   point = "ending"   // all writes are enlisted, and none is committed
)

// crash kills the process if the request asks for a crash at this point and this is the first
// attempt.
func crash(ctx context.Context, e events.APIGatewayV2HTTPRequest, at point) {
	if e.Headers[crashHeader] != string(at) || lambdaidem.Attempt(ctx) != 1 {
		return
	}
	demo.Die()
}

// demonstrated returns a handler that runs under policy Hold if a header asks for it, to show
// what happens after a crash if no retry may take over. A real function sets the policy in its
// guard's options instead.
func demonstrated(guard *lambdaidem.Guard, create handlerV2) handlerV2 {
	rerun := guard.APIGatewayV2(create)
	hold := guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }).APIGatewayV2(create)
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if e.Headers[policyHeader] == "hold" {
			return hold(ctx, e)
		}
		return rerun(ctx, e)
	}
}
