package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Headers that a demonstration may send. They are not part of the fingerprint, and
// mean something only where DEMO=1 is set: see functions/payments/demo.go.
const (
	// crashHeader names the point at which the first attempt at a request kills its
	// own process, by SIGKILL.
	crashHeader = "x-demo-crash"
	// policyHeader is hold where the request is to be under that policy.
	policyHeader = "x-demo-policy"
)

// point is a place in the handler.
type point string

// The places where a crash hurts most: after an effect, before anything knows of
// it.
const (
	reserved point = "reserved" // the money is, and the clearing house has not heard of it
	cleared  point = "cleared"  // it has, and nothing says so here
	ending   point = "ending"   // all is enlisted, nothing is committed
)

// crash kills the process if a client asked for it.
func crash(ctx context.Context, e events.APIGatewayV2HTTPRequest, at point) {
	if e.Headers[crashHeader] != string(at) || lambdaidem.Attempt(ctx) != 1 {
		return
	}
	demo.Die()
}

// demonstrated lets a client ask for policy Hold, to show what becomes of a crash where
// nobody may take over. A function that wants this always has it in its guard's options.
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
