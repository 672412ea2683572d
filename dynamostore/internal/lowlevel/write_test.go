package lowlevel

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: v} }

// Every JSON reader gets the original text back (RFC 8259, section 7).
func TestATextIsWrittenAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"":                          `""`,
		"plain":                     `"plain"`,
		`"quoted" and \`:            `"\"quoted\" and \\"`,
		"a\nb\tc\r\x00\x1f":         `"a\u000ab\u0009c\u000d\u0000\u001f"`,
		"\x7f":                      "\"\x7f\"",
		"grüße, 世界, 😀":              `"grüße, 世界, 😀"`,
		"\u2028\u2029":              "\"\u2028\u2029\"",
		"<&>":                       `"<&>"`,
		"\xff":                      "\"\uFFFD\"",
		"a\xffb\xc3":                "\"a\uFFFDb\uFFFD\"",
		"\xed\xa0\x80":              "\"\uFFFD\uFFFD\uFFFD\"", // half of a surrogate pair
		"\uFFFD":                    "\"\uFFFD\"",
		"\xff\"\xff":                "\"\uFFFD\\\"\uFFFD\"",
		strings.Repeat("ä", 100):    `"` + strings.Repeat("ä", 100) + `"`,
		strings.Repeat("\x01", 100): `"` + strings.Repeat(`\u0001`, 100) + `"`,
	} {
		if got := string(AppendString([]byte("before"), text)); got != "before"+want {
			t.Errorf("%q is %s; want %s", text, got, want)
		}
		if got := string(AppendString(nil, []byte(text))); got != want {
			t.Errorf("%q as bytes is %s; want %s", text, got, want)
		}
	}
}

// attribute generates values of every type, including nested ones.
func attribute() *rapid.Generator[types.AttributeValue] { return nested(3) }

func nested(depth int) *rapid.Generator[types.AttributeValue] {
	return rapid.Custom(func(t *rapid.T) types.AttributeValue {
		kinds := []string{"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"}
		if depth > 0 {
			kinds = append(kinds, "M", "L")
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "N":
			return n(rapid.StringMatching(`-?[0-9]{1,38}(\.[0-9]{1,10})?(E-?[0-9]{1,2})?`).Draw(t, "N"))
		case "B":
			return b(rapid.SliceOf(rapid.Byte()).Draw(t, "B"))
		case "BOOL":
			return &types.AttributeValueMemberBOOL{Value: rapid.Bool().Draw(t, "BOOL")}
		case "NULL":
			return &types.AttributeValueMemberNULL{Value: rapid.Bool().Draw(t, "NULL")}
		case "SS":
			return &types.AttributeValueMemberSS{Value: rapid.SliceOfN(anyText(), 0, 4).Draw(t, "SS")}
		case "NS":
			return &types.AttributeValueMemberNS{Value: rapid.SliceOfN(rapid.StringMatching(`[0-9]{1,5}`), 0, 4).Draw(t, "NS")}
		case "BS":
			return &types.AttributeValueMemberBS{Value: rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 4).Draw(t, "BS")}
		case "M":
			return &types.AttributeValueMemberM{Value: rapid.MapOfN(anyText(), nested(depth-1), 0, 4).Draw(t, "M")}
		case "L":
			return &types.AttributeValueMemberL{Value: rapid.SliceOfN(nested(depth-1), 0, 4).Draw(t, "L")}
		}
		return s(anyText().Draw(t, "S"))
	})
}

// anyText generates text that may be invalid UTF-8.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"", "\u2028", "\u2029", "\x00\x01\x1f\x7f", `\"`, "</script>", "\uFFFD", "😀", "\ufeff"}),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
	)
}

func items() *rapid.Generator[Attributes] { return rapid.MapOfN(anyText(), attribute(), 0, 4) }

// The written JSON means the same as that of the SDK.
func TestE1_ItemsAreWrittenAsTheSDKWrites(t *testing.T) { rapid.Check(t, itemsAreWrittenAlike) }

func FuzzItemsAreWrittenAsTheSDKWrites(f *testing.F) { f.Fuzz(rapid.MakeFuzz(itemsAreWrittenAlike)) }

