package jsonbody_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/functions/internal/jsonbody"
)

type body struct {
	Amount   *int64  `json:"amount"`
	Currency *string `json:"currency"`
	Lines    []struct {
		Text string `json:"text"`
	} `json:"lines"`
}

func TestErrorsNameTheField(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"no body", "", "the body is empty"},
		{"white space", " \n\t", "the body is empty"},
		{"cut short", `{"amount":`, "amount: invalid JSON near byte 10"},
		{"no JSON", "amount=1", "the body: invalid JSON near byte 0"},
		{"a zero byte", "\x00", "the body: invalid JSON"},
		{"a byte order mark", "\ufeff{}", "the body: invalid JSON"},
		{"an array", "[]", "the body: must be a JSON object"},
		{"a string", `"x"`, "the body: must be a JSON object"},
		{"a string for a number", `{"amount":"1"}`, "amount: must be an integer"},
		{"an object for a number", `{"amount":{}}`, "amount: must be an integer"},
		{"a fraction", `{"amount":1.5}`, "amount: must be an integer"},
		{"an exponent", `{"amount":1e2}`, "amount: must be an integer"},
		{"beyond 64 bits", `{"amount":9223372036854775808}`, "amount: must be an integer of up to 64 bits"},
		{"a number for a string", `{"currency":5}`, "currency: must be a string"},
		{"a field within", `{"lines":[{"text":"a"},{"text":1}]}`, "lines/1/text: must be a string"},
		{"an unknown field", `{"amuont":1}`, "amuont: no such field"},
		{"another case", `{"Amount":1}`, "Amount: no such field"},
		{"a field twice", `{"amount":1,"amount":2}`, "amount: invalid JSON near byte 12: duplicate"},
		{"something behind it", `{"amount":1}{}`, "the body: invalid JSON near byte 12"},
		{"invalid UTF-8", "{\"currency\":\"\xff\"}", "currency: invalid JSON near byte 13: invalid UTF-8"},
		{"half a surrogate pair", `{"currency":"\ud800"}`, "currency: invalid JSON near byte 13: invalid surrogate pair"},
		{"deep arrays", strings.Repeat("[", 1<<20), "the body: must be a JSON object"},
		{"deep objects", strings.Repeat(`{"amount":`, 1<<20), "exceeded max depth"},
		{"a long name", `{"` + strings.Repeat("é", 1<<20) + `":1}`, "…: no such field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := jsonbody.Decode([]byte(tt.body), new(body))
			if err == nil {
				t.Fatalf("Decode took the body; it should say %q", tt.want)
			}
			got := err.Error()
			if !strings.Contains(got, tt.want) {
				t.Errorf("Decode says %q; it should say %q", got, tt.want)
			}
			if len(got) > 300 || !utf8.ValidString(got) {
				t.Errorf("Decode says %d bytes, valid UTF-8: %v; a client should get a short, readable sentence", len(got), utf8.ValidString(got))
			}
		})
	}
}

func ExampleDecode() {
	var order struct {
		Amount int64 `json:"amount"`
	}
	fmt.Println(jsonbody.Decode([]byte(`{"amount": 1250}`), &order), order.Amount)
	fmt.Println(jsonbody.Decode([]byte(`{"amount": "lots"}`), &order))
	// Output:
	// <nil> 1250
	// amount: must be an integer of up to 64 bits, without fraction or exponent
}
