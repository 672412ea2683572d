package idemtest_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

const (
	arn     = "arn:aws:iam::123456789012:user/alice"
	roleARN = "arn:aws:sts::123456789012:assumed-role/app/CognitoIdentityCredentials"
)

var callers = map[string]idemtest.Caller{
	"nobody":              {},
	"JWT":                 idemtest.JWT("https://issuer.example.com", "al|ice"),
	"IAM":                 idemtest.IAM(arn),
	"Cognito":             idemtest.Cognito(roleARN, "us-east-1:1"),
	"Cognito without ARN": idemtest.Cognito("", "us-east-1:1"),
	"Authorizer":          idemtest.Authorizer("alice"),
	"Certificate":         idemtest.Certificate("CN=alice", "CN=ca"),
	"APIKey":              idemtest.APIKey("key-id"),
}

// sender sends a request through a guard, to a handler that passes its context and the body it
// received to the function.
type sender = func(context.Context, *lambdaidem.Guard, idemtest.Request, func(context.Context, string)) error

// builder builds and sends one form of event, and returns the identity of its record.
type builder struct {
	knows    []string // the kinds of callers that the event can carry, besides nobody
	send     sender
	identity func(idemtest.Request) lambdaidem.Identity
}

func through[In, Out any](guard func(*lambdaidem.Guard, func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error), build func(idemtest.Request) In, body func(In) string) sender {
	return func(ctx context.Context, g *lambdaidem.Guard, r idemtest.Request, saw func(context.Context, string)) error {
		_, err := guard(g, func(ctx context.Context, in In) (Out, error) {
			saw(ctx, body(in))
			var out Out
			return out, nil
		})(ctx, build(r))
		return err
	}
}

func decoded(body string, isBase64 bool) string {
	if b, err := base64.StdEncoding.DecodeString(body); isBase64 && err == nil {
		return string(b)
	}
	return body
}

var builders = map[string]builder{
	"APIGateway": {[]string{"JWT", "IAM", "Cognito", "Cognito without ARN", "Authorizer", "Certificate", "APIKey"},
		through((*lambdaidem.Guard).APIGateway, idemtest.Request.APIGateway, func(e events.APIGatewayProxyRequest) string { return decoded(e.Body, e.IsBase64Encoded) }),
		idemtest.Request.Identity},
	"APIGatewayV2": {[]string{"JWT", "IAM", "Cognito", "Authorizer", "Certificate"},
		through((*lambdaidem.Guard).APIGatewayV2, idemtest.Request.APIGatewayV2, func(e request) string { return decoded(e.Body, e.IsBase64Encoded) }),
		idemtest.Request.Identity},
	"FunctionURL": {[]string{"IAM"},
		through((*lambdaidem.Guard).FunctionURL, idemtest.Request.FunctionURL, func(e events.LambdaFunctionURLRequest) string { return decoded(e.Body, e.IsBase64Encoded) }),
		idemtest.Request.IdentityFunctionURL},
	"ALB": {nil,
		through((*lambdaidem.Guard).ALB, idemtest.Request.ALB, func(e events.ALBTargetGroupRequest) string { return decoded(e.Body, e.IsBase64Encoded) }),
		idemtest.Request.IdentityALB},
	"ALBMultiValue": {nil,
		through((*lambdaidem.Guard).ALB, idemtest.Request.ALBMultiValue, func(e events.ALBTargetGroupRequest) string { return decoded(e.Body, e.IsBase64Encoded) }),
		idemtest.Request.IdentityALB},
	"HTTP": {nil, sendHTTP, idemtest.Request.IdentityHTTP},
}

func sendHTTP(ctx context.Context, g *lambdaidem.Guard, r idemtest.Request, saw func(context.Context, string)) error {
	route := r.Route
	if route == "" {
		route = r.Path
	}
	var failed error
	mux := http.NewServeMux()
	mux.Handle("POST "+route, g.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		failed = err
		saw(r.Context(), string(body))
	})))
	mux.ServeHTTP(discarded{}, r.HTTP(ctx))
	return failed
}

type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) WriteHeader(int)             {}

