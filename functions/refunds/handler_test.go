package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const alice = "https://issuer.example.com alice"

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

func guarded(payments ledger.Table) handlerV2 {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	return guard.APIGatewayV2(handler{payments}.create)
}

// setUp returns the function with a table as template.yaml describes it, and a
// payment of 1000 by alice in it.
func setUp(t *testing.T) (handlerV2, ledger.Table, string) {
	t.Helper()
	client := ddblocal.ForTest(t).Client()
	deployed, err := template.Read("../../template.yaml", template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := ledger.Payment{ID: ledger.PaymentID(""), Owner: alice, Amount: 1000, Currency: "EUR",
		CreatedAt: "2026-01-02T03:04:05Z", Refundable: 1000, Refunds: map[string]int64{}}
	for _, described := range deployed.Tables {
		if described.LogicalID != "PaymentsTable" {
			continue
		}
		described.Name = p.ID
		if err := template.CreateTables(t.Context(), client, []template.Table{described}); err != nil {
			t.Fatal(err)
		}
	}
	table := ledger.Table{API: client, Name: p.ID}
	if _, err := table.Pay(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return guarded(table), table, p.ID
}

// post is a POST /payments/{id}/refunds by alice as API Gateway sends it.
func post(id, key, body string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version:        "2.0",
		RouteKey:       "POST /payments/{id}/refunds",
		RawPath:        "/payments/" + id + "/refunds",
		PathParameters: map[string]string{"id": id},
		Headers:        map[string]string{"content-type": "application/json", "idempotency-key": key},
		Body:           body,
	}
	e.RequestContext.HTTP.Method = "POST"
	e.RequestContext.HTTP.Path = e.RawPath
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
			Claims: map[string]string{"iss": "https://issuer.example.com", "sub": "alice"}}}
	return e
}

func expectProblem(t *testing.T, resp events.APIGatewayV2HTTPResponse, status int, code, detail string) {
	t.Helper()
	var doc struct{ Code, Detail string }
	if err := json.Unmarshal([]byte(resp.Body), &doc); err != nil {
		t.Fatalf("the answer is no JSON: %v: %q", err, resp.Body)
	}
	if resp.StatusCode != status || doc.Code != code || !strings.Contains(doc.Detail, detail) {
		t.Errorf("answer %d %s; want %d %s that says %q", resp.StatusCode, resp.Body, status, code, detail)
	}
}

func expectLeft(t *testing.T, table ledger.Table, id string, left int64, refunds int) {
	t.Helper()
	p, err := table.Get(t.Context(), alice, id)
	if err != nil || p.Refundable != left || len(p.Refunds) != refunds {
		t.Errorf("the payment is %+v, %v; want %d left after %d refunds", p, err, left, refunds)
	}
}

func TestRefundTwiceRefundsOnce(t *testing.T) {
	h, table, id := setUp(t)
	resp := idemtest.Twice(t, h, post(id, "key-1", `{"amount":400}`))
	var r refund
	if err := json.Unmarshal([]byte(resp.Body), &r); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated || r.Amount != 400 || r.Left != 600 || r.PaymentID != id || r.Currency != "EUR" || r.ID == "" {
		t.Errorf("answer %d %s; want 201, 400 refunded and 600 left", resp.StatusCode, resp.Body)
	}
	expectLeft(t, table, id, 600, 1)
}

func TestX1_RefusedRefundStaysRefused(t *testing.T) {
	h, table, id := setUp(t)
	expectProblem(t, idemtest.Twice(t, h, post(id, "key-1", `{"amount":1001}`)),
		http.StatusConflict, "refund_exceeds_rest", "1001 is more than the 1000 that is left")
	expectLeft(t, table, id, 1000, 0)
}

