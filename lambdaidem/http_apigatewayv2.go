package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayV2Handler is a handler of requests that come through an API Gateway HTTP API.
type APIGatewayV2Handler = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// APIGatewayV2 guards a handler of API Gateway HTTP API events (payload format version
// 2.0).
func (g *Guard) APIGatewayV2(h APIGatewayV2Handler) APIGatewayV2Handler {
	return guardHTTP(g, httpAPI{}, h)
}

type httpAPI struct{}

func (httpAPI) request(e *events.APIGatewayV2HTTPRequest, r *Request) {
	*r = Request{
		Method:   strings.ToUpper(e.RequestContext.HTTP.Method),
		Path:     e.RawPath,
		Query:    e.RawQueryString,
		headers:  headers{single: e.Headers, cookies: e.Cookies},
		nHeaders: len(e.Headers),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	if _, template, ok := strings.Cut(e.RouteKey, " "); ok {
		r.Route = template
	}
	r.Principal, r.anonymous = httpCaller(&e.RequestContext).principal()
}

// response converts what the handler returned. It ignores MultiValueHeaders, as the gateway
// does: responses in payload format 2.0 have no such field (API Gateway, "Create AWS Lambda
// proxy integrations for HTTP APIs").
func (httpAPI) response(_ *events.APIGatewayV2HTTPRequest, r events.APIGatewayV2HTTPResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, nil), Cookies: r.Cookies, Body: r.Body, Base64: r.IsBase64Encoded}
}

func (httpAPI) event(_ *events.APIGatewayV2HTTPRequest, r *Response) events.APIGatewayV2HTTPResponse {
	headers, cookies := joined(r.Header)
	return events.APIGatewayV2HTTPResponse{
		StatusCode: r.Status, Headers: headers, Cookies: append(cookies, r.Cookies...),
		Body: r.Body, IsBase64Encoded: r.Base64,
	}
}
