package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

const dinner = `{"amount":1250,"currency":"EUR","reference":"dinner"}`

// user is a caller that only one test uses, so that tests don't see each other's accounts,
// payments and records.
type user string

// opening is the balance of a new user's account in EUR, in cents.
const opening = 100_000

func newUser(t *testing.T) user {
	t.Helper()
	u := user(strings.ToLower(rand.Text()[:8]) + "-" + t.Name())
	u.open(t, opening)
	return u
}

// open opens an account of the user in EUR.
func (u user) open(t *testing.T, balance int64) {
	t.Helper()
	if err := everything.OpenAccount(t.Context(), string(u), "EUR", balance); err != nil {
		t.Fatal(err)
	}
}

// balance returns the balance of the user's account in EUR, in cents.
func (u user) balance(t *testing.T) int64 {
	t.Helper()
	for _, a := range scan[struct {
		ID      string `dynamodbav:"id"`
		Balance int64  `dynamodbav:"balance"`
	}](t, "AccountsTable") {
		if a.ID == "EUR "+stack.Issuer+" "+string(u) {
			return a.Balance
		}
	}
	t.Fatal("the user has no account")
	return 0
}

func (u user) expectBalance(t *testing.T, want int64) {
	t.Helper()
	if got := u.balance(t); got != want {
		t.Errorf("the account has %d; want %d", got, want)
	}
}

// request is an HTTP request of a user.
type request struct {
	method  string // default POST
	path    string // default /payments
	keys    []string
	body    string
	headers map[string]string
}

func order(key, body string) request { return request{keys: []string{key}, body: body} }

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) replayed() bool { return a.header.Get("X-Idempotency-Replayed") == "true" }

var httpClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

func (u user) send(ctx context.Context, r request) (answer, error) {
	return u.sendTo(ctx, everything.URL(), r)
}

// sendTo sends a request to another stack.
func (u user) sendTo(ctx context.Context, url string, r request) (answer, error) {
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.path == "" {
		r.path = "/payments"
	}
	req, err := http.NewRequestWithContext(ctx, r.method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+stack.Token(string(u)))
	for _, key := range r.keys {
		req.Header.Add("Idempotency-Key", key)
	}
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

func (u user) mustSend(t *testing.T, r request) answer {
	t.Helper()
	a, err := u.send(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pay makes a payment of 1250 and returns its id.
func (u user) pay(t *testing.T, key string) string {
	t.Helper()
	a := u.mustSend(t, order(key, dinner))
	expectStatus(t, a, http.StatusCreated)
	return strings.TrimPrefix(a.header.Get("Location"), "/payments/")
}

func expectStatus(t *testing.T, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Fatalf("answer %d %s; want %d", a.status, a.body, status)
	}
}

// expectProblem checks a problem document (RFC 9457).
func expectProblem(t *testing.T, a answer, status int, code string) {
	t.Helper()
	var doc struct {
		Status int
		Code   string
	}
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil || a.status != status || doc.Status != status || doc.Code != code ||
		a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer %d %s %s; want a problem document, %d %s", a.status, a.header.Get("Content-Type"), a.body, status, code)
	}
}

// expectReplay checks that again equals first and is marked as a replay.
func expectReplay(t *testing.T, first, again answer) {
	t.Helper()
	if again.status != first.status || again.body != first.body || !again.replayed() || first.replayed() {
		t.Errorf("answer %d %v %s; want a replay of %d %s", again.status, again.header, again.body, first.status, first.body)
	}
	for _, name := range []string{"Content-Type", "Location"} {
		if again.header.Get(name) != first.header.Get(name) {
			t.Errorf("the replay has %s: %q; the first answer had %q", name, again.header.Get(name), first.header.Get(name))
		}
	}
}

// payment is an item of the payments table: a payment, or a refund.
type payment struct {
	ID         string `dynamodbav:"id"`
	Owner      string `dynamodbav:"owner"`
	Amount     int64  `dynamodbav:"amount"`
	Refundable int64  `dynamodbav:"refundable"`
	PaymentID  string `dynamodbav:"payment_id"` // the refunded payment; empty unless the item is a refund
}

// payments reads the user's payments and refunds from the table.
func (u user) payments(t *testing.T) []payment {
	t.Helper()
	var own []payment
	for _, p := range scan[payment](t, "PaymentsTable") {
		if p.Owner == stack.Issuer+" "+string(u) {
			own = append(own, p)
		}
	}
	return own
}

// expectPayments checks the number of payments, and that the account has paid for all of them.
func (u user) expectPayments(t *testing.T, n int) {
	t.Helper()
	made := u.payments(t)
	if len(made) != n {
		t.Errorf("%d payments were made: %+v; want %d", len(made), made, n)
	}
	left := int64(opening)
	for _, p := range made {
		left -= p.Refundable // refunds went back to the account
	}
	u.expectBalance(t, left)
}

// record is an item of the idempotency table.
type record struct {
	ID      string `dynamodbav:"id"`
	Status  string `dynamodbav:"status"`
	Scope   string `dynamodbav:"scope"`
	Attempt int    `dynamodbav:"attempt"`
	Outcome string `dynamodbav:"outcome"`
	Data    string `dynamodbav:"data"`
}

// records reads the user's idempotency records from the table.
func (u user) records(t *testing.T) []record {
	t.Helper()
	var own []record
	for _, r := range scan[record](t, "IdempotencyTable") {
		if strings.HasSuffix(r.Scope, "|"+string(u)) {
			own = append(own, r)
		}
	}
	return own
}

func (u user) expectRecord(t *testing.T, status string, attempt int, outcome string) {
	t.Helper()
	if all := u.records(t); len(all) != 1 || all[0].Status != status || all[0].Attempt != attempt || all[0].Outcome != outcome {
		t.Errorf("the records are %+v; want one, %s by attempt %d, outcome %q", all, status, attempt, outcome)
	}
}

func (u user) expectNoRecord(t *testing.T) {
	t.Helper()
	if all := u.records(t); len(all) != 0 {
		t.Errorf("the records are %+v; want none", all)
	}
}

// awaitRecord waits until the record of a running request exists.
func (u user) awaitRecord(t *testing.T) {
	t.Helper()
	await(t, 20*time.Second, "a request under way has a record", func() bool { return len(u.records(t)) > 0 })
}

// await waits until a condition holds. The test fails if the condition doesn't hold in time.
func await(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("still waiting, after %v, until %s", limit, what)
		}
	}
}

func scan[T any](t *testing.T, logicalID string) []T {
	t.Helper()
	var all []T
	pages := dynamodb.NewScanPaginator(everything.Database().Client(), &dynamodb.ScanInput{
		TableName: aws.String(everything.Table(logicalID)), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var items []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &items); err != nil {
			t.Fatal(err)
		}
		all = append(all, items...)
	}
	return all
}
