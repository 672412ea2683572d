package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

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

// proxied adapts the application to events. The adapter returns an error if it can't convert the
// event into an HTTP request, because the body is not base64 or the path is not a URL. proxied
// answers 400 in that case, because the client made the mistake. The gateway would answer 500 if
// the handler returned the error.
func proxied(app http.Handler) handlerV2 {
	adapter := httpadapter.NewV2(app)
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		resp, err := adapter.ProxyWithContext(ctx, e)
		if err != nil && !isRequest(adapter, e) {
			p := problem{http.StatusBadRequest, "request_invalid", "The request's path or body can't be decoded."}
			return p.event(), nil
		}
		return resp, err
	}
}

// isRequest reports whether the adapter can convert the event into an HTTP request.
func isRequest(adapter *httpadapter.HandlerAdapterV2, e events.APIGatewayV2HTTPRequest) bool {
	_, err := adapter.EventToRequest(e)
	return err == nil
}
