package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/functions/internal/demo"
	"github.com/lambdaidem/toolkit/lambdaidem"
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

// crashHeader names the point at which the first attempt at a request kills its
// own process, by SIGKILL. It is not part of the fingerprint, and means something
// only where DEMO=1 is set: see functions/payments/demo.go.
const crashHeader = "x-demo-crash"

// crash kills the process if a client asked for it.
func crash(ctx context.Context, e events.APIGatewayV2HTTPRequest, at point) {
	if e.Headers[crashHeader] != string(at) || lambdaidem.Attempt(ctx) != 1 {
		return
	}
	demo.Die()
}
