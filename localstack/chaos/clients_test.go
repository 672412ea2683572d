//go:build chaos

package chaos

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// clients sends requests and keeps every answer.
type clients struct {
	url  string
	http *http.Client

	mu      *sync.Mutex
	answers *[]Answer
	robbed  map[string]int // see Books.Robbed
}

func newClients() clients {
	return clients{
		http:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}},
		mu:      &sync.Mutex{},
		answers: &[]Answer{},
		robbed:  map[string]int{},
	}
}

func (c clients) closeConnections() { c.http.CloseIdleConnections() }

// The prefixes of the keys. A key is also the name of its user.
const (
	paymentKey  = "key-"
	transferKey = "key-transfer-"
)

// opening is the balance of a new user's account, in cents. recipients is the number of accounts
// that receive transfers.
const (
	opening    = 10_000
	recipients = 16
)

// newKey returns a new key for a payment, and opens an account for its user.
func (w *world) newKey(t *testing.T) string { t.Helper(); return w.newUser(t, paymentKey) }

// newTransfer returns a new key for a transfer, and opens an account for its user.
func (w *world) newTransfer(t *testing.T) string { t.Helper(); return w.newUser(t, transferKey) }

// newCalmTransfer is like newTransfer, but the clearing house neither fails nor delays the
// transfer, and loses no reply.
func (w *world) newCalmTransfer(t *testing.T) string {
	t.Helper()
	for {
		if key := w.newTransfer(t); moodOf(key) == "" {
			return key
		}
	}
}

func (w *world) newUser(t *testing.T, kind string) string {
	t.Helper()
	key := kind + strings.ToLower(rand.Text())
	w.open(t, key, opening)
	return key
}

// open opens an account for a user. It tries again while the database is down, until patience
// ends.
func (w *world) open(t *testing.T, user string, balance int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := w.stack.OpenAccount(ctx, user, "EUR", balance)
		if err == nil {
			w.opened.Add(balance)
			return
		}
		if !sleep(ctx, 100*time.Millisecond) {
			t.Error(err)
			return
		}
	}
}

// recipientOf returns the account that receives the transfer of a key.
func recipientOf(key string) string { return fmt.Sprintf("till-%d", key[len(key)-1]%recipients) }

// moods are the references that tell the clearing house how to behave (see package clearing).
// The key decides which one a transfer has.
var moods = []string{"fail=1", "lose=1", "delay=50", ""}

func moodOf(key string) string { return moods[int(key[len(key)-2])%len(moods)] }

// headers are request headers, by name. X-Demo- headers make the functions fail, wait or crash.
type headers map[string]string

// send sends one request for the payment or transfer of a key, and keeps the answer. The
// reference of a payment is its key, so that the audit finds the payment.
func (c clients) send(ctx context.Context, key string, demo headers) Answer {
	a := c.exchange(ctx, key, demo)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.answers = append(*c.answers, a)
	return a
}

func (c clients) exchange(ctx context.Context, key string, demo headers) Answer {
	broken := Answer{Key: key}
	path, body := "/payments", fmt.Sprintf(`{"amount":1250,"currency":"EUR","reference":%q}`, key)
	if strings.HasPrefix(key, transferKey) {
		path, body = "/transfers", fmt.Sprintf(`{"to":%q,"amount":1250,"currency":"EUR","reference":%q}`, recipientOf(key), moodOf(key))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		panic(err) // made of constants
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+stack.Token(key))
	r.Header.Set("Idempotency-Key", key)
	for name, value := range demo {
		r.Header.Set(name, value)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return broken
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return broken
	}
	return Answer{
		Key:        key,
		Status:     resp.StatusCode,
		Replayed:   resp.Header.Get("X-Idempotency-Replayed") == "true",
		RetryAfter: resp.Header.Get("Retry-After"),
		Body:       string(text),
	}
}

// aside sends a request in the background. The channel receives the answer.
func (c clients) aside(t *testing.T, key string, demo headers) <-chan Answer {
	t.Helper()
	answer := make(chan Answer, 1)
	go func() { answer <- c.send(t.Context(), key, demo) }()
	return answer
}

// insist repeats a request as a good client does, until its answer is 201 or
// ctx ends. It returns the last answer.
func (c clients) insist(ctx context.Context, key string, demo func() headers) Answer {
	for {
		a := c.send(ctx, key, demo())
		if a.Status == http.StatusCreated || !pause(ctx, a) {
			return a
		}
	}
}

// pause waits as long as the answer's Retry-After says, or 200 ms without one. It reports whether
// ctx is still alive afterwards.
func pause(ctx context.Context, a Answer) bool {
	wait := 200 * time.Millisecond
	if seconds, err := strconv.Atoi(a.RetryAfter); err == nil {
		wait = time.Duration(seconds) * time.Second
	}
	return sleep(ctx, wait)
}

