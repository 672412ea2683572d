package lambdaidem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// charges has a guard on a store that can be made to fail, and counts the runs of a guarded
// function.
type charges struct {
	guard *lambdaidem.Guard
	store *faulty
	seen  *recorder
	runs  int
}

func newCharges(optFns ...func(*lambdaidem.Options)) *charges {
	c := &charges{store: newFaulty(), seen: &recorder{}}
	c.guard = lambdaidem.New(c.store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) { o.Observer = c.seen }}, optFns...)...)
	return c
}

func (c *charges) do(t *testing.T, call lambdaidem.Call) (int, error) {
	t.Helper()
	return lambdaidem.Do(t.Context(), c.guard, call, func(context.Context) (int, error) {
		c.runs++
		return c.runs, nil
	})
}

var charge = lambdaidem.Call{Operation: "charge", Key: "order-1", Payload: order{"o-1"}}

func TestV1_DoRunsOnce(t *testing.T) {
	c := newCharges()
	for range 3 {
		if n, err := c.do(t, charge); n != 1 || err != nil {
			t.Errorf("it returned %d, %v", n, err)
		}
	}
}

func TestF1_EachPartOfACallMakesItsOwnRecord(t *testing.T) {
	c := newCharges()
	for i, call := range []lambdaidem.Call{
		charge,
		{Operation: "refund", Key: charge.Key, Payload: charge.Payload},
		{Operation: charge.Operation, Key: "order-2", Payload: charge.Payload},
		{Operation: charge.Operation, Key: charge.Key, Payload: charge.Payload, Principal: "tenant"},
	} {
		if n, err := c.do(t, call); n != i+1 || err != nil {
			t.Errorf("%+v returned %d, %v", call, n, err)
		}
	}
}

func TestF5_PayloadOfACall(t *testing.T) {
	for _, p := range []struct {
		name string
		a, b any
		same bool
	}{
		{"equal", order{"o-1"}, order{"o-1"}, true},
		{"by JSON value", order{"o-1"}, map[string]string{"ID": "o-1"}, true},
		{"other value", order{"o-1"}, order{"o-2"}, false},
		{"none", nil, nil, true},
		{"none and some", nil, order{"o-1"}, false},
		{"none and zero", nil, 0, false},
		{"nil pointer", nil, (*order)(nil), true},
		{"large numbers", int64(9007199254740993), int64(9007199254740992), false},
		{"bytes", []byte{0xff}, []byte{0xfe}, false},
	} {
		c := newCharges()
		a, b := charge, charge
		a.Payload, b.Payload = p.a, p.b
		if _, err := c.do(t, a); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if _, err := c.do(t, b); (err == nil) != p.same || err != nil && !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
			t.Errorf("%s: the error is %v", p.name, err)
		}
	}
}

// encoding/json would replace each invalid byte by the replacement character, U+FFFD, so two
// different payloads would have the same JSON.
func TestF3_PayloadThatIsNotUTF8IsRefused(t *testing.T) {
	c := newCharges()
	for payload, fits := range map[any]bool{
		"\xff": false, order{"a\\\xfe"}: false,
		"\ufffd": true, `\ufffd`: true, `\\ufffd`: true, "ends in \\": true,
	} {
		call := charge
		call.Payload = payload
		call.Key = fmt.Sprintf("%x", payload)
		switch _, err := c.do(t, call); {
		case fits && err != nil:
			t.Errorf("payload %q: %v", payload, err)
		case !fits && !errors.Is(err, lambdaidem.ErrRequestInvalid):
			t.Errorf("payload %q: error %v, want %v", payload, err, lambdaidem.ErrRequestInvalid)
		}
	}
}

