package canon_test

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// names draws member names from small sets, so that many share a prefix and some are the same for
// some reader.
var names = rapid.OneOf(
	rapid.StringMatching(`[a-c]{0,3}`),
	rapid.StringMatching(`[a-b_\-]{0,4}`),
	rapid.StringMatching(`[iIİı_]{0,3}\x{307}?[iIİı]?`),
	rapid.StringMatching(`identifier[A-Za-z0-9]{0,2}`),
	rapid.SampledFrom([]string{"k", "K", "\u212a", "s", "ſ", "é", "É", "\"", "\\", "\n", "\x00", "😀", "a\"b"}),
	rapid.String(),
)

var numbers = rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`)

// values draws JSON values up to depth levels deep.
func values(depth int) *rapid.Generator[*value] {
	return rapid.Custom(func(t *rapid.T) *value {
		kinds := []byte(`nft"0{[`)
		if depth == 0 {
			kinds = kinds[:5]
		}
		v := &value{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.kind {
		case 'n':
			v.text = "null"
		case 'f':
			v.text = "false"
		case 't':
			v.text = "true"
		case '"':
			v.text = rapid.String().Draw(t, "string")
		case '0':
			v.text = numbers.Draw(t, "number")
		case '{':
			v.members = rapid.MapOfN(names, values(depth-1), 0, 20).Draw(t, "members")
		case '[':
			v.items = rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "items")
		}
		return v
	})
}

// Two spellings of a value have the same form, and different values have different forms.
func TestF3_FormIsByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		form, ok := canon.Append(nil, v.spell(rng), canon.Limits{})
		if ok == v.nameVariants() {
			t.Fatalf("a form: %v, names that some reader takes for one: %v", ok, !ok)
		}
		if ok {
			checkSpellings(t, v, form, rng)
		}
	})
}

// A text with a duplicate name has no form, whatever the spelling, case or position of the
// duplicate. (A change of case may also result in a different name.)
func TestF3_DuplicatesAreFoundAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(names, 1, 20, plainName).Draw(t, "names")
		all = append(all, rapid.SampledFrom([]func(string) string{
			strings.Clone, strings.ToLower, strings.ToUpper, plainName, func(s string) string { return "_" + s + "-" },
		}).Draw(t, "case")(rapid.SampledFrom(all).Draw(t, "duplicate")))
		all = rapid.Permutation(all).Draw(t, "order")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))

		text := []byte(`[{"a":{`)
		for i, name := range all {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(quote(text, name, rng), ":0"...)
		}
		text = append(text, `},"b":1}]`...)
		if form, ok := canon.Append(nil, text, canon.Limits{}); ok == anySameName(all) {
			t.Fatalf("%s has the form %q, %v", text, form, ok)
		}
	})
}

// Two names are duplicates if encoding/json, or encoding/json/v2 with MatchCaseInsensitiveNames,
// would store both in the same struct field.
func TestF3_OneFieldIsOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := names.Draw(t, "name")
		b := rapid.OneOf(names, rapid.Map(names, func(s string) string { return a + s }), rapid.SampledFrom([]string{
			strings.ToLower(a), strings.ToUpper(a), "_" + a, a + "-", ignored.Replace(a),
		})).Draw(t, "other name")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		text := append(quote([]byte(`{`), a, rng), `:1,`...)
		text = append(quote(text, b, rng), `:2}`...)

		form, ok := canon.Append(nil, text, canon.Limits{})
		if ok && strings.EqualFold(a, b) {
			t.Fatalf("%s has the form %s, but encoding/json sets one field by both names", text, form)
		}
		if ok && setsField(t, a, b) {
			t.Fatalf("%s has the form %s, but encoding/json/v2 may set one field by both names", text, form)
		}
	})
}

// setsField reports whether encoding/json/v2 with MatchCaseInsensitiveNames stores a member named b
// in a struct field named a.
func setsField(t *rapid.T, a, b string) bool {
	if a == "" || a == "-" || strings.ContainsAny(a, ",\\'\"`") {
		return false // no struct field can have this name
	}
	field := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Field", Type: reflect.TypeFor[int](), Tag: reflect.StructTag("json:" + strconv.Quote(a)),
	}}))
	text, err := jsonv2.Marshal(map[string]int{b: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonv2.Unmarshal(text, field.Interface(), jsonv2.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("a field named %q can't read %s: %v", a, text, err)
	}
	return field.Elem().Field(0).Int() == 1
}
