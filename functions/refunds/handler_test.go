package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/functions/internal/ledger"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/localstack/ddblocal"
	"github.com/lambdaidem/toolkit/localstack/template"
)

const alice = "https://issuer.example.com alice"

type handlerV2 = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// setUp is the function with the tables of template.yaml, which have an account of alice and her
// payment of 1000.
type setUp struct {
	h        handlerV2
	client   *dynamodb.Client
	payments ledger.Payments
	accounts string
	id       string // ID of the payment
}

func newSetUp(t *testing.T) *setUp {
	t.Helper()
	client := ddblocal.ForTest(t).Client()
	names := template.TablesForTest(t, client, "../../template.yaml")
	s := &setUp{client: client, payments: ledger.Payments{API: client, Name: names["PaymentsTable"]}, accounts: names["AccountsTable"]}
	p := ledger.Payment{ID: ledger.NewPaymentID(), Owner: alice, Amount: 1000, Currency: "EUR", CreatedAt: "2026-01-02T03:04:05Z", Refundable: 1000}
	s.id = p.ID
	s.put(t, s.payments.Name, p)
	s.put(t, s.accounts, account{"EUR " + alice, 50})
	s.h = guarded(dynamostore.New(client, names["IdempotencyTable"]), handler{s.payments, ledger.Accounts(s.accounts)})
	return s
}

func guarded(store lambdaidem.Store, h handler) handlerV2 {
	return lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }).APIGatewayV2(h.create)
}

// withoutTables returns the function for requests that must not read any table.
func withoutTables() handlerV2 { return guarded(memstore.New(), handler{}) }

type account struct {
	ID      string `dynamodbav:"id"`
	Balance int64  `dynamodbav:"balance"`
}

func (s *setUp) put(t *testing.T, table string, v any) {
	t.Helper()
	item, err := attributevalue.MarshalMap(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// expectLeft checks how much of the payment can still be refunded, and that the refunds are in
// the account.
func (s *setUp) expectLeft(t *testing.T, left int64) {
	t.Helper()
	p, err := s.payments.Get(t.Context(), alice, s.id)
	if err != nil || p.Refundable != left {
		t.Errorf("the payment is %+v, %v; want %d left", p, err, left)
	}
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "EUR " + alice}}
	out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.accounts, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	var a account
	if err := attributevalue.UnmarshalMap(out.Item, &a); err != nil || a.Balance != 50+1000-left {
		t.Errorf("the account is %+v, %v; want %d", a, err, 50+1000-left)
	}
}

// post returns the event of a POST /payments/{id}/refunds by alice.
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

func TestRefundTwiceRefundsOnce(t *testing.T) {
	s := newSetUp(t)
	resp := idemtest.Twice(t, s.h, post(s.id, "key-1", `{"amount":400}`))
	var r ledger.Refund
	if err := json.Unmarshal([]byte(resp.Body), &r); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated || r.Amount != 400 || r.Left != 600 || r.PaymentID != s.id || r.Currency != "EUR" || r.ID == "" {
		t.Errorf("answer %d %s; want 201, 400 refunded and 600 left", resp.StatusCode, resp.Body)
	}
	s.expectLeft(t, 600)
}

func TestX1_RefusedRefundStaysRefused(t *testing.T) {
	s := newSetUp(t)
	expectProblem(t, idemtest.Twice(t, s.h, post(s.id, "key-1", `{"amount":1001}`)),
		http.StatusConflict, "refund_exceeds_rest", "1001 is more than the 1000 that is left")
	s.expectLeft(t, 1000)
}

// A refund calls no outside service, so its refusal because of an absent account may be stored.
func TestE2_RefundWithoutAnAccountIsRefused(t *testing.T) {
	s := newSetUp(t)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "EUR " + alice}}
	if _, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.accounts, Key: key}); err != nil {
		t.Fatal(err)
	}
	expectProblem(t, idemtest.Twice(t, s.h, post(s.id, "key-1", `{"amount":400}`)),
		http.StatusNotFound, "account_not_found", "You have no account in this currency.")
	if p, err := s.payments.Get(t.Context(), alice, s.id); err != nil || p.Refundable != 1000 {
		t.Errorf("the payment is %+v, %v; want all of it refundable", p, err)
	}
}