// A json.RawMessage may contain U+FFFD as an escape or as the character itself. Both are the same
// payload.
func TestF3_RawPayloadsMayEscapeTheReplacementCharacter(t *testing.T) {
	c, call := newCharges(), charge
	for _, text := range []string{`{"a":"\ufffd"}`, "{\"a\":\"\ufffd\"}"} {
		call.Payload = json.RawMessage(text)
		if _, err := c.do(t, call); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	call.Payload = json.RawMessage("{\"a\":\"\xff\"}") // invalid text is compared byte by byte
	if _, err := c.do(t, call); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
}

// The fingerprint is computed before the function runs, so it does not change if the function
// changes the payload.
func TestF5_AFunctionThatMutatesItsPayload(t *testing.T) {
	c := newCharges()
	for range 2 {
		payload := &order{"o-1"}
		call := charge
		call.Payload = payload
		if n, err := lambdaidem.Do(t.Context(), c.guard, call, func(context.Context) (int, error) {
			payload.ID = "changed"
			c.runs++
			return 1, nil
		}); n != 1 || err != nil {
			t.Errorf("it returned %d, %v", n, err)
		}
	}
	if c.runs != 1 {
		t.Errorf("it ran %d times", c.runs)
	}
}

func TestK2_CallsThatCannotBeGuarded(t *testing.T) {
	for name, p := range map[string]struct {
		call lambdaidem.Call
		code lambdaidem.Code
	}{
		"no operation":    {lambdaidem.Call{Key: "k"}, lambdaidem.ErrRequestInvalid},
		"no key":          {lambdaidem.Call{Operation: "charge"}, lambdaidem.ErrKeyMissing},
		"malformed key":   {lambdaidem.Call{Operation: "charge", Key: " k"}, lambdaidem.ErrKeyInvalid},
		"key of 10 KB":    {lambdaidem.Call{Operation: "charge", Key: strings.Repeat("k", 10<<10)}, lambdaidem.ErrKeyInvalid},
		"payload no JSON": {lambdaidem.Call{Operation: "charge", Key: "k", Payload: math.NaN()}, lambdaidem.ErrRequestInvalid},
		"payload a func":  {lambdaidem.Call{Operation: "charge", Key: "k", Payload: func() {}}, lambdaidem.ErrRequestInvalid},
	} {
		c := newCharges()
		n, err := c.do(t, p.call)
		if n != 0 || !errors.Is(err, p.code) || c.runs > 0 || len(c.store.allCalls()) > 0 {
			t.Errorf("%s: it returned %d, %v after %d runs", name, n, err, c.runs)
		}
	}
}

func TestK3_OptionalKeyOfACall(t *testing.T) {
	c := newCharges(func(o *lambdaidem.Options) { o.KeyOptional = true })
	for want := 1; want <= 2; want++ {
		if n, err := c.do(t, lambdaidem.Call{Operation: "charge"}); n != want || err != nil {
			t.Errorf("it returned %d, %v", n, err)
		}
	}
	if kinds := c.seen.kinds(); len(kinds) != 2 || kinds[0] != lambdaidem.EventBypassed || len(c.store.allCalls()) > 0 {
		t.Errorf("the observer saw %v", kinds)
	}
}

func TestL8_CallsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCharges()
		var refused int
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range 10 {
			wg.Go(func() {
				n, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (int, error) {
					time.Sleep(time.Second)
					return 7, nil
				})
				mu.Lock()
				defer mu.Unlock()
				var own *lambdaidem.Error
				switch {
				case errors.Is(err, lambdaidem.ErrInProgress) && errors.As(err, &own) && own.Status == 409 && own.RetryAfter > 0:
					refused++
				case n != 7 || err != nil:
					t.Errorf("it returned %d, %v", n, err)
				}
			})
		}
		wg.Wait()
		if refused != 9 {
			t.Errorf("%d of 10 were refused", refused)
		}
	})
}

// errors.Is finds both the code and the cause of a refusal.
func TestX5_RefusalsOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, prepare := range map[lambdaidem.Code]func(*charges){
			lambdaidem.ErrStoreUnavailable: func(c *charges) { c.store.failAlways(acquire, refused(lambdaidem.ReasonNoTable)) },
			lambdaidem.ErrOutcomeUnknown:   func(c *charges) { c.store.failAlways(complete, refused(lambdaidem.ReasonUnreachable)) },
			lambdaidem.ErrRecordForeign:    func(c *charges) { c.store.failAlways(acquire, refused(lambdaidem.ReasonForeign)) },
		} {
			c := newCharges()
			prepare(c)
			n, err := c.do(t, charge)
			if n != 0 || !errors.Is(err, code) || !errors.Is(err, errWire) {
				t.Errorf("%s: it returned %d, %v", code, n, err)
			}
		}
	})
}

