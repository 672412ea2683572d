package jmeskey_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func key(t testing.TB, expression, document string) string {
	t.Helper()
	found, err := jmeskey.Must(expression).JSON([]byte(document))
	if err != nil {
		t.Fatalf("%s in %s: %v", expression, document, err)
	}
	return found
}

func hash(t testing.TB, field any) string {
	t.Helper()
	found, err := lambdaidem.HashKey(field)
	if err != nil || found == "" {
		t.Fatalf("the hash of %v is %q, %v", field, found, err)
	}
	return found
}

func TestK5_ResultsAreKeys(t *testing.T) {
	n := func(text string) json.Number { return json.Number(text) }
	long := strings.Repeat("7", 256)
	for _, c := range []struct {
		expression, document string
		want                 any // the key itself, or the value whose hash is the key
	}{
		{"id", `{"id":"order-1"}`, "order-1"},
		{"order.id", `{"order":{"id":"\u0041\/1"}}`, "A/1"},
		{"items[0].id", `{"items":[{"id":"a"},{"id":"b"}]}`, "a"},
		{"items[-1].id", `{"items":[{"id":"a"},{"id":"b"}]}`, "b"},
		{`"weird key"`, `{"weird key":"x"}`, "x"},
		{"id", `{"id":"two words"}`, "two words"},
		{"id", `{"id":42}`, "42"},
		{"id", `{"id":9007199254740993}`, "9007199254740993"},
		{"id", `{"id":9007199254740992}`, "9007199254740992"},
		{"id", `{"id":1.0}`, "1.0"},
		{"id", `{"id":-0}`, "-0"},
		{"id", `{"id":1E400}`, "1E400"},
		{"id", `{"id":` + long[:255] + `}`, long[:255]},
		{"id", `{"id":` + long + `}`, []any{n(long)}},
		{"id", `{"id":"` + long + `"}`, []any{long}},
		{"id", `{"id":"schlüssel"}`, []any{"schlüssel"}},
		{"id", `{"id":" x"}`, []any{" x"}},
		{"id", `{"id":" "}`, []any{" "}},
		{"id", `{"id":"sha256_x"}`, []any{"sha256_x"}},
		{"a || b", `{"b":"x"}`, "x"},
		{"a || b", `{"a":"","b":"x"}`, "x"},
		{"a || b", `{"a":0,"b":"x"}`, "0"},
		{"a && b", `{"a":0,"b":"x"}`, "x"},
		{"not_null(a, b, c)", `{"a":null,"c":"x","d":"y"}`, "x"},
		{"items[?kind == 'fee'].id | [0]", `{"items":[{"kind":"x","id":1},{"kind":"fee","id":2}]}`, "2"},
		{"items[?kind != 'fee'] | [0].id", `{"items":[{"kind":"fee","id":1},{"kind":2,"id":3}]}`, "3"},
		{"items[?'fee' == kind && paid == `true` && note == `null`] | [0].id", `{"items":[{"kind":"fee","id":1},{"kind":"fee","paid":true,"id":2}]}`, "2"},
		{"items[?starts_with(id, 'b')].id | [0]", `{"items":[{"id":"a1"},{"id":"b1"}]}`, "b1"},
		{"items[?ends_with(id, suffix)].id | [0]", `{"items":[{"id":"a1","suffix":"2"},{"id":"b2","suffix":"2"}]}`, "b2"},
		{"items[?contains(tags, 'x')].id | [0]", `{"items":[{"id":1,"tags":[1,{}]},{"id":2,"tags":["y","x"]}]}`, "2"},
		{"items[?!done].id | [0]", `{"items":[{"id":1,"done":true},{"id":2}]}`, "2"},
		{"length(items)", `{"items":[1,2,3]}`, "3"},
		{"reverse(id)", `{"id":"abc"}`, "cba"},

		{"[a, b]", `{"a":"x","b":1}`, []any{[]any{"x", n("1")}}},
		{"[b, a]", `{"a":"x","b":1}`, []any{[]any{n("1"), "x"}}},
		{"{x: a, y: b}", `{"b":2,"a":1}`, []any{map[string]any{"x": n("1"), "y": n("2")}}},
		{"['v1', a]", `{"a":"x"}`, []any{[]any{"v1", "x"}}},
		{"{v: 'v1', a: a}", `{"a":"x"}`, []any{map[string]any{"v": "v1", "a": "x"}}},
		{"[a, paid, items[*].id]", `{"a":0,"paid":false,"items":[{"id":1},{}]}`, []any{[]any{n("0"), false, []any{n("1")}}}},
		{"[[a], {b: b}]", `{"a":1,"b":2}`, []any{[]any{[]any{n("1")}, map[string]any{"b": n("2")}}}},
		{"order.[a, b]", `{"order":{"a":1,"b":2}}`, []any{[]any{n("1"), n("2")}}},
		{"order | [a, b]", `{"order":{"a":1,"b":2}}`, []any{[]any{n("1"), n("2")}}},
		{"items[*].[id, n]", `{"items":[{"id":1,"n":2},{"id":3,"n":4}]}`, []any{[]any{[]any{n("1"), n("2")}, []any{n("3"), n("4")}}}},
		{"map(&[id, n], items)", `{"items":[{"id":1,"n":2}]}`, []any{[]any{[]any{n("1"), n("2")}}}},
		{"items[1:].id", `{"items":[{"id":1},{"id":2},{"id":3}]}`, []any{[]any{n("2"), n("3")}}},
		{"items[::-1].id", `{"items":[{"id":1},{"id":2}]}`, []any{[]any{n("2"), n("1")}}},
		{"items[].l[]", `{"items":[{"l":[1]},{"l":[2]}]}`, []any{[]any{n("1"), n("2")}}},
		{"to_array(a)", `{"a":1}`, []any{[]any{n("1")}}},
		{"reverse(items)", `{"items":[1,2]}`, []any{[]any{n("2"), n("1")}}},
		{"order", `{"order":{"b":1,"a":null,"c":[]}}`, []any{map[string]any{"a": nil, "b": n("1"), "c": []any{}}}},
		{"items", `{"items":["",null]}`, []any{[]any{"", nil}}},
		{"[address]", `{"address":{"line2":"","lines":[null,[],{}]}}`, []any{[]any{map[string]any{"line2": "", "lines": []any{nil, []any{}, map[string]any{}}}}}},
		{"@", `[1]`, []any{[]any{n("1")}}},
		{"@", `"x"`, "x"},
	} {
		want, is := c.want.(string)
		if !is {
			want = hash(t, c.want.([]any)[0])
		}
		if got := key(t, c.expression, c.document); got != want {
			t.Errorf("%s in %.99s is %.99q, want %.99q", c.expression, c.document, got, want)
		}
	}
}