func itemsAreWrittenAlike(t *rapid.T) {
	item := items().Draw(t, "item")
	if ambiguous(item) {
		t.Skip("two names are one once they are UTF-8: which of them counts is a matter of order")
	}
	text, ok := AppendAttributes([]byte(`{"TableName":"test","Item":`), item)
	if !ok {
		t.Fatal("not written")
	}
	client := &sdk{status: 200, answer: `{}`}
	if _, err := client.client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("test"), Item: item}); err != nil {
		t.Fatal(err)
	}
	ours, sdks := decoded(t, string(text)+"}"), decoded(t, client.sent)
	if !reflect.DeepEqual(ours, sdks) {
		t.Error(cmp.Diff(sdks, ours))
	}
}

// decoded returns JSON as encoding/json decodes it.
func decoded(tb rapid.TB, text string) any {
	tb.Helper()
	if !utf8.ValidString(text) {
		tb.Fatalf("%q is not UTF-8", text)
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatalf("%v in %q", err, text)
	}
	return v
}

// ambiguous reports whether two names of a map become equal when invalid UTF-8 is replaced with
// U+FFFD.
func ambiguous(attrs Attributes) bool {
	seen := map[string]bool{}
	for name, v := range attrs {
		name = string([]rune(name))
		if seen[name] || ambiguousValue(v) {
			return true
		}
		seen[name] = true
	}
	return false
}

func ambiguousValue(v types.AttributeValue) bool {
	switch v := v.(type) {
	case *types.AttributeValueMemberM:
		return ambiguous(v.Value)
	case *types.AttributeValueMemberL:
		for _, member := range v.Value {
			if ambiguousValue(member) {
				return true
			}
		}
	}
	return false
}

func TestALargeBinaryIsWrittenAndRead(t *testing.T) {
	data := make([]byte, 399<<10)
	for i := range data {
		data[i] = byte(i * 7)
	}
	text, ok := AppendAttributes([]byte(`{"Item":`), Attributes{"data": b(data)})
	got := Attributes{}
	if found, read := Item(string(text)+"}", "Item", Into(got)); !ok || !found || !read || !cmp.Equal(got["data"], b(data), same) {
		t.Error("it is not what it was")
	}
}

// A value that can't be sent is not written, at any depth.
func TestWhatHasNoFormIsNotWritten(t *testing.T) {
	for name, v := range map[string]types.AttributeValue{
		"nil":                     nil,
		"of a later SDK":          &types.UnknownUnionMember{Tag: "new"},
		"nil in a map":            &types.AttributeValueMemberM{Value: Attributes{"a": nil}},
		"nil in a list":           &types.AttributeValueMemberL{Value: []types.AttributeValue{s("a"), nil}},
		"nil in a map in a list":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberM{Value: Attributes{"a": nil}}}},
		"nil bytes":               b(nil),
		"nil bytes in a map":      &types.AttributeValueMemberM{Value: Attributes{"a": b(nil)}},
		"nil bytes in a set":      &types.AttributeValueMemberBS{Value: [][]byte{{1}, nil}},
		"unknown after something": &types.AttributeValueMemberL{Value: []types.AttributeValue{n("1"), &types.UnknownUnionMember{}}},
	} {
		if text, ok := AppendAttributes(nil, Attributes{"a": v}); ok {
			t.Errorf("%s: written as %s", name, text)
		}
	}
}

// conditioned has the members that all writes of a transaction can have.
type conditioned struct {
	condition *string
	names     map[string]string
	values    Attributes
	old       types.ReturnValuesOnConditionCheckFailure
}

func conditions() *rapid.Generator[conditioned] {
	return rapid.Custom(func(t *rapid.T) conditioned {
		var c conditioned
		if rapid.Bool().Draw(t, "conditional") {
			c.condition = aws.String(anyText().Draw(t, "condition"))
		}
		if rapid.Bool().Draw(t, "named") {
			c.names = rapid.MapOfN(rapid.String(), anyText(), 0, 3).Draw(t, "names")
		}
		if rapid.Bool().Draw(t, "valued") {
			c.values = rapid.MapOfN(rapid.String(), attribute(), 0, 3).Draw(t, "values")
		}
		c.old = rapid.SampledFrom([]types.ReturnValuesOnConditionCheckFailure{"", "ALL_OLD", "NONE"}).Draw(t, "old")
		return c
	})
}

// Every transaction is written as the SDK writes it.
func TestE1_TransactionsAreWrittenAsTheSDKWrites(t *testing.T) {
	rapid.Check(t, transactionsAreWrittenAlike)
}

func FuzzTransactionsAreWrittenAsTheSDKWrites(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(transactionsAreWrittenAlike))
}