// A stored result that does not fit the result type of the call is refused, and the function does
// not run.
func TestR1_ResultsOfAnotherTypeAreRefused(t *testing.T) {
	c := newCharges()
	if _, err := c.do(t, charge); err != nil {
		t.Fatal(err)
	}
	text, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (string, error) { return "ran", nil })
	if text != "" || !errors.Is(err, lambdaidem.ErrAnswerUnreadable) || c.seen.last(t).Kind != lambdaidem.EventUnreadable {
		t.Errorf("it returned %q, %v", text, err)
	}
}

// If a result can't be encoded as JSON, the first call gets the result, later calls get an error,
// and the function does not run again.
func TestX4_ResultThatCannotBeStored(t *testing.T) {
	c := newCharges()
	do := func() (float64, error) {
		return lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (float64, error) {
			c.runs++
			return math.Inf(1), nil
		})
	}
	if v, err := do(); !math.IsInf(v, 1) || err != nil {
		t.Errorf("the first call returned %v, %v", v, err)
	}
	if v, err := do(); v != 0 || !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || c.runs != 1 {
		t.Errorf("the second call returned %v, %v after %d runs", v, err, c.runs)
	}
}

type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("bomb") }

// If the encoding of the result panics, the record is not released, because the function has
// already had its effect.
func TestX4_PanicOfTheEncoderNeverReleases(t *testing.T) {
	c := newCharges()
	func() {
		defer func() {
			if got := recover(); got != "bomb" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (bomb, error) { return bomb{}, nil })
		t.Errorf("it returned %v", err)
	}()
	if _, err := c.do(t, charge); !errors.Is(err, lambdaidem.ErrInProgress) {
		t.Errorf("the next call got %v", err)
	}
}

// A handler with a streaming response is refused with an explanation, and does not run.
func TestV1_StreamsAreRefused(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	for name, err := range map[string]error{
		"function URL":  stream[*events.LambdaFunctionURLStreamingResponse](t, g),
		"by value":      stream[events.LambdaFunctionURLStreamingResponse](t, g),
		"REST API":      stream[*events.APIGatewayProxyStreamingResponse](t, g),
		"any reader":    stream[io.Reader](t, g),
		"a file's type": stream[*bytes.Buffer](t, g),
	} {
		if !errors.Is(err, lambdaidem.ErrStreaming) || !strings.Contains(err.Error(), "stream") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func stream[T any](t *testing.T, g *lambdaidem.Guard) error {
	t.Helper()
	h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(context.Context, order) (T, error) {
		t.Errorf("the handler of %T ran", *new(T))
		return *new(T), nil
	})
	_, err := h(t.Context(), order{"o-1"})
	return err
}

func TestV1_AStreamBehindAnInterfaceIsNotStored(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	do := func() (any, error) {
		return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (any, error) {
			return strings.NewReader("x"), nil
		})
	}
	if _, err := do(); err != nil {
		t.Fatal(err)
	}
	if v, err := do(); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
		t.Errorf("the replay is %v, %v; want ErrAnswerUnavailable", v, err)
	}
}

