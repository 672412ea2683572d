package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// guarded is the Lambda handler: the guard, then the adapter, then the
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
	guard = guard.With(func(o *lambdaidem.Options) { o.Outcome = outcome })
	return guard.APIGatewayV2(proxied(app))
}

// outcome is the rule by default (X1), but for one answer of this application:
// its 504 says that the table gave no answer, so the payment may have been
// written or may still be on its way. Letting the next retry run at once would
// pay twice; the lease is kept instead, and its end decides (X2).
func outcome(r *lambdaidem.Response) lambdaidem.Outcome {
	if r.Status == http.StatusGatewayTimeout {
		return lambdaidem.OutcomeUncertain
	}
	return lambdaidem.DefaultOutcome(r)
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

// isRequest tells whether the adapter can read an event.
func isRequest(adapter *httpadapter.HandlerAdapterV2, e events.APIGatewayV2HTTPRequest) bool {
	_, err := adapter.EventToRequest(e)
	return err == nil
}
