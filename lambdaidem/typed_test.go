package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// doOnce runs a call of Do under the key k, and reports whether it replayed.
func doOnce[T any](t *testing.T, g *lambdaidem.Guard, payload any, result T) (got T, replays bool, err error) {
	t.Helper()
	replays = true
	got, err = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k", Payload: payload}, func(context.Context) (T, error) {
		replays = false
		return result, nil
	})
	return got, replays, err
}

// These are successive versions of a program's types.
type (
	orderV1 struct {
		ID    string   `json:"id"`
		Lines []lineV1 `json:"lines"`
	}
	lineV1  struct{ SKU string }
	orderV2 struct {
		Note  string `json:"note"`
		ID    string `json:"id"`
		Count int    // without a tag
		At    time.Time
		Meta  struct{ Trace string }
		Tags  map[string]string `json:"tags"`
		Lines []lineV2          `json:"lines"`
		baseV2
		*deepV2
	}
	lineV2 struct {
		SKU string
		Tax *int
		Big [2]int
	}
	baseV2 struct{ Region string }
	deepV2 struct{ Depth int }
)

func TestF4_APayloadMayGainFields(t *testing.T) {
	was := orderV1{"o-1", []lineV1{{"a"}, {}}}
	is := orderV2{ID: "o-1", Lines: []lineV2{{SKU: "a"}, {}}}
	for name, pair := range map[string][2]any{"gains": {was, is}, "loses them again": {is, was}, "behind a pointer": {&was, &is}, "in an interface": {[]any{was}, []any{is}}} {
		g := lambdaidem.New(memstore.New(), quiet)
		if _, _, err := doOnce(t, g, pair[0], 1); err != nil {
			t.Fatal(name, err)
		}
		if _, replays, err := doOnce(t, g, pair[1], 2); err != nil || !replays {
			t.Errorf("%s: %v, replays: %v", name, err, replays)
		}
	}
	if a, b := hashKey(t, was, "x"), hashKey(t, is, "x"); a != b || a == "" {
		t.Errorf("the hash keys are %q and %q", a, b)
	}
}

func TestF4_AHandlersEventMayGainFields(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	runs := 0
	was := lambdaidem.Handler(g, "charge", func(context.Context, orderV1) (string, error) { return "k", nil }, func(context.Context, orderV1) (int, error) { runs++; return runs, nil })
	is := lambdaidem.Handler(g, "charge", func(context.Context, orderV2) (string, error) { return "k", nil }, func(context.Context, orderV2) (int, error) { runs++; return runs, nil })
	if _, err := was(t.Context(), orderV1{ID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	if got, err := is(t.Context(), orderV2{ID: "o-1"}); got != 1 || err != nil {
		t.Errorf("after the deployment: %d, %v", got, err)
	}
	if _, err := is(t.Context(), orderV2{ID: "o-1", Note: "x"}); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
		t.Errorf("a field that is not zero: %v", err)
	}
}

// Only fields of structs are left out, and only if they are zero.
func TestF3_ZeroFieldsAloneAreLeftOut(t *testing.T) {
	type one struct {
		A int
		B *int
		C any
		D []int
		M map[string]int
		R json.RawMessage
		T textInt
	}
	zero := 0
	values := []any{
		one{}, one{A: 1}, one{B: &zero}, one{C: 0}, one{C: ""}, one{C: one{}}, one{D: []int{}}, one{D: []int{0}}, one{D: []int{0, 0}},
		one{M: map[string]int{}}, one{M: map[string]int{"A": 0}}, one{R: json.RawMessage(`{"A":0}`)}, one{R: json.RawMessage(`{}`)}, one{T: 1}, nil,
		[]one{}, []one{{}}, []one{{}, {}}, map[string]one{"a": {}},
		map[string]any{"a": 0}, map[string]any{"a": nil}, json.RawMessage(`{"a":false}`), json.RawMessage(`{"a":""}`),
	}
	for i, a := range values {
		for j, b := range values {
			g := lambdaidem.New(memstore.New(), quiet)
			if _, _, err := doOnce(t, g, a, 1); err != nil {
				t.Fatalf("%#v: %v", a, err)
			}
			if _, replays, err := doOnce(t, g, b, 2); replays != (i == j) && err == nil || (err == nil) != (i == j) {
				t.Errorf("%#v after %#v: replays: %v, %v", b, a, replays, err)
			}
		}
	}
}

// textInt marshals itself, whether it is zero or not.
type textInt int

func (n textInt) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "n%d", n), nil }

