package canon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// canonical returns the canonical form of src under the default limits. It
// fails the test if there is none.
func canonical(t *testing.T, src string) string {
	t.Helper()
	out, ok := canon.Append(nil, []byte(src), canon.Limits{})
	if !ok {
		t.Fatalf("no canonical form of %q", src)
	}
	return string(out)
}

func TestF3_CanonicalForm(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"null", ` null `, `null`},
		{"true", "\ttrue", `true`},
		{"false", "false\r\n", `false`},
		{"number", ` -12.50E+07 `, `-12.50E+07`},
		{"string", ` "a" `, `"a"`},
		{"empty string", `""`, `""`},
		{"empty object", " { \n } ", `{}`},
		{"empty array", " [ \n ] ", `[]`},
		{"white space", "\r\n[ 1 ,\t{ \"a\" : [ ] } ]\n", `[1,{"a":[]}]`},
		{"white space in a string", `[" a  b "]`, `[" a  b "]`},
		{"members in order", `{"a":1,"b":2,"c":3}`, `{"a":1,"b":2,"c":3}`},
		{"members out of order", `{"c":1,"a":2,"b":3}`, `{"a":2,"b":3,"c":1}`},
		{"one name begins another", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"a shorter name between longer ones", `{"bb":1,"b":2,"aa":3}`, `{"aa":3,"b":2,"bb":1}`},
		{"long names", `{"identifier-2":1,"identifier-10":2,"identifier-1":3}`, `{"identifier-1":3,"identifier-10":2,"identifier-2":1}`},
		{"nested", `{"b":{"d":1,"c":2},"a":[{"f":3,"e":4}]}`, `{"a":[{"e":4,"f":3}],"b":{"c":2,"d":1}}`},
		{"only the inner one moves", `{"a":{"d":1,"c":2},"b":{"f":3,"e":4}}`, `{"a":{"c":2,"d":1},"b":{"e":4,"f":3}}`},
		{"an object around one in order", `{"b":{"c":1,"d":2},"a":{"f":{"h":1,"g":2},"e":0}}`, `{"a":{"e":0,"f":{"g":2,"h":1}},"b":{"c":1,"d":2}}`},
		{"the same name at two levels", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`},
		{"arrays keep their order", `[3,1,2]`, `[3,1,2]`},
		{"escapes that need none", `"\u0041\/\u00e9\u20AC\ud83d\ude00\u007f"`, "\"A/é€😀\x7f\""},
		{"escapes that are needed", `"\u0022\u005c\u0008\u000C\u000a\u000D\u0009\u0000\u001F"`, `"\"\\\b\f\n\r\t\u0000\u001f"`},
		{"escapes in names", `{"\u0062":1,"\u0061":2}`, `{"a":2,"b":1}`},
		{"runes of one to four bytes", `"a é € 😀 ` + "\u2028" + `"`, `"a é € 😀 ` + "\u2028" + `"`},
		{"U+FFFD is a character too", `"\ufffd"`, "\"\ufffd\""},
		{"noncharacters", `"\uffff\udbff\udfff"`, "\"\uffff\U0010ffff\""},
		{"not normalised", `["é","e\u0301"]`, "[\"é\",\"e\u0301\"]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := canonical(t, tc.src); got != tc.want {
				t.Errorf("canonical form of %q\n got %s\nwant %s", tc.src, got, tc.want)
			}
			if got := canonical(t, tc.want); got != tc.want {
				t.Errorf("canonical form of the canonical form %s is %s", tc.want, got)
			}
		})
	}
}

func TestF3_OneValueOneForm(t *testing.T) {
	for _, texts := range [][]string{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, "{\n  \"b\": 2,\n  \"a\": 1\n}"},
		{`"A"`, `"\u0041"`},
		{`"/"`, `"\/"`, `"\u002f"`, `"\u002F"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`"\n"`, `"\u000a"`, `"\u000A"`},
		{`{"é":1}`, `{"\u00e9":1}`},
		{`{"B":1,"a":2}`, `{"a":2,"B":1}`},
	} {
		for _, text := range texts[1:] {
			if a, b := canonical(t, texts[0]), canonical(t, text); a != b {
				t.Errorf("%s has the form %s, but %s has %s", texts[0], a, text, b)
			}
		}
	}
}

