package lambdaidem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Two typed handlers of one guard have different operations, and neither is that of a call of Do.
func TestV1_TypedHandlersShareNoRecords(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	key := func(_ context.Context, o order) (string, error) { return o.ID, nil }
	say := func(what string) func(context.Context, order) (string, error) {
		return func(context.Context, order) (string, error) { return what, nil }
	}
	charge, refund := lambdaidem.Handler(g, "charge", key, say("charged")), lambdaidem.Handler(g, "refund", key, say("refunded"))
	for range 2 {
		a, errA := charge(t.Context(), order{"o-1"})
		b, errB := refund(t.Context(), order{"o-1"})
		c, errC := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: order{"o-1"}},
			func(context.Context) (string, error) { return "done", nil })
		if a != "charged" || b != "refunded" || c != "done" || errors.Join(errA, errB, errC) != nil {
			t.Errorf("they returned %q, %q, %q, %v", a, b, c, errors.Join(errA, errB, errC))
		}
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "operation") {
			t.Errorf("it panicked with %q", text)
		}
	}()
	lambdaidem.Handler(g, "", key, say(""))
}

// A typed handler can distinguish callers by the event and by the context, and it can skip the
// guard.
func TestV1_TypedHandlerKnowsItsCallers(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	type who struct{}
	h := lambdaidem.Handler(g, "charge",
		func(ctx context.Context, _ order) (string, error) { return ctx.Value(who{}).(string) + "-key", nil },
		func(_ context.Context, o order) (string, error) { return "of " + o.ID, nil },
		func(o *lambdaidem.HandlerOptions[order]) {
			o.Principal = func(_ context.Context, o order) (string, error) {
				if o.ID == "rejected" {
					return "", lambdaidem.Reject(402, "pay_first", "Pay first.")
				}
				return strings.TrimPrefix(o.ID, "nobody"), nil
			}
			o.Skip = func(_ context.Context, o order) bool { return o.ID == "skipped" }
		})
	ctx := context.WithValue(t.Context(), who{}, "a")
	for _, id := range []string{"alice", "bob", "alice"} {
		if got, err := h(ctx, order{id}); got != "of "+id || err != nil {
			t.Errorf("%s got %q, %v", id, got, err)
		}
	}
	if _, err := h(ctx, order{"nobody"}); !errors.Is(err, lambdaidem.ErrPrincipalUnknown) {
		t.Errorf("nobody got %v", err)
	}
	if _, err := h(ctx, order{"rejected"}); !errors.Is(err, lambdaidem.Code("pay_first")) {
		t.Errorf("who was rejected got %v", err)
	}
	if got, err := h(context.WithValue(t.Context(), who{}, ""), order{"skipped"}); got != "of skipped" || err != nil {
		t.Errorf("what was skipped got %q, %v", got, err)
	}
}

// Tenants of a Lambda function never share a record, whatever the event is.
func TestF1_TenantsShareNoRecords(t *testing.T) {
	tenant := func(id string) context.Context {
		return lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{TenantID: id})
	}
	r := newRig(nil)
	one := r.sendCtx(tenant("blue"), t, first())
	two := r.sendCtx(tenant("green"), t, first())
	three := r.sendCtx(t.Context(), t, first())
	if replayed(two) || replayed(three) || one.Body == two.Body || two.Body == three.Body {
		t.Errorf("the answers are %+v, %+v, %+v", one, two, three)
	}
	wantReplay(t, r.sendCtx(tenant("blue"), t, first()), one)
	if e := r.seen.last(t); !strings.HasSuffix(e.Scope, " blue") || !strings.HasSuffix(e.Caller, " blue") {
		t.Errorf("the event is %+v", e)
	}
	g, runs := lambdaidem.New(memstore.New(), quiet), 0
	h := lambdaidem.Handler(g, "charge", func(context.Context, order) (string, error) { return "k", nil },
		func(context.Context, order) (int, error) { runs++; return runs, nil })
	for _, id := range []string{"blue", "green", "blue", "green"} {
		want := map[string]int{"blue": 1, "green": 2}[id]
		if n, err := h(tenant(id), order{"o"}); n != want || err != nil {
			t.Errorf("%s got %d, %v", id, n, err)
		}
	}
	for _, id := range []string{"blue", "green", "", "blue"} {
		got, err := lambdaidem.Do(tenant(id), g, lambdaidem.Call{Operation: "charge", Key: "k"}, func(context.Context) (string, error) { return "of " + id, nil })
		if got != "of "+id || err != nil {
			t.Errorf("%q got %q of Do, %v", id, got, err)
		}
	}
}