func TestK5_NothingIsAMissingKey(t *testing.T) {
	for _, c := range [][2]string{
		{"id", `{}`}, {"id", `{"id":null}`}, {"id", `{"id":""}`}, {"id", `{"id":[]}`}, {"id", `{"id":{}}`},
		{"id", `null`}, {"id", `[]`}, {"id", `"id"`}, {"id", `7`}, {"order.id", `{"order":"x"}`}, {"items[3].id", `{"items":[{"id":1}]}`}, {"Id", `{"id":1}`},
		{"@", `null`}, {"@", `""`}, {"@", `{}`}, {"@", `[ ]`},
		{"[a, b]", `{"a":1}`}, {"[a, b]", `{"b":1}`}, {"[a, b]", `{"a":1,"b":null}`}, {"[a, b]", `{"a":1,"b":""}`}, {"[a, b]", `{"a":1,"b":[]}`}, {"[a, b]", `{"a":1,"b":{}}`},
		{"[a, b]", `null`}, {"order.[a, b]", `{}`}, {"{x: a, y: b}", `{"a":1}`}, {"{x: a, y: b}", `{"a":1,"b":""}`}, {"{x: a}", `null`},
		{"['v1', a]", `{}`}, {"[a, [b]]", `{"a":1}`}, {"[a, {y: b}]", `{"a":1}`}, {"{x: [a, b]}", `{"a":1}`}, {"[a, b] || c", `{"c":1}`}, {"c && [a, b]", `{"c":1,"a":1}`},
		{"items[*].id", `{"items":[]}`}, {"items[*].id", `{"items":[{}]}`}, {"items[*].id", `{"items":[{"id":""}]}`}, {"items[*].[id, n]", `{"items":[{"id":1,"n":2},{"id":3}]}`},
		{"map(&id, items)", `{"items":[{"id":1},{}]}`}, {"map(&[id, n], items)", `{"items":[{"id":1}]}`}, {"to_array(a)", `{}`}, {"not_null(a, b)", `{}`},
		{"items[?kind == 'x'].id", `{"items":[{"kind":"y","id":1}]}`}, {"items[?kind == 'x'].id | [0]", `{"items":{"kind":"x"}}`},
		{"[items[*].id]", `{"items":[{}]}`}, {"a || b", `{"a":"","b":[]}`}, {"a && b", `{"a":"","b":1}`},
	} {
		if got := key(t, c[0], c[1]); got != "" {
			t.Errorf("%s in %s is the key %q", c[0], c[1], got)
		}
	}
}

