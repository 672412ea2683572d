package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// guarded returns the Lambda handler: the guard around the adapter around the application.
//
// The guard must be outside the adapter, where it receives the event as the gateway wrote it.
// Inside the adapter, the request lacks the authorizer, which identifies the caller. The
// adapter also splits headers at commas, so that a key with a comma would look like a header
// that was sent twice.
//
// The adapter routes by the event's raw path. If the API has a named stage, the raw path
// begins with the stage. template.yaml uses the $default stage, which is not in the path.
func guarded(guard *lambdaidem.Guard, app http.Handler) handlerV2 {
	return guard.APIGatewayV2(proxied(app))
}