type envelope struct {
	Data any
	Raw  json.RawMessage `json:",omitempty"`
}

type inner struct {
	Z int64
	A string
}

type hidden struct{ Err error }

type lossy struct{ n int }

func (l lossy) MarshalJSON() ([]byte, error) { return []byte(fmt.Sprint(l.n)), nil }

// A typed handler's replay has byte for byte the same JSON as its first answer, or it is an error
// that says why not.
func TestR1_TypedReplaysAreTheSameBytes(t *testing.T) {
	now := time.Date(2026, 11, 21, 1, 2, 3, 4, time.FixedZone("", 3600))
	for name, same := range map[string]bool{
		"int64 in any":        wire[any](t, int64(9007199254740993)),
		"uint64 in any":       wire[any](t, map[string]any{"n": uint64(1<<64 - 1)}),
		"float in any":        wire[any](t, []any{1.5, 1e21, math.Copysign(0, -1), float32(0.1)}),
		"number":              wire[any](t, json.Number("1.000")),
		"struct in any":       wire[any](t, inner{9007199254740993, "<a&b>"}),
		"struct in a field":   wire(t, envelope{Data: inner{9007199254740993, "x"}}),
		"structs in slices":   wire(t, []envelope{{Data: []inner{{1, "x"}}}, {Data: map[string]inner{"b": {2, "y"}, "a": {3, "z"}}}}),
		"nil":                 wire[any](t, nil),
		"nil pointer":         wire[*inner](t, nil),
		"raw":                 wire(t, json.RawMessage(`{"b": "<&>",  "a":1.0}`)),
		"raw null":            wire(t, json.RawMessage(`null`)),
		"nil raw":             wire(t, json.RawMessage(nil)),
		"raw in a field":      wire(t, envelope{Raw: json.RawMessage(`{ "b":"\u003c", "a":1}`)}),
		"HTML in a raw field": wire(t, envelope{Raw: json.RawMessage(`{"b":"<&>"}`)}),
		"raw in any":          wire(t, envelope{Data: json.RawMessage(`{ "b":"x", "a":[1.0], "A":2}`)}),
		"escapes in any":      wire(t, envelope{Data: json.RawMessage(`{"b":"\u003c\/","a":1}`)}),
		"twice in any":        !wire(t, envelope{Data: json.RawMessage(`{"a":1,"a":2}`)}),
		"half a surrogate":    !wire(t, envelope{Data: json.RawMessage(`{"b":1,"a":"\ud800"}`)}),
		"HTML":                wire(t, "<a href='?a&b'>"),
		"time":                wire(t, now),
		"bytes":               wire(t, []byte{0xff, 0}),
		"no bytes":            wire(t, []byte(nil)),
		"int64":               wire(t, int64(9007199254740993)),
		"empty struct":        wire(t, struct{}{}),
		"replacement itself":  wire(t, "\ufffd"),
		"not UTF-8":           !wire(t, "\xff"),
		"not UTF-8 inside":    !wire(t, envelope{Data: map[string]string{"a": "\xff"}}),
		"lossy":               !wire(t, lossy{7}),
		"an error":            !wire(t, hidden{errors.New("x")}),
		"broken raw itself":   !wire(t, json.RawMessage(`{`)),
		"a broken raw":        !wire(t, envelope{Raw: json.RawMessage(`{`)}),
	} {
		if !same {
			t.Errorf("%s: the replay is not as it should be", name)
		}
	}
}

// wire sends one event twice to a handler that returns v, as Lambda's runtime does. It reports
// whether the second answer has the same bytes as the first. If not, wire checks that the second
// call returns an error that says so, and that the first call has announced it in an event.
func wire[T any](t *testing.T, v T) bool {
	t.Helper()
	seen, runs := &recorder{}, 0
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = seen })
	h := lambda.NewHandler(lambdaidem.Handler(g, "op", func(context.Context, order) (string, error) { return "k", nil },
		func(context.Context, order) (T, error) { runs++; return v, nil }))
	one, errOne := h.Invoke(t.Context(), []byte(`{"ID":"o"}`))
	announced := seen.last(t).Kind == lambdaidem.EventAnswerLost
	two, errTwo := h.Invoke(t.Context(), []byte(`{"ID":"o"}`))
	if runs != 1 {
		t.Errorf("%T: it ran %d times", v, runs)
	}
	if errTwo != nil {
		if !announced || !strings.Contains(errTwo.Error(), string(lambdaidem.ErrAnswerUnavailable)) {
			t.Errorf("%T: announced %v, the replay is %v", v, announced, errTwo)
		}
		return false
	}
	return errOne == nil && !announced && bytes.Equal(one, two)
}

