package docs_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestKeys_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/keys.md") }

// This file tests what docs/keys.md says about each pitfall.

// payment is an operation as the client stores it.
type payment struct {
	Key    string
	Amount int
}

// pay is the client's side: a key for the operation, kept before the first try.
func pay(p *payment, save func(*payment) error, send func(*payment) error) error {
	if p.Key == "" {
		p.Key = rand.Text()
		if err := save(p); err != nil {
			return err
		}
	}
	var err error
	for range 3 {
		if err = send(p); err == nil {
			return nil
		}
	}
	return err
}

var errLost = errors.New("no reply came")

// lossy returns a function that sends payments to a guarded handler and loses the first two
// replies, and the number of times that the handler has run.
func lossy(t *testing.T, keyOf func(*payment) string) (send func(*payment) error, runs *int) {
	t.Helper()
	runs, tries := new(int), 0
	handler := keysGuard(memstore.New()).APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		*runs++
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
	})
	return func(p *payment) error {
		r := idemtest.Request{Path: "/payments", Key: keyOf(p), Body: fmt.Sprintf(`{"amount":%d}`, p.Amount)}
		answer, err := handler(t.Context(), r.APIGatewayV2())
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Errorf("%+v, %v", answer, err)
		}
		if tries++; tries < 3 {
			return errLost
		}
		return nil
	}, runs
}

func keysGuard(store lambdaidem.Store, optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	return lambdaidem.New(store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "docs", lambdaidem.Discard
	}}, optFns...)...)
}

func TestKeys_AKeyForTheOperationRunsOnce(t *testing.T) {
	send, runs := lossy(t, func(p *payment) string { return p.Key })
	var kept []payment
	save := func(p *payment) error { kept = append(kept, *p); return nil }
	p := payment{Amount: 40}
	if err := pay(&p, save, send); err != nil || *runs != 1 {
		t.Errorf("the handler ran %d times, %v", *runs, err)
	}
	if len(kept) != 1 || kept[0].Key != p.Key || lambdaidem.PrintableKey(p.Key) != nil {
		t.Errorf("kept were %+v of %+v", kept, p)
	}
}

// After a crash, the client continues with the key that it stored.
func TestKeys_AKeptKeyIsUsedAgain(t *testing.T) {
	send, runs := lossy(t, func(p *payment) string { return p.Key })
	kept := payment{Amount: 40}
	crash := func(p *payment) error { kept = *p; return errLost }
	if err := pay(&payment{Amount: 40}, crash, send); !errors.Is(err, errLost) || *runs != 0 {
		t.Errorf("a key that could not be kept was sent: %d runs, %v", *runs, err)
	}
	key := kept.Key
	if err := pay(&kept, func(*payment) error { return nil }, send); err != nil || kept.Key != key || *runs != 1 {
		t.Errorf("%q became %q; %d runs, %v", key, kept.Key, *runs, err)
	}
}

func TestKeys_AKeyForEachAttemptRunsEachTime(t *testing.T) {
	send, runs := lossy(t, func(*payment) string { return rand.Text() })
	p := payment{Amount: 40}
	if err := pay(&p, func(*payment) error { return nil }, send); err != nil || *runs != 3 {
		t.Errorf("the handler ran %d times, %v", *runs, err)
	}
}

// Two consecutive integers above 2^53 are the same float64, both in a key and in a payload.
func TestKeys_NumbersAbove2To53(t *testing.T) {
	type exact struct {
		Order int64 `json:"order"`
	}
	first, second := `{"order":9007199254740992}`, `{"order":9007199254740993}`

	loose := lambdaidem.Handler(keysGuard(memstore.New()), "charge",
		func(_ context.Context, in map[string]any) (string, error) {
			return fmt.Sprintf("order-%.0f", in["order"]), nil
		},
		func(_ context.Context, in map[string]any) (string, error) { return fmt.Sprint(in["order"]), nil })
	if runs := invoked(t, loose, first, second); runs != 1 {
		t.Errorf("with float64 %d answers differ", runs)
	}
	typed := lambdaidem.Handler(keysGuard(memstore.New()), "charge",
		func(_ context.Context, in exact) (string, error) { return fmt.Sprintf("order-%d", in.Order), nil },
		func(_ context.Context, in exact) (string, error) { return fmt.Sprint(in.Order), nil })
	if runs := invoked(t, typed, first, second); runs != 2 {
		t.Errorf("with int64 %d answers differ", runs)
	}

	// For a message, the guard compares the body itself, so it refuses the second message.
	queue := newConsumer(keysGuard(memstore.New()), func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			var in map[string]any
			err := json.Unmarshal([]byte(m.Body), &in)
			return fmt.Sprintf("order-%.0f", in["order"]), err
		}
	})
	queue.message(t, "orders", "m-1", "", first)
	queue.message(t, "orders", "m-2", "", second)
	if queue.runs != 1 || len(queue.failed) != 1 || !errors.Is(queue.failed[0], lambdaidem.ErrPayloadMismatch) {
		t.Errorf("handled %d times, failures %v", queue.runs, queue.failed)
	}
}

