package canon_test

import (
	"bytes"
	stdjson "encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// seeds are edge cases of the JSON grammar and of Append's own rules.
var seeds = []string{
	``, ` `, `null`, `true`, `false`, `0`, `-0`, `1.50e+07`, `01`, `-`, `1.`, `1e`, `""`, `"`, `{}`, `[]`, `{`, `[`, `[1,]`, `{"a":1,}`,
	payment,
	`{"b":{"d":1,"c":[{"f":2,"e":3}]},"a":{"h":4,"g":5}}`,
	`{"n":9007199254740993,"m":9007199254740992}`,
	`{"a":1,"\u0061":2}`, `{"a":1,"A":2}`, "{\"k\":1,\"\u212a\":2}", `{"ß":1,"ẞ":2,"ss":3}`,
	`{"user_id":1,"userId":2}`, `{"user-id":1,"user_ids":2,"userids":3}`, `{"_":1,"-":2}`, `{"":1,"_":2}`, `{"_a":1,"b_":2,"a-b":3}`,
	"{\"İ\":1,\"i\":2}", "{\"ı\":1,\"\":2}", "{\"i\u0307\":1,\"İ\":2}", "{\"i\":1,\"\u0307\":2,\"_\":3}", "{\"a\u0307\":1,\"a\":2}",
	`"\ud83d\ude00 \/ \u0041 \u2028 \u0000 \u001f \" \\ \b\f\n\r\t"`,
	`"\ud83d"`, `"\ude00\ud83d"`, "\"\xed\xa0\x80\"", "\"\xff\"", "\ufeff1", "1 2", "{}x", "[1]\x00", "\"\x1f\"", "\"\x7f\"",
	`[[[[[[[[[[]]]]]]]]]]`,
}

// FuzzAppend compares Append with two JSON readers that share no code with it.
func FuzzAppend(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	lim := canon.Limits{Bytes: 1 << 12, Depth: 8, Members: 16}
	f.Fuzz(func(t *testing.T, src []byte) {
		form, ok := canon.Append(nil, src, lim)
		v, err := parse(src)
		switch {
		case ok && err != nil:
			t.Fatalf("%q has the form %q, but jsontext refuses it: %v", src, form, err)
		case !ok && err == nil: // one of Append's own rules must be the reason
			if len(src) <= lim.Bytes && v.depth() <= lim.Depth && v.mostMembers() <= lim.Members && !v.nameVariants() {
				t.Fatalf("%q has no form, but jsontext reads it, and it is within our limits", src)
			}
			return
		case !ok:
			return
		}
		if v.depth() > lim.Depth || v.mostMembers() > lim.Members || len(src) > lim.Bytes {
			t.Fatalf("%q has the form %q, but is beyond the limits", src, form)
		}
		if v.nameVariants() {
			t.Fatalf("%q has the form %q, but also names that some reader takes for one", src, form)
		}

		again, err := parse(form)
		if err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("%q and its form %q differ in value (%v)", src, form, err)
		}
		if len(form) > len(src) {
			t.Fatalf("%q has the longer form %q", src, form)
		}
		if twice, ok := canon.Append(nil, form, lim); !ok || !bytes.Equal(twice, form) {
			t.Fatalf("the form %q of %q has the form %q, %v", form, src, twice, ok)
		}
		if a, b := minimal(t, src), minimal(t, form); !bytes.Equal(a, b) {
			t.Fatalf("jsontext makes %q of %q, but %q of its form %q", a, src, b, form)
		}
		if a, b := standard(t, src), standard(t, form); !reflect.DeepEqual(a, b) {
			t.Fatalf("encoding/json reads %v in %q, but %v in its form %q", a, src, b, form)
		}
	})
}

// FuzzAppendSpelling spells the value of a text in other ways, which must not change its form, and
// then changes the value, which must change the form.
func FuzzAppendSpelling(f *testing.F) {
	for i, seed := range seeds {
		f.Add([]byte(seed), uint64(i))
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		form, ok := canon.Append(nil, src, canon.Limits{})
		if !ok {
			return
		}
		v, err := parse(src)
		if err != nil {
			t.Fatalf("%q has the form %q, but jsontext refuses it: %v", src, form, err)
		}
		checkSpellings(t, v, form, rand.New(rand.NewPCG(seed, 0)))
	})
}

// checkSpellings checks that other spellings of v have the given form. It then changes the value of
// v and checks that the form differs.
func checkSpellings(t interface{ Fatalf(string, ...any) }, v *value, form []byte, rng *rand.Rand) {
	for range 3 {
		text := v.spell(rng)
		if got, ok := canon.Append(nil, text, canon.Limits{}); !ok || !bytes.Equal(got, form) {
			t.Fatalf("respelled as %q, %q has the form %q, %v", text, form, got, ok)
		}
	}
	v.mutate(rng)
	text := v.spell(rng)
	if got, ok := canon.Append(nil, text, canon.Limits{}); ok && bytes.Equal(got, form) {
		t.Fatalf("%q is another value than %q and has its form", text, form)
	}
}

// minimal returns src in jsontext's canonical form, with numbers kept as text.
func minimal(t *testing.T, src []byte) []byte {
	out, err := jsontextCanonical(src)
	if err != nil {
		t.Fatalf("jsontext can't canonicalise %q: %v", src, err)
	}
	return out
}

// standard returns the value that encoding/json decodes from src, with numbers kept as text.
func standard(t *testing.T, src []byte) any {
	d := stdjson.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json can't read %q: %v", src, err)
	}
	return v
}

// This is why the package does not use the canonical form of RFC 8785.
func TestF3_RFC8785MakesDifferentNumbersEqual(t *testing.T) {
	a, b := jsontext.Value(`9007199254740993`), jsontext.Value(`9007199254740992`)
	if a.Canonicalize() != nil || b.Canonicalize() != nil || !bytes.Equal(a, b) {
		t.Errorf("JCS now tells %s from %s: is this package still needed?", a, b)
	}
}
