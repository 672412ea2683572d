package lowlevel

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// answers are the seeds of a fuzz test: responses of every kind, valid and damaged.
var answers = []string{
	``, `{}`, ` {} `, `{}x`, `{`, `null`, `[]`, `{"Item":null}`, `{"Item":{}}`, `{"Item":{}},`, `{"Item":{},}`, `{"Item":{}}{}`,
	`{"Item":{"id":{"S":"a"}}}`, "\ufeff{}", `{"Item":{"id":{"S":"a"}},"Item":{"id":{"S":"b"}}}`,
	`{"Item":{"id":{"S":"a"},"id":{"S":"b"}}}`, `{"Item":{"id":{"S":"a","N":"1"}}}`, `{"Item":{"id":{}}}`, `{"Item":{"id":{"S":null}}}`,
	`{"Item":{"n":{"N":"1e400"},"b":{"B":"AP8="},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true}}}`,
	`{"Item":{"m":{"M":{"a":{"L":[{"S":"x"},{"N":"1"},{"M":{}}]}}},"ss":{"SS":["a","b"]},"ns":{"NS":["1"]},"bs":{"BS":["AA==",""]}}}`,
	`{"Item":{"m":{"M":{"a":{"S":"1"},"a":{"S":"2"}}}}}`, `{"Item":{"b":{"B":"AP8"}}}`, `{"Item":{"b":{"B":"AP8=\n"}}}`, `{"Item":{"b":{"B":"AP9="}}}`,
	`{"Item":{"s":{"S":"\u0041\ud83d\ude00\n\"\\\/\b\f\r\t"}}}`, `{"Item":{"s":{"S":"\ud83d"}}}`, `{"Item":{"s":{"S":"\ude00\ud83d"}}}`,
	`{"Item":{"s":{"S":"\ud83d\u0041"}}}`, `{"Item":{"s":{"S":"\u00"}}}`, `{"Item":{"s":{"S":"\x"}}}`, "{\"Item\":{\"s\":{\"S\":\"\xff\"}}}",
	"{\"Item\":{\"s\":{\"S\":\"\n\"}}}", "{\"Item\":{\"s\":{\"S\":\"\\n\x01\"}}}", `{"Item":{"s":{"X":"new"}}}`, `{"Item":{"s":{"BOOL":"true"}}}`,
	`{"Item":{"s":{"N":1}}}`, `{"ConsumedCapacity":{"TableName":"t"}}`, `{"Item":{"id":{"S":"ide`, `<html>502</html>`,
	`{"Item":{"l":{"L":[,]}}}`, `{"Item":{"l":{"L":[{"S":"a"},]}}}`, `{"Item":{"l":{"L":[{"S":"a"}{"S":"b"}]}}}`, `{"Item":{"l":{"L":null}}}`,
	`{"Item":{"s":{"S":"a"}` + "\x00" + `}}`, `{"\u0049tem":{"id":{"S":"a"}}}`, `{"Item":{"s":{"S":"\u+041"}}}`, `{"Item":{"s":{"S":"\u004_1"}}}`,
	`{"Item":{"s":{"BOOL":tru}}}`, `{"Item":{"s":{"BOOL":truefalse}}}`, `{"item":{"id":{"S":"a"}}}`, `{"Item":{"s":{"s":"a"}}}`, `{"Item" {"id":{"S":"a"}}}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Message":"The conditional request failed","Item":{"id":{"S":"a"}}}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}`,
	`{"__type":"ConditionalCheckFailedException"}`, `{"Item":{"id":{"S":"a"}},"__type":"ConditionalCheckFailedException"}`,
	`{"__type":"a#b#ConditionalCheckFailedException"}`, `{"__type":"ConditionalCheckFailedException:http://x"}`, `{"__type":"#ConditionalCheckFailedException"}`,
	`{"__type":"ConditionalCheckFailedException#Other"}`, `{"__type":"Other","__type":"ConditionalCheckFailedException"}`,
	`{"__type":"ConditionalCheckFailedException","__type":"Other"}`, `{"code":"Other","__type":"ConditionalCheckFailedException"}`,
	`{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow"}`, `{"__type":null,"message":"m"}`,
	`{"__type":"ConditionalCheckFailedException","message":"a","Message":"b"}`, `{"message":"ConditionalCheckFailedException"}`,
	`{"__type":"ConditionalCheckFailedException"}x`, `{"__type":"ConditionalCheckFailedException","Item":{},"Item":{"id":{"S":"a"}}}`,
}