// The identity that a Request returns gives the id of the record that the guard uses, for
// each form of event and each caller.
func TestF1_IdentityLeadsToTheRecordOfEveryBuilderAndCaller(t *testing.T) {
	requests := []idemtest.Request{
		{Path: "/payments", Key: "k", Body: `{"amount":100}`},
		{Path: "/payments/7", Route: "/payments/{id}", Query: "a=1&b=2&a=3", Key: `a "quoted, key`, Body: "\xff\x00binary"},
		{Path: "/files/a%20b/", Key: "k"},
	}
	for name, b := range builders {
		for who, caller := range callers {
			for i, r := range requests {
				r.Caller = caller
				if who != "nobody" && !slices.Contains(b.knows, who) {
					if got := panics(t, func() { _ = b.send(t.Context(), newGuard(), r, nil) }); !strings.Contains(got, "can't carry") {
						t.Errorf("%s: a caller by %s panics with %q", name, who, got)
					}
					continue
				}
				g, ran := newGuard(), false
				err := b.send(t.Context(), g, r, func(ctx context.Context, body string) {
					ran = true
					if got, want := g.RecordID(b.identity(r)), lambdaidem.RecordID(ctx); got != want {
						t.Errorf("%s, %s, request %d: the identity %+v has the id %s, the handler sees %s", name, who, i, b.identity(r), got, want)
					}
					if key := lambdaidem.Key(ctx); key != r.Key {
						t.Errorf("%s, request %d: the key arrives as %q", name, i, key)
					}
					if body != r.Body {
						t.Errorf("%s, request %d: the body arrives as %q", name, i, body)
					}
				})
				if err != nil || !ran {
					t.Errorf("%s, %s, request %d: the handler ran: %t; %v", name, who, i, ran, err)
				}
			}
		}
	}
}

// A catch-all route is replaced by the path in the identity.
func TestF1_IdentityOfCatchAllRoutesIsThePath(t *testing.T) {
	for event, route := range map[string]string{"APIGateway": "/{proxy+}", "APIGatewayV2": "$default", "HTTP": "/{rest...}"} {
		r, g, ran := idemtest.Request{Path: "/payments/7", Route: route, Key: "k"}, newGuard(), false
		err := builders[event].send(t.Context(), g, r, func(ctx context.Context, _ string) {
			ran = true
			if got, want := g.RecordID(builders[event].identity(r)), lambdaidem.RecordID(ctx); got != want {
				t.Errorf("%s: the identity %+v has the id %s, the handler sees %s", event, builders[event].identity(r), got, want)
			}
		})
		if err != nil || !ran {
			t.Errorf("%s: the handler ran: %t; %v", event, ran, err)
		}
	}
}