func TestF3_DifferentValuesDifferentForms(t *testing.T) {
	for _, pair := range [][2]string{
		{`1`, `1.0`},
		{`1.0`, `1.00`},
		{`1e2`, `1E2`},
		{`1e2`, `1e+2`},
		{`100`, `1e2`},
		{`0`, `-0`},
		{`9007199254740993`, `9007199254740992`},
		{`0.1`, `0.1000000000000000055511151231257827`},
		{`1e400`, `1e401`},
		{`1`, `"1"`},
		{`null`, `"null"`},
		{`[]`, `{}`},
		{`[]`, `[null]`},
		{`{}`, `{"a":null}`},
		{`[1,2]`, `[2,1]`},
		{`[[1],2]`, `[[1,2]]`},
		{`{"a":1}`, `{"A":1}`},
		{`{"k":1}`, "{\"\u212a\":1}"},
		{`{"a":{"b":1}}`, `{"a":{},"b":1}`},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`},
		{`"a"`, `"A"`},
		{`" a"`, `"a"`},
		{`"é"`, `"e\u0301"`},
		{`"\\n"`, `"\n"`},
		{`"\\u0041"`, `"A"`},
		{`"a,b"`, `"a\",\"b"`},
		{`["a,b"]`, `["a","b"]`},
		{`"\u0000"`, `""`},
	} {
		if a, b := canonical(t, pair[0]), canonical(t, pair[1]); a == b {
			t.Errorf("%s and %s both have the form %s", pair[0], pair[1], a)
		}
	}
}

// A text that JSON readers may understand differently has no canonical form.
func TestF3_NoFormWhereReadersDisagree(t *testing.T) {
	for _, tc := range []struct{ name, src string }{
		{"empty", ``},
		{"only white space", " \n"},
		{"byte order mark", "\ufeff{}"},
		{"byte order mark, UTF-16", "\xfe\xff\x00{\x00}"},
		{"UTF-16", "{\x00}\x00"},
		{"trailing data", `{} x`},
		{"trailing comma after the value", `{},`},
		{"trailing NUL", "{}\x00"},
		{"leading NUL", "\x00{}"},
		{"two values", `{}{}`},
		{"two values on lines", "1\n2"},
		{"two numbers", `1 2`},

		{"duplicate members", `{"a":1,"a":1}`},
		{"duplicate members apart", `{"a":1,"b":2,"c":3,"a":4}`},
		{"duplicate members out of order", `{"b":1,"a":2,"b":3}`},
		{"duplicate members by escape", `{"a":1,"\u0061":2}`},
		{"duplicate members by surrogates", `{"😀":1,"\ud83d\ude00":2}`},
		{"duplicate empty names", `{"":1,"":2}`},
		{"duplicate members, nested", `[{"x":{"b":1,"a":{"c":1,"c":2}}}]`},
		{"duplicate members around others", `{"a":{"a":1},"b":{"a":2},"a":3}`},
		{"long duplicate members", `{"abcdefghi":1,"abcdefghj":2,"abcdefghi":3}`},

		{"members that differ by case", `{"a":1,"A":2}`},
		{"members that differ by case, apart", `{"userId":1,"z":2,"b":3,"userID":4}`},
		{"members that differ by case, not ASCII", `{"Ä":1,"ä":2}`},
		{"members that differ by case, escaped", `{"\u00c4":1,"ä":2}`},
		{"members that differ by case, three Greek sigmas", `{"σ":1,"ς":2}`},
		{"the Kelvin sign is a k", "{\"\u212a\":1,\"k\":2}"},
		{"the long s is an s", `{"addreſs":1,"address":2}`},

		{"high surrogate alone", `"\ud83d"`},
		{"low surrogate alone", `"\ude00"`},
		{"surrogates swapped", `"\ude00\ud83d"`},
		{"two high surrogates", `"\ud83d\ud83d"`},
		{"high surrogate, then a letter", `"\ud83dx"`},
		{"high surrogate, then another escape", `"\ud83d\n"`},
		{"high surrogate, then another escape and digits", `"\ud83d\nde00"`},
		{"high surrogate, then half an escape", `"\ud83d\ude0"`},
		{"surrogate alone in a name", `{"\ud800":1}`},
		{"surrogate as UTF-8", "\"\xed\xa0\xbd\""},

		{"invalid UTF-8", "\"\xff\""},
		{"invalid UTF-8 in a name", "{\"\x80\":1}"},
		{"invalid UTF-8 outside strings", "[\xa0]"},
		{"overlong UTF-8", "\"\xc0\xaf\""},
		{"cut UTF-8", "\"\xe2\x82\""},
		{"beyond Unicode", "\"\xf4\x90\x80\x80\""},

		{"leading zero", `01`},
		{"negative leading zero", `-01`},
		{"plus sign", `+1`},
		{"minus sign alone", `-`},
		{"no integer part", `.5`},
		{"no integer part, negative", `-.5`},
		{"no fraction", `1.`},
		{"no fraction before the exponent", `1.e5`},
		{"no exponent", `1e`},
		{"no exponent after the sign", `1e+`},
		{"hexadecimal", `0x10`},
		{"underscore", `1_000`},
		{"NaN", `NaN`},
		{"Infinity", `Infinity`},
		{"negative Infinity", `-Infinity`},
		{"digits of another script", `١`},

		{"literal in upper case", `True`},
		{"literal cut", `nul`},
		{"literal prolonged", `nulll`},
		{"undefined", `undefined`},

		{"raw control character", "\"a\nb\""},
		{"raw NUL", "\"a\x00b\""},
		{"raw control character after eight bytes", "\"12345678\x1f\""},
		{"raw control character among eight bytes", "\"123\x1f56789abcdef\""},
		{"raw control character in a name", "{\"a\tb\":1}"},
		{"unknown escape", `"\x41"`},
		{"escape in upper case", `"\N"`},
		{"escaped apostrophe", `"\'"`},
		{"short escape", `"\u12"`},
		{"escape with a letter", `"\u12g4"`},
		{"escape with a sign", `"\u+123"`},
		{"escape at the end", `"\`},
		{"unterminated string", `"abc`},
		{"unterminated string after eight bytes", `"12345678`},
		{"unterminated escape", `"abc\"`},
		{"single quotes", `'a'`},
		{"no quotes", `{a:1}`},

		{"line comment", "// x\n1"},
		{"block comment", `[1,/*x*/2]`},
		{"form feed as white space", "\f1"},
		{"no-break space as white space", "\u00a01"},
		{"trailing comma in an array", `[1,]`},
		{"leading comma in an array", `[,1]`},
		{"comma alone", `[,]`},
		{"no comma in an array", `[1 2]`},
		{"unterminated array", `[1`},
		{"unterminated empty array", `[`},
		{"array closed by a brace", `[1}`},
		{"trailing comma in an object", `{"a":1,}`},
		{"no comma in an object", `{"a":1 "b":2}`},
		{"no colon", `{"a" 1}`},
		{"no value", `{"a":}`},
		{"no name", `{:1}`},
		{"a number for a name", `{1:1}`},
		{"unterminated object", `{"a":1`},
		{"unterminated empty object", `{`},
		{"object cut after a name", `{"a"`},
		{"object cut after a colon", `{"a":`},
		{"object cut after a comma", `{"a":1,`},
		{"object closed by a bracket", `{"a":1]`},
		{"closing bracket alone", `]`},
		{"closing brace alone", `}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dst := []byte("before")
			got, ok := canon.Append(dst, []byte(tc.src), canon.Limits{})
			if ok {
				t.Errorf("%q has the canonical form %s", tc.src, got[len(dst):])
			}
			if string(got) != "before" {
				t.Errorf("dst became %q", got)
			}
		})
	}
}

// Strings are scanned eight bytes at a time. So each byte, and each pair of bytes around a special
// one, must be handled in the same way at every position.
func TestF3_EveryByteInEveryPlace(t *testing.T) {
	var parts []string
	for b := range 256 {
		parts = append(parts, string([]byte{byte(b)}))
	}
	const borders = "\x00\x01\x1f !\"#[\\]\x7f\x80\x81\xa0\xa2\xdc\xff"
	for i := range len(borders) {
		for j := range len(borders) {
			parts = append(parts, string([]byte{borders[i], borders[j]}))
		}
	}
	for _, part := range parts {
		for at := range 10 {
			src := []byte(`"` + "0123456789"[:at] + part + `0123456789abcdef"`)
			form, ok := canon.Append(nil, src, canon.Limits{})
			want, err := parse(src)
			if ok != (err == nil) {
				t.Errorf("%q: a form: %v, but jsontext says: %v", src, ok, err)
			} else if got, err := parse(form); ok && (err != nil || got.text != want.text) {
				t.Errorf("%q has the form %q", src, form)
			}
		}
	}
}

// Names that some JSON reader treats as the same are duplicates.
func TestF3_NamesThatAReaderFoldsAreDuplicates(t *testing.T) {
	for _, names := range [][]string{
		{"user_id", "userId", "user-id", "UserID", "USER_ID", "userid", "_user__id-"},
		{"id", "_id"},
		{"line_1", "line1"},
		{"", "_", "__", "-", "_-"},
		{"id", "ID", "İd", "ıd", "i\u0307d", "I\u0307d", "i\u0307\u0307d", "ı\u0307d", "İ\u0307d", "İ_d", "i_\u0307d"},
		{"identity", "İDENTİTY", "ıdentıty", "i\u0307denti\u0307ty"},
		{"s", "S", "ſ"},
		{"k", "K", "\u212a"},
		{"å", "Å", "\u212b"},
		{"σ", "ς", "Σ"},
		{"µ", "μ", "Μ"},
		{"ß", "ẞ"},
		{"dž", "Dž", "DŽ"},
		{"\u0345", "ι", "Ι", "\u1fbe"},
		{"Ꭰ", "ꭰ"},
		{"ა", "Ა"},
		{"first-\nname", "first\n_name"},
		{"\"_", "-\""},
	} {
		for i, a := range names {
			for _, b := range names[:i] {
				for _, pair := range [][2]string{{a, b}, {b, a}} {
					one, other := quoted(pair[0]), quoted(pair[1])
					for _, src := range []string{
						`{` + one + `:1,` + other + `:2}`,
						`{` + one + `:1,"zz":2,"aa":3,` + other + `:4}`,
						`[{"b":1,"a":{"zz":0,` + one + `:[],` + other + `:{}}}]`,
					} {
						if form, ok := canon.Append(nil, []byte(src), canon.Limits{}); ok {
							t.Errorf("%s has the form %s", src, form)
						}
					}
				}
			}
		}
	}
}

// Each rune is treated like its results under Go's case mappings, including those for the Turkish
// locale, which Java uses if it is the default locale.
func TestF3_CaseMappingsFold(t *testing.T) {
	mappings := map[string]func(rune) rune{
		"SimpleFold": unicode.SimpleFold,
		"ToLower":    unicode.ToLower, "ToUpper": unicode.ToUpper, "ToTitle": unicode.ToTitle,
		"Turkish ToLower": unicode.TurkishCase.ToLower, "Turkish ToUpper": unicode.TurkishCase.ToUpper, "Turkish ToTitle": unicode.TurkishCase.ToTitle,
	}
	found := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for name, mapping := range mappings {
			mapped := mapping(r)
			if mapped == r {
				continue
			}
			found++
			src := `{` + quoted("a"+string(r)+"z") + `:1,` + quoted("a"+string(mapped)+"z") + `:2}`
			if form, ok := canon.Append(nil, []byte(src), canon.Limits{}); ok {
				t.Errorf("%s makes %U of %U, but %s has the form %s", name, mapped, r, src, form)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d letters have another case", found)
	}
}

// Runes that no case mapping connects are distinct names.
func TestF3_OtherLettersDoNotFold(t *testing.T) {
	var src []byte
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		least := r
		for n := unicode.SimpleFold(r); n != r; n = unicode.SimpleFold(n) {
			least = min(least, n)
		}
		if least == r && r != 'İ' && r != 'ı' && utf8.ValidRune(r) {
			src = append(append(append(src, `,"`...), string(r)...), `":0`...)
		}
	}
	src = append(append([]byte(`{"i":0`), src...), '}')
	if _, ok := canon.Append(nil, src, canon.Limits{Bytes: len(src), Members: len(src)}); !ok {
		t.Error("two letters that differ count as one")
	}
}

// Names that only look alike are not duplicates.
func TestF3_AlikeNamesAreDistinct(t *testing.T) {
	for _, src := range []string{
		`{"a":1,"b":2}`,
		`{"user_id":1,"user_ids":2}`,
		`{"user_id":1,"user id":2,"user.id":3,"user–id":4,"user\u00adid":5}`,
		`{"_":1,"a":2,"b-":3}`,
		`{"é":1,"e":2}`,
		"{\"é\":1,\"e\u0301\":2}",
		`{"ss":1,"ß":2}`,
		`{"fi":1,"ﬁ":2}`,
		`{"i":1,"ï":2,"j":3,"l":4,"1":5}`,
		// A combining dot is ignored only after an i. An i at the end of the previous name has no
		// effect on the next.
		`{"a":1,"a\u0307":2,"ai":3,"a\u0307i":4}`,
		`{"i":1,"":2,"\u0307":3}`,
		`{"":1," ":2}`,
		`{"a":1,"a\u0000":2,"a\u0000\u0000":3}`,
		`{"\n":1,"\\n":2,"n":3}`,
		`{"\\_n":1,"\n":2,"_n":3}`,
		`{"\u001f":1,"\\u001f":2}`,
	} {
		canonical(t, src)
	}
}

// quoted returns s as a JSON string.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestF3_AppendsToWhatIsThere(t *testing.T) {
	got, ok := canon.Append([]byte("body:"), []byte(`{"b":1,"a":2}`), canon.Limits{})
	if want := `body:{"a":2,"b":1}`; !ok || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, ok, want)
	}
}

func TestF3_SourceStaysAsItWas(t *testing.T) {
	src := []byte(` {"b":"\u0041","a":[2]} `)
	before := bytes.Clone(src)
	if _, ok := canon.Append(nil, src, canon.Limits{}); !ok || !bytes.Equal(src, before) {
		t.Errorf("src became %q, %v", src, ok)
	}
}

func TestS2_Limits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	mixed := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2) }
	for _, tc := range []struct {
		name string
		src  string
		lim  canon.Limits
		want bool
	}{
		{"bytes", ` "abc"`, canon.Limits{Bytes: 6}, true},
		{"too many bytes", ` "abc"`, canon.Limits{Bytes: 5}, false},
		{"default bytes", `"` + strings.Repeat("a", canon.DefaultBytes-2) + `"`, canon.Limits{}, true},
		{"more than default bytes", `"` + strings.Repeat("a", canon.DefaultBytes-1) + `"`, canon.Limits{}, false},

		{"depth", `[{}]`, canon.Limits{Depth: 2}, true},
		{"too deep", `[[{}]]`, canon.Limits{Depth: 2}, false},
		{"depth counts what is open, not what was", `[[],{},[]]`, canon.Limits{Depth: 2}, true},
		{"default depth", nested(canon.DefaultDepth), canon.Limits{}, true},
		{"deeper than default", nested(canon.DefaultDepth + 1), canon.Limits{}, false},
		{"default depth, mixed", mixed(canon.DefaultDepth), canon.Limits{}, true},
		{"deeper than default, mixed", mixed(canon.DefaultDepth + 2), canon.Limits{}, false},
		{"greatest depth", nested(10_000), canon.Limits{Depth: 1 << 40}, true},
		{"no stack overflow", strings.Repeat(`[`, 4<<20), canon.Limits{Depth: 1 << 40}, false},

		{"members", `{"a":1,"b":2}`, canon.Limits{Members: 2}, true},
		{"too many members", `{"a":1,"b":2,"c":3}`, canon.Limits{Members: 2}, false},
		{"members are counted in each object", `[{"a":{"a":1,"b":2},"b":2},{"a":1,"b":2}]`, canon.Limits{Members: 2}, true},
		{"default members", members(canon.DefaultMembers), canon.Limits{}, true},
		{"more than default members", members(canon.DefaultMembers + 1), canon.Limits{}, false},

		{"negative limits are the defaults", `[{"a":1,"b":2}]`, canon.Limits{Bytes: -1, Depth: -1, Members: -1}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, ok := canon.Append(nil, []byte(tc.src), tc.lim); ok != tc.want {
				t.Errorf("got %v, want %v", ok, tc.want)
			}
		})
	}
}

// Scanners are reused. The form of a text must not depend on the texts scanned before, even if
// those were rejected.
func TestF3_TextsDoNotMix(t *testing.T) {
	srcs := []string{
		payment,
		`{"b":{"d":1,"c":2},"a":3}`,
		`{"b":{"d":1,"c":2},"a":3,"a`,
		`{"a":1,"b":{"A":1,"a":2}}`,
		`[]`,
		string(ordinary(150 << 10)),
	}
	want := make([]string, len(srcs))
	for i, src := range srcs {
		got, _ := canon.Append(nil, []byte(src), canon.Limits{})
		want[i] = string(got)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for n := range 3 * len(srcs) {
				i := (n*(g+1) + g) % len(srcs)
				got, _ := canon.Append(nil, []byte(srcs[i]), canon.Limits{})
				if string(got) != want[i] {
					t.Errorf("text %d had the form %.80q, now %.80q", i, want[i], got)
				}
			}
		})
	}
	wg.Wait()
}

// members returns an object with n members.
func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}
