package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	decimal1 "github.com/lambdaidem/toolkit/lambdaidem/testdata/one/decimal"
	decimal2 "github.com/lambdaidem/toolkit/lambdaidem/testdata/two/decimal"
)

// The tests of this file are about deployments that change the JSON of a payload, but none of its
// fields. The guard may replay the answer to a request from before the deployment, or say that it
// can't tell whether the request is the same. It must not say that the key was used with another
// request, and ask for a new key: the client would pay twice.

// Two versions of one event's type. The second one has the option omitempty, and nothing else.
type (
	taggedV1 struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags"`
	}
	taggedV2 struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags,omitempty"`
	}
)

// A deployment adds omitempty to a field of the payload. The client repeats its request
// {"id":"o-1","tags":[]}, which the version before has carried out. The guard may replay the
// answer, or say that it can't tell whether the request is the same. It must not say that the key
// was used with another request, and ask for a new key: the client would pay twice.
func TestF4_ADeploymentAddsOmitemptyToAPayload(t *testing.T) {
	guard := shopGuard()
	v1 := func(ctx context.Context, key string, in taggedV1) error {
		_, err := lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "charge", Key: key, Payload: in}, func(context.Context) (string, error) { return "paid", nil })
		return err
	}
	if err := v1(t.Context(), "o-1", taggedV1{"o-1", []string{}}); err != nil {
		t.Fatal(err)
	}
	got, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV2{"o-1", []string{}}},
		func(context.Context) (string, error) { return "paid again", nil })
	wantPaidOrUnsure(t, got, err)
}

// The same deployment after an attempt that asked for a downstream key and was released: in doubt,
// the request runs under the same downstream key (docs/effects.md, "Steps and downstream keys").
func TestE6_ADeploymentAddsOmitemptyAfterADownstreamKey(t *testing.T) {
	guard := shopGuard()
	var keys []string
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV1{"o-1", []string{}}}, func(ctx context.Context) (string, error) {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "card"))
		return "", errBroken
	})
	if !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	_, err = lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: taggedV2{"o-1", []string{}}}, func(ctx context.Context) (string, error) {
		keys = append(keys, lambdaidem.DownstreamKey(ctx, "card"))
		return "paid", nil
	})
	if err != nil || len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("the retry got %v, and the downstream keys are %q", err, keys)
	}
}

// decimal is like the decimal types of several libraries: zero has more than one form.
type decimal struct {
	value *int64
}

func (d decimal) IsZero() bool { return d.value == nil || *d.value == 0 }

func (d decimal) MarshalText() ([]byte, error) {
	if d.value == nil {
		return []byte("0"), nil
	}
	return strconv.AppendInt(nil, *d.value, 10), nil
}

func (d *decimal) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*d = decimal{value: &n}
	return err
}

// The fix "omitzero" of Go's modernizers replaces the option omitempty, which has no effect on a
// struct, with omitzero, which has one. The invoker of a typed handler repeats its event.
func TestF4_ADeploymentReplacesOmitemptyWithOmitzero(t *testing.T) {
	type was struct {
		ID       string  `json:"id"`
		Discount decimal `json:"discount,omitempty"` //nolint:modernize // as before the deployment
	}
	type is struct {
		ID       string  `json:"id"`
		Discount decimal `json:"discount,omitzero"`
	}
	guard := shopGuard()
	event := `{"id":"o-1","discount":"0"}`
	runs := 0
	before := lambdaidem.Handler(guard, "charge", func(_ context.Context, in was) (string, error) { return in.ID, nil },
		func(context.Context, was) (string, error) { runs++; return "paid", nil })
	after := lambdaidem.Handler(guard, "charge", func(_ context.Context, in is) (string, error) { return in.ID, nil },
		func(context.Context, is) (string, error) { runs++; return "paid again", nil })
	if _, err := before(t.Context(), decodeJSON[was](t, event)); err != nil {
		t.Fatal(err)
	}
	got, err := after(t.Context(), decodeJSON[is](t, event))
	wantPaidOrUnsure(t, got, err)
}

// money has its MarshalJSON method on the pointer: encoding/json calls it only for an addressable
// value.
type money struct{ Cents int }

func (m *money) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(m.Cents), 10), nil }

// A deployment passes the payload by pointer, and not by value.
func TestF4_ADeploymentPassesAPayloadByPointer(t *testing.T) {
	type payment struct {
		ID     string
		Amount money
	}
	guard := shopGuard()
	in := payment{"o-1", money{500}}
	call := func(payload any) (string, error) {
		return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: payload}, func(context.Context) (string, error) { return "paid", nil })
	}
	if _, err := call(in); err != nil {
		t.Fatal(err)
	}
	got, err := call(&in)
	wantPaidOrUnsure(t, got, err)
}

func shopGuard() *lambdaidem.Guard {
	return lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
}