func TestRequest_EventsAreThoseOfTheirGateways(t *testing.T) {
	r := idemtest.Request{Path: "/payments/a%20b", Route: "/payments/{id}", Query: "a=1&a=2&b=x%20y", Key: "k", Body: "{}",
		Header: http.Header{"X-List": {"1", "2"}, "Cookie": {"c=1; d=2"}}}
	rest, v2, url, single, multi, plain := r.APIGateway(), r.APIGatewayV2(), r.FunctionURL(), r.ALB(), r.ALBMultiValue(), r.HTTP(t.Context())
	joined := one{"content-type": "application/json", "idempotency-key": "k", "x-list": "1,2", "host": "example.com"}
	last := one{"Content-Type": "application/json", "Idempotency-Key": "k", "X-List": "2", "Host": "example.com", "Cookie": "c=1; d=2"}
	for name, c := range map[string]struct{ got, want any }{
		"REST headers":       {rest.Headers, last},
		"REST all headers":   {rest.MultiValueHeaders["X-List"], []string{"1", "2"}},
		"REST query":         {rest.QueryStringParameters, one{"a": "2", "b": "x y"}},
		"REST all query":     {rest.MultiValueQueryStringParameters, several{"a": {"1", "2"}, "b": {"x y"}}},
		"REST parameters":    {rest.PathParameters, one{"id": "a b"}},
		"REST resource":      {rest.Resource, "/payments/{id}"},
		"REST method":        {rest.HTTPMethod, "POST"},
		"HTTP headers":       {v2.Headers, joined},
		"HTTP cookies":       {v2.Cookies, []string{"c=1", "d=2"}},
		"HTTP query":         {v2.RawQueryString, "a=1&a=2&b=x%20y"},
		"HTTP parsed query":  {v2.QueryStringParameters, one{"a": "1,2", "b": "x y"}},
		"HTTP parameters":    {v2.PathParameters, one{"id": "a b"}},
		"HTTP route":         {v2.RouteKey, "POST /payments/{id}"},
		"HTTP default route": {idemtest.Request{Route: "$default"}.APIGatewayV2().RouteKey, "$default"},
		"URL headers":        {url.Headers, joined},
		"URL cookies":        {url.Cookies, []string{"c=1", "d=2"}},
		"ALB headers":        {single.Headers["x-list"], "2"},
		"ALB query":          {single.QueryStringParameters, one{"a": "2", "b": "x%20y"}},
		"ALB, one form":      {single.MultiValueHeaders, several(nil)},
		"ALB all headers":    {multi.MultiValueHeaders["x-list"], []string{"1", "2"}},
		"ALB all query":      {multi.MultiValueQueryStringParameters, several{"a": {"1", "2"}, "b": {"x%20y"}}},
		"ALB, other form":    {multi.Headers, one(nil)},
		"net/http target":    {plain.RequestURI, "/payments/a%20b?a=1&a=2&b=x%20y"},
		"net/http host":      {plain.Host, "example.com"},
		"net/http length":    {plain.ContentLength, int64(2)},
		"net/http Host":      {idemtest.Request{Header: http.Header{"Host": {"other"}}}.HTTP(t.Context()).Header, http.Header{}},
		"a key with spaces":  {idemtest.Request{Key: ` a\`}.FunctionURL().Headers["idempotency-key"], `" a\\"`},
		"net/http headers":   {plain.Header.Values("X-List"), []string{"1", "2"}},
		"another key header": {idemtest.Request{Key: "k", KeyHeader: "X-Key"}.FunctionURL().Headers, one{"x-key": "k", "host": "example.com"}},
		"another type":       {idemtest.Request{Body: "b", Header: http.Header{"Content-Type": {"text/plain"}}}.FunctionURL().Headers["content-type"], "text/plain"},
		"the rest of a path": {idemtest.Request{Path: "/f/a/b", Route: "/f/{p+}"}.APIGateway().PathParameters, one{"p": "a/b"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, has := r.Header["Idempotency-Key"]; has || len(r.Header) != 2 {
		t.Errorf("the request's own headers became %v", r.Header)
	}
}

func TestRequest_PanicsInWords(t *testing.T) {
	for want, f := range map[string]func(){
		"does not fit":                      func() { idemtest.Request{Path: "/a/b", Route: "/a/{id}/c"}.APIGateway() },
		"/a does not fit Request.Path /a/b": func() { idemtest.Request{Path: "/a/b", Route: "/a"}.APIGatewayV2() },
		"/b does not fit":                   func() { idemtest.Request{Path: "/a", Route: "/b"}.APIGatewayV2() },
		"Request.Query":                     func() { idemtest.Request{Query: "%zz"}.APIGateway() },
		"Request.Path":                      func() { idemtest.Request{Path: "/%zz", Route: "/{id}"}.APIGateway() },
		"JWT: iss and sub":                  func() { idemtest.JWT("iss", "") },
		"IAM: arn":                          func() { idemtest.IAM("") },
		"Cognito: identity":                 func() { idemtest.Cognito(arn, "") },
		"Authorizer: principalID":           func() { idemtest.Authorizer("") },
		"Certificate: subject":              func() { idemtest.Certificate("", "issuer") },
		"APIKey: id":                        func() { idemtest.APIKey("") },
		"a net/http request can't carry a caller made by IAM": func() { idemtest.Request{Caller: idemtest.IAM(arn)}.HTTP(t.Context()) },
	} {
		if got := panics(t, f); !strings.Contains(got, want) {
			t.Errorf("it panics with %q, and not of %q", got, want)
		}
	}
}
