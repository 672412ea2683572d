package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// fakeTable implements ledger.API, which reads payments.
type fakeTable struct {
	items map[string]map[string]types.AttributeValue
	err   error // the error of every call, if not nil
}

func (f *fakeTable) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &dynamodb.GetItemOutput{Item: f.items[in.Key["id"].(*types.AttributeValueMemberS).Value]}, nil
}

// has adds a payment of alice, and returns its id.
func (f *fakeTable) has(t *testing.T) string {
	t.Helper()
	p := ledger.Payment{ID: ledger.NewPaymentID(), Owner: "https://issuer.example.com alice", Amount: 1250, Currency: "EUR", Refundable: 1250}
	item, err := attributevalue.MarshalMap(p)
	if err != nil {
		t.Fatal(err)
	}
	f.items = map[string]map[string]types.AttributeValue{p.ID: item}
	return p.ID
}

// enlisted has the writes that the handler has enlisted in all calls.
type enlisted []*dynamostore.Captured

// payments returns the payments that the enlisted writes would make, each with its debit.
func (all *enlisted) payments(t *testing.T) []ledger.Payment {
	t.Helper()
	var made []ledger.Payment
	for _, captured := range *all {
		writes, err := captured.Writes()
		if err != nil {
			t.Fatal(err)
		}
		if len(writes) == 0 {
			continue
		}
		if len(writes) != 2 || writes[0].Name != "payment" || writes[0].Table != "payments" || writes[1].Name != "debit" || writes[1].Table != "accounts" {
			t.Fatalf("the writes are %+v; want a payment and its debit", writes)
		}
		var p ledger.Payment
		if err := attributevalue.UnmarshalMap(writes[0].Action.Put.Item, &p); err != nil {
			t.Fatal(err)
		}
		made = append(made, p)
	}
	return made
}

func (all *enlisted) expect(t *testing.T, payments int) {
	t.Helper()
	if made := all.payments(t); len(made) != payments {
		t.Errorf("%d payments: %+v; want %d", len(made), made, payments)
	}
}

// setUp returns the function without payments and records. Enlisted writes are captured, not
// committed; the tests of package ledger and functions/e2e commit them.
func setUp(t *testing.T) (handlerV2, *enlisted) {
	t.Helper()
	h, all, _ := setUpWith(&fakeTable{}, demonstrated)
	return h, all
}

func setUpWith(table *fakeTable, around func(http.Handler) http.Handler) (handlerV2, *enlisted, *fakeTable) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	h := guarded(guard, around(newApplication(ledger.Payments{API: table, Name: "payments"}, "accounts", http.NotFoundHandler())))
	all := &enlisted{}
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		ctx, captured := dynamostore.Capture(ctx)
		*all = append(*all, captured)
		return h(ctx, e)
	}, all, table
}

const validOrder = `{"amount":1250,"currency":"EUR","reference":"order 7"}`

// post returns the event of a POST /payments by alice.
func post(key, body string) events.APIGatewayV2HTTPRequest {
	e := request("POST", "/payments", "alice")
	e.RouteKey = "POST /payments"
	e.Body = body
	e.Headers["content-type"] = "application/json"
	if key != "" {
		e.Headers["idempotency-key"] = key
	}
	return e
}

// get returns the event of a GET /payments/{id} by alice.
func get(id, user string) events.APIGatewayV2HTTPRequest {
	e := request("GET", "/payments/"+id, user)
	e.RouteKey = "GET /payments/{id}"
	e.PathParameters = map[string]string{"id": id}
	return e
}

func request(method, path, user string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Headers: map[string]string{}}
	e.RequestContext.Stage = "$default"
	e.RequestContext.DomainName = "api.example.com"
	e.RequestContext.HTTP.Method = method
	e.RequestContext.HTTP.Path = path
	if user != "" {
		e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
				Claims: map[string]string{"iss": "https://issuer.example.com", "sub": user}}}
	}
	return e
}

func call(t *testing.T, h handlerV2, e events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
	t.Helper()
	resp, err := h(t.Context(), e)
	if err != nil {
		t.Fatalf("the function returned an error, which a client sees as a 500: %v", err)
	}
	return resp
}