func noHeaders() headers { return nil }

// mustSucceed repeats the request of a key until its answer is 201. It fails the test when
// patience ends.
func (w *world) mustSucceed(t *testing.T, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := w.insist(ctx, key, noHeaders)
	expectStatus(t, a, http.StatusCreated)
}

func expectStatus(t *testing.T, a Answer, status int) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("the answer is %d %s; want %d", a.Status, a.Body, status)
	}
}

func expectCode(t *testing.T, a Answer, status int, code lambdaidem.Code) {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Body, `"code":"`+string(code)+`"`) {
		t.Errorf("the answer is %d %s; want %d %s", a.Status, a.Body, status, code)
	}
}

// expectEnd checks that the key has one payment or transfer, and one record, which was completed
// by the given attempt. It audits the key as well.
func (w *world) expectEnd(t *testing.T, key string, attempt int) {
	t.Helper()
	// One more replay, for the audit to compare.
	expectStatus(t, w.send(t.Context(), key, nil), http.StatusCreated)
	b := w.books(t).of(key)
	report := b.Audit()
	if len(report.Findings) > 0 {
		t.Errorf("the audit found:\n%s", report)
	}
	if len(b.Records) != 1 || b.Records[0].State != lambdaidem.Completed || b.Records[0].Attempt != attempt || len(b.Payments)+len(b.Transfers) != 1 {
		t.Errorf("the records are %+v, the payments %+v, the transfers %+v; want one, completed by attempt %d", b.Records, b.Payments, b.Transfers, attempt)
	}
}

// books returns all answers so far, and what the tables have now.
func (w *world) books(t *testing.T) Books {
	t.Helper()
	var b Books
	for _, p := range scan[struct {
		ID, Reference string
		Refundable    int64
	}](t, w, "PaymentsTable") {
		b.Payments = append(b.Payments, Payment{p.ID, p.Reference, p.Refundable})
	}
	for _, tr := range scan[struct {
		ID, From, Status string
		Amount           int64
	}](t, w, "TransfersTable") {
		b.Transfers = append(b.Transfers, Transfer{tr.ID, userOf(tr.From, " "), tr.Amount, tr.Status})
	}
	for _, e := range w.stack.Clearing().Effects() {
		b.Effects = append(b.Effects, Effect{e.Transfer, e.Amount})
	}
	for _, a := range scan[struct{ Balance int64 }](t, w, "AccountsTable") {
		b.Money.Balances += a.Balance
	}
	b.Money.Opened = w.opened.Load()
	for _, r := range scan[struct {
		Scope, Status string
		Attempt       int
	}](t, w, "IdempotencyTable") {
		if key := keyOf(r.Scope); strings.HasPrefix(key, paymentKey) {
			b.Records = append(b.Records, Record{key, lambdaidem.State(r.Status), r.Attempt})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.Answers, b.Robbed = slices.Clone(*w.answers), maps.Clone(w.robbed)
	return b
}

// of returns the books of one key alone.
func (b Books) of(key string) Books {
	own := Books{Robbed: map[string]int{key: b.Robbed[key]}}
	for _, a := range b.Answers {
		if a.Key == key {
			own.Answers = append(own.Answers, a)
		}
	}
	for _, p := range b.Payments {
		if p.Key == key {
			own.Payments = append(own.Payments, p)
		}
	}
	for _, tr := range b.Transfers {
		if tr.Key != key {
			continue
		}
		own.Transfers = append(own.Transfers, tr)
		for _, e := range b.Effects {
			if e.Transfer == tr.ID {
				own.Effects = append(own.Effects, e)
			}
		}
	}
	for _, r := range b.Records {
		if r.Key == key {
			own.Records = append(own.Records, r)
		}
	}
	return own
}

// recordOf returns the item of a key's record, or nil if there is none. It reads the database
// directly, without the proxy.
func (w *world) recordOf(t *testing.T, key string) map[string]any {
	t.Helper()
	for _, item := range scan[map[string]any](t, w, "IdempotencyTable") {
		if scope, ok := item["scope"].(string); ok && keyOf(scope) == key {
			return item
		}
	}
	return nil
}

func (w *world) paymentsOf(t *testing.T, key string) int {
	t.Helper()
	return len(w.books(t).of(key).Payments)
}

func scan[T any](t *testing.T, w *world, logicalID string) []T {
	t.Helper()
	var all []T
	pages := dynamodb.NewScanPaginator(w.stack.Database().Client(), &dynamodb.ScanInput{
		TableName: aws.String(w.stack.Table(logicalID)), ConsistentRead: aws.Bool(true)})
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
