package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// unknownPayment has the form of a payment's ID, but no payment has it.
const unknownPayment = "pay_ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// routes are the routes whose requests have a body.
var routes = map[string]struct{ path, code string }{
	"payments":  {"/payments", "payment_invalid"},
	"refunds":   {"/payments/" + unknownPayment + "/refunds", "refund_invalid"},
	"transfers": {"/transfers", "transfer_invalid"},
}

var badBodies = map[string]string{
	"no body":       "",
	"broken JSON":   `{"amount":12`,
	"no JSON":       "amount=12&currency=EUR",
	"an array":      `[1]`,
	"null":          `null`,
	"wrong types":   `{"amount":"12","currency":5}`,
	"a fraction":    `{"amount":1.5}`,
	"negative":      `{"amount":-1,"currency":"EUR"}`,
	"overflow":      `{"amount":123456789012345678901234567890}`,
	"unknown field": `{"amount":1,"account":"x"}`,
	"trailing data": `{"amount":0}{}`,
	"deep nesting":  strings.Repeat(`{"a":`, 100_000),
	"deep arrays":   strings.Repeat("[", 1<<20),
	"invalid UTF-8": "{\"amount\":1,\"reference\":\"\xff\xfe\"}",
	"binary":        "\x00\x01\x02\xff",
	"over 5 MB":     `{"reference":"` + strings.Repeat("x", 5<<20) + `"}`,
}

func TestBadInputIsA400ThatReplays(t *testing.T) {
	for route, at := range routes {
		for name, body := range badBodies {
			t.Run(route+"/"+name, func(t *testing.T) {
				u := newUser(t)
				r := request{path: at.path, keys: []string{"key-1"}, body: body}
				first := u.mustSend(t, r)
				expectProblem(t, first, http.StatusBadRequest, at.code)
				expectReplay(t, first, u.mustSend(t, r))
				u.expectPayments(t, 0)
			})
		}
	}
}

func TestBodyBeyondLambdasLimitIsA413(t *testing.T) {
	for route, at := range routes {
		t.Run(route, func(t *testing.T) {
			u := newUser(t)
			expectStatus(t, u.mustSend(t, request{path: at.path, keys: []string{"key-1"}, body: strings.Repeat("x", 6<<20+1)}), http.StatusRequestEntityTooLarge)
			u.expectNoRecord(t)
		})
	}
}

func TestBadPathsAreNoServerErrors(t *testing.T) {
	u := newUser(t)
	for _, path := range []string{"/payments/%25", "/payments/50%25", "/payments/%00", "/payments/%ff", "/payments/..%2f..", "/payments/" + strings.Repeat("x", 5000)} {
		for _, r := range []request{{method: http.MethodGet, path: path}, {path: path + "/refunds", keys: []string{"key-1" + path[len(path)-1:]}, body: `{"amount":1}`}} {
			if a := u.mustSend(t, r); a.status < 400 || a.status > 499 {
				t.Errorf("%s %.60s: %d %s; want a 4xx", r.method, path, a.status, a.body)
			}
		}
	}
	u.expectPayments(t, 0)
}

// TestWrongBase64IsA400 sends events that no gateway would make, through the Lambda Invoke API.
func TestWrongBase64IsA400(t *testing.T) {
	tests := map[string]struct{ function, method, path, route string }{
		"POST /payments":              {"PaymentsFunction", "POST", "/payments", "POST /payments"},
		"GET /payments/{id}":          {"PaymentsFunction", "GET", "/payments/" + unknownPayment, "GET /payments/{id}"},
		"POST /transfers":             {"TransfersFunction", "POST", "/transfers", "POST /transfers"},
		"POST /payments/{id}/refunds": {"RefundsFunction", "POST", routes["refunds"].path, "POST /payments/{id}/refunds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: tt.route, RawPath: tt.path, Body: "!not base64!", IsBase64Encoded: true,
				PathParameters: map[string]string{"id": unknownPayment},
				Headers:        map[string]string{"idempotency-key": "key-1", "content-type": "application/json"}}
			e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = tt.method, tt.path
			e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": stack.Issuer, "sub": string(u)}}}
			payload, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			result, err := everything.Emulator().Invoke(t.Context(), tt.function, payload)
			if err != nil {
				t.Fatal(err)
			}
			var resp events.APIGatewayV2HTTPResponse
			if err := json.Unmarshal(result.Payload, &resp); err != nil {
				t.Fatal(err)
			}
			if result.FunctionError != "" || resp.StatusCode != http.StatusBadRequest {
				t.Errorf("function error %q, answer %s; want a 400", result.FunctionError, result.Payload)
			}
			u.expectNoRecord(t)
		})
	}
}
