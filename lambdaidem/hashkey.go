package lambdaidem

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// HashKeyPrefix is the prefix of every key that [HashKey] returns.
const HashKeyPrefix = "sha256_"

// HashKey returns an idempotency key made of the fields that identify an operation:
//
//	lambdaidem.HashKey(order.CustomerID, order.Number, order.Amount)
//
// Equal arguments yield the same key in every process and in every version of this package. A key
// is [HashKeyPrefix] and 43 characters of A-Z, a-z, 0-9, "_" and "-". [PrintableKey] and [TokenKey]
// accept it; [UUIDKey] and [UUIDv4or7Key] don't.
//
// Two arguments are equal if encoding/json writes the same JSON for them: an int and a float64 of
// the same value, for example. The order of a map's entries does not matter. Numbers are compared
// as text: json.Number 1.0 differs from 1. Strings are compared by code points.
//
// The number, order and lengths of the arguments matter, so ("ab", "c") differs from ("a", "bc").
// To include names in the key, pass a single struct or map.
//
// HashKey ignores a struct field if encoding/json writes the same for it as for a zero value, so
// that adding a field to a struct type does not change existing keys. It also ignores the fields
// that encoding/json leaves out, such as unexported ones. Entries of a map, elements of a list,
// pointers to a zero value and the fields of a struct that is embedded by pointer are never
// ignored.
//
// If an argument is missing, HashKey returns "" and no error, which means that the request has no
// key; see [Options.KeyOptional]. An argument counts as missing if its JSON is null, "", [] or {},
// or if it is an empty json.Number. The arguments 0 and false are not missing. HashKey does not
// look for missing values inside an argument, so put an optional value into a struct or map.
//
// HashKey returns an error in these cases:
//
//   - It has no arguments.
//   - An argument's JSON does not represent it completely, apart from ignored fields. Examples are
//     a channel, NaN, a string that is not UTF-8, and a struct without exported fields. Other
//     examples are a struct with two fields of the same JSON name, and a struct whose JSON comes
//     from the MarshalJSON method of an embedded field.
//   - Two JSON readers may understand an argument's JSON differently, for example because a
//     json.RawMessage has an object with two members of the same name.
func HashKey(fields ...any) (string, error) {
	if len(fields) == 0 {
		return "", errors.New("lambdaidem: HashKey: there is no field to make a key of")
	}
	buf, missing := appendPart(nil, "fields"), false
	for i, field := range fields {
		form, nothing, err := fieldForm(field, fmt.Sprintf("field %d", i+1))
		if err != nil {
			return "", fmt.Errorf("lambdaidem: HashKey: %w", err)
		}
		missing = missing || nothing || isEmptyNumber(field)
		buf = appendPart(buf, string(form))
	}
	if missing {
		return "", nil
	}
	sum := sha256.Sum256(buf)
	return HashKeyPrefix + base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// wholeValue has the limits for the JSON of a Go value. They are so high that no value exceeds
// them in practice. Texts that clients send have lower limits.
var wholeValue = canon.Limits{Bytes: math.MaxInt32, Depth: 10_000, Members: math.MaxInt32}

// fieldForm returns the canonical JSON of one argument of HashKey. form omits struct fields that
// are zero. missing reports whether the full JSON, including these fields, is null, "", [] or {}.
// The parameter name describes the argument in errors.
func fieldForm(field any, name string) (form []byte, missing bool, err error) {
	text, err := json.Marshal(field)
	if err == nil {
		err = unseen(text, field, name, true)
	}
	if err != nil {
		return nil, false, err
	}
	whole, okWhole := canon.Append(nil, text, wholeValue)
	counted, err := newTypedJSON(field, nil)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	form, ok := canon.Append(nil, counted.text, wholeValue)
	if !ok || !okWhole {
		return nil, false, errors.New(name + " has JSON that its readers may disagree about")
	}
	return form, isNothing(whole), nil // not isNothing(form): a struct whose fields are all zero is not missing
}

func isNothing(form []byte) bool {
	switch string(form) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// isEmptyNumber reports whether field is an empty json.Number, or points to one.
// encoding/json writes it as 0, so its JSON does not show that it is empty.
func isEmptyNumber(field any) bool {
	v := reflect.ValueOf(field)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v.IsValid() && v.Type() == reflect.TypeFor[json.Number]() && v.Len() == 0
}
