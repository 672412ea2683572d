package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// guarded returns the Lambda handler: the guard, then the adapter, then the
// application.
//
// The guard stands outside the adapter, where it sees the event as the gateway
// wrote it. The adapter splits headers at commas, so inside it a key that is a
// list looks like a header sent twice, and it keeps the authorizer, which tells
// callers apart, out of the request.
//
// The adapter routes by the event's raw path. An API with a named stage has
// that stage in front of it; the $default stage, which template.yaml uses, has
// not.
func guarded(guard *lambdaidem.Guard, app http.Handler) handlerV2 {
	return guard.APIGatewayV2(proxied(app))
}

// proxied adapts the application to events. The adapter fails on an event that
// is no HTTP request: a body that is no base64, or a path that is no URL. This
// is the client's mistake, and would be a 502 if it were returned as an error.
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

// isRequest reports whether the adapter can read an event.
func isRequest(adapter *httpadapter.HandlerAdapterV2, e events.APIGatewayV2HTTPRequest) bool {
	_, err := adapter.EventToRequest(e)
	return err == nil
}
