package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// The tests of transfers that reach the database are in functions/e2e.

// setUp returns the function with empty tables.
func setUp(t *testing.T) handlerV2 {
	t.Helper()
	client := ddblocal.ForTest(t).Client()
	names := template.TablesForTest(t, client, "../../template.yaml")
	guard := lambdaidem.New(dynamostore.New(client, names["IdempotencyTable"]), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	h := newHandler(guard, ledger.Transfers(names["TransfersTable"]), ledger.Accounts(names["AccountsTable"]), "http://127.0.0.1:1")
	return guard.APIGatewayV2(h.create)
}

// post returns the event of a POST /transfers by alice.
func post(key, body string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "POST /transfers", RawPath: "/transfers", Body: body,
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": key}}
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = "POST", e.RawPath
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

func TestBadInputNamesTheField(t *testing.T) {
	h := setUp(t)
	for name, tt := range map[string]struct{ body, want string }{
		"no body":          {"", "the body is empty"},
		"no amount":        {`{"to":"bob","currency":"EUR"}`, "amount: is missing"},
		"no currency":      {`{"to":"bob","amount":1}`, "currency: is missing"},
		"no recipient":     {`{"amount":1,"currency":"EUR"}`, "to: is missing"},
		"an empty one":     {`{"amount":1,"currency":"EUR","to":""}`, "to: must have 1 to 255 bytes"},
		"a long one":       {`{"amount":1,"currency":"EUR","to":"` + strings.Repeat("x", 256) + `"}`, "to: must have 1 to 255 bytes"},
		"oneself":          {`{"amount":1,"currency":"EUR","to":"alice"}`, "to: must be somebody else"},
		"an unknown field": {`{"amount":1,"currency":"EUR","to":"bob","from":"carol"}`, "from: no such field"},
	} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, idemtest.Twice(t, h, post("key-"+strings.ReplaceAll(name, " ", "-"), tt.body)), http.StatusBadRequest, "transfer_invalid", tt.want)
		})
	}
}

func TestF2_TokenThatNamesNobodyMovesNothing(t *testing.T) {
	e := post("key-1", `{"amount":1,"currency":"EUR","to":"bob"}`)
	e.RequestContext.Authorizer.JWT.Claims = nil
	if resp, err := setUp(t)(t.Context(), e); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s, %v; want 403", resp.StatusCode, resp.Body, err)
	}
}

// A replay of the reservation's refusal has only the refusal's code and message. The answer must
// be the same as the first time.
func TestRefusalIsTheSameFirstHandAndReplayed(t *testing.T) {
	h := setUp(t)
	expectProblem(t, idemtest.Twice(t, h, post("key-1", `{"amount":1,"currency":"EUR","to":"bob"}`)),
		http.StatusNotFound, "account_not_found", "You have no account in this currency.")
	replayed := &lambdaidem.Error{Code: "insufficient_funds", Status: http.StatusPaymentRequired}
	if got := ledger.Refusal(replayed); !errors.Is(got, ledger.ErrInsufficientFunds) {
		t.Errorf("Refusal = %v; want %v", got, ledger.ErrInsufficientFunds)
	}
	if got := ledger.Refusal(lambdaidem.ErrStoreUnavailable); got != nil {
		t.Errorf("Refusal = %v of an error that is none of an account's", got)
	}
}

// The reservation's record says who sends how much to whom, so a purge of a caller's records must
// find it. This test needs no database: it observes the call of the reservation, which then fails
// because there is no transaction.
func TestO2_TheReservationNamesTheCallerAsTheRequestDoes(t *testing.T) {
	for _, subject := range []string{"alice", "a|b", "100%"} {
		e := post("key-1", `{"amount":1,"currency":"EUR","to":"bob"}`)
		e.RequestContext.Authorizer.JWT.Claims["sub"] = subject
		callers := map[string]string{} // by route
		guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
			o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) { callers[e.Route] = e.Caller })
		})
		h := handler{reserving: guard}
		func() {
			defer func() { _ = recover() }() // Enlist panics without a dynamostore.Store
			_, _ = guard.APIGatewayV2(h.create)(t.Context(), e)
		}()
		want := lambdaidem.ScopePart(lambdaidem.PrincipalOf("jwt", "https://issuer.example.com", subject))
		if callers["POST /transfers"] != want || callers["reserve"] != want {
			t.Errorf("the callers are %q; want %s for the request and its reservation", callers, want)
		}
	}
	if got := principal(""); got != "" {
		t.Errorf("the principal of a caller who is not told apart is %q", got)
	}
}

func TestWhatTheClearingHouseSays(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		want   ruling
		fails  bool
	}{
		"cleared":              {201, `{"id":"clr_1"}`, ruling{ID: "clr_1"}, false},
		"refused":              {422, `{"reason":"no"}`, ruling{Refused: "no"}, false},
		"failed":               {503, `{"id":"clr_1"}`, ruling{}, true},
		"another key's":        {409, ``, ruling{}, true},
		"cleared, and nothing": {201, `{}`, ruling{}, true},
		"refused, and nothing": {422, `{}`, ruling{}, true},
		"no JSON":              {201, `ok`, ruling{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") != "k" {
					t.Errorf("the key is %q", r.Header.Get("Idempotency-Key"))
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			got, err := clearing(server.URL).clear(t.Context(), "k", ledger.Transfer{ID: "tra_1", Amount: 1, Currency: "EUR"})
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("clear = %+v, %v; want %+v, an error: %v", got, err, tt.want, tt.fails)
			}
		})
	}
}