// A value returned by Do has the same JSON for every caller.
func TestR1_ValuesOfDoHaveTheSameJSON(t *testing.T) {
	same := func(v any) bool {
		g := lambdaidem.New(memstore.New(), quiet)
		do := func() string {
			got, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (any, error) { return v, nil })
			text, failed := json.Marshal(got)
			if errors.Join(err, failed) != nil {
				t.Fatalf("%T: %v", v, errors.Join(err, failed))
			}
			return string(text)
		}
		one, two := do(), do()
		return one == two
	}
	for _, v := range []any{int64(9007199254740993), uint64(1<<63 + 1), inner{1, "b"}, []any{inner{1, "b"}, int64(9007199254740993)}, nil, "x", 1.5, json.RawMessage(`{"b":1,"a":2}`)} {
		if !same(v) {
			t.Errorf("%T %v: the second caller's JSON is another", v, v)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny(),
			rapid.Custom(func(t *rapid.T) inner { return inner{rapid.Int64().Draw(t, "Z"), rapid.String().Draw(t, "A")} }).AsAny())).Draw(rt, "v")
		if !same(v) {
			rt.Fatalf("%v: the second caller's JSON is another", v)
		}
	})
}

// Raw JSON is replayed byte for byte, and nil as nil.
func TestR1_RawJSONReplaysAsItIs(t *testing.T) {
	for _, raw := range []json.RawMessage{nil, json.RawMessage(`null`), json.RawMessage(" {\"b\" : \"<\",\n \"a\":1.0}\t")} {
		g := lambdaidem.New(memstore.New(), quiet)
		for range 2 {
			got, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (json.RawMessage, error) { return raw, nil })
			if err != nil || (got == nil) != (raw == nil) || !bytes.Equal(got, raw) {
				t.Errorf("%q came back as %q, %v", raw, got, err)
			}
		}
	}
}

// Raw text that isn't valid JSON is returned once and not stored.
func TestX4_RawTextThatIsNoJSON(t *testing.T) {
	c := newCharges()
	do := func() (json.RawMessage, error) {
		return lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (json.RawMessage, error) { c.runs++; return json.RawMessage(`{"a":`), nil })
	}
	if v, err := do(); string(v) != `{"a":` || err != nil {
		t.Errorf("the first call returned %q, %v", v, err)
	}
	if v, err := do(); v != nil || !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || c.runs != 1 {
		t.Errorf("the second call returned %q, %v after %d runs", v, err, c.runs)
	}
}

// If an answer could not be kept, Lambda reports an error for the retry. The error is one of the
// guard, and its code is the errorType.
func TestX4_TypedHandlersReportAnswersThatWereNotKept(t *testing.T) {
	h := lambdaidem.Handler(lambdaidem.New(memstore.New(), quiet), "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil },
		func(context.Context, order) (hidden, error) { return hidden{errWire}, nil })
	if _, errorType, message := invoke(t, h, `{"ID":"o"}`); errorType != "" {
		t.Fatalf("at first Lambda reports %q, %q", errorType, message)
	}
	if _, errorType, message := invoke(t, h, `{"ID":"o"}`); errorType != string(lambdaidem.ErrAnswerUnavailable) || !strings.HasPrefix(message, string(lambdaidem.ErrAnswerUnavailable)) {
		t.Errorf("Lambda reports %q, %q", errorType, message)
	}
}

// A result that can't be decoded into its type again is returned only once.
func TestX4_ValuesThatCannotBeRebuilt(t *testing.T) {
	c := newCharges()
	do := func() (hidden, error) {
		return lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (hidden, error) { c.runs++; return hidden{errWire}, nil })
	}
	if v, err := do(); v.Err != errWire || err != nil { //nolint:errorlint // it has to be the very error
		t.Errorf("the first call returned %v, %v", v, err)
	}
	if kinds := c.seen.kinds(); len(kinds) != 1 || kinds[0] != lambdaidem.EventAnswerLost {
		t.Errorf("the observer saw %v", kinds)
	}
	if _, err := do(); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || c.runs != 1 {
		t.Errorf("the second call returned %v after %d runs", err, c.runs)
	}
}

