package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// fakeTable is as much of DynamoDB as payments need.
type fakeTable struct {
	ledger.API
	mu    sync.Mutex
	items map[string]map[string]types.AttributeValue
	err   error // what every call answers, if set
	lose  bool  // the reply of the next write
}

func idOf(item map[string]types.AttributeValue) string {
	return item["id"].(*types.AttributeValueMemberS).Value
}

// UpdateItem does what ledger.Table.Pay asks for; package ledger's own tests ask
// DynamoDB Local.
func (f *fakeTable) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	item := f.items[idOf(in.Key)]
	if item == nil {
		item = maps.Clone(in.Key)
		f.items[idOf(in.Key)] = item
	}
	for _, name := range []string{"owner", "amount", "currency", "reference"} {
		if item[name] != nil && !reflect.DeepEqual(item[name], in.ExpressionAttributeValues[":"+name]) {
			return nil, &types.ConditionalCheckFailedException{}
		}
	}
	for name, value := range in.ExpressionAttributeValues {
		name = strings.TrimPrefix(name, ":")
		if runs, ok := item[name].(*types.AttributeValueMemberSS); ok {
			value = &types.AttributeValueMemberSS{Value: append(runs.Value, value.(*types.AttributeValueMemberSS).Value...)}
		} else if item[name] != nil {
			continue
		}
		item[name] = value
	}
	if f.lose {
		f.lose = false
		return nil, errors.New("no reply")
	}
	return &dynamodb.UpdateItemOutput{Attributes: item}, nil
}

func (f *fakeTable) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	return &dynamodb.GetItemOutput{Item: f.items[idOf(in.Key)]}, nil
}

// setUp returns the function with an empty table and no records.
func setUp(optFns ...func(*lambdaidem.Options)) (handlerV2, *fakeTable) {
	table := &fakeTable{items: map[string]map[string]types.AttributeValue{}}
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }).With(optFns...)
	return guarded(guard, demo(newApplication(ledger.Table{API: table, Name: "payments"}))), table
}

const validOrder = `{"amount":1250,"currency":"EUR","reference":"order 7"}`

// post is a POST /payments by alice as API Gateway sends it.
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

// get is a GET /payments/{id}.
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

func TestCreateTwiceMakesOnePayment(t *testing.T) {
	h, table := setUp()
	resp := idemtest.Twice(t, h, post("key-1", validOrder))
	var p ledger.Payment
	if err := json.Unmarshal([]byte(resp.Body), &p); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated || resp.Headers["Location"] != "/payments/"+p.ID || !ledger.IsPaymentID(p.ID) ||
		p.Amount != 1250 || p.Currency != "EUR" || p.Reference != "order 7" || p.CreatedAt == "" {
		t.Errorf("answer %d %v %s; want 201 with the payment and its Location", resp.StatusCode, resp.Headers, resp.Body)
	}
	if len(table.items) != 1 {
		t.Errorf("%d payments were made; want 1", len(table.items))
	}
}

func TestShowTwiceChangesNothing(t *testing.T) {
	h, table := setUp()
	location := call(t, h, post("key-1", validOrder)).Headers["Location"]
	id := strings.TrimPrefix(location, "/payments/")
	first, second := call(t, h, get(id, "alice")), call(t, h, get(id, "alice"))
	if first.StatusCode != http.StatusOK || first.Body != second.Body || !strings.Contains(first.Body, id) {
		t.Errorf("answers %d %s and %d %s; want the payment twice", first.StatusCode, first.Body, second.StatusCode, second.Body)
	}
	if len(table.items) != 1 {
		t.Errorf("there are %d payments; want 1", len(table.items))
	}
}

func TestShowIsForTheOwnerAlone(t *testing.T) {
	h, _ := setUp()
	id := strings.TrimPrefix(call(t, h, post("key-1", validOrder)).Headers["Location"], "/payments/")
	for name, e := range map[string]events.APIGatewayV2HTTPRequest{
		"another user":  get(id, "bob"),
		"nobody":        get(id, ""),
		"unknown id":    get(ledger.PaymentID(""), "alice"),
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
	h, table := setUp()
	bobs := post("key-1", validOrder)
	bobs.RequestContext.Authorizer.JWT.Claims["sub"] = "bob"
	a, b := call(t, h, post("key-1", validOrder)), call(t, h, bobs)
	if a.StatusCode != http.StatusCreated || b.StatusCode != http.StatusCreated || a.Body == b.Body || len(table.items) != 2 {
		t.Errorf("answers %d %s and %d %s, %d payments; want two payments", a.StatusCode, a.Body, b.StatusCode, b.Body, len(table.items))
	}
}

func TestF2_TokenThatNamesNobodySeesNothing(t *testing.T) {
	h, table := setUp()
	unnamed := post("key-1", validOrder)
	unnamed.RequestContext.Authorizer.JWT.Claims = map[string]string{"scope": "pay"}
	if resp := call(t, h, unnamed); resp.StatusCode != http.StatusForbidden || len(table.items) != 0 {
		t.Errorf("POST: %d %s, %d payments; want 403 and none", resp.StatusCode, resp.Body, len(table.items))
	}
	show := get(ledger.PaymentID(""), "")
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
			h, table := setUp()
			resp := idemtest.Twice(t, h, post("key-1", tt.body))
			expectProblem(t, resp, http.StatusBadRequest, "payment_invalid", tt.want)
			if len(table.items) != 0 {
				t.Error("a payment was made")
			}
		})
	}
}

