package lambdaidem_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// HashKey returns the same key for two values of one type if, and only if, encoding/json writes the
// same for them. The test draws the type, too. A value in an interface is never a struct: a struct
// may have the key of a map without its zero fields (docs/keys.md).
func TestF3_KeysOfRandomTypesAreEqualIfTheirJSONIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := drawStruct(t, 3)
		byPointer := rapid.Bool().Draw(t, "by pointer")
		keys, texts := map[string]string{}, map[string]string{} // key by JSON, and JSON by key
		for range 20 {
			v := reflect.New(of)
			drawValue(t, v.Elem())
			payload := v.Interface()
			if !byPointer {
				payload = v.Elem().Interface()
			}
			text, err := json.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			key, err := lambdaidem.HashKey("o-1", []any{payload})
			if err != nil { // such as two names in one map that differ only in case
				continue
			}
			if other, ok := keys[string(text)]; ok && other != key {
				t.Fatalf("%v: %s has the keys %s and %s", of, text, key, other)
			}
			if other, ok := texts[key]; ok && other != string(text) {
				t.Fatalf("%v: %s and %s have the key %s", of, text, other, key)
			}
			keys[string(text)], texts[key] = key, string(text)
		}
	})
}

// fieldTypes are the types of fields that are not structs.
var fieldTypes = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[*int](), reflect.TypeFor[[]string](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[map[string]int](), reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[**int](), reflect.TypeFor[*[]string](), reflect.TypeFor[unset](), reflect.TypeFor[percent](), reflect.TypeFor[decimal](),
	reflect.TypeFor[nullable](), reflect.TypeFor[nullableByPointer](), reflect.TypeFor[listByPointer](), reflect.TypeFor[limit](), reflect.TypeFor[spent](),
	reflect.TypeFor[interface{ IsZero() bool }](), reflect.TypeFor[[2]json.RawMessage](), reflect.TypeFor[map[string]listByPointer](),
}

var fieldOptions = []string{"", ",omitempty", ",omitzero", ",omitempty,omitzero", ",string"}

func drawStruct(t *rapid.T, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
		of := rapid.SampledFrom(fieldTypes).Draw(t, "type")
		if depth > 0 && rapid.IntRange(0, 2).Draw(t, "deeper") == 0 {
			of = drawStruct(t, depth-1)
			switch rapid.SampledFrom([]reflect.Kind{reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}).Draw(t, "kind") { //nolint:exhaustive // as drawn
			case reflect.Pointer:
				of = reflect.PointerTo(of)
			case reflect.Slice:
				of = reflect.SliceOf(of)
			case reflect.Array:
				of = reflect.ArrayOf(2, of)
			case reflect.Map:
				of = reflect.MapOf(reflect.TypeFor[string](), of)
			}
		}
		option := rapid.SampledFrom(fieldOptions).Draw(t, "option")
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: of, Tag: reflect.StructTag(`json:"` + option + `"`)})
	}
	return reflect.StructOf(fields)
}

// drawValue sets v to a value that is often zero, or nearly so.
func drawValue(t *rapid.T, v reflect.Value) {
	if rapid.IntRange(0, 2).Draw(t, "zero") == 0 {
		return
	}
	small := rapid.IntRange(-1, 1)
	switch v.Kind() { //nolint:exhaustive // the others don't occur
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(small.Draw(t, "int")))
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"0", "1"}).Draw(t, "string"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		drawValue(t, v.Elem())
	case reflect.Interface:
		v.Set(reflect.ValueOf(drawDynamic(t, v.NumMethod() > 0)))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(rapid.SampledFrom([]string{"null", " null", "0", "{}"}).Draw(t, "raw")))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 2).Draw(t, "length"), 2))
		drawElements(t, v)
	case reflect.Array:
		drawElements(t, v)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(0, 2).Draw(t, "entries") {
			entry := reflect.New(v.Type().Elem()).Elem()
			drawValue(t, entry)
			v.SetMapIndex(reflect.ValueOf(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")), entry)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[decimal]() {
			n := int64(small.Draw(t, "decimal"))
			v.Set(reflect.ValueOf(decimal{value: &n}))
			return
		}
		for i := range v.NumField() {
			drawValue(t, v.Field(i))
		}
	}
}

func drawElements(t *rapid.T, v reflect.Value) {
	for i := range v.Len() {
		drawValue(t, v.Index(i))
	}
}

// drawDynamic returns a value for an interface, which has the method IsZero if hasIsZero is true.
func drawDynamic(t *rapid.T, hasIsZero bool) any {
	var list []string
	values := []any{unset(-1), unset(0), (*unset)(nil)}
	if !hasIsZero {
		values = append(values, 0, "", (*int)(nil), list, []string{}, map[string]any{}, map[string]any{"A": 0})
	}
	return rapid.SampledFrom(values).Draw(t, "dynamic")
}
