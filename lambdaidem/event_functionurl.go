package lambdaidem

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// FunctionURL guards a handler of Lambda function URL events (V1). A function
// URL has no route templates, so the concrete path stands in (F1).
func (g *Guard) FunctionURL(h func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)) func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	return guardHTTP(g, functionURL{}, h)
}

type functionURL struct{}

func (functionURL) request(e events.LambdaFunctionURLRequest) *Request {
	r := &Request{
		Method:   strings.ToUpper(e.RequestContext.HTTP.Method),
		Path:     e.RawPath,
		Query:    e.RawQueryString,
		headers:  joinedHeaders(e.Headers),
		nHeaders: len(e.Headers),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	if auth := e.RequestContext.Authorizer; auth != nil && auth.IAM != nil && auth.IAM.UserARN != "" {
		r.Principal = iamPrincipal(auth.IAM.UserARN, "")
	}
	return r
}

func (functionURL) response(_ events.LambdaFunctionURLRequest, r events.LambdaFunctionURLResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, nil), Cookies: r.Cookies, Body: r.Body, Base64: r.IsBase64Encoded}
}

func (functionURL) event(_ events.LambdaFunctionURLRequest, r *Response) events.LambdaFunctionURLResponse {
	headers, cookies := joined(r.Header)
	return events.LambdaFunctionURLResponse{StatusCode: r.Status, Headers: headers, Cookies: append(cookies, slices.Clone(r.Cookies)...), Body: r.Body, IsBase64Encoded: r.Base64}
}