// A typed handler replays its answer. If its key is missing or invalid, Lambda reports the code of
// the refusal as the error type.
func TestV1_TypedHandlerReplays(t *testing.T) {
	g, runs := lambdaidem.New(memstore.New(), quiet), 0
	h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) {
		if o.ID == "broken" {
			return "", errors.New("no key in a broken order")
		}
		return o.ID, nil
	}, func(context.Context, order) (receipt, error) {
		runs++
		return receipt{runs}, nil
	})
	for range 2 {
		if payload, _, _ := invoke(t, h, `{"ID":"o-1"}`); payload != `{"Total":1}` {
			t.Errorf("the answer is %q", payload)
		}
	}
	for event, code := range map[string]lambdaidem.Code{`{"ID":""}`: lambdaidem.ErrKeyMissing, `{"ID":"broken"}`: lambdaidem.ErrKeyInvalid, `{"ID":" "}`: lambdaidem.ErrKeyInvalid} {
		_, errorType, message := invoke(t, h, event)
		if errorType != string(code) || !strings.HasPrefix(message, string(code)) {
			t.Errorf("%s: Lambda reports %q, %q", event, errorType, message)
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
}

// The payload of a typed handler is its event, so another event under the same key is refused.
func TestF5_TypedHandlerRefusesAnotherEvent(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	h := lambdaidem.Handler(g, "charge", func(_ context.Context, _ order) (string, error) { return "one key", nil }, func(context.Context, order) (receipt, error) { return receipt{1}, nil })
	if _, err := h(t.Context(), order{"o-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h(t.Context(), order{"o-2"}); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("the error is %v", err)
	}
}

// The invoker of a typed handler receives the code of a refusal, and no internals.
func TestX5_TypedHandlerShowsNoInternals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for code, prepare := range map[lambdaidem.Code]func(*charges){
			lambdaidem.ErrStoreUnavailable: func(c *charges) { c.store.failAlways(acquire, refused(lambdaidem.ReasonPermission)) },
			lambdaidem.ErrOutcomeUnknown:   func(c *charges) { c.store.failAlways(complete, refused(lambdaidem.ReasonUnreachable)) },
			lambdaidem.ErrRecordForeign:    func(c *charges) { c.store.failAlways(acquire, refused(lambdaidem.ReasonForeign)) },
		} {
			c := newCharges()
			prepare(c)
			h := lambdaidem.Handler(c.guard, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil },
				func(context.Context, order) (receipt, error) { return receipt{1}, nil })
			_, errorType, message := invoke(t, h, `{"ID":"o-1"}`)
			if errorType != string(code) || !strings.HasPrefix(message, string(code)) || strings.Contains(message, "secret") {
				t.Errorf("%s: Lambda reports %q, %q", code, errorType, message)
			}
		}
	})
}

// With optional keys, calls without a key never share a record, even if Options.ValidateKey accepts
// an empty key. An error of the key function does not count as a missing key.
func TestK3_OptionalKeysOfCallsNeverShare(t *testing.T) {
	c := newCharges(func(o *lambdaidem.Options) {
		o.KeyOptional = true
		o.ValidateKey = func(string) error { return nil }
	})
	for want := 1; want <= 2; want++ {
		if n, err := c.do(t, lambdaidem.Call{Operation: "charge"}); n != want || err != nil {
			t.Errorf("it returned %d, %v", n, err)
		}
	}
	h := lambdaidem.Handler(c.guard, "charge", func(_ context.Context, o order) (string, error) {
		if o.ID == "broken" {
			return "", errors.New("no key in a broken order")
		}
		return o.ID, nil
	}, func(context.Context, order) (int, error) {
		c.runs++
		return c.runs, nil
	})
	for want := 3; want <= 4; want++ {
		if n, err := h(t.Context(), order{""}); n != want || err != nil {
			t.Errorf("the typed handler returned %d, %v", n, err)
		}
	}
	if _, err := h(t.Context(), order{"broken"}); !errors.Is(err, lambdaidem.ErrKeyInvalid) || c.runs != 4 {
		t.Errorf("a key function that fails: %v after %d runs", err, c.runs)
	}
	if len(c.store.allCalls()) > 0 {
		t.Errorf("the store was asked to %v", c.store.allCalls())
	}
}

// An *Error of a typed handler's own reaches Lambda and the caller unchanged, with its cause. The
// guard hides only the causes of its own errors.
func TestX2_TypedHandlersKeepTheCausesOfTheirOwnErrors(t *testing.T) {
	own := error(&lambdaidem.Error{Code: "upstream", Status: 502, Detail: "The network failed.", Err: errors.New("dial tcp: refused")})
	g := lambdaidem.New(memstore.New(), quiet)
	h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil },
		func(context.Context, order) (receipt, error) { return receipt{}, own })
	for range 2 {
		if _, errorType, message := invoke(t, h, `{"ID":"o-1"}`); errorType != "Error" || message != own.Error() || !strings.Contains(message, "dial tcp: refused") {
			t.Errorf("Lambda reports %q, %q", errorType, message)
		}
		if _, err := h(t.Context(), order{"o-1"}); err != own { //nolint:errorlint // it must be the very error
			t.Errorf("the error is %v", err)
		}
	}
}