// Whatever this package reads, the SDK reads in the same way.
func FuzzWhatIsReadTheSDKReadsToo(f *testing.F) {
	for _, body := range answers {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		item := Attributes{}
		if found, ok := Item(body, "Item", Into(item)); ok {
			sdks, err := sdkReadsItem(body)
			if err != nil {
				t.Fatalf("%q is read, and not by the SDK: %v", body, err)
			}
			if found == (sdks == nil) {
				t.Errorf("%q has an item: %v; the SDK found %v", body, found, sdks)
			}
			if diff := cmp.Diff(sdks, item, same); diff != "" {
				t.Errorf("%q, SDK - here +:\n%s", body, diff)
			}
		}
		if Empty(body) {
			if sdks, err := sdkReadsItem(body); err != nil || len(sdks) > 0 {
				t.Errorf("%q is empty; the SDK found %v, %v", body, sdks, err)
			}
		}
		old := Attributes{}
		if found, ok := Refusal(body, Into(old)); ok {
			refused, met := errors.AsType[*types.ConditionalCheckFailedException](sdkReadsRefusal(body))
			if !met {
				t.Fatalf("%q is a refusal; to the SDK it is %v", body, sdkReadsRefusal(body))
			}
			if found == (refused.Item == nil) {
				t.Errorf("%q has an item: %v; the SDK found %v", body, found, refused.Item)
			}
			if diff := cmp.Diff(refused.Item, old, same); diff != "" {
				t.Errorf("%q, SDK - here +:\n%s", body, diff)
			}
		}
	})
}

// This package reads every attribute that DynamoDB returns, in each of its forms.
func TestWhatDynamoDBAnswersIsRead(t *testing.T) {
	for body, want := range map[string]Attributes{
		`{"Item":{"id":{"S":"a"}}}`: {"id": s("a")},
		" {\n\t\"Item\" : { \"id\" :\r{ \"S\" : \"a\" } , \"n\":{\"N\":\"-1.5E-3\"} } } ": {"id": s("a"), "n": n("-1.5E-3")},
		`{"Item":{"b":{"B":"AP8="},"e":{"B":""}}}`:                                        {"b": b([]byte{0, 255}), "e": b(nil)},
		`{"Item":{"t":{"BOOL":true},"f":{"BOOL":false}}}`:                                 {"t": &types.AttributeValueMemberBOOL{Value: true}, "f": &types.AttributeValueMemberBOOL{}},
		`{"Item":{"z":{"NULL":true}}}`:                                                    {"z": &types.AttributeValueMemberNULL{Value: true}},
		`{"Item":{"ss":{"SS":["a","b"]},"ns":{"NS":["1","2"]}}}`:                          {"ss": &types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}}},
		`{"Item":{"bs":{"BS":["AA==","AQ=="]}}}`:                                          {"bs": &types.AttributeValueMemberBS{Value: [][]byte{{0}, {1}}}},
		`{"Item":{"m":{"M":{"a":{"L":[{"S":"x"},{"M":{}},{"L":[]}]}}}}}`:                  {"m": &types.AttributeValueMemberM{Value: Attributes{"a": &types.AttributeValueMemberL{Value: []types.AttributeValue{s("x"), &types.AttributeValueMemberM{}, &types.AttributeValueMemberL{}}}}}},
		`{"Item":{"s":{"S":"\u0041\ud83d\ude00\n\"\\\/\b\f\r\t ä"}}}`:                     {"s": s("A😀\n\"\\/\b\f\r\t ä")},
		`{"Item":{"\u0061":{"S":""},"b\n":{"S":"\u0000"}}}`:                               {"a": s(""), "b\n": s("\x00")},
		`{"Item":{"\u00e4":{"S":"\uABCD\uabcd\ufffd"}}}`:                                  {"ä": s("\uabcd\uabcd\ufffd")},
	} {
		got := Attributes{}
		found, ok := Item(body, "Item", Into(got))
		if !found || !ok || !cmp.Equal(want, got, same) {
			t.Errorf("%s: found %v, ok %v:\n%s", body, found, ok, cmp.Diff(want, got, same))
		}
	}
	if found, ok := Item(`{}`, "Item", Into(Attributes{})); found || !ok {
		t.Errorf("{}: found %v, ok %v; want no item", found, ok)
	}
	for _, body := range []string{`{}`, " {\n} "} {
		if !Empty(body) {
			t.Errorf("%q isn't empty", body)
		}
	}
}

