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

// What docs/keys.md says of each trap is done here.

// payment is an operation as a client keeps it.
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

// lossy sends payments to a guarded handler, and loses the first two replies.
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

// A client that crashed goes on with the key that it kept.
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

// consumer is a guarded handler of a queue, which counts what it handles and keeps
// why messages failed.
type consumer struct {
	deliver func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)
	runs    int
	failed  []error
}

func newConsumer(guard *lambdaidem.Guard, optFns ...func(*lambdaidem.BatchOptions[events.SQSMessage])) *consumer {
	c := &consumer{}
	c.deliver = guard.SQS(func(context.Context, events.SQSMessage) error { c.runs++; return nil },
		append(optFns, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { c.failed = append(c.failed, err) }
		})...)
	return c
}

// message delivers one message.
func (c *consumer) message(t *testing.T, queue, id, key, body string) {
	t.Helper()
	m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:" + queue, Body: body}
	if key != "" {
		m.MessageAttributes = map[string]events.SQSMessageAttribute{
			lambdaidem.MessageKey: {DataType: "String", StringValue: &key},
		}
	}
	if _, err := c.deliver(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil {
		t.Error(err)
	}
}

// byOrder makes the key of the order that a message is about.
func byOrder(o *lambdaidem.BatchOptions[events.SQSMessage]) {
	o.Operation = "book-order" // the same for the queue and for its dead-letter queue
	o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
		var order struct {
			ID string `json:"order_id"`
		}
		err := json.Unmarshal([]byte(m.Body), &order)
		return order.ID, err // an empty one is a missing key
	}
}

func TestKeys_RedriveGivesANewID(t *testing.T) {
	const body = `{"order_id":"o-17"}`
	for name, c := range map[string]struct {
		key    string
		optFns []func(*lambdaidem.BatchOptions[events.SQSMessage])
		runs   int
	}{
		"the source's own id": {runs: 2},
		"the sender's":        {key: "k-17", runs: 1},
		"derived":             {optFns: []func(*lambdaidem.BatchOptions[events.SQSMessage]){byOrder}, runs: 1},
	} {
		queue := newConsumer(keysGuard(memstore.New()), c.optFns...)
		queue.message(t, "orders", "m-1", c.key, body)
		queue.message(t, "orders", "m-1", c.key, body) // a redelivery
		queue.message(t, "orders", "m-2", c.key, body) // a redrive
		if queue.runs != c.runs || len(queue.failed) > 0 {
			t.Errorf("%s: handled %d times, failures %v", name, queue.runs, queue.failed)
		}
	}
}

func TestKeys_ADeadLetterQueueNeedsTheSameOperation(t *testing.T) {
	for operation, runs := range map[string]int{"": 2, "book-order": 1} {
		queue := newConsumer(keysGuard(memstore.New()), func(o *lambdaidem.BatchOptions[events.SQSMessage]) { o.Operation = operation })
		queue.message(t, "orders", "m-1", "k-17", "{}")
		queue.message(t, "orders-dlq", "m-2", "k-17", "{}")
		if queue.runs != runs {
			t.Errorf("with Operation %q: handled %d times", operation, queue.runs)
		}
	}
}

func TestKeys_AMissingKeyFailsTheMessage(t *testing.T) {
	queue := newConsumer(keysGuard(memstore.New()), byOrder)
	queue.message(t, "orders", "m-1", "", "{}")
	queue.message(t, "orders", "m-2", "", "no JSON")
	if queue.runs != 0 || len(queue.failed) != 2 || !errors.Is(queue.failed[0], lambdaidem.ErrKeyMissing) || !errors.Is(queue.failed[1], lambdaidem.ErrKeyInvalid) {
		t.Errorf("handled %d times, failures %v", queue.runs, queue.failed)
	}
}

