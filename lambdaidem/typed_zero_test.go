package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file are about fields that the JSON of a payload omits, and fields that count as
// omitted because they are zero.

// limit counts as zero by its IsZero method, whatever its currency is.
type limit struct {
	Cents    int
	Currency string
}

func (l limit) IsZero() bool { return l.Cents == 0 }

// encoding/json does not call the IsZero method of a value in an interface: with omitzero it omits
// only a nil interface. The guard must see what JSON shows.
func TestF5_OmitzeroOfAnInterface(t *testing.T) {
	type change struct {
		Account string
		Limit   any `json:"limit,omitzero"` // nil: no limit
	}
	unlimited, blocked := change{"a-1", nil}, change{"a-1", limit{0, "EUR"}}
	guard := shopGuard()
	set := func(c change) (string, error) {
		return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "limit", Key: "k", Payload: c}, func(context.Context) (string, error) {
			text, err := json.Marshal(c)
			return string(text), err
		})
	}
	first, err := set(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := set(blocked); err == nil {
		t.Errorf("another payload got the answer to %s: %s", first, second)
	}
	k1, err1 := lambdaidem.HashKey(unlimited)
	k2, err2 := lambdaidem.HashKey(blocked)
	if err := errors.Join(err1, err2); err != nil || k1 == k2 {
		t.Errorf("HashKey: %s, %s, %v", k1, k2, err)
	}
}

// A nil pointer in an interface is null in JSON. The guard must not call its methods.
func TestF4_ANilPointerInAnInterface(t *testing.T) {
	type order struct {
		ID  string
		Due any `json:"due,omitzero"`
	}
	var due *time.Time
	if _, err := json.Marshal(order{"o-1", due}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("Do panicked before it called the function: %v", v)
		}
	}()
	_, err := lambdaidem.Do(t.Context(), shopGuard(), lambdaidem.Call{Operation: "order", Key: "k", Payload: order{"o-1", due}}, func(context.Context) (string, error) { return "", nil })
	if err != nil {
		t.Error(err)
	}
}

// Two payloads of one type whose JSON is the same text are one payload. A first attempt has its
// payload from a form, the retry has it from the JSON that was saved.
func TestF4_PayloadsWithTheSameJSONAreEqual(t *testing.T) {
	type shipping struct {
		Notes []string `json:"notes,omitempty"`
	}
	type order struct {
		ID       string   `json:"id"`
		Shipping shipping `json:"shipping"`
	}
	type event struct {
		ID   string          `json:"id"`
		Data json.RawMessage `json:"data"`
	}
	type sum struct {
		ID    string
		Total json.Number
	}
	type limited struct {
		ID    string
		Spent spent `json:",omitzero"`
	}
	t.Run("an empty list in a struct", func(t *testing.T) { wantOneAfterJSON(t, order{"o-1", shipping{[]string{}}}) })
	t.Run("raw JSON", func(t *testing.T) { wantOneAfterJSON(t, event{"o-1", nil}) })
	t.Run("number", func(t *testing.T) { wantOneAfterJSON(t, sum{"o-1", ""}) })
	t.Run("number by value", func(t *testing.T) { wantOneAfterJSON(t, limited{"o-1", spent{Currency: "EUR"}}) })
}

// spent has a method IsZero on the pointer.
type spent struct {
	Cents    int
	Currency string
}

func (s *spent) IsZero() bool { return s.Cents == 0 }

func wantOneAfterJSON[T any](t *testing.T, first T) {
	t.Helper()
	saved, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	retry := decodeJSON[T](t, string(saved))
	if text, err := json.Marshal(retry); err != nil || string(text) != string(saved) {
		t.Fatalf("%s, %s, %v", text, saved, err)
	}
	guard := shopGuard()
	for _, payload := range []T{first, retry} {
		_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "order", Key: "k", Payload: payload}, func(context.Context) (string, error) { return "", nil })
		if err != nil {
			t.Errorf("%+v, which is %s: %v", payload, saved, err)
		}
	}
}

// box has the JSON {} only if it is not zero.
type box struct{ Full bool }

func (b box) MarshalJSON() ([]byte, error) {
	if b.Full {
		return []byte("{}"), nil
	}
	return []byte(`{"empty":true}`), nil
}

// unbox is like box, but has its method on the pointer.
type unbox struct{ Full bool }