// This package does not read responses that DynamoDB would not send: incomplete, garbled, with
// duplicate names, null, or not UTF-8.
func TestWhatIsNotUnderstoodIsLeftToTheSDK(t *testing.T) {
	for _, body := range []string{
		``, `{`, `null`, `[]`, `{"Item":null}`, `{"Item":{}},`, `{"Item":{},}`, `{"Item":{}}{}`, "\ufeff{}", `<html>`, `{"Attributes":{}}`,
		`{"Item":{"id":{"S":"a"}},"Item":{"id":{"S":"b"}}}`, `{"Item":{"a":{"S":"a"}},"Item":{"b":{"S":"b"}}}`, `{"Item":{"id":{"S":"a"},"id":{"S":"b"}}}`, `{"Item":{"m":{"M":{"a":{"S":"1"},"a":{"S":"2"}}}}}`,
		`{"Item":{"id":{"S":"a","N":"1"}}}`, `{"Item":{"id":{}}}`, `{"Item":{"id":{"S":null}}}`, `{"Item":{"id":null}}`, `{"Item":{"id":{"X":"a"}}}`,
		`{"Item":{"id":{"N":1}}}`, `{"Item":{"id":{"B":"AP8"}}}`, `{"Item":{"id":{"B":"AP8=\n"}}}`, `{"Item":{"id":{"B":"A\r\nP8="}}}`, `{"Item":{"id":{"B":"!"}}}`,
		`{"Item":{"id":{"S":"\ud83d"}}}`, `{"Item":{"id":{"S":"\ud83d\u0041"}}}`, `{"Item":{"id":{"S":"\ude00\ud83d"}}}`, `{"Item":{"id":{"S":"\ud83d\`, `{"Item":{"id":{"S":"\u00`,
		`{"Item":{"id":{"S":"\x"}}}`, "{\"Item\":{\"id\":{\"S\":\"\xff\"}}}", "{\"Item\":{\"id\":{\"S\":\"\\n\xff\"}}}", "{\"Item\":{\"id\":{\"S\":\"\n\"}}}", "{\"Item\":{\"id\":{\"S\":\"\\n\n\"}}}",
		`{"Item":{"id":{"S":"\u+041"}}}`, `{"Item":{"id":{"S":"a`, `{"Item":{"id":{"S":"a\`, `{"Item":{"id":{"S":"a"}`, `{"Item":{"id":{"S":"a"}}`, `{"Item":{"id"{"S":"a"}}}`, `{"Item":{id:{"S":"a"}}}`,
		`{"Item":{"id":{"L":[{"S":"a"},]}}}`, `{"Item":{"id":{"L":[{"S":"a"}{"S":"b"}]}}}`, `{"Item":{"id":{"SS":["a" "b"]}}}`, `{"Item":{"id":{"SS":[1]}}}`,
		`{"Item":{"id":{"BOOL":"true"}}}`, `{"Item":{"id":{"BOOL":tru}}}`, `{"Item":{"id":{"BOOL":truefalse}}}`, `{"Item":{"id":{"S":"a"}},"ConsumedCapacity":{}}`,
	} {
		if _, ok := Item(body, "Item", Into(Attributes{})); ok {
			t.Errorf("%q is read", body)
		}
	}
	for _, body := range []string{``, `{`, `}`, `{}}`, `{"a":1}`, `null`, `{"Attributes":{}}`, `{"ConsumedCapacity":{}}`} {
		if Empty(body) {
			t.Errorf("%q is empty", body)
		}
	}
}

// Only the error code identifies a refusal.
func TestX8_OnlyARefusalIsRead(t *testing.T) {
	const code = "ConditionalCheckFailedException"
	for body, item := range map[string]bool{
		`{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","Message":"The conditional request failed","Item":{"id":{"S":"a"}}}`: true,
		`{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"The conditional request failed"}`:                         false,
		`{"Item":{"id":{"S":"a"}},"__type":"` + code + `"}`:                                                                             true,
		`{"__type":"` + code + `"}`: false,
	} {
		got := Attributes{}
		if found, ok := Refusal(body, Into(got)); !ok || found != item || found != cmp.Equal(got, Attributes{"id": s("a")}, same) {
			t.Errorf("%s: %v, %v, %v; want a refusal, and an item: %v", body, got, found, ok, item)
		}
	}
	for _, body := range []string{
		``, `{}`, `null`, `{"__type":"` + code + `"`, `{"__type":"` + code + `"}x`, `{"__type":"` + code + `","code":"x"}`,
		`{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow"}`, `{"__type":"` + code + `#Other"}`, `{"__type":"` + code + `:x"}`, `{"__type":"x` + code + `"}`,
		`{"__type":"Other","__type":"` + code + `"}`, `{"__type":"` + code + `","__type":"` + code + `"}`, `{"__type":"` + code + `","message":"a","Message":"b"}`,
		`{"__type":"` + code + `","message":null}`, `{"__type":"` + code + `","Item":null}`, `{"__type":"` + code + `","Item":{},"Item":{}}`, `{"__type":null}`,
		`{"code":"` + code + `"}`, `{"message":"` + code + `"}`, `{"__type":"` + code + `","CancellationReasons":[]}`, `{"__type":"` + code + `","Item":{"id":{"S":"a`,
	} {
		if _, ok := Refusal(body, Into(Attributes{})); ok {
			t.Errorf("%s is a refusal", body)
		}
	}
}

// A written value is read back unchanged, except for invalid UTF-8.
func TestR1_WhatIsWrittenIsReadAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := items().Draw(t, "item")
		if ambiguous(item) {
			t.Skip("two names are one once they are UTF-8")
		}
		text, ok := AppendAttributes([]byte(`{"Item":`), item)
		if !ok {
			t.Fatal("not written")
		}
		body, got := string(text)+"}", Attributes{}
		if found, ok := Item(body, "Item", Into(got)); !found || !ok {
			t.Fatalf("%q: found %v, ok %v", body, found, ok)
		}
		again, err := sdkReadsItem(body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, got, same); diff != "" {
			t.Errorf("SDK - here +:\n%s", diff)
		}
	})
}

// The nesting depth is limited.
func TestS2_NestingIsBounded(t *testing.T) {
	lists := func(depth int) string {
		return `{"Item":{"a":` + strings.Repeat(`{"L":[`, depth) + `{"S":"x"}` + strings.Repeat(`]}`, depth) + `}}`
	}
	maps := func(depth int) string {
		return `{"Item":{"a":` + strings.Repeat(`{"M":{"a":`, depth) + `{"S":"x"}` + strings.Repeat(`}}`, depth) + `}}`
	}
	for name, of := range map[string]func(int) string{"lists": lists, "maps": maps} {
		for depth, want := range map[int]bool{0: true, 32: true, 40: true, 41: false, 100_000: false} { // DynamoDB allows 32
			if _, ok := Item(of(depth), "Item", Into(Attributes{})); ok != want {
				t.Errorf("%d %s: read %v; want %v", depth, name, ok, want)
			}
		}
	}
}

// Scalar reads only values of type S, N or B.
func TestAScalarIsAText(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"S":"a\n"}`: {"S", "a\n"}, `{"N":"1"}`: {"N", "1"}, ` { "B" : "AA==" } `: {"B", "AA=="},
	} {
		r := Reader{jsonread.New(text)}
		if kind, value, ok := r.Scalar(); !ok || [2]string{kind, value} != want {
			t.Errorf("%s is %s %q, %v", text, kind, value, ok)
		}
	}
	for _, text := range []string{``, `{}`, `{"BOOL":true}`, `{"SS":["a"]}`, `{"M":{}}`, `{"S":1}`, `{"S":"a","N":"1"}`, `{"S":"a"`, `"a"`, `{"X":"a"}`, `{"S" "a"}`} {
		r := Reader{jsonread.New(text)}
		if _, _, ok := r.Scalar(); ok {
			t.Errorf("%s is a scalar", text)
		}
	}
}