func TestUnknownPaymentIsNotFound(t *testing.T) {
	s := newSetUp(t)
	for name, unknown := range map[string]string{"unknown": ledger.NewPaymentID(), "malformed": "7", "long": strings.Repeat("x", 5000), "none": ""} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, idemtest.Twice(t, s.h, post(unknown, "key-"+name, `{"amount":1}`)), http.StatusNotFound, "payment_not_found", "")
		})
	}
	t.Run("another user's", func(t *testing.T) {
		e := post(s.id, "key-1", `{"amount":1}`)
		e.RequestContext.Authorizer.JWT.Claims["sub"] = "bob"
		expectProblem(t, idemtest.Twice(t, s.h, e), http.StatusNotFound, "payment_not_found", "")
	})
	s.expectLeft(t, 1000)
}

func TestF2_TokenThatNamesNobodyRefundsNothing(t *testing.T) {
	h := withoutTables()
	e := post(ledger.NewPaymentID(), "key-1", `{"amount":1}`)
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
			// There is no table, because invalid input must be refused before any read.
			resp := idemtest.Twice(t, withoutTables(), post(ledger.NewPaymentID(), "key-1", tt.body))
			expectProblem(t, resp, http.StatusBadRequest, "refund_invalid", tt.want)
		})
	}
}

func TestBase64BodyIsDecoded(t *testing.T) {
	s := newSetUp(t)
	e := post(s.id, "key-1", "eyJhbW91bnQiOjF9")
	e.IsBase64Encoded = true
	if resp := idemtest.Twice(t, s.h, e); resp.StatusCode != http.StatusCreated {
		t.Errorf("%d %s; want 201", resp.StatusCode, resp.Body)
	}
	e.Body = "{}"
	if resp, err := s.h(t.Context(), e); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is no base64: %d %s, %v; want 400", resp.StatusCode, resp.Body, err)
	}
	s.expectLeft(t, 999)
}

// Two refunds that read the same remaining amount can't both take it. The later one is released,
// and succeeds or is refused when it is repeated.
func TestG1_RefundsAtOnceTakeTheRestOnce(t *testing.T) {
	s := newSetUp(t)
	answers := make([]events.APIGatewayV2HTTPResponse, 4)
	var group errgroup.Group
	for i := range answers {
		group.Go(func() error {
			e := post(s.id, fmt.Sprintf("key-%d", i), `{"amount":400}`)
			for {
				var err error
				if answers[i], err = s.h(t.Context(), e); err != nil || answers[i].StatusCode < 500 && answers[i].Headers["Retry-After"] == "" {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	granted := 0
	for _, a := range answers {
		if a.StatusCode == http.StatusCreated {
			granted++
		} else {
			expectProblem(t, a, http.StatusConflict, "refund_exceeds_rest", "400 is more than the 200")
		}
	}
	if granted != 2 {
		t.Errorf("%d refunds of 400 were granted; want 2", granted)
	}
	s.expectLeft(t, 200)
}

// silent is a table whose reads fail.
type silent struct{}

func (silent) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return nil, errors.New("no reply")
}

func TestX2_PaymentThatCannotBeReadIsReleased(t *testing.T) {
	h := guarded(memstore.New(), handler{payments: ledger.Payments{API: silent{}}})
	for range 2 { // the second request does not find the first in progress
		resp, err := h(t.Context(), post(ledger.NewPaymentID(), "key-1", `{"amount":1}`))
		if err != nil {
			t.Fatal(err)
		}
		expectProblem(t, resp, http.StatusServiceUnavailable, string(lambdaidem.ErrRetryable), "")
	}
}
