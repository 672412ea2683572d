package idemtest

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Values that are the same in every event.
const (
	accountID = "123456789012"
	protocol  = "HTTP/1.1"
	sourceIP  = "192.0.2.1" // an address reserved for documentation (RFC 5737)
)

// APIGateway returns the request as an event of a REST API, in payload format version 1.0.
// A [JWT] caller is represented as authenticated by a Cognito user pool authorizer.
func (r Request) APIGateway() events.APIGatewayProxyRequest {
	r = r.withDefaults()
	r.Header.Set("Host", host)
	query := parsedQuery(r.Query)
	event := events.APIGatewayProxyRequest{
		Resource: r.Route, Path: r.Path, HTTPMethod: r.Method,
		Headers: lastValues(r.Header), MultiValueHeaders: r.Header,
		QueryStringParameters: lastValues(query), MultiValueQueryStringParameters: query, PathParameters: r.parameters(),
	}
	event.Body, event.IsBase64Encoded = r.encoded()
	c := &event.RequestContext
	c.AccountID, c.Stage, c.DomainName, c.Protocol = accountID, "prod", host, protocol
	c.HTTPMethod, c.ResourcePath, c.Path = r.Method, r.Route, "/prod"+r.Path
	c.Identity.SourceIP = sourceIP
	switch caller := r.Caller; caller.kind {
	case jwt:
		c.Authorizer = map[string]any{"claims": map[string]any{"iss": caller.first, "sub": caller.second}}
	case iam:
		c.Identity.UserArn = caller.first
	case cognito:
		c.Identity.UserArn, c.Identity.CognitoIdentityID = caller.first, caller.second
	case authorizer:
		c.Authorizer = map[string]any{"principalId": caller.first}
	case certificate:
		c.Identity.ClientCert = &events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert{SubjectDN: caller.first, IssuerDN: caller.second}
	case apiKey:
		c.Identity.APIKeyID = caller.first
	case nobody:
	}
	return event
}

// APIGatewayV2 returns the request as an event of an HTTP API, in payload format version
// 2.0.
func (r Request) APIGatewayV2() events.APIGatewayV2HTTPRequest {
	r = r.withDefaults()
	headers, cookies := r.joined()
	event := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: r.Method + " " + r.Route, RawPath: r.Path, RawQueryString: r.Query,
		Headers: headers, Cookies: cookies, QueryStringParameters: joined(parsedQuery(r.Query)), PathParameters: r.parameters(),
	}
	if r.Route == "$default" {
		event.RouteKey = r.Route
	}
	event.Body, event.IsBase64Encoded = r.encoded()
	c := &event.RequestContext
	c.AccountID, c.Stage, c.DomainName, c.RouteKey = accountID, "$default", host, event.RouteKey
	c.HTTP = events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: r.Method, Path: r.Path, Protocol: protocol, SourceIP: sourceIP}
	type description = events.APIGatewayV2HTTPRequestContextAuthorizerDescription
	switch caller := r.Caller; caller.kind {
	case jwt:
		c.Authorizer = &description{JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": caller.first, "sub": caller.second}}}
	case iam:
		c.Authorizer = &description{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: caller.first}}
	case cognito:
		if caller.first == "" {
			panic("idemtest: APIGatewayV2 can't carry a Cognito identity without the ARN of its role; give Cognito both")
		}
		c.Authorizer = &description{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: caller.first,
			CognitoIdentity: events.APIGatewayV2HTTPRequestContextAuthorizerCognitoIdentity{IdentityID: caller.second}}}
	case authorizer:
		c.Authorizer = &description{Lambda: map[string]any{"principalId": caller.first}}
	case certificate:
		c.Authentication.ClientCert.SubjectDN, c.Authentication.ClientCert.IssuerDN = caller.first, caller.second
	case apiKey:
		caller.cantCarry("APIGatewayV2", "JWT, IAM, Cognito, Authorizer and Certificate: API keys are of REST APIs")
	case nobody:
	}
	return event
}

