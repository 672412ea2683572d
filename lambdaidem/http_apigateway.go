package lambdaidem

import (
	"context"
	"maps"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayHandler is a handler of requests that come through an API Gateway REST API.
type APIGatewayHandler = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// APIGateway guards a handler of API Gateway REST API events (payload format version 1.0).
func (g *Guard) APIGateway(h APIGatewayHandler) APIGatewayHandler {
	return guardHTTP(g, restAPI{}, h)
}

type restAPI struct{}

func (restAPI) request(e *events.APIGatewayProxyRequest, r *Request) {
	*r = Request{
		Method:   strings.ToUpper(e.HTTPMethod),
		Path:     e.Path,
		Route:    e.Resource,
		Query:    queryOf(e.MultiValueQueryStringParameters, e.QueryStringParameters, true),
		headers:  headers{multi: e.MultiValueHeaders, single: e.Headers},
		nHeaders: max(len(e.Headers), len(e.MultiValueHeaders)),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	r.Principal, r.anonymous = restCaller(&e.RequestContext).principal()
}

// response converts what the handler returned. If a header is in both Headers and
// MultiValueHeaders, ignoring case, the value from Headers is kept in the result's field
// fromHeaders. A replay then has the header in both maps too, and API Gateway merges them in the
// same way ("Set up Lambda proxy integrations in API Gateway").
func (restAPI) response(_ *events.APIGatewayProxyRequest, r events.APIGatewayProxyResponse) Response {
	resp := Response{Status: r.StatusCode, Body: r.Body, Base64: r.IsBase64Encoded}
	single := r.Headers
	for name, v := range r.Headers {
		if !hasName(r.MultiValueHeaders, name) {
			continue
		}
		if resp.fromHeaders == nil {
			resp.fromHeaders, single = make(map[string]string), maps.Clone(r.Headers)
		}
		resp.fromHeaders[name] = v
		delete(single, name)
	}
	resp.Header = joinHeaders(single, r.MultiValueHeaders)
	return resp
}

func (restAPI) event(_ *events.APIGatewayProxyRequest, r *Response) events.APIGatewayProxyResponse {
	single, multi := splitHeaders(withCookies(r))
	for name := range r.fromHeaders {
		for have, value := range single {
			if strings.EqualFold(have, name) { // the handler put a list with one value into MultiValueHeaders
				delete(single, have)
				multi = with(multi, have, []string{value})
			}
		}
	}
	for name, v := range r.fromHeaders {
		single = with(single, name, v)
	}
	return events.APIGatewayProxyResponse{StatusCode: r.Status, Headers: single, MultiValueHeaders: multi, Body: r.Body, IsBase64Encoded: r.Base64}
}