func expectProblem(t *testing.T, resp events.APIGatewayV2HTTPResponse, status int, code, detail string) {
	t.Helper()
	var doc struct{ Code, Detail string }
	if err := json.Unmarshal([]byte(resp.Body), &doc); err != nil {
		t.Fatalf("the answer is no JSON: %v: %q", err, resp.Body)
	}
	if resp.StatusCode != status || doc.Code != code || !strings.Contains(doc.Detail, detail) || resp.Headers["Content-Type"] != problemJSON {
		t.Errorf("answer %d %s %s; want a problem document, %d %s, that says %q", resp.StatusCode, resp.Headers["Content-Type"], resp.Body, status, code, detail)
	}
}

func TestE1_CreateTwiceEnlistsOnePaymentAndItsDebit(t *testing.T) {
	h, all := setUp(t)
	resp := idemtest.Twice(t, h, post("key-1", validOrder))
	var p ledger.Payment
	if err := json.Unmarshal([]byte(resp.Body), &p); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated || resp.Headers["Location"] != "/payments/"+p.ID || !ledger.IsPaymentID(p.ID) ||
		p.Amount != 1250 || p.Currency != "EUR" || p.Reference != "order 7" || p.CreatedAt == "" || p.Refundable != 1250 {
		t.Errorf("answer %d %v %s; want 201 with the payment and its Location", resp.StatusCode, resp.Headers, resp.Body)
	}
	p.Owner = "https://issuer.example.com alice"
	if made := all.payments(t); len(made) != 1 || made[0] != p {
		t.Errorf("the payments are %+v; want %+v, which the client was told of", made, p)
	}
}

func TestE2_DebitThatFailsSaysWhy(t *testing.T) {
	h, all := setUp(t)
	call(t, h, post("key-1", validOrder))
	poor := map[string]types.AttributeValue{"balance": &types.AttributeValueMemberN{Value: "1249"}}
	for code, item := range map[lambdaidem.Code]map[string]types.AttributeValue{"insufficient_funds": poor, "account_not_found": nil} {
		if err := (*all)[0].Fail("debit", item); !errors.Is(err, code) {
			t.Errorf("on the item %v it fails with %v; want %s", item, err, code)
		}
	}
}

func TestShowTwiceChangesNothing(t *testing.T) {
	h, all, table := setUpWith(&fakeTable{}, demonstrated)
	id := table.has(t)
	first, second := call(t, h, get(id, "alice")), call(t, h, get(id, "alice"))
	if first.StatusCode != http.StatusOK || first.Body != second.Body || !strings.Contains(first.Body, id) {
		t.Errorf("answers %d %s and %d %s; want the payment twice", first.StatusCode, first.Body, second.StatusCode, second.Body)
	}
	all.expect(t, 0)
}

func TestShowIsForTheOwnerAlone(t *testing.T) {
	h, _, table := setUpWith(&fakeTable{}, demonstrated)
	id := table.has(t)
	for name, e := range map[string]events.APIGatewayV2HTTPRequest{
		"another user":  get(id, "bob"),
		"nobody":        get(id, ""),
		"unknown id":    get(ledger.NewPaymentID(), "alice"),
		"malformed id":  get("7", "alice"),
		"very long id":  get(strings.Repeat("x", 5000), "alice"),
		"escaped bytes": get("%FF%00", "alice"),
	} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, call(t, h, e), http.StatusNotFound, "payment_not_found", "")
		})
	}
}

func TestF2_TwoUsersWithOneKeyMakeTwoPayments(t *testing.T) {
	h, all := setUp(t)
	bobs := post("key-1", validOrder)
	bobs.RequestContext.Authorizer.JWT.Claims["sub"] = "bob"
	a, b := call(t, h, post("key-1", validOrder)), call(t, h, bobs)
	if a.StatusCode != http.StatusCreated || b.StatusCode != http.StatusCreated || a.Body == b.Body {
		t.Errorf("answers %d %s and %d %s; want two payments", a.StatusCode, a.Body, b.StatusCode, b.Body)
	}
	all.expect(t, 2)
}

func TestF2_TokenThatNamesNobodySeesNothing(t *testing.T) {
	h, all := setUp(t)
	unnamed := post("key-1", validOrder)
	unnamed.RequestContext.Authorizer.JWT.Claims = map[string]string{"scope": "pay"}
	if resp := call(t, h, unnamed); resp.StatusCode != http.StatusForbidden {
		t.Errorf("POST: %d %s; want 403", resp.StatusCode, resp.Body)
	}
	all.expect(t, 0)
	show := get(ledger.NewPaymentID(), "")
	show.RequestContext.Authorizer = unnamed.RequestContext.Authorizer
	expectProblem(t, call(t, h, show), http.StatusForbidden, "caller_unknown", "")
}