// A record that another version of the program stored is replayed if all of it fits the current
// type. Otherwise the error says that it doesn't fit.
func TestR1_RecordsOfAnotherVersion(t *testing.T) {
	type v1 struct{ ID string }
	type v2 struct {
		ID  string
		Fee int
	}
	type v2omit struct {
		ID  string
		Fee int `json:",omitempty"`
	}
	g := lambdaidem.New(memstore.New(), quiet)
	call := lambdaidem.Call{Operation: "op", Key: "k"}
	if _, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (v1, error) { return v1{"a"}, nil }); err != nil {
		t.Fatal(err)
	}
	if v, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (v2omit, error) { return v2omit{}, nil }); v.ID != "a" || err != nil {
		t.Errorf("a type that fits got %v, %v", v, err)
	}
	if v, err := lambdaidem.Do(t.Context(), g, call, func(context.Context) (v2, error) { return v2{}, nil }); v != (v2{ID: "a"}) || err != nil {
		t.Errorf("a type that has grown got %v, %v", v, err)
	}
	_, shrunk := lambdaidem.Do(t.Context(), g, call, func(context.Context) (struct{}, error) { return struct{}{}, nil })
	_, other := lambdaidem.Do(t.Context(), g, call, func(context.Context) (int, error) { return 0, nil })
	for _, err := range []error{shrunk, other} {
		var own *lambdaidem.Error
		if !errors.Is(err, lambdaidem.ErrAnswerUnreadable) || !errors.As(err, &own) || strings.Contains(own.Detail, "not carried out.") {
			t.Errorf("the error is %v", err)
		}
	}
}

// Raw JSON with the escape of U+FFFD is accepted in every position. A Go string that isn't UTF-8 is
// refused in every position.
func TestF3_PayloadsWithReplacementCharacters(t *testing.T) {
	raw := json.RawMessage(`{"text":"\ufffd"}`)
	type text string
	type tagged struct {
		Left  string `json:"-"`
		Other json.RawMessage
	}
	c := newCharges()
	for i, payload := range []any{
		raw, &raw, events.EventBridgeEvent{Detail: raw}, map[string]json.RawMessage{"a": raw}, []any{raw, &raw},
		struct{ P *json.RawMessage }{&raw}, "\ufffd", tagged{"\xff", raw}, json.Number("1"), []byte{0xff}, [2]json.RawMessage{raw, raw},
	} {
		call := lambdaidem.Call{Operation: "op", Key: fmt.Sprint("valid-", i), Payload: payload}
		if _, err := c.do(t, call); err != nil {
			t.Errorf("%T: %v", payload, err)
		}
	}
	runs := c.runs
	for i, payload := range []any{
		"\xff", text("\xff"), []string{"a", "\xff"}, map[string]string{"\xff": "a"}, map[string]any{"a": []any{"\xff"}},
		struct{ A *string }{new("\xff")}, envelope{Data: "\xff", Raw: raw}, struct{ T textual }{textual("\xff")}, map[textual]int{"\xff": 1},
		&tagged{Other: raw, Left: "x"}, // valid, so it must not be refused
	} {
		call := lambdaidem.Call{Operation: "op", Key: fmt.Sprint("broken-", i), Payload: payload}
		_, err := c.do(t, call)
		if _, valid := payload.(*tagged); valid != (err == nil) || err != nil && !errors.Is(err, lambdaidem.ErrRequestInvalid) {
			t.Errorf("%T: %v", payload, err)
		}
	}
	if c.runs != runs+1 {
		t.Errorf("payloads that are not UTF-8 ran %d times", c.runs-runs-1)
	}
}

type textual string

func (t textual) MarshalText() ([]byte, error) { return []byte(t), nil }

// A type that contains itself is examined only once.
func TestX4_AResultOfARecursiveTypeIsStored(t *testing.T) {
	type node struct {
		Name string
		Next *node
	}
	r := newRig(nil)
	call := lambdaidem.Call{Operation: "list", Key: "list-1", Payload: node{"in", &node{Name: "side"}}}
	for range 2 {
		got, err := lambdaidem.Do(t.Context(), r.guard, call, func(context.Context) (node, error) { return node{"a", &node{Name: "b"}}, nil })
		if err != nil || got.Name != "a" || got.Next == nil || got.Next.Name != "b" {
			t.Errorf("the result is %+v, %v", got, err)
		}
	}
}