// wantPaidOrUnsure checks what a retry gets: the first answer, "paid", or an error that says that
// the guard can't tell whether the request is the same.
func wantPaidOrUnsure(t *testing.T, got string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*lambdaidem.Error](err); ok && !strings.Contains(e.Detail, "can't tell") || err == nil && got != "paid" {
		t.Errorf("the retry got %q, %v; want the first answer, or that the guard can't tell whether the request is the same", got, err)
	}
}

// decodeJSON decodes text as encoding/json does.
func decodeJSON[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// saysAnother reports whether err tells the caller that the key was used with another request, so
// that the caller may send this one with a new key.
func saysAnother(err error) bool {
	e, ok := errors.AsType[*lambdaidem.Error](err)
	return ok && e.Code == lambdaidem.ErrPayloadMismatch && !strings.Contains(e.Detail, "can't tell")
}

// A deployment makes a field of the payload a pointer, to tell false from absent. The invoker
// repeats its event. The guard must not say that the key was used with another request, and ask
// for a new key: the client would pay twice.
func TestF4_ADeploymentMakesAFieldAPointer(t *testing.T) {
	type was struct {
		ID      string `json:"id"`
		Cents   int    `json:"cents"`
		Express bool   `json:"express"`
	}
	type is struct {
		ID      string `json:"id"`
		Cents   int    `json:"cents"`
		Express *bool  `json:"express"`
	}
	guard, paid, event := shopGuard(), 0, `{"id":"o-1","cents":500,"express":false}`
	before := lambdaidem.Handler(guard, "charge", func(_ context.Context, in was) (string, error) { return in.ID, nil },
		func(_ context.Context, in was) (string, error) { paid += in.Cents; return "paid", nil })
	key := "o-1"
	after := lambdaidem.Handler(guard, "charge", func(context.Context, is) (string, error) { return key, nil },
		func(_ context.Context, in is) (string, error) { paid += in.Cents; return "paid", nil })
	if _, err := before(t.Context(), decodeJSON[was](t, event)); err != nil {
		t.Fatal(err)
	}
	again := decodeJSON[is](t, event)
	_, err := after(t.Context(), again)
	if saysAnother(err) {
		key = "o-1-again" // as the error says
		_, _ = after(t.Context(), again)
		t.Errorf("the retry got %q; want the first answer, or that the guard can't tell; with a new key %d cents are paid", err, paid)
	}
}

// The same in the other direction, by Do: a roll-back.
func TestF4_ADeploymentMakesAPointerAField(t *testing.T) {
	type was struct {
		ID   string  `json:"id"`
		Note *string `json:"note,omitempty"`
	}
	type is struct {
		ID   string `json:"id"`
		Note string `json:"note,omitempty"`
	}
	note, charge := "", charging(t)
	if err := charge(was{"o-1", &note}); err != nil {
		t.Fatal(err)
	}
	if err := charge(is{"o-1", ""}); saysAnother(err) {
		t.Errorf("the retry got %v; want the first answer, or that the guard can't tell", err)
	}
}

// The same deployment after an attempt that asked for a downstream key and was released: in doubt,
// the request runs under the same downstream key (docs/effects.md, "Steps and downstream keys").
func TestE6_ADeploymentMakesAFieldAPointerAfterADownstreamKey(t *testing.T) {
	type was struct{ Express bool }
	type is struct{ Express *bool }
	guard, no := shopGuard(), false
	call := func(payload any, err error) error {
		_, err = lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: payload}, func(ctx context.Context) (string, error) {
			lambdaidem.DownstreamKey(ctx, "card")
			return "paid", err
		})
		return err
	}
	if err := call(was{false}, errors.New("the card network is down")); err == nil {
		t.Fatal("no error")
	}
	if err := call(is{&no}, nil); err != nil {
		t.Errorf("the retry got %v; want that it runs under the same downstream key", err)
	}
}

