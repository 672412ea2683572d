package main

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
)

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
