package lambdaidem_test

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file are about fields that the JSON of a payload omits, and fields that count
// as omitted because they are zero.

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
	type sum struct {
		ID    string
		Total json.Number
	}
	type limited struct {
		ID    string
		Spent spent `json:",omitzero"`
	}
	type discounted struct {
		ID       string
		Discount decimal
	}
	t.Run("an empty list in a struct", func(t *testing.T) { wantOneAfterJSON(t, order{"o-1", shipping{[]string{}}}) })
	t.Run("raw JSON", func(t *testing.T) { wantOneAfterJSON(t, event{"o-1", nil}) })
	t.Run("number", func(t *testing.T) { wantOneAfterJSON(t, sum{"o-1", ""}) })
	t.Run("a decimal that is zero", func(t *testing.T) { wantOneAfterJSON(t, discounted{ID: "o-1"}) })
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

// A field has the option omitzero, and its type is an interface with the method IsZero.
// encoding/json calls this method of the value in the interface.
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

// With omitempty or omitzero, a value that is not zero may have other JSON than a zero one. Such
// values are not equal.
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

// Two payloads of one type are equal if, and only if, encoding/json writes the same for them.
func TestF5_PayloadsAreEqualIfTheirJSONIs(t *testing.T) {
	type (
		when     struct{ At time.Time }
		anything struct{ Meta any }
		list     struct{ Tags *[]string }
		raw      struct{ Data *json.RawMessage }
		raws     struct{ Pair [2]json.RawMessage }
		pointers struct{ N **int }
		number   struct{ N nullable }
		amount   struct{ N nullableByPointer }
		address  struct{ IP net.IP }
		optional struct {
			Tags []string `json:",omitempty"`
		}
		pair   struct{ Pair [2]optional }
		byWhom struct{ By encoding.TextMarshaler }
		Limit  struct{ Cents int }
		change struct {
			ID string
			*Limit
		}
		least struct {
			Limit unset `json:",omitzero"`
		}
		quoted struct {
			N json.Number `json:",string"`
		}
		leastTwo struct {
			A unset `json:",omitzero"`
			B unset `json:",omitzero"`
		}
		nullLeast struct {
			Limit nullUnset `json:",omitzero"`
		}
		Shop     struct{ Limit }
		shopping struct {
			ID string
			*Shop
		}
		Options struct {
			Optional struct{ Cents int } `json:",omitempty"`
		}
		opting struct {
			ID string
			*Options
		}
		listed struct{ Tags listByPointer }
		paid   struct {
			Amount amountByPointer `json:",omitzero"`
		}
		card   struct{ Card cardNumber }
		parcel struct{ To recipient }
	)
	var (
		nilTime *time.Time
		nilInt  *int
		nilRaw  json.RawMessage
		nilTags []string
	)
	for name, payloads := range map[string][2]any{
		"a zero time in another location":                               {when{}, when{time.Time{}.In(time.FixedZone("", 0))}},
		"a nil pointer in an interface":                                 {anything{nil}, anything{nilTime}},
		"a nil slice in an interface":                                   {anything{nil}, anything{nilTags}},
		"a pointer to a nil slice":                                      {list{nil}, list{&nilTags}},
		"a pointer to nil raw JSON":                                     {raw{nil}, raw{&nilRaw}},
		"raw JSON with white space":                                     {event{"o-1", nil}, event{"o-1", []byte(" null")}},
		"an array of raw JSON":                                          {raws{}, raws{[2]json.RawMessage{[]byte("null"), []byte("null")}}},
		"a pointer to a nil pointer":                                    {pointers{nil}, pointers{&nilInt}},
		"a method that writes null":                                     {number{}, number{nullable{5, false}}},
		"a method of the pointer":                                       {&amount{}, &amount{nullableByPointer{5, false}}},
		"a method of the pointer, not called":                           {amount{}, amount{nullableByPointer{5, false}}},
		"an empty address":                                              {address{nil}, address{net.IP{}}},
		"an array of structs":                                           {pair{}, pair{[2]optional{{[]string{}}, {}}}},
		"nil pointers that marshal themselves":                          {byWhom{(*byCard)(nil)}, byWhom{(*byBank)(nil)}},
		"a nil interface with a method":                                 {byWhom{nil}, byWhom{(*byBank)(nil)}},
		"an embedded pointer to zero":                                   {change{"a-1", nil}, change{"a-1", &Limit{0}}},
		"IsZero of another value than zero":                             {least{-1}, least{0}},
		"a number with the option string":                               {quoted{""}, quoted{"0"}},
		"IsZero, of two fields":                                         {leastTwo{-1, 0}, leastTwo{0, -1}},
		"IsZero, and null":                                              {nullLeast{-1}, nullLeast{-2}},
		"a struct in an embedded pointer":                               {shopping{"a-1", nil}, shopping{"a-1", &Shop{}}},
		"a zero struct in an embedded pointer":                          {opting{"a-1", nil}, opting{"a-1", &Options{}}},
		"an empty list, and a method of the pointer that is not called": {listed{}, listed{listByPointer{[]string{}}}},
		"a method that panics for zero":                                 {card{cardNumber{new("1111")}}, card{cardNumber{new("2222")}}},
		"an IsZero that panics for zero":                                {paid{amountByPointer{new(5)}}, paid{amountByPointer{new(6)}}},
		"a method that fails for zero":                                  {parcel{recipient{"bob"}}, parcel{recipient{"eve"}}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err1 := json.Marshal(payloads[0])
			b, err2 := json.Marshal(payloads[1])
			k1, err3 := lambdaidem.HashKey([]any{payloads[0]})
			k2, err4 := lambdaidem.HashKey([]any{payloads[1]})
			if err := errors.Join(err1, err2, err3, err4); err != nil || k1 == "" || k2 == "" {
				t.Fatal(k1, k2, err)
			}
			if (string(a) == string(b)) != (k1 == k2) {
				t.Errorf("%s has the key %s, and %s has %s", a, k1, b, k2)
			}
		})
	}
}