// JSON that parsers may read differently is an error, wherever the ambiguous part is.
func TestK5_AmbiguousJSONHasNoKey(t *testing.T) {
	id := jmeskey.Must("id", func(o *jmeskey.Options) { o.MaxBytes, o.MaxDepth = 100, 3 })
	for name, document := range map[string]string{
		"nothing": ``, "no JSON": `id=1`, "broken": `{"id":1`, "trailing": `{"id":1} {}`, "duplicates": `{"id":1,"id":2}`, "escaped duplicates": `{"id":1,"\u0069d":1}`,
		"one name for some": `{"id":1,"ID":2}`, "elsewhere": `{"id":1,"a":{"x":1,"x":1}}`, "byte order mark": "\ufeff{\"id\":1}", "not UTF-8": "{\"id\":\"\xff\"}",
		"half a surrogate": `{"id":"\ud800"}`, "NaN": `{"id":NaN}`, "leading zero": `{"id":01}`, "single quotes": `{'id':1}`,
		"too large": `{"id":1,"a":"` + strings.Repeat("a", 100) + `"}`, "large white space": `{"id":1}` + strings.Repeat(" ", 100), "too deep": `{"id":1,"a":[[[]]]}`,
	} {
		if got, err := id.JSON([]byte(document)); err == nil || got != "" || !strings.HasPrefix(err.Error(), "jmeskey: ") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := id.JSON(make([]byte, 101)); err == nil || !strings.Contains(err.Error(), "101 bytes; at most 100") {
		t.Errorf("a text that is too large: %v", err)
	}
	for _, document := range []string{`{"id":1,"a":[[]]}`, `{"id":1}` + strings.Repeat(" ", 92)} {
		if got, err := id.JSON([]byte(document)); err != nil || got != "1" {
			t.Errorf("%s: %q, %v", document, got, err)
		}
	}
}

// The default limits are those of the guard.
func TestS2_DefaultBounds(t *testing.T) {
	deep := func(n int) string {
		return `{"id":1,"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	large := func(n int) string { return `{"id":1}` + strings.Repeat(" ", n-8) }
	id := jmeskey.Must("id")
	for document, ok := range map[string]bool{deep(64): true, deep(65): false, large(6 << 20): true, large(6<<20 + 1): false} {
		if got, err := id.JSON([]byte(document)); (err == nil) != ok || (got == "1") != ok {
			t.Errorf("a text of %d bytes: %q, %v", len(document), got, err)
		}
	}
}

func TestK5_ResultsThatAreNoKeys(t *testing.T) {
	for _, c := range [][2]string{
		{"paid", `{"paid":true}`}, {"paid", `{"paid":false}`}, {"a | !b", `{"a":{}}`}, {"a && b", `{"a":false}`},
		{"length(a)", `{}`}, {"length(a)", `{"a":1}`}, {"map(&id, items)", `{}`}, {"items[?starts_with(id, 'x')]", `{"items":[{"id":1}]}`}, {"reverse(a)", `{}`},
	} {
		if got, err := jmeskey.Must(c[0]).JSON([]byte(c[1])); err == nil || got != "" || !strings.Contains(err.Error(), c[0]) {
			t.Errorf("%s in %s: %q, %v", c[0], c[1], got, err)
		}
	}
}

func TestK5_BadExpressionsAreRefused(t *testing.T) {
	for _, bad := range []string{
		"", " ", ".", "a.", "a b", "[", "a[", "[:", "[-]", "a[0", "{a", "{a: b", "f(", "a[?", "'a", "`a`", "`[1", "\"a", "a ==", "\xff", "[a, '\xff']", "\"\xff\"", "a\u0080", "a || \"\u0080\"",
		strings.Repeat("(", 5000), "a" + strings.Repeat(" ", 4096), strings.Repeat("a.", 3000) + "a",
		"'constant'", "`\"constant\"`", "`null`", "`[]`", "['a', 'b']", "{a: 'b'}", "[[ 'a' ], b]", "a || 'b'", "'b' || a", "a && 'b'", "a | 'b'", "not_null(a, 'b')", "map(&'x', a)", "to_array('a')",
		"[a, `1`]", "[a, `null`]", "[a, `\"\"`]", "[a, '']", "[a, `true`]", "[a, `[\"x\"]`]", "a == `[1]`", "a == `{\"b\":1}`", "a == 'x'", "!a", "starts_with(a, 'b')", "contains(a, 'b')", "ends_with(a, b)",
		"x[?a == b]", "x[?'a' == 'b']", "x[?a < b]", "x[?a > 'b']", "x[?a == `1`]", "x[?contains(a, b)]", "x[?contains(a, `1`)]", "x[?starts_with(a, `true`)]", "x[?ends_with(a, '')]", "x[?starts_with('a', b)]",
		"a.*", "*.a", "a[*].*", "x[?keys(@)]", "x[?values(@)].a", "a.keys(@)", "[a, sum(b)]", "{a: max(b)}", "a | sort(@)", "x[?sort_by(a, &b)]", "map(&to_string(@), a)", "a[join(',', @)]",
		"[a, b][0]", "[a, b] | [0]", "[a, b][*]", "[a, b][]", "[a, b][0:1]", "[a, b][?x]", "{a: b}.a", "{a: b} | a", "[a, b] && c", "![a]", "x[?[a, b]]", "length([a, b])", "reverse([a, b])", "map(&a, [b, c])", "x[*].[a, b][]", "x[?contains([a, b], 'x')]", "x[?[a, b] == 'c']",
		"{a: b, a: c}", "{a: b, A: c}", "{user_id: b, userId: c}", "{a: 'x', a: c}",
		"a[::0]", "a[1000001:]", "a[:-1000001]", "a[::1000001]", "a[::9223372036854775807]", "a[0:1:0].b",
		"&a", "[&a]", "not_null(&a)", "a[?&b]", "map(a, b)", "map(&a)", "map(&a, b, c)", "map(&a, &b)", "length()", "length(a, b)", "not_null()", "foo(a)", "@(a)", "[0](a)", "Length(a)",
	} {
		if k, err := jmeskey.New(bad); err == nil || k != nil {
			t.Errorf("%.80q is taken", bad)
		}
	}
	for _, good := range []string{"a[1000000:]", "a[:-1000000]", "a[::-1]", "a[0:1]", "{a: b, ab: c}", strings.Repeat("a.", 2047) + "a"} {
		if _, err := jmeskey.New(good); err != nil {
			t.Errorf("%.80q: %v", good, err)
		}
	}
}

func TestMustPanics(t *testing.T) {
	panics := func(f func()) (text string) {
		defer func() { text = fmt.Sprint(recover()) }()
		f()
		return ""
	}
	if text := panics(func() { jmeskey.Must("a <") }); !strings.Contains(text, `"a <"`) {
		t.Errorf("a bad expression: %s", text)
	}
	for field, opt := range map[string]func(*jmeskey.Options){"MaxBytes": func(o *jmeskey.Options) { o.MaxBytes = -1 }, "MaxDepth": func(o *jmeskey.Options) { o.MaxDepth = -1 }} {
		if text := panics(func() { _, _ = jmeskey.New("a", opt) }); !strings.Contains(text, "Options."+field) {
			t.Errorf("%s: %s", field, text)
		}
	}
	if text := jmeskey.Must("a.b").String(); text != "a.b" {
		t.Errorf("the expression is %q", text)
	}
}

func TestK5_RequestsAreKeyedByTheirBody(t *testing.T) {
	runs := 0
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Observer, o.Key = lambdaidem.Discard, jmeskey.Must("[customer, number]").Request
	})
	h := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		runs++
		return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
	})
	for _, c := range []struct {
		body   string
		status int
		text   string
		runs   int
	}{
		{`{"customer":"c","number":1}`, 201, "", 1},
		{`{"number":1,"customer":"c"}`, 201, "", 1},
		{`{"customer":"c","number":2}`, 201, "", 2},
		{`{"customer":"c","number":9007199254740992}`, 201, "", 3},
		{`{"customer":"c","number":9007199254740993}`, 201, "", 4},
		{`{"customer":"c","number":1,"more":1}`, 422, string(lambdaidem.ErrPayloadMismatch), 4},
		{`{"customer":"c"}`, 400, string(lambdaidem.ErrKeyMissing), 4},
		{`{"customer":"c","number":1,"number":2}`, 400, string(lambdaidem.ErrKeyInvalid), 4},
		{`customer=c`, 400, string(lambdaidem.ErrKeyInvalid), 4},
	} {
		in := events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders", RawPath: "/orders", Body: c.body}
		in.RequestContext.HTTP.Method = "POST"
		out, err := h(t.Context(), in)
		if err != nil || out.StatusCode != c.status || !strings.Contains(out.Body, c.text) || runs != c.runs {
			t.Errorf("%s got %d %s, %v after %d runs", c.body, out.StatusCode, out.Body, err, runs)
		}
	}
}

