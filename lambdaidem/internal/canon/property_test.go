package canon_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// names are few, so that many share a prefix, and some differ by case only.
var names = rapid.OneOf(
	rapid.StringMatching(`[a-c]{0,3}`),
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

// Texts of one value have one form; texts of different values never have.
func TestF3_FormIsByValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		form, ok := canon.Append(nil, v.spell(rng), canon.Limits{})
		if ok == v.caseVariants() {
			t.Fatalf("a form: %v, names that differ by case only: %v", ok, !ok)
		}
		if ok {
			checkSpellings(t, v, form, rng)
		}
	})
}

// A member whose name was there before, in any spelling and any case, leaves
// the text without a form, wherever it stands. (A change to upper case can also
// make another name: ß becomes SS.)
func TestF3_DuplicatesAreFoundAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(names, 1, 40, strings.ToUpper).Draw(t, "names")
		all = append(all, rapid.SampledFrom([]func(string) string{
			strings.Clone, strings.ToLower, strings.ToUpper,
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
		if form, ok := canon.Append(nil, text, canon.Limits{}); ok == equalButForCase(all) {
			t.Fatalf("%s has the form %q, %v", text, form, ok)
		}
	})
}