// For a value without zero fields, the fingerprint uses exactly the JSON that encoding/json writes,
// with tags, embedded structs, map keys and options.
func TestF3_WhatCountsIsWhatEncodingJSONWrites(t *testing.T) {
	type deep struct {
		X int `json:"x"`
	}
	type all struct {
		deep
		*lineV1
		S    string            `json:",omitempty"`
		Q    int               `json:"q,string"`
		QS   string            `json:"qs,string"`
		QP   *float64          `json:",string"`
		F    float32           `json:"<f>"`
		B    []byte            `json:"b"`
		A    [2]uint8          `json:"a"`
		M    map[textInt]int   `json:"m"`
		N    map[int][]deep    `json:"n"`
		P    **deep            `json:"p"`
		I    any               `json:"i"`
		T    time.Time         `json:"t"`
		J    json.Number       `json:"j"`
		JS   json.Number       `json:"js,string"`
		O    map[string]string `json:"o,omitempty"`
		Z    time.Time         `json:"z,omitzero"`
		K    pointerly         `json:"k"`
		bad  int
		Skip int `json:"-"`
		Dash int `json:"-,"` //nolint:staticcheck // a field of the name "-"
	}
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int { return rapid.IntRange(1, 1000).Draw(t, name) }
		s := func(name string) string { return rapid.StringN(1, 5, -1).Draw(t, name) }
		f := float64(n("qp")) / 8
		d := &deep{n("deep")}
		v := all{deep{n("x")}, &lineV1{s("sku")}, s("s"), n("q"), s("qs"), &f, float32(n("f")) / 3, []byte(s("b")), [2]uint8{1, 2},
			map[textInt]int{textInt(n("m1")): 1, textInt(n("m2")): 2}, map[int][]deep{n("n"): {{1}}}, &d, []any{s("i"), 1.5, nil, map[string]any{s("k"): 0}, deep{1}},
			time.Unix(int64(n("t")), 0).UTC(), "1.50", "2", map[string]string{s("o1"): s("o2")}, time.Unix(1, 0).UTC(), pointerly{1}, 7, 8, n("dash")}
		for name, v := range map[string]any{"value": v, "pointer": &v} {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			a, errA := lambdaidem.HashKey(v)
			b, errB := lambdaidem.HashKey(json.RawMessage(text))
			if a != b || errA != nil || errB != nil {
				t.Fatalf("%s: the key of %s is %q, %v, want %q, %v", name, text, a, errA, b, errB)
			}
		}
	})
}

// pointerly marshals itself only if it has an address.
type pointerly struct{ N int }

func (p *pointerly) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, `{"own":%d}`, p.N), nil }

type (
	twinA struct{ ID string }
	twinB struct{ ID string }
	twins struct {
		twinA
		twinB
		Amount int
	} //nolint:gofumpt // as short as the others
	stamped struct {
		time.Time
		Amount int
	}
	declares struct {
		time.Time
		Amount int
	}
	wraps   struct{ time.Time }
	mutexed struct {
		sync.Mutex
		time.Time
	}
	shadows struct {
		twinA
		ID string
	}
	renames struct {
		A int `json:"B"`
		B int
	}
	repeats struct {
		twinA
		nested
	}
	nested    struct{ twinA }
	addressed struct {
		pointerly
		Amount int
	}
)