func transactionsAreWrittenAlike(t *rapid.T) {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(anyText().Draw(t, "token"))}
	unclear := false
	for range rapid.IntRange(1, 4).Draw(t, "writes") {
		c, table := conditions().Draw(t, "conditions"), aws.String(anyText().Draw(t, "table"))
		attrs := items().Draw(t, "attributes")
		unclear = unclear || ambiguous(attrs) || ambiguous(c.values)
		var item types.TransactWriteItem
		switch rapid.SampledFrom([]string{"put", "update", "delete", "check"}).Draw(t, "kind") {
		case "put":
			item.Put = &types.Put{TableName: table, Item: attrs, ConditionExpression: c.condition,
				ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: c.old}
		case "update":
			item.Update = &types.Update{TableName: table, Key: attrs, UpdateExpression: aws.String(anyText().Draw(t, "update")), ConditionExpression: c.condition,
				ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: c.old}
		case "delete":
			item.Delete = &types.Delete{TableName: table, Key: attrs, ConditionExpression: c.condition,
				ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: c.old}
		case "check":
			c.condition = aws.String("attribute_exists(a)") // a ConditionCheck must have a condition
			item.ConditionCheck = &types.ConditionCheck{TableName: table, Key: attrs, ConditionExpression: c.condition,
				ExpressionAttributeNames: c.names, ExpressionAttributeValues: c.values, ReturnValuesOnConditionCheckFailure: c.old}
		}
		in.TransactItems = append(in.TransactItems, item)
	}
	if unclear {
		t.Skip("two names are one once they are UTF-8")
	}
	text := []byte(`{"TransactItems":[`)
	for i := range in.TransactItems {
		if i > 0 {
			text = append(text, ',')
		}
		var ok bool
		if text, ok = AppendAction(text, &in.TransactItems[i]); !ok {
			t.Fatal("not written")
		}
	}
	text = AppendString(append(text, `],"ClientRequestToken":`...), *in.ClientRequestToken)
	text = append(text, '}')
	client := &sdk{status: 200, answer: `{}`}
	if _, err := client.client().TransactWriteItems(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if ours, sdks := decoded(t, string(text)), decoded(t, client.sent); !reflect.DeepEqual(ours, sdks) {
		t.Error(cmp.Diff(sdks, ours))
	}
}

// A write that DynamoDB could not carry out as intended is not written.
func TestAWriteWithAnythingElseIsNotWritten(t *testing.T) {
	put := func() *types.Put { return &types.Put{TableName: aws.String("test"), Item: Attributes{"id": s("1")}} }
	good := func() *types.TransactWriteItem { return &types.TransactWriteItem{Put: put()} }
	if _, ok := AppendAction(nil, good()); !ok {
		t.Fatal("the write isn't written before it is changed")
	}
	for name, change := range map[string]func(*types.TransactWriteItem){
		"an empty write": func(in *types.TransactWriteItem) { *in = types.TransactWriteItem{} },
		"no table":       func(in *types.TransactWriteItem) { in.Put.TableName = nil },
		"no item":        func(in *types.TransactWriteItem) { in.Put.Item = nil },
		"a value of nil": func(in *types.TransactWriteItem) { in.Put.Item["a"] = nil },
		"an argument of nil": func(in *types.TransactWriteItem) {
			in.Put.ExpressionAttributeValues = Attributes{":a": nil}
		},
		"put and delete": func(in *types.TransactWriteItem) { in.Delete = &types.Delete{} },
		"put and check": func(in *types.TransactWriteItem) {
			in.ConditionCheck = &types.ConditionCheck{}
		},
		"put and update": func(in *types.TransactWriteItem) { in.Update = &types.Update{} },
		"update and delete": func(in *types.TransactWriteItem) {
			*in = types.TransactWriteItem{Update: &types.Update{}, Delete: &types.Delete{}}
		},
	} {
		in := good()
		change(in)
		if text, ok := AppendAction(nil, in); ok {
			t.Errorf("%s: written as %s", name, text)
		}
	}
	// AppendAction writes every member that the SDK's types have today. A member of a later SDK
	// would be lost.
	for of, members := range map[reflect.Type]int{
		reflect.TypeFor[types.TransactWriteItem](): 4,
		reflect.TypeFor[types.Put]():               6, reflect.TypeFor[types.Update](): 7, reflect.TypeFor[types.Delete](): 6, reflect.TypeFor[types.ConditionCheck](): 6,
	} {
		exported := 0
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				exported++
			}
		}
		if exported != members {
			t.Errorf("%v has %d members; AppendAction knows %d: teach it the others", of, exported, members)
		}
	}
}
