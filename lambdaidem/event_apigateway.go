package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayHandler is a handler of requests that come through an API Gateway REST API.
type APIGatewayHandler = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// APIGateway guards a handler of API Gateway REST API events, payload format
// version 1.0 (V1).
func (g *Guard) APIGateway(h APIGatewayHandler) APIGatewayHandler {
	return guardHTTP(g, restAPI{}, h)
}

type restAPI struct{}

func (restAPI) request(e events.APIGatewayProxyRequest) *Request {
	r := &Request{
		Method:   strings.ToUpper(e.HTTPMethod),
		Path:     e.Path,
		Route:    e.Resource,
		Query:    queryOf(e.MultiValueQueryStringParameters, e.QueryStringParameters, true),
		headers:  multiHeaders(e.MultiValueHeaders, e.Headers),
		nHeaders: max(len(e.Headers), len(e.MultiValueHeaders)),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	r.Principal, r.anonymous = restCaller(e.RequestContext).principal()
	return r
}

func (restAPI) response(_ events.APIGatewayProxyRequest, r events.APIGatewayProxyResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, r.MultiValueHeaders), Body: r.Body, Base64: r.IsBase64Encoded}
}

func (restAPI) event(_ events.APIGatewayProxyRequest, r *Response) events.APIGatewayProxyResponse {
	single, multi := splitHeaders(withCookies(r))
	return events.APIGatewayProxyResponse{StatusCode: r.Status, Headers: single, MultiValueHeaders: multi, Body: r.Body, IsBase64Encoded: r.Base64}
}
