package jmeskey_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
)

// respelled returns v as JSON in an unusual spelling: members in reverse order, every character
// escaped, and white space wherever it is allowed.
func respelled(v any) string {
	var b strings.Builder
	b.WriteString(" \n")
	switch v := v.(type) {
	case string:
		b.WriteByte('"')
		for _, unit := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04X`, unit)
		}
		b.WriteByte('"')
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(respelled(element))
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			b.WriteString(respelled(name) + ":" + respelled(v[name]))
			if i > 0 {
				b.WriteByte(',')
			}
		}
		b.WriteByte('}')
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(text)
	}
	b.WriteString("\t ")
	return b.String()
}

// No expression and no text makes the package panic. If a key is found, it is a valid key, and
// every spelling of the same JSON value gives the same key.
func FuzzKey(f *testing.F) {
	document := `{"a":{"b":[1,{"c":"x","d":[]},"y"],"e":9007199254740993},"id":"o-1","items":[{"id":1,"kind":"fee"},{"id":"é"}]}`
	for _, expression := range []string{
		"id", "a.b[1].c", "[id, a.e]", "{x: id, y: a}", "items[*].[id, kind]", "items[?kind == 'fee'].id | [0]", "a.b[::-1]", "a.b[]", "map(&[@], items)", "not_null(x, id)", "id || a", "@",
		"items[?starts_with(kind, 'f') && !contains(id, `null`)].id", "reverse(a.b)", "length(a)", "to_array(a)", `"id"`, "a.b[1:2:9]", "[[id], {x: a.e}]", "sum(a)", "*", "[:", "`1`", "'x'", "a.b[?@ != 'y'][]",
	} {
		f.Add(expression, document)
	}
	f.Add("id", `{"id":1,"id":2}`)
	f.Add("@", `1.50e+7`)
	f.Fuzz(func(t *testing.T, expression, document string) {
		k, err := jmeskey.New(expression, func(o *jmeskey.Options) { o.MaxBytes, o.MaxDepth = 1<<14, 16 })
		if err != nil {
			return
		}
		found, err := k.JSON([]byte(document))
		if err != nil {
			if found != "" {
				t.Fatalf("%q in %q is %q with the error %v", expression, document, found, err)
			}
			return
		}
		if found != "" && lambdaidem.PrintableKey(found) != nil {
			t.Fatalf("%q in %q is %q, which is no key", expression, document, found)
		}
		dec := json.NewDecoder(strings.NewReader(document))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%q has the key %q, and is no JSON: %v", document, found, err)
		}
		other := respelled(v)
		if len(other) > 1<<14 {
			return
		}
		if again, err := k.JSON([]byte(other)); err != nil || again != found {
			t.Fatalf("%q in %q is %q, in %q it is %q, %v", expression, document, found, other, again, err)
		}
	})
}

// Different strings give different keys, and so do different numbers, both alone and as parts of a
// list or object that the expression builds.
func FuzzDifferent(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "b"}, {"a", "a "}, {"é", "e\u0301"}, {"a", "A"}, {"\x00", "\u0001"}, {"\ufffd", "?"}, {`a","b`, `a`}, {"1", "1.0"}, {"9007199254740993", "9007199254740992"},
		{"-0", "0"}, {"1e1", "10"}, {"sha256_x", "x"}, {strings.Repeat("a", 255), strings.Repeat("a", 256)},
	} {
		f.Add(seed[0], seed[1])
	}
	text := func(s string) string {
		out, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	number := func(s string) bool { var n json.Number; return json.Unmarshal([]byte(s), &n) == nil && n.String() == s }
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == b || !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		values := [][2]string{{text(a), text(b)}}
		if number(a) && number(b) {
			values = append(values, [2]string{a, b})
		}
		for _, v := range values {
			for _, expression := range []string{"id", "[id]", "{x: id}", "[id, k]", "@"} {
				one := key(t, expression, `{"id":`+v[0]+`,"k":1}`)
				two := key(t, expression, `{"id":`+v[1]+`,"k":1}`)
				if one == two && one != "" {
					t.Fatalf("%s is the key %q for %s and for %s", expression, one, v[0], v[1])
				}
			}
		}
		apart, joined := key(t, "[a, b]", `{"a":`+text(a)+`,"b":`+text(b)+`}`), key(t, "[a, b]", `{"a":`+text(a+b)+`,"b":`+text("x")+`}`)
		if apart == joined && apart != "" && b != "x" {
			t.Fatalf("%q, %q and %q, x are one key", a, b, a+b)
		}
	})
}
