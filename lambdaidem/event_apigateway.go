package lambdaidem

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// APIGateway guards a handler of API Gateway REST API events, payload format
// version 1.0 (V1).
func (g *Guard) APIGateway(h func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
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
	id, auth := e.RequestContext.Identity, e.RequestContext.Authorizer
	claims, hasClaims := auth["claims"].(map[string]any)
	principalID, hasPrincipal := auth["principalId"].(string)
	iss, _ := claims["iss"].(string)
	sub, _ := claims["sub"].(string)
	switch {
	case iss != "" && sub != "":
		r.Principal = vouched("jwt", iss, sub)
	case hasClaims:
		r.anonymous = "the token of this request has no iss and sub"
	case id.UserArn != "":
		r.Principal = iamPrincipal(id.UserArn, id.CognitoIdentityID)
	case hasPrincipal && principalID != "":
		r.Principal = vouched("authorizer", principalID)
	case len(auth) > 0:
		r.anonymous = "the Lambda authorizer of this request named no principalId"
	case id.CognitoIdentityID != "":
		r.Principal = vouched("cognito", id.CognitoIdentityID)
	case id.APIKeyID != "":
		r.Principal = vouched("apikey", id.APIKeyID)
	}
	return r
}

func (restAPI) response(_ events.APIGatewayProxyRequest, r events.APIGatewayProxyResponse) Response {
	return Response{Status: r.StatusCode, Header: joinHeaders(r.Headers, r.MultiValueHeaders), Body: r.Body, Base64: r.IsBase64Encoded}
}

func (restAPI) event(_ events.APIGatewayProxyRequest, r *Response) events.APIGatewayProxyResponse {
	single, multi := splitHeaders(withCookies(r))
	return events.APIGatewayProxyResponse{StatusCode: r.Status, Headers: single, MultiValueHeaders: multi, Body: r.Body, IsBase64Encoded: r.Base64}
}

// iamPrincipal is an IAM caller. The users of a Cognito identity pool share a
// role and so an ARN, so their identity belongs to it.
func iamPrincipal(arn, cognitoIdentity string) string {
	if cognitoIdentity == "" {
		return vouched("iam", arn)
	}
	return vouched("iam", arn, cognitoIdentity)
}
