package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// FunctionURLHandler is a handler of requests that come through a Lambda function URL.
type FunctionURLHandler = func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)

// FunctionURL guards a handler of Lambda function URL events. A function URL has no route
// templates, so the path of the request is the route: the same key on two paths, such as
// /payments/1 and /payments/2, has two records.
func (g *Guard) FunctionURL(h FunctionURLHandler) FunctionURLHandler {
	return guardHTTP(g, functionURL{}, h)
}

type functionURL struct{}

func (functionURL) request(e *events.LambdaFunctionURLRequest, r *Request) {
	*r = Request{
		Method:   strings.ToUpper(e.RequestContext.HTTP.Method),
		Path:     e.RawPath,
		Query:    e.RawQueryString,
		headers:  headers{single: e.Headers, cookies: e.Cookies},
		nHeaders: len(e.Headers),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	r.Principal, r.anonymous = functionURLCaller(&e.RequestContext).principal()
}

func (functionURL) response(_ *events.LambdaFunctionURLRequest, r events.LambdaFunctionURLResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, nil), Cookies: r.Cookies, Body: r.Body, Base64: r.IsBase64Encoded}
}

func (functionURL) event(_ *events.LambdaFunctionURLRequest, r *Response) events.LambdaFunctionURLResponse {
	headers, cookies := joined(r.Header)
	return events.LambdaFunctionURLResponse{
		StatusCode: r.Status, Headers: headers, Cookies: append(cookies, r.Cookies...),
		Body: r.Body, IsBase64Encoded: r.Base64,
	}
}