func (d declares) MarshalJSON() ([]byte, error) { return json.Marshal(d.Amount) }

// Two orders that differ only in fields that JSON leaves out would count as equal, and one caller
// would get the other's answer.
func TestF3_ATypeWhoseJSONHidesFieldsIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		v    any
		says string
	}{
		"two embedded structs with one name": {twins{twinA{"1"}, twinB{"2"}, 3}, `neither twinA.ID nor twinB.ID`},
		"an embedded time":                   {stamped{time.Unix(1, 0), 3}, "but the time.Time embedded"},
		"by pointer":                         {&stamped{time.Unix(1, 0), 3}, "but the time.Time embedded"},
		"an embedded method of a pointer":    {addressed{}, "pointerly embedded"},
		"one inside another":                 {repeats{}, "embedded twice"},
		"a name from a tag":                  {renames{1, 2}, "A and not B"},
		"a shadowed field":                   {shadows{twinA{"1"}, "2"}, "ID and not twinA.ID"},
		"in a list":                          {[]map[string]*twins{}, "neither"},
		"in a field":                         {struct{ Orders []stamped }{}, "time.Time embedded"},
		"in an interface":                    {[]any{1, twins{}}, "neither"},
	} {
		if key, err := lambdaidem.HashKey(c.v); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: HashKey: %q, %v", name, key, err)
		}
		g := lambdaidem.New(memstore.New(), quiet)
		_, replays, err := doOnce(t, g, c.v, 1)
		if !errors.Is(err, lambdaidem.ErrRequestInvalid) || !replays || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Do with it as payload: ran %v, %v", name, !replays, err)
		}
	}
	g := lambdaidem.New(memstore.New(), quiet)
	if _, replays, err := doOnce(t, g, nil, twins{}); !errors.Is(err, lambdaidem.ErrRequestInvalid) || !replays {
		t.Errorf("a result that hides fields: ran %v, %v", !replays, err)
	}
	if _, replays, err := doOnce(t, lambdaidem.New(memstore.New(), quiet), nil, renames{A: 1}); err != nil || replays { // earlier versions stored it too
		t.Errorf("a result that hides a field by a tag: ran %v, %v", !replays, err)
	}
	if _, replays, err := doOnce(t, g, nil, shadows{}); err != nil || replays {
		t.Errorf("a result that shadows a field: ran %v, %v", !replays, err)
	}
	if _, err := lambdaidem.Step(t.Context(), "s", func(context.Context) (stamped, error) { t.Error("the step ran"); return stamped{}, nil }); err == nil {
		t.Error("a step has a result that hides fields")
	}
	for _, fine := range []any{declares{time.Unix(1, 0), 3}, wraps{time.Unix(1, 0)}, &mutexed{Time: time.Unix(1, 0)}, twinA{"1"}, orderV2{ID: "x"}, time.Unix(1, 0)} {
		if _, err := lambdaidem.HashKey(fine); err != nil {
			t.Errorf("%T: %v", fine, err)
		}
	}
}

