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

// HashKeyPrefix begins every key that [HashKey] makes.
const HashKeyPrefix = "sha256_"

// HashKey makes a key of the fields that make an operation one:
//
//	lambdaidem.HashKey(order.CustomerID, order.Number, order.Amount)
//
// It is the same for the same fields in every process and every version of the
// program: [HashKeyPrefix] and 43 of A-Z, a-z, 0-9, "_" and "-", which each ready
// validator but those for UUIDs allows. Golden values in the tests hold it.
//
// A field is its JSON, as encoding/json writes it, by value: the order of a
// map doesn't count; a number is its own text, so that json.Number 1.0 is not 1,
// and 9007199254740993 is not 9007199254740992; a text is its code points. Fields
// are told apart by their positions and lengths, and their number counts, so
// ("ab", "c") is not ("a", "bc"). Where names are to count too, give one struct or
// map. What has the same JSON is the same: a []byte and its base64, an int and a
// float64 of its value.
//
// Fields of structs that are zero don't count, so that a struct may gain one and
// keep its keys: a struct with a zero field is the same as one without the field.
// The entries of a map and the elements of a list count, zero or not, and so does a
// pointer to zero.
//
// A field that is missing makes the key missing: HashKey returns "" and no error
// where a field's JSON is null, "", [] or {}, or where it is an empty json.Number.
// Only the fields themselves are looked at, not what is inside of them: an optional
// one belongs into a struct or map. Zero and false are values.
//
// Errors: no field at all; what JSON can't carry or doesn't show (a channel, NaN, a
// text that is not UTF-8, a struct without an exported field, or with two fields of
// one name, or whose MarshalJSON is that of an embedded field); JSON of the field's
// own making that readers disagree about, members of one name for one.
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

// wholeValue bounds nothing: a value in memory is as large as its maker let it be.
var wholeValue = canon.Limits{Bytes: math.MaxInt32, Depth: 10_000, Members: math.MaxInt32}

// fieldForm returns the canonical form of what counts of a field, and whether the
// field is missing.
func fieldForm(field any, name string) (form []byte, missing bool, err error) {
	text, err := json.Marshal(field)
	if err == nil {
		err = unseen(text, field, name, true)
	}
	if err != nil {
		return nil, false, err
	}
	whole, okWhole := canon.Append(nil, text, wholeValue)
	counted, err := countTyped(field)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	form, ok := canon.Append(nil, counted.text, wholeValue)
	if !ok || !okWhole {
		return nil, false, errors.New(name + " has JSON that its readers may disagree about")
	}
	return form, isNothing(whole), nil // a struct of zero fields is a value
}

func isNothing(form []byte) bool {
	switch string(form) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// isEmptyNumber reports whether a field is a json.Number that holds none, which
// encoding/json writes as 0.
func isEmptyNumber(field any) bool {
	v := reflect.ValueOf(field)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v.IsValid() && v.Type() == reflect.TypeFor[json.Number]() && v.Len() == 0
}
