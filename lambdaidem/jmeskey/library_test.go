package jmeskey_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jmespath/go-jmespath"

	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
)

// search evaluates an expression with the JMESPath library, with numbers kept as text. It returns a
// panic as an error.
func search(t *testing.T, expression, document string) (found any, err error) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	dec := json.NewDecoder(strings.NewReader(document))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return jmespath.Search(expression, v)
}

// This table shows what the library returns for each rejected feature if numbers are kept as text.
// If a later version of the library supports one of them, the test fails.
func TestK5_RefusedFeaturesDoNotWork(t *testing.T) {
	for _, c := range []struct {
		expression, document string
		wrong                any // the library's result; nil if fails names an error or a panic
		fails                string
	}{
		{"a < `2`", `{"a":1}`, nil, ""},
		{"a >= b", `{"a":1,"b":1}`, nil, ""},
		{"a == `1`", `{"a":1}`, false, ""},
		{"a != `1`", `{"a":1}`, true, ""},
		{"l[?n == `1`]", `{"l":[{"n":1}]}`, []any{}, ""},
		{"contains(l, `1`)", `{"l":[1]}`, false, ""},
		{"contains(l, l[0])", `{"l":[[1]]}`, nil, "panic"},
		{"abs(a)", `{"a":-1}`, nil, "Invalid type"},
		{"avg(l)", `{"l":[1,2]}`, nil, "Invalid type"},
		{"ceil(a)", `{"a":1.5}`, nil, "Invalid type"},
		{"floor(a)", `{"a":1.5}`, nil, "Invalid type"},
		{"max(l)", `{"l":[1,2]}`, nil, "Invalid type"},
		{"min(l)", `{"l":[1,2]}`, nil, "Invalid type"},
		{"sort(l)", `{"l":[2,1]}`, nil, "Invalid type"},
		{"sum(l)", `{"l":[1,2]}`, nil, "Invalid type"},
		{"max_by(l, &n)", `{"l":[{"n":1},{"n":2}]}`, nil, "invalid type"},
		{"min_by(l, &n)", `{"l":[{"n":1},{"n":2}]}`, nil, "invalid type"},
		{"sort_by(l, &n)", `{"l":[{"n":1},{"n":2}]}`, nil, "invalid type"},
		{"to_number(a)", `{"a":1}`, nil, "unknown type"},
		{"to_number(a)", `{"a":"9007199254740993"}`, 9007199254740992.0, ""},
		{"type(a)", `{"a":1}`, nil, "unknown type"},
		{"[`9007199254740993`, a]", `{"a":"x"}`, []any{9007199254740992.0, "x"}, ""},
		{"merge(a, b)", `{"a":{}}`, nil, "panic"},
		{"to_string(a)", `{}`, "null", ""},
		{"join('-', [a, b])", `{"a":"x-y","b":"z"}`, "x-y-z", ""},
		{"a || 'none'", `{}`, "none", ""},
		{"[a, b][]", `{"a":"x"}`, []any{"x"}, ""},
		{"{x: a, x: b}", `{"b":"y"}`, map[string]any{"x": "y"}, ""},
		{"l[1::9223372036854775807]", `{"l":[1,2,3]}`, nil, "panic"},
		{"l[::0]", `{"l":[1]}`, nil, "step cannot be 0"},
		{"&a", `{"a":1}`, nil, "refuses"},
		{"@(a)", `{"a":1}`, nil, "panic"},
		{"nothing(a)", `{"a":1}`, nil, "unknown function"},
		{"length(a, b)", `{"a":"","b":""}`, nil, "incorrect number"},
		{"starts_with(a, `1`)", `{"a":"1"}`, nil, "Invalid type"},
		{"[:", `{"a":1}`, nil, "Unknown AST"},
		{"a\u0080", `{"a":1}`, nil, "panic"},
	} {
		if c.fails != "refuses" { // otherwise the result is a value of a type of the library
			found, err := search(t, c.expression, c.document)
			if c.fails == "" && (err != nil || !reflect.DeepEqual(found, c.wrong)) || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("the library finds %v, %v by %s; it was %v, %s", found, err, c.expression, c.wrong, c.fails)
			}
		}
		if k, err := jmeskey.New(c.expression); err == nil || k != nil {
			t.Errorf("%s is taken", c.expression)
		} else if !strings.HasPrefix(err.Error(), "jmeskey: the expression ") {
			t.Errorf("%s is refused by %q", c.expression, err)
		}
	}
}

// The results of expressions that list an object's members have a random order.
func TestK5_OrderlessFeaturesAreRefused(t *testing.T) {
	document := `{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6","g":"7","h":"8"}`
	for _, expression := range []string{"*", "values(@)", "keys(@)"} {
		seen := map[string]bool{}
		for range 100 {
			found, err := search(t, expression, document)
			if err != nil {
				t.Fatal(err)
			}
			seen[fmt.Sprint(found)] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s has one order only", expression)
		}
		if _, err := jmeskey.New(expression); err == nil {
			t.Errorf("%s is taken", expression)
		}
	}
}