type event struct {
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
}

// nullable writes null if it is not valid.
type nullable struct {
	N     int
	Valid bool
}

func (n nullable) MarshalJSON() ([]byte, error) {
	if !n.Valid {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(n.N), 10), nil
}

// nullableByPointer is like nullable, but has its method on the pointer.
type nullableByPointer nullable

func (n *nullableByPointer) MarshalJSON() ([]byte, error) { return nullable(*n).MarshalJSON() }

// nullUnset is a number for which -1 means that it is not set. -2 is written as null.
type nullUnset int

func (n nullUnset) IsZero() bool { return n == -1 }

func (n nullUnset) MarshalJSON() ([]byte, error) { return nullable{int(n), n != -2}.MarshalJSON() }

// listByPointer writes null, if it is addressable.
type listByPointer struct {
	Tags []string `json:",omitempty"`
}

func (*listByPointer) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// The methods of byCard and byBank can be called on a nil pointer.
type (
	byCard struct{}
	byBank struct{}
)

func (*byCard) MarshalText() ([]byte, error) { return []byte("card"), nil }
func (*byBank) MarshalText() ([]byte, error) { return []byte("bank"), nil }

// cardNumber must not be zero when it is marshaled.
type cardNumber struct{ digits *string }

func (c cardNumber) MarshalText() ([]byte, error) { return []byte(*c.digits), nil }

// amountByPointer must not be zero when a method is called.
type amountByPointer struct{ cents *int }

func (a amountByPointer) IsZero() bool { return *a.cents == 0 }

func (a amountByPointer) MarshalText() ([]byte, error) { return []byte(strconv.Itoa(*a.cents)), nil }

// recipient must not be zero when it is marshaled.
type recipient struct{ Name string }

func (r recipient) MarshalText() ([]byte, error) {
	if r.Name == "" {
		return nil, errors.New("no name")
	}
	return []byte(r.Name), nil
}

// FingerprintIgnore names a field of a nested struct, which has no other field. The field is zero
// in the first attempt. Step Functions, for example, counts its retries in $$.State.RetryCount.
func TestF4_AnIgnoredFieldThatIsZeroInTheFirstAttempt(t *testing.T) {
	type state struct{ RetryCount int }
	type run struct{ State state }
	type event struct {
		ID     string
		State  state
		Runs   []run
		ByName map[string]run
	}
	guard := shopGuard().With(func(o *lambdaidem.Options) {
		o.FingerprintIgnore = []string{"/State/RetryCount", "/Runs/0/State/RetryCount", `/ByName/a"b/State/RetryCount`}
	})
	h := lambdaidem.Handler(guard, "charge", func(_ context.Context, in event) (string, error) { return in.ID, nil },
		func(context.Context, event) (string, error) { return "paid", nil })
	for _, c := range []struct {
		retry int
		other string
		paid  bool
	}{{0, "{}", true}, {1, "{}", true}, {2, `{"State":{"RetryCount":1}}`, false}} {
		state := `{"RetryCount":` + strconv.Itoa(c.retry) + `}`
		text := `{"ID":"o-1","State":` + state + `,"Runs":[{"State":` + state + `},` + c.other + `],"ByName":{"a\"b":{"State":` + state + `}}}`
		got, err := h(t.Context(), decodeJSON[event](t, text))
		if c.paid && got != "paid" || !c.paid && !saysAnother(err) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// retryState writes its fields by a method.
type retryState struct{ RetryCount, Version int }

func (s retryState) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"RetryCount": s.RetryCount, "Version": s.Version})
}

// The ignored value is not a field of a struct, or everything else in its field is zero.
func TestF4_AnIgnoredValueDoesNotMatter(t *testing.T) {
	type marshals struct {
		ID    string
		State retryState
	}
	type array struct {
		ID    string
		State [2]int
	}
	type least struct {
		ID    string
		Limit unset `json:",omitzero"`
	}
	for pointer, payloads := range map[string][3]any{
		"/State/RetryCount": {marshals{"o-1", retryState{0, 0}}, marshals{"o-1", retryState{1, 0}}, marshals{"o-1", retryState{0, 1}}},
		"/State/0":          {array{"o-1", [2]int{0, 0}}, array{"o-1", [2]int{1, 0}}, array{"o-1", [2]int{0, 1}}},
		"/Limit":            {least{"o-1", -1}, least{"o-1", 0}, least{"o-2", 0}},
		"/State":            {marshals{"o-1", retryState{0, 0}}, marshals{"o-1", retryState{1, 1}}, marshals{"o-2", retryState{0, 0}}},
	} {
		t.Run(pointer, func(t *testing.T) {
			guard := shopGuard().With(func(o *lambdaidem.Options) { o.FingerprintIgnore = []string{pointer} })
			for i, payload := range payloads {
				_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "charge", Key: "k", Payload: payload}, func(context.Context) (string, error) { return "paid", nil })
				if i < 2 && err != nil || i == 2 && !saysAnother(err) {
					t.Errorf("%+v: %v", payload, err)
				}
			}
		})
	}
}