func (b *unbox) MarshalJSON() ([]byte, error) { return box{b.Full}.MarshalJSON() }

// A struct whose own method writes {} does not count as zero.
func TestF5_AStructThatMarshalsItselfToAnEmptyObject(t *testing.T) {
	type order struct {
		ID string
		In box
	}
	type byPointer struct {
		ID string
		In unbox
	}
	for name, payloads := range map[string][2]any{
		"method":            {order{"o-1", box{}}, order{"o-1", box{true}}},
		"method of pointer": {&byPointer{"o-1", unbox{}}, &byPointer{"o-1", unbox{true}}},
	} {
		k1, err1 := lambdaidem.HashKey(payloads[0])
		k2, err2 := lambdaidem.HashKey(payloads[1])
		if err := errors.Join(err1, err2); err != nil || k1 == k2 {
			t.Errorf("%s: HashKey: %s, %s, %v", name, k1, k2, err)
		}
	}
}

// encoding/json calls IsZero only if the field has the option omitzero.
func TestF5_AValueThatCallsItselfZeroWithoutTheOption(t *testing.T) {
	type change struct {
		Account string
		Limit   limit
	}
	k1, err1 := lambdaidem.HashKey(change{"a-1", limit{0, "EUR"}})
	k2, err2 := lambdaidem.HashKey(change{"a-1", limit{0, "USD"}})
	if err := errors.Join(err1, err2); err != nil || k1 == k2 {
		t.Errorf("HashKey: %s, %s, %v", k1, k2, err)
	}
}

// An interface with the method IsZero, and omitzero: encoding/json calls the method of the value in it.
func TestF4_OmitzeroOfAnInterfaceThatHasTheMethod(t *testing.T) {
	type change struct {
		Account string
		Limit   interface{ IsZero() bool } `json:",omitzero"`
	}
	k1, err1 := lambdaidem.HashKey(change{"a-1", nil})
	k2, err2 := lambdaidem.HashKey(change{"a-1", limit{0, "EUR"}})
	k3, err3 := lambdaidem.HashKey(change{"a-1", (*time.Time)(nil)})
	if err := errors.Join(err1, err2, err3); err != nil || k1 != k2 || k1 != k3 {
		t.Errorf("HashKey: %s, %s, %s, %v", k1, k2, k3, err)
	}
}

// With omitempty or omitzero, a value that is not zero may have other JSON than a zero one. Such values
// are not equal.
func TestF5_AValueThatTheJSONShowsCounts(t *testing.T) {
	t.Run("null, omitempty", func(t *testing.T) {
		wantTwo[struct {
			ID    string
			Limit json.RawMessage `json:"limit,omitempty"`
		}](t, `{"ID":"o-1"}`, `{"ID":"o-1","limit":null}`)
	})
	t.Run("null, omitzero", func(t *testing.T) {
		wantTwo[struct {
			ID    string
			Limit json.RawMessage `json:"limit,omitzero"`
		}](t, `{"ID":"o-1"}`, `{"ID":"o-1","limit":null}`)
	})
	t.Run("number, omitempty", func(t *testing.T) {
		wantTwo[struct {
			ID    string
			Limit json.Number `json:"limit,omitempty"`
		}](t, `{"ID":"o-1"}`, `{"ID":"o-1","limit":0}`)
	})
	t.Run("number, omitzero", func(t *testing.T) {
		wantTwo[struct {
			ID    string
			Limit json.Number `json:"limit,omitzero"`
		}](t, `{"ID":"o-1"}`, `{"ID":"o-1","limit":0}`)
	})
	t.Run("struct, omitzero", func(t *testing.T) {
		type limits struct {
			Daily []string `json:"daily,omitempty"`
		}
		wantTwo[struct {
			ID     string
			Limits limits `json:"limits,omitzero"`
		}](t, `{"ID":"o-1"}`, `{"ID":"o-1","limits":{"daily":[]}}`)
	})
}

func wantTwo[T any](t *testing.T, one, two string) {
	t.Helper()
	k1, err1 := lambdaidem.HashKey(decodeJSON[T](t, one))
	k2, err2 := lambdaidem.HashKey(decodeJSON[T](t, two))
	if err := errors.Join(err1, err2); err != nil || k1 == "" || k2 == "" || k1 == k2 {
		t.Errorf("HashKey: %s, %s, %v", k1, k2, err)
	}
}
