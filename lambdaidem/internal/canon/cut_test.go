package canon_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// cut returns the canonical form of a text without the parts that the pointers name.
func cut(t testing.TB, text string, pointers ...string) string {
	t.Helper()
	p, err := canon.ParsePointers(pointers)
	if err != nil {
		t.Fatal(err)
	}
	form, ok := canon.Append([]byte("before"), []byte(text), canon.Limits{})
	if !ok {
		t.Fatalf("%q has no canonical form", text)
	}
	return string(p.Cut(form[len("before"):]))
}

func TestF4_PointersAreCutOut(t *testing.T) {
	for _, c := range []struct {
		text     string
		pointers []string
		want     string
	}{
		{`{"a":1,"t":2}`, []string{"/t"}, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, []string{"/a"}, `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"/b"}, `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"/a", "/b"}, `{"c":3}`},
		{`{"a":1,"b":2,"c":3}`, []string{"/c", "/b", "/a", "/a"}, `{}`},
		{`{"a":{"t":[1,{"x":"}]\",:"}],"b":1}}`, []string{"/a/t"}, `{"a":{"b":1}}`},
		{`{"a":{"t":1}}`, []string{"/a/t"}, `{"a":{}}`},
		{`{"a":{"t":1,"u":2},"b":3}`, []string{"/a", "/a/t"}, `{"b":3}`},
		{`{"a":{"t":1,"u":2},"b":3}`, []string{"/a/t", "/a"}, `{"b":3}`},
		{`{"a":1}`, []string{"/t", "/a/b", "/a/0", "/A", "/0", "/-"}, `{"a":1}`},
		{`{"T":1,"x":{"t":1}}`, []string{"/t"}, `{"T":1,"x":{"t":1}}`},
		{`{"":1,"a":2}`, []string{"/"}, `{"a":2}`},
		{`{"":{"":1,"b":2}}`, []string{"//"}, `{"":{"b":2}}`},
		{`{"a/b":1,"m~n":2,"~1":3,"k":4}`, []string{"/a~1b", "/m~0n", "/~01"}, `{"k":4}`},
		{`{"\u0061\n\"\\":1,"k":2}`, []string{"/a\n\"\\"}, `{"k":2}`},
		{`{"é":1,"😀":2,"k":3}`, []string{"/é", "/😀"}, `{"k":3}`},
		{`[1,2,3,4]`, []string{"/0", "/2"}, `[2,4]`},
		{`[1]`, []string{"/0"}, `[]`},
		{`[1,2]`, []string{"/00", "/01", "/+1", "/-", "/2", "/99999999999999999999"}, `[1,2]`},
		{`{"0":1,"01":2,"-":3}`, []string{"/0", "/-"}, `{"01":2}`},
		{`{"i":[{"t":1,"a":1},{"t":2,"a":2}]}`, []string{"/i/1/t"}, `{"i":[{"a":1,"t":1},{"a":2}]}`},
		{`{"a":[],"b":{},"c":"","d":null,"e":-1.5e+7,"f":true}`, []string{"/e"}, `{"a":[],"b":{},"c":"","d":null,"f":true}`},
		{`"text"`, []string{"/0", "/t"}, `"text"`},
		{`12`, []string{"/0"}, `12`},
		{`null`, []string{"/"}, `null`},
		{`{"a":1}`, nil, `{"a":1}`},
	} {
		if got := cut(t, c.text, c.pointers...); got != c.want {
			t.Errorf("%s without %q is %s, want %s", c.text, c.pointers, got, c.want)
		}
	}
}

func TestF4_NoPointersCutNothing(t *testing.T) {
	var none *canon.Pointers
	if got := none.Cut([]byte(`{"a":1}`)); string(got) != `{"a":1}` {
		t.Errorf("what is left is %s", got)
	}
}

func TestF4_BadPointersAreRefused(t *testing.T) {
	for _, bad := range []string{"", "a", "a/b", "#/a", "/~", "/a~", "/~2", "/a/~/b", "/~~0", "/\xff"} {
		if _, err := canon.ParsePointers([]string{"/ok", bad}); err == nil {
			t.Errorf("%q is taken for a pointer", bad)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("the error of %q does not name it: %v", bad, err)
		}
	}
}

// Cut removes the same parts as the function without, which works on decoded values and shares no
// code with Cut.
func TestF4_CutIsWhatAPlainReaderTakesOut(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "0", "1", "2", "", "a/b", "~", "é", "\"", "\n"})
	leaf := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"0", "-1.5e+7", "9007199254740993"}), func(n string) any { return stdjson.Number(n) }),
		rapid.Map(rapid.SampledFrom([]string{"", "]", "}", ",", `\`, `"`, ":"}), func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, false}))
	value := leaf
	for range 4 {
		inner := value
		value = rapid.OneOf(leaf,
			rapid.Map(rapid.MapOfN(names, inner, 0, 4), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		tokens := rapid.SliceOfN(rapid.SliceOfN(names, 1, 3), 0, 4).Draw(t, "pointers")
		var pointers []string
		for _, path := range tokens {
			pointer := ""
			for _, token := range path {
				pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
			}
			pointers = append(pointers, pointer)
		}
		form := func(v any) []byte {
			text, err := stdjson.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			out, ok := canon.Append(nil, text, canon.Limits{})
			if !ok {
				t.Fatalf("%s has no canonical form", text)
			}
			return out
		}
		p, err := canon.ParsePointers(pointers)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := p.Cut(form(v)), form(without(v, tokens)); !bytes.Equal(got, want) {
			t.Fatalf("%s without %q is %s, want %s", form(v), pointers, got, want)
		}
	})
}

// without returns the decoded value v without the parts that the paths name.
func without(v any, paths [][]string) any {
	within := func(name string) (deeper [][]string, named bool) {
		for _, p := range paths {
			if p[0] == name && len(p) == 1 {
				named = true
			} else if p[0] == name {
				deeper = append(deeper, p[1:])
			}
		}
		return deeper, named
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if deeper, named := within(name); !named {
				out[name] = without(member, deeper)
			}
		}
		return out
	case []any:
		out := []any{}
		for i, element := range v {
			if deeper, named := within(fmt.Sprint(i)); !named {
				out = append(out, without(element, deeper))
			}
		}
		return out
	}
	return v
}