func TestWhatTheAdapterCannotReadIsA400(t *testing.T) {
	h, table := setUp()
	base64 := post("key-1", "not base64!")
	base64.IsBase64Encoded = true
	if resp := call(t, h, base64); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is no base64: %d %s; want 400", resp.StatusCode, resp.Body)
	}
	unguarded := get("1", "alice")
	unguarded.Body, unguarded.IsBase64Encoded = "not base64!", true
	expectProblem(t, call(t, h, unguarded), http.StatusBadRequest, "request_invalid", "can't be decoded")
	expectProblem(t, call(t, h, get("50%", "alice")), http.StatusBadRequest, "request_invalid", "can't be decoded")
	if len(table.items) != 0 {
		t.Error("a payment was made")
	}
}

func TestK1_KeyWithCommaReachesTheGuardWhole(t *testing.T) {
	h, table := setUp()
	idemtest.Twice(t, h, post(`"one, two"`, validOrder))
	expectProblem(t, call(t, h, post("one, two", validOrder)), http.StatusBadRequest, "idempotency_key_invalid", "comma")
	if len(table.items) != 1 {
		t.Errorf("%d payments; want 1, by the quoted key", len(table.items))
	}
}

func TestX2_UnknownWriteKeepsTheLease(t *testing.T) {
	h, table := setUp()
	table.err = errors.New("no reply")
	expectProblem(t, call(t, h, post("key-1", validOrder)), http.StatusGatewayTimeout, "payment_unknown", "not known")
	table.err = nil
	if resp := call(t, h, post("key-1", validOrder)); resp.StatusCode != http.StatusConflict || resp.Headers["Retry-After"] == "" {
		t.Errorf("a retry at once: %d %s; want 409 with Retry-After while the write may be under way", resp.StatusCode, resp.Body)
	}
	if len(table.items) != 0 {
		t.Errorf("%d payments; want none yet", len(table.items))
	}
}

// G2: the handler runs at least once; the payment's ID makes that one payment.
func TestG2_ASecondRunMakesNoSecondPayment(t *testing.T) {
	now := time.Now()
	h, table := setUp(func(o *lambdaidem.Options) { o.Clock = func() time.Time { return now } })
	table.lose = true
	expectProblem(t, call(t, h, post("key-1", validOrder)), http.StatusGatewayTimeout, "payment_unknown", "not known")
	now = now.Add(2 * time.Minute) // the lease is over
	resp := idemtest.Twice(t, h, post("key-1", validOrder))
	if resp.StatusCode != http.StatusCreated || len(table.items) != 1 {
		t.Errorf("the second attempt got %d %s, and there are %d payments; want 201 and one", resp.StatusCode, resp.Body, len(table.items))
	}
	for _, item := range table.items {
		if runs := item["runs"].(*types.AttributeValueMemberSS).Value; len(runs) != 2 {
			t.Errorf("the payment knows of the runs %v; want two", runs)
		}
	}
	// The key's record is gone; its payment is not.
	now = now.Add(48 * time.Hour)
	expectProblem(t, call(t, h, post("key-1", strings.Replace(validOrder, "1250", "1251", 1))), http.StatusConflict, "key_used", "another payment")
	if resp := call(t, h, post("key-2", validOrder)); resp.StatusCode != http.StatusCreated || len(table.items) != 2 {
		t.Errorf("another key got %d %s", resp.StatusCode, resp.Body)
	}
}

func TestReadFailureIsA503(t *testing.T) {
	h, table := setUp()
	table.err = errors.New("no reply")
	expectProblem(t, call(t, h, get(ledger.PaymentID(""), "alice")), http.StatusServiceUnavailable, "payments_unavailable", "")
}
