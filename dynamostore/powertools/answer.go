package powertools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeAnswer decodes the answer of a completed record into dst, which is a pointer. It returns an
// error if the type that dst points to can't hold all of the answer.
func (rec *record) decodeAnswer(language Language, dst any) error {
	text, err := rec.answer(language, reflect.TypeOf(dst).Elem().Kind() == reflect.String)
	if err != nil {
		return err
	}
	original, err := tree(text)
	if err != nil {
		return fmt.Errorf("its answer is not JSON: %w", err)
	}
	if _, isText := dst.(*json.RawMessage); !isText && !jsontext.Value(text).IsValid() {
		return errors.New("its answer has an unpaired surrogate, which encoding/json would replace, or an object with two members of the same name, " +
			"which encoding/json would merge: use json.RawMessage")
	}
	if err := json.Unmarshal(text, dst); err != nil {
		return fmt.Errorf("its answer can't be decoded into a %s: %w", reflect.TypeOf(dst).Elem(), err)
	}
	again, err := json.Marshal(reflect.ValueOf(dst).Elem().Interface()) // not dst itself: methods of the pointer don't write a handler's answer
	if err != nil {
		return fmt.Errorf("its answer, decoded into a %s: %w", reflect.TypeOf(dst).Elem(), err)
	}
	decoded, err := tree(again)
	if err != nil {
		return fmt.Errorf("its answer, decoded into a %s: %w", reflect.TypeOf(dst).Elem(), err)
	}
	if original == nil && decoded != nil {
		return fmt.Errorf("its answer is null, and a %s can't be null: use a pointer", reflect.TypeOf(dst).Elem())
	}
	if place := lost("answer", original, decoded); place != "" {
		return fmt.Errorf("a %s can't hold its whole answer: %s is lost or changed", reflect.TypeOf(dst).Elem(), place)
	}
	return nil
}

// answer returns the JSON of the answer. Powertools for TypeScript stores the answer as a native
// DynamoDB value. For the other languages, Powertools stores it as a string that contains JSON. If
// asString is true, the caller expects a string, which Powertools for Java stores without quotation
// marks.
func (rec *record) answer(language Language, asString bool) ([]byte, error) {
	if language == TypeScript {
		v, err := native(rec.data)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v) //nolint:wrapcheck // can't happen: native returns only values that JSON has
	}
	text, ok := rec.data.(*types.AttributeValueMemberS)
	switch {
	case !ok:
		return nil, errors.New("its answer is not a string, which Powertools stores in every language but TypeScript: check the language")
	case language == Java && asString:
		return json.Marshal(text.Value) //nolint:wrapcheck // a text: can't happen
	}
	return []byte(text.Value), nil
}

// native converts v, a value that Powertools for TypeScript stored, so that encoding/json can
// encode it. If v is nil, the function that used Powertools returned undefined. The result is then
// nil, because Lambda sends undefined as null.
func native(v types.AttributeValue) (any, error) {
	switch v := v.(type) {
	case nil, *types.AttributeValueMemberNULL:
		return nil, nil
	case *types.AttributeValueMemberS:
		return v.Value, nil
	case *types.AttributeValueMemberN:
		return json.Number(v.Value), nil
	case *types.AttributeValueMemberBOOL:
		return v.Value, nil
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, element := range v.Value {
			var err error
			if list[i], err = native(element); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *types.AttributeValueMemberM:
		object := make(map[string]any, len(v.Value))
		for name, member := range v.Value {
			var err error
			if object[name], err = native(member); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("its answer has a %T, which JSON does not have", v)
}

// tree decodes one JSON value. Numbers become a json.Number, which keeps their text.
func tree(text []byte) (any, error) {
	if !json.Valid(text) { // a Decoder would ignore what follows the value
		return nil, fmt.Errorf("%.50q", text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	return v, d.Decode(&v) //nolint:wrapcheck // can't happen: the text is valid
}

// lost returns the path of the first value in original that is missing or different in decoded, or
// "" if there is none. original is the stored answer, and decoded is the same answer after decoding
// and encoding. path is the path of original, such as "answer.body". lost ignores these
// differences:
//   - a member that only decoded has
//   - an empty value that became null or was omitted, for example because of the tag omitempty
//   - a null that became an empty value
func lost(path string, original, decoded any) string {
	if isEmpty(original) && isEmpty(decoded) && (original == nil || decoded == nil) {
		return ""
	}
	switch s := original.(type) {
	case map[string]any:
		h, ok := decoded.(map[string]any)
		if !ok {
			return path
		}
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if place := lost(path+"."+name, s[name], h[name]); place != "" {
				return place
			}
		}
		return ""
	case []any:
		h, ok := decoded.([]any)
		if !ok || len(s) != len(h) {
			return path
		}
		for i := range s {
			if place := lost(fmt.Sprintf("%s[%d]", path, i), s[i], h[i]); place != "" {
				return place
			}
		}
		return ""
	case json.Number:
		if h, ok := decoded.(json.Number); ok && sameNumber(string(s), string(h)) {
			return ""
		}
	case bool, string:
		if original == decoded {
			return ""
		}
	}
	return path
}

// sameNumber reports whether two JSON numbers are exactly equal. It does not convert them to
// float64, because that would round large integers and long decimals, such as a Java BigDecimal.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

// isEmpty reports whether a JSON value is null, false, 0, "", or has no elements.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