func TestUnknownPaymentIsNotFound(t *testing.T) {
	h, table, id := setUp(t)
	for name, unknown := range map[string]string{"unknown": ledger.PaymentID(""), "malformed": "7", "long": strings.Repeat("x", 5000), "none": ""} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, idemtest.Twice(t, h, post(unknown, "key-"+name, `{"amount":1}`)), http.StatusNotFound, "payment_not_found", "")
		})
	}
	t.Run("another user's", func(t *testing.T) {
		e := post(id, "key-1", `{"amount":1}`)
		e.RequestContext.Authorizer.JWT.Claims["sub"] = "bob"
		expectProblem(t, idemtest.Twice(t, h, e), http.StatusNotFound, "payment_not_found", "")
	})
	expectLeft(t, table, id, 1000, 0)
}

func TestF2_TokenThatNamesNobodyRefundsNothing(t *testing.T) {
	h := guarded(ledger.Table{})
	e := post(ledger.PaymentID(""), "key-1", `{"amount":1}`)
	e.RequestContext.Authorizer.JWT.Claims = nil
	resp, err := h(t.Context(), e)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s, %v; want 403", resp.StatusCode, resp.Body, err)
	}
}

func TestBadInputNamesTheField(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"no body", "", "the body is empty"},
		{"broken JSON", `{"amount":`, "amount: invalid JSON"},
		{"no object", `7`, "the body: must be a JSON object"},
		{"no amount", `{}`, "amount: is missing"},
		{"null", `{"amount":null}`, "amount: is missing"},
		{"zero", `{"amount":0}`, "amount: must be 1 to 9007199254740991"},
		{"negative", `{"amount":-5}`, "amount: must be 1 to"},
		{"overflow", `{"amount":9223372036854775808}`, "amount: must be an integer"},
		{"a string", `{"amount":"5"}`, "amount: must be an integer"},
		{"an unknown field", `{"amount":1,"currency":"EUR"}`, "currency: no such field"},
		{"trailing data", `{"amount":1} 2`, "the body: invalid JSON"},
		{"invalid UTF-8", "{\"amount\":1,\"\xff\":1}", "the body: invalid JSON"},
		{"deep nesting", `{"amount":` + strings.Repeat("[", 1<<20), "exceeded max depth"},
		{"6 MB", `{"amount":1` + strings.Repeat(" ", 6<<20-100), "the body: invalid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// No table: bad input must be refused before one is asked.
			resp := idemtest.Twice(t, guarded(ledger.Table{}), post(ledger.PaymentID(""), "key-1", tt.body))
			expectProblem(t, resp, http.StatusBadRequest, "refund_invalid", tt.want)
		})
	}
}

func TestBase64BodyIsDecoded(t *testing.T) {
	h, table, id := setUp(t)
	e := post(id, "key-1", "eyJhbW91bnQiOjF9")
	e.IsBase64Encoded = true
	if resp := idemtest.Twice(t, h, e); resp.StatusCode != http.StatusCreated {
		t.Errorf("%d %s; want 201", resp.StatusCode, resp.Body)
	}
	e.Body = "{}"
	if resp, err := h(t.Context(), e); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is no base64: %d %s, %v; want 400", resp.StatusCode, resp.Body, err)
	}
	expectLeft(t, table, id, 999, 1)
}

// silent is a table that gives no answer.
type silent struct{ ledger.API }

func (silent) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, errors.New("no reply")
}

func TestX2_UnknownRefundKeepsTheLease(t *testing.T) {
	h := guarded(ledger.Table{API: silent{}})
	e := post(ledger.PaymentID(""), "key-1", `{"amount":1}`)
	if resp, err := h(t.Context(), e); err == nil {
		t.Errorf("%d %s; want an error, since it is not known whether the refund was made", resp.StatusCode, resp.Body)
	}
	resp, err := h(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	expectProblem(t, resp, http.StatusConflict, string(lambdaidem.ErrInProgress), "")
	if resp.Headers["Retry-After"] == "" {
		t.Error("the 409 has no Retry-After")
	}
}