// invoked passes each of the texts to the handler, decoded as Lambda decodes events, and returns
// the number of different answers.
func invoked[In any](t *testing.T, handler func(context.Context, In) (string, error), texts ...string) int {
	t.Helper()
	answers := map[string]bool{}
	for _, text := range texts {
		var in In
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
		answer, err := handler(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		answers[answer] = true
	}
	return len(answers)
}

func TestKeys_ARenamedFunctionForgets(t *testing.T) {
	store := memstore.New()
	do := func(namespace string) string {
		t.Helper()
		guard := keysGuard(store, func(o *lambdaidem.Options) { o.Namespace = namespace })
		got, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "k-17"},
			func(context.Context) (string, error) { return "by " + namespace, nil })
		if err != nil {
			t.Error(err)
		}
		return got
	}
	if do("payments"); do("payments-v2") != "by payments-v2" {
		t.Error("another namespace got the answer of the first")
	}
	// The same namespace, operation and key identify the same record, whichever function asks.
	if got := do("payments"); got != "by payments" {
		t.Errorf("the same namespace got %q", got)
	}
}

func TestKeys_OneKeyForTwoOperations(t *testing.T) {
	runs := 0
	handler := keysGuard(memstore.New()).APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		runs++
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
	})
	for _, c := range []struct {
		path, body   string
		status, runs int
	}{
		{"/payments", `{"amount":40}`, http.StatusCreated, 1},
		{"/payments", `{"amount":55}`, http.StatusUnprocessableEntity, 1}, // a different payload is refused
		{"/payments", `{"amount":40}`, http.StatusCreated, 1},             // intended as a second payment, but it is a replay
		{"/refunds", `{"amount":55}`, http.StatusCreated, 2},              // another route has its own record
	} {
		answer, err := handler(t.Context(), idemtest.Request{Path: c.path, Key: "k-17", Body: c.body}.APIGatewayV2())
		if err != nil || answer.StatusCode != c.status || runs != c.runs {
			t.Errorf("%s %s: %d, %d runs, %v", c.path, c.body, answer.StatusCode, runs, err)
		}
	}
}

// Neither the record nor an event contains the key, unless ShowKeys is set, which shows it in
// events. The record does contain the caller.
func TestKeys_AreNotKept(t *testing.T) {
	const key = "ann@example.com"
	for _, show := range []bool{false, true} {
		store, seen := memstore.New(), &idemtest.Recorder{}
		guard := keysGuard(store, func(o *lambdaidem.Options) { o.Observer, o.ShowKeys = seen, show })
		call := lambdaidem.Call{Operation: "charge", Key: key, Principal: "customer-7"}
		if _, err := lambdaidem.Do(t.Context(), guard, call, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		e := seen.Last(t)
		if strings.Contains(fmt.Sprintf("%+v", e), key) != show {
			t.Errorf("ShowKeys %v: %+v", show, e)
		}
		if sum := sha256.Sum256([]byte(key)); !show && e.Key != hex.EncodeToString(sum[:6]) {
			t.Errorf("the event has %q, which is not the hash that a guess would have", e.Key)
		}
		record, err := store.Get(t.Context(), e.RecordID, time.Now())
		if err != nil || record.State != lambdaidem.Completed {
			t.Fatalf("%+v, %v", record, err)
		}
		if text := fmt.Sprintf("%+v", record); strings.Contains(text, key) || !strings.Contains(text, "customer-7") {
			t.Errorf("the record is %s", text)
		}
	}
}

type customerID struct{}

// newPaymentsAPI guards a handler: each customer has keys of its own.
func newPaymentsAPI(store lambdaidem.Store, pay lambdaidem.APIGatewayV2Handler) lambdaidem.APIGatewayV2Handler {
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Principal = func(ctx context.Context, _ *lambdaidem.Request) (string, error) {
			id, _ := ctx.Value(customerID{}).(string)
			return id, nil // an empty one gets 403
		}
	})
	guarded := guard.APIGatewayV2(pay)
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if a := e.RequestContext.Authorizer; a != nil && a.JWT != nil {
			ctx = context.WithValue(ctx, customerID{}, a.JWT.Claims["customer_id"])
		}
		return guarded(ctx, e)
	}
}