func TestBadInputNamesTheField(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"no body", "", "the body is empty"},
		{"broken JSON", `{"amount":`, "amount: invalid JSON"},
		{"no object", `[]`, "the body: must be a JSON object"},
		{"null", `null`, "amount: is missing"},
		{"no amount", `{"currency":"EUR"}`, "amount: is missing"},
		{"no currency", `{"amount":1}`, "currency: is missing"},
		{"zero", `{"amount":0,"currency":"EUR"}`, "amount: must be 1 to 9007199254740991"},
		{"negative", `{"amount":-1,"currency":"EUR"}`, "amount: must be 1 to"},
		{"too much", `{"amount":9007199254740992,"currency":"EUR"}`, "amount: must be 1 to"},
		{"overflow", `{"amount":99999999999999999999,"currency":"EUR"}`, "amount: must be an integer"},
		{"a fraction", `{"amount":12.5,"currency":"EUR"}`, "amount: must be an integer"},
		{"a string", `{"amount":"12","currency":"EUR"}`, "amount: must be an integer"},
		{"a currency in lower case", `{"amount":1,"currency":"eur"}`, "currency: must be three capital letters"},
		{"a long currency", `{"amount":1,"currency":"EURO"}`, "currency: must be three capital letters"},
		{"a currency of other letters", `{"amount":1,"currency":"ÀÉ"}`, "currency: must be three capital letters"},
		{"a number for a currency", `{"amount":1,"currency":978}`, "currency: must be a string"},
		{"a long reference", `{"amount":1,"currency":"EUR","reference":"` + strings.Repeat("x", 141) + `"}`, "reference: must have at most 140"},
		{"a control character", `{"amount":1,"currency":"EUR","reference":"a\u0000b"}`, "reference: must have printable"},
		{"an unknown field", `{"amount":1,"currency":"EUR","refund":true}`, "refund: no such field"},
		{"a field twice", `{"amount":1,"amount":2,"currency":"EUR"}`, "amount: invalid JSON"},
		{"trailing data", `{"amount":1,"currency":"EUR"}{}`, "the body: invalid JSON"},
		{"invalid UTF-8", "{\"amount\":1,\"currency\":\"EUR\",\"reference\":\"\xff\"}", "reference: invalid JSON"},
		{"deep nesting", strings.Repeat(`{"amount":`, 200_000), "exceeded max depth"},
		{"6 MB", `{"amount":1,"currency":"EUR","reference":"` + strings.Repeat("x", 6<<20-100) + `"}`, "reference: must have at most 140"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, all := setUp(t)
			resp := idemtest.Twice(t, h, post("key-1", tt.body))
			expectProblem(t, resp, http.StatusBadRequest, "payment_invalid", tt.want)
			all.expect(t, 0)
		})
	}
}

func TestWhatTheAdapterCannotReadIsA400(t *testing.T) {
	h, all := setUp(t)
	base64 := post("key-1", "not base64!")
	base64.IsBase64Encoded = true
	if resp := call(t, h, base64); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is no base64: %d %s; want 400", resp.StatusCode, resp.Body)
	}
	unguarded := get("1", "alice")
	unguarded.Body, unguarded.IsBase64Encoded = "not base64!", true
	expectProblem(t, call(t, h, unguarded), http.StatusBadRequest, "request_invalid", "can't be decoded")
	expectProblem(t, call(t, h, get("50%", "alice")), http.StatusBadRequest, "request_invalid", "can't be decoded")
	all.expect(t, 0)
}

func TestK1_KeyWithCommaReachesTheGuardWhole(t *testing.T) {
	h, all := setUp(t)
	idemtest.Twice(t, h, post(`"one, two"`, validOrder))
	expectProblem(t, call(t, h, post("one, two", validOrder)), http.StatusBadRequest, "idempotency_key_invalid", "comma")
	all.expect(t, 1)
}

func TestReadFailureIsA503(t *testing.T) {
	h, _, _ := setUpWith(&fakeTable{err: errors.New("no reply")}, demonstrated)
	expectProblem(t, call(t, h, get(ledger.NewPaymentID(), "alice")), http.StatusServiceUnavailable, "payments_unavailable", "")
}