// FunctionURL returns the request as an event of a Lambda function URL.
func (r Request) FunctionURL() events.LambdaFunctionURLRequest {
	r = r.withDefaults()
	headers, cookies := r.joined()
	event := events.LambdaFunctionURLRequest{
		Version: "2.0", RawPath: r.Path, RawQueryString: r.Query,
		Headers: headers, Cookies: cookies, QueryStringParameters: joined(parsedQuery(r.Query)),
	}
	event.Body, event.IsBase64Encoded = r.encoded()
	c := &event.RequestContext
	c.AccountID, c.DomainName = accountID, host
	c.HTTP = events.LambdaFunctionURLRequestContextHTTPDescription{Method: r.Method, Path: r.Path, Protocol: protocol, SourceIP: sourceIP}
	switch r.Caller.kind {
	case nobody:
	case iam:
		c.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{
			IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: r.Caller.first}}
	default:
		r.Caller.cantCarry("FunctionURL", "IAM alone")
	}
	return event
}

// ALB returns the request as an event of an Application Load Balancer whose target group
// has multi-value headers disabled, which is AWS's default. The event has only the last
// value of each header and parameter.
func (r Request) ALB() events.ALBTargetGroupRequest {
	event, header, query := r.alb()
	event.Headers, event.QueryStringParameters = lastValues(header), lastValues(query)
	return event
}

// ALBMultiValue returns the request as an event of an Application Load Balancer whose
// target group has multi-value headers enabled.
func (r Request) ALBMultiValue() events.ALBTargetGroupRequest {
	event, header, query := r.alb()
	event.MultiValueHeaders, event.MultiValueQueryStringParameters = header, query
	return event
}

// alb returns an event with the fields that ALB and ALBMultiValue set in the same way. It
// returns the headers and query parameters separately, because the two methods set them in
// different fields.
func (r Request) alb() (event events.ALBTargetGroupRequest, header, query map[string][]string) {
	r = r.withDefaults()
	if r.Caller.kind != nobody {
		r.Caller.cantCarry("ALB", "nobody: Options.Principal reads one from the request")
	}
	r.Header.Set("Host", host)
	header = make(map[string][]string, len(r.Header))
	for name, values := range r.Header {
		header[strings.ToLower(name)] = values
	}
	query = make(map[string][]string)
	for pair := range strings.SplitSeq(r.Query, "&") {
		if pair != "" { // a load balancer passes parameters on without unescaping them
			name, value, _ := strings.Cut(pair, "=")
			query[name] = append(query[name], value)
		}
	}
	event = events.ALBTargetGroupRequest{HTTPMethod: r.Method, Path: r.Path}
	event.RequestContext.ELB.TargetGroupArn = "arn:aws:elasticloadbalancing:us-east-1:" + accountID + ":targetgroup/idemtest/6d0ecf831eec9f09"
	event.Body, event.IsBase64Encoded = r.encoded()
	return event, header, query
}

// encoded returns the body for an event. A body that is not valid UTF-8 is encoded as
// base64.
func (r Request) encoded() (body string, isBase64 bool) {
	if utf8.ValidString(r.Body) {
		return r.Body, false
	}
	return base64.StdEncoding.EncodeToString([]byte(r.Body)), true
}

// parsedQuery returns the parameters of a query. It panics if the query is malformed.
func parsedQuery(query string) map[string][]string {
	values, err := url.ParseQuery(query)
	if err != nil {
		panic("idemtest: Request.Query: " + err.Error())
	}
	return values
}

// parameters returns the path parameters: for each parameter of the route template, such as {id},
// its name and its value in the request's path. parameters panics if the path doesn't match the
// template. It returns nil for a Route that is not a path, such as $default.
func (r Request) parameters() map[string]string {
	if !strings.HasPrefix(r.Route, "/") {
		return nil
	}
	want, got := strings.Split(r.Route, "/"), strings.Split(r.Path, "/")
	out := make(map[string]string)
	for i, w := range want {
		name, isParameter := strings.CutPrefix(w, "{")
		name, _ = strings.CutSuffix(name, "}")
		rest, isGreedy := strings.CutSuffix(name, "+")
		switch {
		case i >= len(got):
			r.doesNotFit()
		case isParameter && isGreedy:
			out[rest] = strings.Join(got[i:], "/")
			return out
		case isParameter:
			value, err := url.PathUnescape(got[i])
			if err != nil {
				panic("idemtest: Request.Path: " + err.Error())
			}
			out[name] = value
		case w != got[i]:
			r.doesNotFit()
		}
	}
	if len(got) > len(want) {
		r.doesNotFit()
	}
	return out
}

func (r Request) doesNotFit() {
	panic("idemtest: Request.Route " + r.Route + " does not fit Request.Path " + r.Path)
}
