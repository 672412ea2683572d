package lambdaidem_test

import (
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

type (
	texts     = []string
	textMap   = map[string]string
	textLists = map[string][]string
)

// wantEncodingJSON writes answers that contain the given texts in every field, and checks that they
// are written as encoding/json writes them.
func wantEncodingJSON(t *testing.T, status int, body, one, two string, base64 bool) {
	t.Helper()
	for i, r := range []lambdaidem.Response{
		{Status: status, Body: body, Base64: base64},
		{Status: status, Header: textLists{one: {two}, two: {one, body}, "": {}, "A": nil}, Cookies: texts{one, two, ""}, Body: body, Base64: base64},
	} {
		many := textMap{}
		for n := range 40 {
			many[fmt.Sprint(one, n*7%40)] = two
		}
		for _, rest := range []struct {
			reason         string
			added, removed texts
			trailer        textLists
			beside         textMap
		}{
			{},
			{reason: one, added: texts{one}, removed: texts{two, one}, trailer: textLists{one: {two}, two: nil}, beside: textMap{one: two, two: ""}},
			{reason: two, added: texts{}, removed: texts{}, trailer: textLists{}, beside: many},
		} {
			ours, theirs := lambdaidem.WriteAnswer(&r, rest.reason, rest.added, rest.removed, rest.trailer, rest.beside)
			if string(ours) != string(theirs) {
				t.Errorf("answer %d of %+v is\n%s\nand encoding/json writes\n%s", i, rest, ours, theirs)
			}
		}
	}
}

// A stored answer is byte for byte what earlier versions wrote with encoding/json.
func TestR1_AnswersAreWrittenAsEncodingJSONDoes(t *testing.T) {
	var all []byte
	for c := range 0x300 {
		all = append(all, string(rune(c))...)
	}
	for _, text := range []string{
		"", "plain", `"quoted" \ and / <b>&amp;</b>`, "\b\f\n\r\t\x00\x1f\x7f", "é\u2027\u2028\u2029\u202a\ufffd\U0001F600", "\ue000\uffff",
		"\xff", "a\xc3", "\xed\xa0\x80", "\u2028", string(all), string(all[300:]) + "\xfe",
	} {
		for _, status := range []int{0, 201, -7, 99999} {
			wantEncodingJSON(t, status, text, "x-"+text, text+"-y", status == 201)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(201, `{"a":"é\n"}`, "Content-Type", "a\xffb\u2028", true)
	f.Fuzz(wantEncodingJSON)
}