// A struct without exported fields is found in any position.
func TestF3_WhatAStructHidesIsFoundEverywhere(t *testing.T) {
	type hides struct{ amount int }
	h := hides{1}
	for name, v := range map[string]any{
		"itself": h, "pointer": &h, "array": [1]hides{h}, "array of arrays": [1][1]hides{{h}}, "slice": []hides{h}, "map": map[string]hides{"a": h},
		"field": struct{ F hides }{h}, "field of a field": struct{ F struct{ G *hides } }{struct{ G *hides }{&h}}, "interface": []any{h}, "array of interfaces": [1]any{h},
	} {
		if key, err := lambdaidem.HashKey(v); err == nil || !strings.Contains(err.Error(), "hides") {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
	for name, v := range map[string]any{"zero in an array": [1]hides{}, "without JSON": struct {
		F hides `json:"-"`
		A int
	}{h, 1}} {
		if _, err := lambdaidem.HashKey(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// choice is a payload that contains one of several types, depending on the client.
type choice struct{ By any }

// A payload whose Go types a deployment changed may be the one that the record is bound to.
// It runs, under the same downstream key. A payload whose data changed does not run, even if
// the data decides about entries of maps and about types in interfaces.
func TestE6_ADownstreamKeyOutlivesAChangedType(t *testing.T) {
	for name, c := range map[string]struct {
		was, is any
		same    bool
	}{
		"a field that the client always sent": {orderV1{ID: "o-1"}, orderV2{ID: "o-1", Note: "as ever"}, true},
		"a field behind an interface":         {[]any{orderV1{ID: "o-1"}}, []any{orderV2{ID: "o-1"}}, true},
		"another type behind an interface":    {[]any{orderV1{ID: "o-1"}}, []any{int64(1), "b"}, false},
		"another type in a field":             {choice{orderV1{ID: "o-1"}}, choice{lineV2{SKU: "o-2"}}, false},
		"a struct in a map":                   {map[string]any{"o": orderV1{ID: "o-1"}}, map[string]any{"o": orderV2{ID: "o-1"}}, true},
		"another value":                       {orderV1{ID: "o-1"}, orderV1{ID: "o-2"}, false},
		"another value in a map":              {map[string]any{"id": 1}, map[string]any{"id": 2}, false},
		"an entry that a map gained":          {map[string]any{"id": 1}, map[string]any{"id": 2, "memo": "x"}, false},
		"a number for a text":                 {[]any{"1"}, []any{1.0}, false},
		"an object for a list":                {[]any{[]any{}}, []any{map[string]any{"a": json.Number("1")}}, false},
		"a bool for a number":                 {[]any{json.Number("1")}, []any{true}, false},
	} {
		g := lambdaidem.New(memstore.New(), quiet)
		key := func(payload any) (key string) {
			_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k", Payload: payload}, func(ctx context.Context) (int, error) {
				key = lambdaidem.DownstreamKey(ctx, "bank")
				return 0, lambdaidem.Retryable(errWire)
			})
			return key
		}
		if first, second := key(c.was), key(c.is); first == "" || c.same && second != first || !c.same && second != "" {
			t.Errorf("%s: the keys are %q and %q", name, first, second)
		}
	}
}

// EmbeddedV1 and EmbeddedV2 are two versions of a struct that a result embeds by pointer.
type (
	EmbeddedV1 struct{ ID string }
	EmbeddedV2 struct {
		ID  string
		Fee int
	}
)

// A struct that a result embeds by pointer gains a field. The stored result of a call, or of a
// step, can still be read.
func TestR1_AnEmbeddedPointerOfAResultMayGainFields(t *testing.T) {
	type was struct {
		*EmbeddedV1
		Note string `json:",string"`
	}
	type is struct {
		*EmbeddedV2
		Note string `json:",string"`
	}
	guard, runs := shopGuard(), 0
	before := func(ctx context.Context) (was, error) { runs++; return was{&EmbeddedV1{"p-1"}, "a & b"}, ctx.Err() }
	after := func(ctx context.Context) (is, error) { runs++; return is{Note: "again"}, ctx.Err() }
	call := lambdaidem.Call{Operation: "charge", Key: "o-1"}
	if _, err := lambdaidem.Do(t.Context(), guard, call, before); err != nil {
		t.Fatal(err)
	}
	got, err := lambdaidem.Do(t.Context(), guard, call, after)
	if err != nil || got.EmbeddedV2 == nil || got.ID != "p-1" || runs != 1 {
		t.Errorf("after %d runs, Do returns %+v, %v", runs, got, err)
	}
	runs, call.Key = 0, "o-2"
	_, _ = lambdaidem.Do(t.Context(), guard, call, func(ctx context.Context) (was, error) {
		_, err := lambdaidem.Step(ctx, "card", before)
		return was{}, errors.Join(err, errBroken)
	})
	got, err = lambdaidem.Do(t.Context(), guard, call, func(ctx context.Context) (is, error) { return lambdaidem.Step(ctx, "card", after) })
	if err != nil || got.EmbeddedV2 == nil || got.ID != "p-1" || runs != 1 {
		t.Errorf("after %d runs, Step returns %+v, %v", runs, got, err)
	}
}

// A stored answer can still be read after its type gains a field, but not after the type loses one.
func TestR1_AnAnswersTypeMayGainFields(t *testing.T) {
	type v1 struct{ ID string }
	type v2 struct {
		ID    string
		Count int
		Tags  []string
	}
	g := lambdaidem.New(memstore.New(), quiet)
	if _, _, err := doOnce(t, g, nil, v1{"p-1"}); err != nil {
		t.Fatal(err)
	}
	if got, replays, err := doOnce(t, g, nil, v2{ID: "another"}); !replays || err != nil || !reflect.DeepEqual(got, v2{ID: "p-1"}) {
		t.Errorf("the replay is %+v, %v, replays: %v", got, err, replays)
	}
	if got, replays, err := doOnce(t, g, nil, struct{ Name string }{}); !replays || !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
		t.Errorf("a type without the field gets %+v, %v", got, err)
	}
	g = lambdaidem.New(memstore.New(), quiet)
	if _, _, err := doOnce(t, g, nil, v2{ID: "p-1"}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := doOnce(t, g, nil, v1{}); !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
		t.Errorf("a type that lost a field gets %+v, %v", got, err)
	}
	if got, _, err := doOnce(t, g, nil, big{}); !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
		t.Errorf("a type that fills in what is missing gets %+v, %v", got, err)
	}
}

// big has a field that the stored answer doesn't have. It sets that field itself.
type big struct {
	ID    string
	Count int
	Tags  []string
	Fee   int
}

func (b *big) UnmarshalJSON(text []byte) error {
	type plain big
	defer func() { b.Fee = 100 }()
	return json.Unmarshal(text, (*plain)(b))
}

func TestE5_AStepsTypeMayGainFields(t *testing.T) {
	attempt := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		if attempt++; attempt == 1 {
			_, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (twinA, error) { return twinA{"r-1"}, nil })
			return response{}, errors.Join(lambdaidem.Retryable(errWire), err)
		}
		got, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (struct {
			ID  string
			Fee int
		}, error) {
			panic("the step runs again")
		})
		return response{StatusCode: 201, Body: got.ID}, err
	})
	_, _ = r.handler(t.Context(), first())
	if out := r.send(t, first()); out.StatusCode != 201 || out.Body != "r-1" {
		t.Errorf("the answer is %+v", out)
	}
}

// An event of type any is a map or a list, as the client likes. A request with another payload
// under the same key is refused all the same, once the handler has asked for a downstream key.
func TestV2_AClientCantChooseTheTypeOfAnEvent(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
	var paid []string
	key := func(_ context.Context, in any) (string, error) {
		if list, ok := in.([]any); ok {
			in = list[0]
		}
		order, _ := in.(map[string]any)
		id, _ := order["id"].(string)
		return id, nil
	}
	h := lambda.NewHandler(lambdaidem.Handler(guard, "charge", key, func(ctx context.Context, in any) (string, error) {
		text, _ := json.Marshal(in)
		paid = append(paid, string(text)+" under "+lambdaidem.DownstreamKey(ctx, "charge"))
		return "", lambdaidem.Retryable(errors.New("later"))
	}))
	_, _ = h.Invoke(t.Context(), []byte(`{"id":"k","amount":10}`))
	_, _ = h.Invoke(t.Context(), []byte(`[{"id":"k","amount":999}]`))
	if len(paid) != 1 {
		t.Errorf("the handler ran for another payload under the downstream key of the first one: %q", paid)
	}
}