func TestK5_TypedEventsAreKeyedByTheirJSON(t *testing.T) {
	type event struct {
		Number int64       `json:"number"`
		Total  json.Number `json:"total"`
		Note   string      `json:"note,omitempty"`
		Any    any         `json:"any,omitempty"`
	}
	for _, c := range []struct {
		expression string
		in         event
		want       any
	}{
		{"number", event{Number: 9007199254740993}, "9007199254740993"},
		{"total", event{Total: "1.50"}, "1.50"},
		{"Number", event{Number: 1}, ""},
		{"note", event{}, ""},
		{"[number, note]", event{Number: 1, Note: "<b>"}, []any{1, "<b>"}},
	} {
		want, is := c.want.(string)
		if !is {
			want = hash(t, c.want)
		}
		got, err := jmeskey.Event[event](jmeskey.Must(c.expression))(t.Context(), c.in)
		if err != nil || got != want {
			t.Errorf("%s of %+v is %q, %v, want %q", c.expression, c.in, got, err, want)
		}
	}
	for name, in := range map[string]event{
		"a channel": {Any: make(chan int)}, "not UTF-8": {Note: "\xff"}, "hidden": {Any: struct{ a int }{1}}, "ambiguous": {Any: json.RawMessage(`{"a":1,"a":2}`)},
		"by its own JSON, too deep": {Any: json.RawMessage(strings.Repeat("[", 70) + strings.Repeat("]", 70))},
	} {
		if got, err := jmeskey.Event[event](jmeskey.Must("number"))(t.Context(), in); err == nil || got != "" || !strings.HasPrefix(err.Error(), "jmeskey: ") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := jmeskey.Event[*event](jmeskey.Must("number"))(t.Context(), nil); err != nil || got != "" {
		t.Errorf("no event: %q, %v", got, err)
	}
}
