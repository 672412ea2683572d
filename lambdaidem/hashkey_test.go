package lambdaidem_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func hashKey(t testing.TB, fields ...any) string {
	t.Helper()
	key, err := lambdaidem.HashKey(fields...)
	if err != nil {
		t.Fatalf("HashKey(%#v): %v", fields, err)
	}
	return key
}

type line struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

// Records are found by their keys as long as they live, so no version of the program may make other
// keys.
func TestK5_HashKeysAreStable(t *testing.T) {
	for _, c := range []struct {
		want   string
		fields []any
	}{
		{"sha256_gzc-M_L-joIIJc2LA3fdLPdiOg_CMMDYQubSZkTVzt0", []any{"order-1"}},
		{"sha256_Rr8qssmYNKNfQRjDXEnCt8g39lo4o-FjxabuFiyrdRU", []any{"customer-7", 42, json.Number("100.50"), true}},
		{"sha256_QTfq6lqko2qt7y7qdl92oqTFobG8bHmlkPljvNwzdrE", []any{json.Number("9007199254740993")}},
		{"sha256_fm9iKUq6PV8tRo_vjzUVuVXtNnMXsFTqm5grLgULGb8", []any{map[string]any{"b": []any{1, "x"}, "a": nil, "ü": "😀\n"}}},
		{"sha256_eh5hGaI7xIspniU3QfabANHYlZbX6QkzKbUmzX7EjoQ", []any{line{"a-1", 2}, []line{{"<b>", 0}}}},
		{"sha256_g0CvZeXH8IDE6MB5Aams4u5cwvjs_qkfFYigEPXWVp4", []any{0, false, -1.5e300, []byte("bytes")}},
	} {
		if got := hashKey(t, c.fields...); got != c.want {
			t.Errorf("the key of %v is %s, want %s", c.fields, got, c.want)
		}
	}
}

func TestK5_OtherFieldsAreOtherKeys(t *testing.T) {
	seen := map[string]string{}
	for _, fields := range [][]any{
		{"a"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "b", "c"}, {"ab", "c"}, {"a", "bc"}, {"abc"},
		{[]string{"a", "b"}}, {[]string{"a"}, "b"}, {[]any{"a", []string{"b"}}}, {[]string{"ab"}},
		{map[string]string{"a": "b"}}, {map[string]string{"b": "a"}}, {map[string]any{"a": "b", "c": nil}}, {map[string]any{"a": []string{"b"}}},
		{"1"}, {1}, {json.Number("1.0")}, {json.Number("1e0")}, {json.Number("10")}, {1, 0}, {-1},
		{json.Number("9007199254740993")}, {json.Number("9007199254740992")}, {json.Number("9007199254740993.0")}, {uint64(math.MaxUint64)}, {uint64(math.MaxUint64 - 1)},
		{json.Number("0")}, {json.Number("-0")}, {0.1}, {0.30000000000000004}, {0.3},
		{true}, {false}, {"true"}, {"false"}, {"null"}, {"[]"}, {"{}"}, {`""`},
		{"é"}, {"e\u0301"}, {"É"}, {" a"}, {"a "}, {"A"}, {"\x00"}, {"\\u0000"}, {"\ufffd"},
		{"a\",\"b"}, {`a","b`, "c"}, {strings.Repeat("a", 256)}, {strings.Repeat("a", 257)},
	} {
		key := hashKey(t, fields...)
		if other, ok := seen[key]; ok {
			t.Errorf("%#v and %s are one key", fields, other)
		}
		seen[key] = fmt.Sprintf("%#v", fields)
		for name, valid := range map[string]func(string) error{"PrintableKey": lambdaidem.PrintableKey, "TokenKey": lambdaidem.TokenKey} {
			if err := valid(key); err != nil || !strings.HasPrefix(key, lambdaidem.HashKeyPrefix) {
				t.Errorf("%s of %q: %v", name, key, err)
			}
		}
	}
}

func TestK5_OneValueIsOneKey(t *testing.T) {
	text, n := "a", 7
	for name, same := range map[string][2][]any{
		"pointers":       {{"a", 7}, {&text, &n}},
		"types of one":   {{int8(7), "a"}, {json.Number("7"), json.RawMessage(`"\u0061"`)}},
		"raw JSON":       {{map[string]any{"a": 1, "b": []int{2}}}, {json.RawMessage(` {"b":[ 2 ], "\u0061":1}`)}},
		"struct and map": {{line{"s", 1}}, {map[string]any{"count": 1, "sku": "s"}}},
	} {
		if a, b := hashKey(t, same[0]...), hashKey(t, same[1]...); a != b || a == "" {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // the order of a map differs each time
		m := rapid.MapOf(rapid.StringMatching(`[a-f]{1,8}`), rapid.Int()).Draw(t, "map")
		again := map[string]int{}
		for name, v := range m {
			again[name] = v
		}
		a, errA := lambdaidem.HashKey("x", m)
		b, errB := lambdaidem.HashKey("x", again)
		if a != b || errA != nil || errB != nil {
			t.Fatalf("%q, %v and %q, %v", a, errA, b, errB)
		}
	})
}

// If a field is missing, the key is missing. It is never a key that others share.
func TestK5_AMissingFieldIsAMissingKey(t *testing.T) {
	var none *string
	empty, number := "", json.Number("")
	for _, missing := range []any{nil, "", none, &empty, []string(nil), []string{}, map[string]int(nil), map[string]int{}, struct{}{}, []byte(nil), []byte{},
		json.RawMessage(nil), json.RawMessage("null"), json.RawMessage(" [ ]"), json.Number(""), &number} {
		for _, fields := range [][]any{{missing}, {"a", missing}, {missing, "a"}} {
			if key := hashKey(t, fields...); key != "" {
				t.Errorf("%#v is the key %q", fields, key)
			}
		}
	}
	for _, there := range []any{0, false, " ", []any{nil}, map[string]any{"a": nil}, line{}, json.Number("0"), time.Time{}} {
		if key := hashKey(t, there); key == "" {
			t.Errorf("%#v is missing", there)
		}
	}
}

func TestK5_WhatJSONCannotShowIsRefused(t *testing.T) {
	type hidden struct{ amount int }
	for name, fields := range map[string][]any{
		"nothing":            {},
		"a channel":          {make(chan int)},
		"a function":         {func() {}},
		"not a number":       {math.NaN()},
		"infinity":           {math.Inf(1)},
		"not UTF-8":          {"\xff"},
		"not UTF-8 inside":   {[]string{"a", "\xff"}},
		"not UTF-8 as name":  {map[string]int{"\xff": 1}},
		"hidden":             {hidden{1}},
		"no number":          {json.Number("1x")},
		"after what is not":  {"", "\xff"},
		"duplicate members":  {json.RawMessage(`{"a":1,"a":2}`)},
		"one name for some":  {map[string]int{"user_id": 1, "userId": 2}},
		"half a surrogate":   {json.RawMessage(`"\ud800"`)},
		"broken JSON":        {json.RawMessage(`{`)},
		"a complex number":   {complex(1, 1)},
		"a map by no string": {map[float64]int{1: 1}},
	} {
		if key, err := lambdaidem.HashKey(fields...); err == nil || key != "" {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
}