func TestKeys_OfAClaim(t *testing.T) {
	runs := 0
	handler := newPaymentsAPI(memstore.New(), func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		runs++
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
	})
	for _, c := range []struct {
		login, customer string
		status, runs    int
	}{
		{"alice", "customer-7", http.StatusCreated, 1},
		{"bob", "customer-7", http.StatusCreated, 1}, // the same customer, so this is a replay
		{"alice", "customer-8", http.StatusCreated, 2},
		{"alice", "", http.StatusForbidden, 2},
	} {
		e := idemtest.Request{Path: "/payments", Key: "k-17", Body: `{"amount":40}`, Caller: idemtest.JWT("https://issuer.example.com", c.login)}.APIGatewayV2()
		if c.customer != "" {
			e.RequestContext.Authorizer.JWT.Claims["customer_id"] = c.customer
		}
		answer, err := handler(t.Context(), e)
		if err != nil || answer.StatusCode != c.status || runs != c.runs {
			t.Errorf("%+v: %d, %d runs, %v", c, answer.StatusCode, runs, err)
		}
	}
	answer, err := handler(t.Context(), idemtest.Request{Path: "/payments", Key: "k-17", Body: `{"amount":40}`}.APIGatewayV2())
	if err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("without a token: %d, %v", answer.StatusCode, err)
	}
}

// charge is the event of a typed handler.
type charge struct {
	RequestID string `json:"request_id"`
	Customer  string `json:"customer"`
	Amount    int    `json:"amount"`
}

func chargeHandler(guard *lambdaidem.Guard, chargeCard func(context.Context, charge) (string, error)) func(context.Context, charge) (string, error) {
	return lambdaidem.Handler(guard, "charge", func(_ context.Context, in charge) (string, error) {
		return in.RequestID, nil
	}, chargeCard)
}

func chargeOnce(ctx context.Context, guard *lambdaidem.Guard, in charge, chargeCard func(context.Context) (string, error)) (string, error) {
	call := lambdaidem.Call{Operation: "charge", Key: in.RequestID, Principal: in.Customer, Payload: in}
	return lambdaidem.Do(ctx, guard, call, chargeCard)
}

func TestKeys_OfTypedHandlersAndCalls(t *testing.T) {
	runs, guard := 0, keysGuard(memstore.New())
	typed := chargeHandler(guard, func(context.Context, charge) (string, error) { runs++; return "ch_1", nil })
	in := charge{RequestID: "k-17", Customer: "ann", Amount: 40}
	for range 2 {
		if id, err := typed(t.Context(), in); id != "ch_1" || err != nil {
			t.Errorf("%s, %v", id, err)
		}
		if id, err := chargeOnce(t.Context(), guard, in, func(context.Context) (string, error) { runs++; return "ch_2", nil }); id != "ch_2" || err != nil {
			t.Errorf("%s, %v", id, err)
		}
	}
	in.Amount = 55
	if _, err := typed(t.Context(), in); !errors.Is(err, lambdaidem.ErrPayloadMismatch) || runs != 2 {
		t.Errorf("%v after %d runs", err, runs)
	}
	in.RequestID = ""
	if _, err := typed(t.Context(), in); !errors.Is(err, lambdaidem.ErrKeyMissing) {
		t.Error(err)
	}
}