// A deployment makes an array of the payload longer. The new elements are zero in a retry.
func TestF4_ADeploymentMakesAnArrayLonger(t *testing.T) {
	type was struct{ Cents [2]int }
	type is struct{ Cents [3]int }
	charge := charging(t)
	if err := charge(was{[2]int{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := charge(is{[3]int{1, 2}}); saysAnother(err) {
		t.Errorf("the retry got %v; want that the guard can't tell", err)
	}
}

// charging returns a function that charges once for the key o-1.
func charging(t *testing.T) func(payload any) error {
	guard := shopGuard()
	return func(payload any) error {
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "o-1", Payload: payload}, func(context.Context) (string, error) { return "paid", nil })
		return err
	}
}

// A deployment changes the declaration of a payload's type, and the JSON of the payload with it.
func TestF4_ADeploymentChangesTheJSONOfAPayload(t *testing.T) {
	type (
		certainUnset struct{ Fee unset }
		optionalInt  struct {
			Fee int `json:",omitzero"`
		}
		optionalUnset struct {
			Fee unset `json:",omitzero"`
		}
		optionalAny struct {
			Fee any `json:",omitzero"`
		}
		optionalZeroer struct {
			Fee interface{ IsZero() bool } `json:",omitzero"`
		}
		Item           struct{ Amount money } // its JSON depends on whether it is addressable
		plain          struct{ Cents int }
		array          struct{ Amounts [1]money }
		items          struct{ ByID map[string]Item }
		itemsByPointer struct{ ByID map[string]*Item }
		both           struct {
			First  Item
			Others map[string]Item
		}
		bothByPointer struct {
			First  Item
			Others map[string]*Item
		}
		embedded          struct{ Item }
		embeddedByPointer struct{ *Item }
		named             struct{ Item Item }
		Price             struct{ Price int }
		threeOfTwo        struct {
			A    plain
			B, C Price
		}
		twoAndOne struct {
			A plain
			B Price
			C plain
		}
	)
	i := Item{money{500}}
	for name, versions := range map[string][2]any{
		"the option omitzero":              {certainUnset{-1}, optionalUnset{-1}},
		"the method IsZero":                {optionalInt{-1}, optionalUnset{-1}},
		"an array":                         {array{[1]money{{500}}}, &array{[1]money{{500}}}},
		"IsZero in an interface":           {optionalAny{unset(-1)}, optionalZeroer{unset(-1)}},
		"a MarshalText method":             {[]int{5}, []percent{5}},
		"another MarshalText method":       {[]percent{5}, []permille{5}},
		"the elements of a slice":          {[]plain{{500}}, []money{{500}}},
		"a type of the same name":          {[]decimal1.Decimal{5}, []decimal2.Decimal{5}},
		"a string that becomes a number":   {[]string{"5"}, []json.Number{"5"}},
		"the kind of the elements":         {[]int{5}, []string{"5"}},
		"the keys of a map":                {map[int]int{5: 1}, map[percent]int{5: 1}},
		"the values of a map":              {items{map[string]Item{"a": i}}, itemsByPointer{map[string]*Item{"a": &i}}},
		"the values of an addressable map": {&items{map[string]Item{"a": i}}, &itemsByPointer{map[string]*Item{"a": &i}}},
		"a type that occurs twice":         {both{i, map[string]Item{"a": i}}, bothByPointer{i, map[string]*Item{"a": &i}}},
		"which type occurs again":          {threeOfTwo{C: Price{5}}, twoAndOne{C: plain{5}}},
		"an embedded struct":               {embedded{i}, embeddedByPointer{&i}},
		"a struct that is not embedded":    {embedded{i}, named{i}},
		"the name of a field":              {plain{5}, Price{5}},
	} {
		t.Run(name, func(t *testing.T) {
			charge := charging(t)
			if err := charge(versions[0]); err != nil {
				t.Fatal(err)
			}
			if err := charge(versions[1]); err == nil || saysAnother(err) {
				t.Errorf("the retry got %v; want that the guard can't tell whether the request is the same", err)
			}
		})
	}
}

// percent has another JSON than an int.
type percent int

func (p percent) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(int(p)) + "%"), nil }

// permille has the structure of a percent, and another JSON.
type permille int

func (p permille) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(int(p)) + "‰"), nil }

// unset is a number for which -1 means that it is not set.
type unset int

func (u unset) IsZero() bool { return u == -1 }

// shippingV2 remembers that it was in the event.
type shippingV2 struct {
	Express bool
	isSet   bool
}

func (s *shippingV2) UnmarshalJSON(text []byte) error {
	var decoded struct{ Express bool }
	err := json.Unmarshal(text, &decoded)
	*s = shippingV2{decoded.Express, true}
	return err
}

// A deployment adds an unexported field to a struct, or changes its type. With omitzero, the
// struct's JSON depends on it.
func TestF4_ADeploymentChangesAnUnexportedField(t *testing.T) {
	type (
		shipping   struct{ Express bool }
		shippingV3 struct {
			Express bool
			isSet   *bool
		}
		v1 struct {
			ID       string
			Shipping shipping `json:",omitzero"`
		}
		v2 struct {
			ID       string
			Shipping shippingV2 `json:",omitzero"`
		}
		v3 struct {
			ID       string
			Shipping shippingV3 `json:",omitzero"`
		}
	)
	event := `{"ID":"o-1","Shipping":{"Express":false}}`
	for name, first := range map[string]any{"added": decodeJSON[v1](t, event), "another type": v3{ID: "o-1", Shipping: shippingV3{isSet: nil}}} {
		t.Run(name, func(t *testing.T) {
			charge := charging(t)
			if err := charge(first); err != nil {
				t.Fatal(err)
			}
			if err := charge(decodeJSON[v2](t, event)); err == nil || saysAnother(err) {
				t.Errorf("the retry got %v; want that the guard can't tell whether the request is the same", err)
			}
		})
	}
}

// A recursive type can be a payload, and a changed payload is recognized.
func TestF5_ARecursiveTypeIsCompared(t *testing.T) {
	type node struct {
		Name string
		Next *node
	}
	charge := charging(t)
	if err := charge(node{"a", &node{"b", nil}}); err != nil {
		t.Fatal(err)
	}
	if err := charge(node{"a", &node{"c", nil}}); !saysAnother(err) {
		t.Errorf("the retry got %v; want that the key was used with another request", err)
	}
}
