package emulator_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// event is the echoed event of a request, decoded as T.
func event[T any](t *testing.T, body string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return out
}

func token(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestV1_HTTPAPIEvent(t *testing.T) {
	e, _ := start(t, nil)
	response, body := send(t, "POST", e.URL()+"/payments?a=1&a=2&b=%20x&empty=", `{"amount":1}`,
		"Content-Type: application/json; charset=utf-8", "Cookie: one=1; two=2", "Cookie: three=3",
		"X-Many: a", "X-Many: b, c", "User-Agent: tester", "Host: shop.example")
	if response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	got := event[events.APIGatewayV2HTTPRequest](t, body)
	if at := time.UnixMilli(got.RequestContext.TimeEpoch); time.Since(at) > time.Minute {
		t.Errorf("timeEpoch is %s", at)
	}
	if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", got.RequestContext.Time); err != nil {
		t.Error(err)
	}
	if id := got.RequestContext.RequestID; id == "" || response.Header.Get("Apigw-Requestid") != id {
		t.Errorf("request id %q in the event, %q in the answer", id, response.Header.Get("Apigw-Requestid"))
	}
	if !strings.HasPrefix(got.Headers["x-amzn-trace-id"], "Root=1-") {
		t.Errorf("x-amzn-trace-id %q", got.Headers["x-amzn-trace-id"])
	}
	delete(got.Headers, "x-amzn-trace-id")
	got.RequestContext.TimeEpoch, got.RequestContext.Time, got.RequestContext.RequestID = 0, "", ""
	want := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", RawQueryString: "a=1&a=2&b=%20x&empty=",
		Cookies: []string{"one=1", "two=2", "three=3"},
		Headers: map[string]string{
			"content-type": "application/json; charset=utf-8", "x-many": "a,b, c", "user-agent": "tester", "host": "shop.example",
			"accept-encoding": "gzip", "content-length": "12",
			"x-forwarded-for": "127.0.0.1", "x-forwarded-port": "80", "x-forwarded-proto": "http",
		},
		QueryStringParameters: map[string]string{"a": "1,2", "b": " x", "empty": ""},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /payments", AccountID: "000000000000", Stage: "$default", APIID: "Api",
			DomainName: "shop.example", DomainPrefix: "Api",
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: "POST", Path: "/payments", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1", UserAgent: "tester",
			},
		},
		Body: `{"amount":1}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestV1_HTTPAPIPathIsDecoded(t *testing.T) {
	e, _ := start(t, nil)
	_, body := send(t, "GET", e.URL()+"/payments/a%20b%C3%A9?x", "")
	got := event[events.APIGatewayV2HTTPRequest](t, body)
	if got.RawPath != "/payments/a bé" || got.PathParameters["id"] != "a bé" || got.RouteKey != "GET /payments/{id}" {
		t.Errorf("rawPath %q, pathParameters %v, routeKey %q", got.RawPath, got.PathParameters, got.RouteKey)
	}
}

func TestV1_RESTAPIEvent(t *testing.T) {
	e, _ := start(t, nil)
	response, body := send(t, "GET", e.URLs()["Rest"]+"/payments/a%20b?a=1&a=2", "",
		"Cookie: one=1", "X-Many: a", "X-Many: b", "User-Agent: tester")
	if response.StatusCode != 200 {
		t.Fatalf("%d %s", response.StatusCode, body)
	}
	got := event[events.APIGatewayProxyRequest](t, body)
	if got.RequestContext.RequestID == "" || got.RequestContext.RequestTimeEpoch == 0 {
		t.Errorf("request context %+v", got.RequestContext)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.MultiValueHeaders["X-Many"]); diff != "" {
		t.Error(diff)
	}
	if got.Headers["X-Many"] != "b" || got.Headers["Cookie"] != "one=1" {
		t.Errorf("headers %v", got.Headers)
	}
	rc := got.RequestContext
	type part struct{ Resource, Path, Method, ContextPath, Stage, ResourcePath, SourceIP, UserAgent, AccountID, APIID string }
	want := part{"/payments/{id}", "/payments/a%20b", "GET", "/live/payments/a%20b", "live", "/payments/{id}", "127.0.0.1", "tester", "000000000000", "Rest"}
	is := part{got.Resource, got.Path, got.HTTPMethod, rc.Path, rc.Stage, rc.ResourcePath, rc.Identity.SourceIP, rc.Identity.UserAgent, rc.AccountID, rc.APIID}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"id": "a%20b"}, got.PathParameters); diff != "" {
		t.Errorf("pathParameters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"a": {"1", "2"}}, got.MultiValueQueryStringParameters); diff != "" {
		t.Errorf("multiValueQueryStringParameters (-want +got):\n%s", diff)
	}
	if got.QueryStringParameters["a"] != "2" {
		t.Errorf("queryStringParameters %v", got.QueryStringParameters)
	}
}

func TestV1_FunctionURLEvent(t *testing.T) {
	e, _ := start(t, nil)
	response, body := send(t, "PUT", e.URLs()["Probe"]+"/any%20where?q=1", "text", "Content-Type: text/plain", "Cookie: one=1")
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s %s", response.StatusCode, response.Header, body)
	}
	got := event[events.APIGatewayV2HTTPRequest](t, body)
	if got.RouteKey != "$default" || got.RawPath != "/any%20where" || got.Body != "text" || got.RequestContext.HTTP.Method != "PUT" || got.Cookies[0] != "one=1" {
		t.Errorf("event %+v", got)
	}
}

func TestV1_BinaryBodies(t *testing.T) {
	e, _ := start(t, nil)
	bytes := "\x00\xff\xfe"
	tests := []struct {
		name, api, contentType, body string
		base64                       bool
	}{
		{"JSON", "Api", "application/json", `{"a":1}`, false},
		{"text", "Api", "text/csv; charset=utf-8", "a,b", false},
		{"XML", "Api", "application/xml", "<a/>", false},
		{"form", "Api", "application/x-www-form-urlencoded", "a=1", true},
		{"problem+json", "Api", "application/problem+json", "{}", true},
		{"no type", "Api", "", "{}", true},
		{"bytes", "Api", "application/octet-stream", bytes, true},
		{"bytes under a text type", "Api", "application/json", bytes, true},
		{"no body", "Api", "application/octet-stream", "", false},
		{"REST, binary type", "Rest", "image/png", bytes, true},
		{"REST, binary by wildcard", "Rest", "application/json; x=y", "{}", true},
		{"REST, text", "Rest", "text/plain", "abc", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var headers []string
			if tt.contentType != "" {
				headers = append(headers, "Content-Type: "+tt.contentType)
			}
			_, answer := send(t, "POST", e.URLs()[tt.api]+"/payments", tt.body, headers...)
			got := event[struct {
				Body            string
				IsBase64Encoded bool
			}](t, answer)
			want := tt.body
			if tt.base64 {
				want = base64.StdEncoding.EncodeToString([]byte(tt.body))
			}
			if got.Body != want || got.IsBase64Encoded != tt.base64 {
				t.Errorf("body %q, isBase64Encoded %v; want %q, %v", got.Body, got.IsBase64Encoded, want, tt.base64)
			}
		})
	}
}

func TestV1_ResponsesReachTheClient(t *testing.T) {
	e, _ := start(t, nil)
	internal := func(text string) string { return `{"message":"` + text + `"}` }
	tests := []struct {
		name, api, raw string
		accept         string
		status         int
		body           string
		headers        map[string][]string
	}{
		{"whole", "Api", `{"statusCode":201,"headers":{"X-A":"1","Content-Type":"text/x"},"body":"hi","cookies":["a=1; Path=/","b=2"]}`, "", 201, "hi",
			map[string][]string{"X-A": {"1"}, "Content-Type": {"text/x"}, "Set-Cookie": {"a=1; Path=/", "b=2"}}},
		{"default type", "Api", `{"statusCode":200,"body":"hi"}`, "", 200, "hi", map[string][]string{"Content-Type": {"text/plain;charset=UTF-8"}}},
		{"format 2.0 has no multiValueHeaders", "Api", `{"statusCode":200,"multiValueHeaders":{"X-A":["1"]}}`, "", 200, "", map[string][]string{"X-A": nil}},
		{"binary", "Api", `{"statusCode":200,"body":"AP/+","isBase64Encoded":true}`, "", 200, "\x00\xff\xfe", nil},
		{"wrong base64", "Api", `{"statusCode":200,"body":"%","isBase64Encoded":true}`, "", 500, internal("Internal Server Error"), nil},
		{
			"header as number", "Api", `{"statusCode":200,"headers":{"X-A":12345678901234567890,"X-B":true}}`,
			"", 200, "", map[string][]string{"X-A": {"12345678901234567890"}, "X-B": {"true"}},
		},
		{"header as list", "Api", `{"statusCode":200,"headers":{"X-A":["1"]}}`, "", 500, internal("Internal Server Error"), nil},
		{"status as text", "Api", `{"statusCode":"204"}`, "", 204, "", nil},
		{"status 0", "Api", `{"statusCode":0}`, "", 500, internal("Internal Server Error"), nil},
		{"status 700", "Api", `{"statusCode":700}`, "", 500, internal("Internal Server Error"), nil},
		{"wrong length", "Api", `{"statusCode":200,"headers":{"Content-Length":"99"},"body":"hi"}`, "", 200, "hi", nil},
		{"inferred object", "Api", `{"paid":true}`, "", 200, `{"paid":true}`, map[string][]string{"Content-Type": {"application/json"}}},
		{"inferred text", "Api", `"paid"`, "", 200, "paid", map[string][]string{"Content-Type": {"application/json"}}},
		{"inferred null", "Api", `null`, "", 200, "null", nil},
		{"not JSON", "Api", `paid`, "", 500, internal("Internal Server Error"), nil},
		{
			"REST whole", "Rest",
			`{"statusCode":201,"headers":{"X-A":"1","X-B":"lost"},"multiValueHeaders":{"X-B":["2","3"],"Set-Cookie":["a=1","b=2"]},"body":"hi"}`,
			"", 201, "hi",
			map[string][]string{"X-A": {"1"}, "X-B": {"2", "3"}, "Set-Cookie": {"a=1", "b=2"}, "Content-Type": {"application/json"}},
		},
		{"REST binary, accepted", "Rest", `{"statusCode":200,"body":"AP/+","isBase64Encoded":true}`, "image/png, */*", 200, "\x00\xff\xfe", nil},
		{"REST binary, not accepted", "Rest", `{"statusCode":200,"body":"AP/+","isBase64Encoded":true}`, "text/plain", 200, "AP/+", nil},
		{"REST without status", "Rest", `{"paid":true}`, "", 502, internal("Internal server error"), nil},
		{"REST not JSON", "Rest", `paid`, "", 502, internal("Internal server error"), nil},
		{"URL inferred", "Probe", `{"paid":true}`, "", 200, `{"paid":true}`, nil},
		{"URL invalid", "Probe", `{"statusCode":1}`, "", 502, "Internal Server Error", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{"X-Do: respond", "Content-Type: text/plain"}
			if tt.accept != "" {
				headers = append(headers, "Accept: "+tt.accept)
			}
			response, body := send(t, "POST", e.URLs()[tt.api]+"/payments", tt.raw, headers...)
			if response.StatusCode != tt.status || body != tt.body {
				t.Errorf("%d %q, want %d %q", response.StatusCode, body, tt.status, tt.body)
			}
			for name, want := range tt.headers {
				if got := response.Header[name]; !slices.Equal(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestV1_FailuresAsTheGatewayShowsThem(t *testing.T) {
	e, _ := start(t, func(o *emulator.Options) { o.Template.Function("Probe").Timeout = 300 * time.Millisecond })
	statuses := map[string]struct {
		status int
		body   string
	}{
		"Api":   {500, `{"message":"Internal Server Error"}`},
		"Rest":  {502, `{"message":"Internal server error"}`},
		"Probe": {502, "Internal Server Error"},
	}
	for api, want := range statuses {
		for _, do := range []string{"error", "panic", "exit", "hang"} { // hang: its own timeout
			t.Run(api+"/"+do, func(t *testing.T) {
				response, body := send(t, "POST", e.URLs()[api]+"/payments", "", "X-Do: "+do)
				if response.StatusCode != want.status || body != want.body {
					t.Errorf("%d %s, want %d %s", response.StatusCode, body, want.status, want.body)
				}
			})
		}
	}
}

// Behind a gateway that has given up, the function runs on: the client's retry
// then meets a completed record.
func TestX4_IntegrationTimeoutLeavesTheFunctionRunning(t *testing.T) {
	e, _ := start(t, nil)
	for api, want := range map[string]struct {
		status int
		body   string
	}{
		"Api":  {503, `{"message":"Service Unavailable"}`},
		"Rest": {504, `{"message":"Endpoint request timed out"}`},
	} {
		t.Run(api, func(t *testing.T) {
			gate := filepath.Join(t.TempDir(), "gate")
			response, body := send(t, "POST", e.URLs()[api]+"/quick", gate, "X-Do: until", "X-File: "+gate)
			if response.StatusCode != want.status || body != want.body {
				t.Errorf("%d %s, want %d %s", response.StatusCode, body, want.status, want.body)
			}
			touch(t, gate)
			eventually(t, "the function has finished", func() bool { _, err := os.Stat(gate + ".done"); return err == nil })
		})
	}
}

func TestV1_Routes(t *testing.T) {
	e, _ := start(t, nil)
	tests := []struct {
		api, method, path string
		status            int
		key               string
	}{
		{"Api", "POST", "/payments", 200, "POST /payments"},
		{"Api", "GET", "/payments/1", 200, "GET /payments/{id}"},
		{"Api", "DELETE", "/any", 200, "ANY /any"},
		{"Api", "GET", "/payments", 404, ""},
		{"Api", "GET", "/payments/", 404, ""},
		{"Api", "GET", "/payments/1/2", 404, ""},
		{"Api", "POST", "/payments/1", 404, ""},
		{"Rest", "GET", "/nowhere", 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.api+" "+tt.method+" "+tt.path, func(t *testing.T) {
			response, body := send(t, tt.method, e.URLs()[tt.api]+tt.path, "")
			if response.StatusCode != tt.status {
				t.Fatalf("%d %s, want %d", response.StatusCode, body, tt.status)
			}
			switch tt.status {
			case http.StatusOK:
				if got := event[events.APIGatewayV2HTTPRequest](t, body); got.RouteKey != tt.key {
					t.Errorf("route %q, want %q", got.RouteKey, tt.key)
				}
			case http.StatusNotFound:
				if body != `{"message":"Not Found"}` {
					t.Errorf("body %s", body)
				}
			}
		})
	}
}

func TestF2_ClaimsComeFromTheBearersToken(t *testing.T) {
	e, _ := start(t, nil)
	claims := `{"iss":"https://issuer.example","sub":"ann","exp":9007199254740993,"admin":true,"groups":["a","b"],` +
		`"address":{"city":"X"},"gone":null,"scope":"read pay"}`
	want := map[string]string{
		"iss": "https://issuer.example", "sub": "ann", "exp": "9007199254740993", "admin": "true",
		"groups": "[a b]", "address": `{"city":"X"}`, "scope": "read pay",
	}
	for _, authorization := range []string{"Bearer " + token(claims), token(claims)} {
		_, body := send(t, "GET", e.URL()+"/mine", "", "Authorization: "+authorization)
		got := event[events.APIGatewayV2HTTPRequest](t, body).RequestContext.Authorizer
		if got == nil || got.JWT == nil {
			t.Fatalf("no authorizer in %s", body)
		}
		if diff := cmp.Diff(want, got.JWT.Claims); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		if got.JWT.Scopes != nil {
			t.Errorf("scopes %v on a route that asks for none", got.JWT.Scopes)
		}
	}
	_, body := send(t, "GET", e.URL()+"/scoped", "", "Authorization: Bearer "+token(claims))
	if got := event[events.APIGatewayV2HTTPRequest](t, body).RequestContext.Authorizer.JWT.Scopes; !slices.Equal(got, []string{"read", "pay"}) {
		t.Errorf("scopes %v", got)
	}
	_, body = send(t, "GET", e.URLs()["Rest"]+"/mine", "", "Authorization: "+token(claims))
	rest := event[events.APIGatewayProxyRequest](t, body).RequestContext.Authorizer["claims"].(map[string]any)
	if rest["sub"] != "ann" || rest["groups"] != "a,b" {
		t.Errorf("REST claims %v", rest)
	}
	// Without an authorizer nothing that a client sends is a principal.
	_, body = send(t, "GET", e.URL()+"/payments/1", "", "Authorization: Bearer "+token(claims))
	if got := event[events.APIGatewayV2HTTPRequest](t, body).RequestContext.Authorizer; got != nil {
		t.Errorf("a route without an authorizer has %+v", got)
	}
}

func TestF2_NoOrMalformedTokenIsUnauthorized(t *testing.T) {
	e, _ := start(t, nil)
	part := base64.RawURLEncoding.EncodeToString
	for name, authorization := range map[string]string{
		"none":              "",
		"empty":             "Bearer ",
		"not a JWT":         "Bearer abc",
		"two parts":         "Bearer " + part([]byte("{}")) + "." + part([]byte("{}")),
		"not base64url":     "Bearer %.%.%",
		"not JSON":          "Bearer " + part([]byte("{}")) + "." + part([]byte("claims")) + ".x",
		"claims are null":   "Bearer " + part([]byte("{}")) + "." + part([]byte("null")) + ".x",
		"claims are a list": "Bearer " + part([]byte("{}")) + "." + part([]byte("[]")) + ".x",
		"another scheme":    "Basic YTpi",
	} {
		t.Run(name, func(t *testing.T) {
			for _, url := range []string{e.URL(), e.URLs()["Rest"]} {
				response, body := send(t, "GET", url+"/mine", "", "Authorization: "+authorization)
				if response.StatusCode != 401 || body != `{"message":"Unauthorized"}` {
					t.Errorf("%d %s", response.StatusCode, body)
				}
			}
		})
	}
	for _, scope := range []string{`{"scope":"read"}`, `{}`, `{"scp":["read"]}`} {
		response, body := send(t, "GET", e.URL()+"/scoped", "", "Authorization: Bearer "+token(scope))
		if response.StatusCode != 403 || body != `{"message":"Forbidden"}` {
			t.Errorf("%s: %d %s, want 403", scope, response.StatusCode, body)
		}
	}
	if response, body := send(t, "GET", e.URL()+"/scoped", "", "Authorization: Bearer "+token(`{"scp":["refund"]}`)); response.StatusCode != 200 {
		t.Errorf("scp: %d %s", response.StatusCode, body)
	}
}

func TestS2_LargeBodiesAre413(t *testing.T) {
	e, _ := start(t, nil)
	const mb = 1024 * 1024
	for _, tt := range []struct {
		api, message string
	}{{"Api", "Request Entity Too Large"}, {"Rest", "Request Too Long"}, {"Probe", "Request Entity Too Large"}} {
		for _, size := range []int{6 * mb, 12 * mb} { // over Lambda's limit, over the gateway's
			response, body := send(t, "POST", e.URLs()[tt.api]+"/payments", strings.Repeat("x", size), "Content-Type: text/plain", "X-Do: respond")
			if response.StatusCode != 413 || body != `{"message":"`+tt.message+`"}` {
				t.Errorf("%s, %d bytes: %d %s", tt.api, size, response.StatusCode, body)
			}
		}
	}
	// A refusal that needs no body reads it all the same.
	if response, body := send(t, "POST", e.URL()+"/nowhere", strings.Repeat("x", 12*mb)); response.StatusCode != 404 {
		t.Errorf("%d %s, want 404", response.StatusCode, body)
	}
	// 5 MB pass, and come back as an event with the body in it.
	response, body := send(t, "POST", e.URL()+"/payments", strings.Repeat("x", 5*mb), "Content-Type: text/plain")
	if response.StatusCode != 200 || len(body) < 5*mb {
		t.Errorf("5 MB: %d, %d bytes", response.StatusCode, len(body))
	}
}
