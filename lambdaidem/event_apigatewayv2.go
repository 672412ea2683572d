package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// APIGatewayV2 guards a handler of API Gateway HTTP API events, payload format
// version 2.0 (V1).
func (g *Guard) APIGatewayV2(h func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return guardHTTP(g, httpAPI{}, h)
}

type httpAPI struct{}

func (httpAPI) request(e events.APIGatewayV2HTTPRequest) *Request {
	r := &Request{
		Method:   strings.ToUpper(e.RequestContext.HTTP.Method),
		Path:     e.RawPath,
		Query:    e.RawQueryString,
		headers:  joinedHeaders(e.Headers),
		nHeaders: len(e.Headers),
	}
	r.setBody(e.Body, e.IsBase64Encoded)
	if _, template, ok := strings.Cut(e.RouteKey, " "); ok {
		r.Route = template
	}
	auth := e.RequestContext.Authorizer
	if auth == nil {
		return r
	}
	principalID, _ := auth.Lambda["principalId"].(string)
	switch {
	case auth.JWT != nil && auth.JWT.Claims["iss"] != "" && auth.JWT.Claims["sub"] != "":
		r.Principal = vouched("jwt", auth.JWT.Claims["iss"], auth.JWT.Claims["sub"])
	case auth.JWT != nil:
		r.anonymous = "the token of this request has no iss and sub"
	case auth.IAM != nil && auth.IAM.UserARN != "":
		r.Principal = iamPrincipal(auth.IAM.UserARN, auth.IAM.CognitoIdentity.IdentityID)
	case principalID != "":
		r.Principal = vouched("authorizer", principalID)
	case auth.IAM != nil && auth.IAM.CognitoIdentity.IdentityID != "":
		r.Principal = vouched("cognito", auth.IAM.CognitoIdentity.IdentityID)
	default: // an authorizer without a context arrives as {"lambda": null}
		r.anonymous = "the Lambda authorizer of this request put no principalId into its context"
	}
	return r
}

func (httpAPI) response(_ events.APIGatewayV2HTTPRequest, r events.APIGatewayV2HTTPResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, r.MultiValueHeaders), Cookies: r.Cookies, Body: r.Body, Base64: r.IsBase64Encoded}
}

func (httpAPI) event(_ events.APIGatewayV2HTTPRequest, r *Response) events.APIGatewayV2HTTPResponse {
	single, multi := splitHeaders(r.Header)
	return events.APIGatewayV2HTTPResponse{StatusCode: r.Status, Headers: single, MultiValueHeaders: multi, Cookies: r.Cookies, Body: r.Body, IsBase64Encoded: r.Base64}
}