func TestKeys_TimestampsMakeNewKeys(t *testing.T) {
	first, second := `{"order_id":"o-17","sent_at":"12:00:00"}`, `{"order_id":"o-17","sent_at":"12:00:09"}`
	whole := newConsumer(keysGuard(memstore.New()), func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
			sum := sha256.Sum256([]byte(m.Body))
			return hex.EncodeToString(sum[:]), nil
		}
	})
	whole.message(t, "orders", "m-1", "", first)
	whole.message(t, "orders", "m-2", "", second)
	if whole.runs != 2 {
		t.Errorf("handled %d times", whole.runs)
	}

	// A key without the timestamp is the same, and then the payload must be.
	order := newConsumer(keysGuard(memstore.New()), byOrder)
	order.message(t, "orders", "m-1", "", first)
	order.message(t, "orders", "m-2", "", second)
	if order.runs != 1 || len(order.failed) != 1 || !errors.Is(order.failed[0], lambdaidem.ErrPayloadMismatch) {
		t.Errorf("handled %d times, failures %v", order.runs, order.failed)
	}
}

func TestKeys_OutliveTheirTTL(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for ttl, runs := range map[time.Duration]int{0: 2, 30 * 24 * time.Hour: 1} {
		clock := idemtest.NewClock()
		queue := newConsumer(keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Clock, o.TTL = clock.Now, ttl }), byOrder)
		queue.message(t, "orders", "m-1", "", `{"order_id":"o-17"}`)
		clock.Advance(week)
		queue.message(t, "orders", "m-2", "", `{"order_id":"o-17"}`)
		if queue.runs != runs {
			t.Errorf("TTL %v: handled %d times", ttl, queue.runs)
		}
	}
}

// What a failed message's steps did is remembered for as long as its record: a
// redrive that comes later does it again, under the same downstream key.
func TestKeys_StepsOutliveTheirTTL(t *testing.T) {
	for ttl, charges := range map[time.Duration]int{0: 2, 30 * 24 * time.Hour: 1} {
		clock := idemtest.NewClock()
		guard := keysGuard(memstore.New(), func(o *lambdaidem.Options) { o.Clock, o.TTL = clock.Now, ttl })
		var keys []string
		deliver := guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
			_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (string, error) {
				keys = append(keys, lambdaidem.DownstreamKey(ctx, "charge"))
				return "ch_1", nil
			})
			return errors.Join(err, errors.New("the receipt can't be sent"))
		}, byOrder, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(context.Context, events.SQSMessage, error) {}
		})
		for _, id := range []string{"m-1", "m-2"} {
			m := events.SQSMessage{MessageId: id, EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:orders", Body: `{"order_id":"o-17"}`}
			if got, err := deliver(t.Context(), events.SQSEvent{Records: []events.SQSMessage{m}}); err != nil || len(got.BatchItemFailures) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
			clock.Advance(7 * 24 * time.Hour)
		}
		if len(keys) != charges || keys[0] == "" || keys[len(keys)-1] != keys[0] {
			t.Errorf("TTL %v: charged under %q", ttl, keys)
		}
	}
}

// Two neighbours above 2^53 are one float64, in a key and in a payload.
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

	// Of a message the body itself is compared, so that the second one is refused.
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

// invoked counts the different answers to two events, as Lambda decodes them.
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
	// One namespace, operation and key are one record, whichever function asks.
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
		{"/payments", `{"amount":55}`, http.StatusUnprocessableEntity, 1}, // another payload
		{"/payments", `{"amount":40}`, http.StatusCreated, 1},             // meant as a second one: a replay
		{"/refunds", `{"amount":55}`, http.StatusCreated, 2},              // another route: a record of its own
	} {
		answer, err := handler(t.Context(), idemtest.Request{Path: c.path, Key: "k-17", Body: c.body}.APIGatewayV2())
		if err != nil || answer.StatusCode != c.status || runs != c.runs {
			t.Errorf("%s %s: %d, %d runs, %v", c.path, c.body, answer.StatusCode, runs, err)
		}
	}
}

// A key stands nowhere in the record, nor in an event, unless ShowKeys is set. The
// caller does.
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

// charge is a typed handler's event.
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
