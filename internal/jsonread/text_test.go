package jsonread_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// Text returns the same as encoding/json. It rejects what encoding/json repairs: invalid UTF-8, and
// an escape of half a surrogate pair.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		`""`, `"a"`, `"\""`, `"\\"`, `"a\\"`, `"\/\b\f\n\r\t"`, `"\u0041"`, `"\u00e9x"`, `"\ud83d\ude00"`, `"x\ud83d\ude00\ud83d\ude00y"`,
		`"\ud83d"`, `"\ude00\ud83d"`, `"\ud83dx\ude00"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\u00g1"`, `"\u+041"`, `"\u004"`, `"\u"`, `"\x"`, `"\U0041"`, `"\`, `"a\"`, `"`, ``,
		"\"\n\"", "\"a\\n\x00\"", "\"\xff\"", "\"\\n\xff\"", `"\ufffd"`, "\"\ufffd\"", `"a" `, ` "a"`, `"a"b`, `"{\"a\":\"b\",\"c\":[\"\\u0041\"]}"`,
		"\"\xffa\"", "\"a\xffa\"", "\"\x80\"", "\"\x80\x80\"", "\"\xc3\"", "\"é\"",
		`"` + strings.Repeat(`\"`, 100) + `"`, `"\u0000"`, `"\uFFFF\uffff"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := jsonread.New(text)
		got, ok := r.Text()
		ok = ok && r.End()
		var want string
		err := json.Unmarshal([]byte(text), &want)
		switch {
		case ok && (err != nil || got != want):
			t.Fatalf("%q is read as %q; encoding/json: %q, %v", text, got, want, err)
		case !ok && err == nil && json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), `"`) && utf8.ValidString(text) && !halfAPair(text):
			t.Fatalf("%q is not read; encoding/json reads %q", text, want)
		}
	})
}

// halfAPair reports whether a valid text contains an escape of half a surrogate pair.
func halfAPair(text string) bool {
	for rest := text; ; {
		at := strings.IndexByte(rest, '\\')
		if at < 0 {
			return false
		}
		unit := unitAt(rest[at:])
		switch {
		case unit < 0: // an escape of two characters
			rest = rest[at+2:]
		case !utf16.IsSurrogate(unit):
			rest = rest[at+6:]
		case utf16.DecodeRune(unit, unitAt(rest[at+6:])) == utf8.RuneError:
			return true
		default:
			rest = rest[at+12:]
		}
	}
}

// unitAt returns the UTF-16 code unit of the escape with which text begins, or -1 if text does not
// begin with such an escape.
func unitAt(text string) rune {
	if !strings.HasPrefix(text, `\u`) {
		return -1
	}
	n, _ := strconv.ParseUint(text[2:6], 16, 16) // the text is valid
	return rune(n)
}
