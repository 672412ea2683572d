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

// HashKey makes a key of the fields that make an operation one (K5):
//
//	lambdaidem.HashKey(order.CustomerID, order.Number, order.Amount)
//
// It is the same for the same fields in every process and every version of the
// program: [HashKeyPrefix] and 43 of A-Z, a-z, 0-9, "_" and "-", which each ready
// validator but those for UUIDs allows. Golden values in the tests hold it.
//
// A field is its JSON, as encoding/json writes it, by value (F3): the order of a
// map doesn't count; a number is its own text, so that json.Number 1.0 is not 1,
// and 9007199254740993 is not 9007199254740992; a text is its code points. Fields
// are told apart by their positions and lengths, and their number counts, so
// ("ab", "c") is not ("a", "bc"). Where names are to count too, give one struct or
// map. What has the same JSON is the same: a []byte and its base64, an int and a
// float64 of its value.
//
// A field that is missing makes the key missing: HashKey returns "" and no error
// where a field's JSON is null, "", [] or {}, or where it is an empty json.Number.
// Only the fields themselves are looked at, not what is inside of them: an optional
// one belongs into a struct or map. Zero and false are values.
//
// Errors: no field at all; what JSON can't carry or doesn't show (a channel, NaN, a
// text that is not UTF-8, a struct without an exported field); JSON of the field's
// own making that readers disagree about (F3), members of one name for one.
func HashKey(fields ...any) (string, error) {
	if len(fields) == 0 {
		return "", errors.New("lambdaidem: HashKey: there is no field to make a key of")
	}
	buf, missing := appendPart(nil, "fields"), false
	for i, field := range fields {
		form, err := fieldForm(field, fmt.Sprintf("field %d", i+1))
		if err != nil {
			return "", fmt.Errorf("lambdaidem: HashKey: %w", err)
		}
		missing = missing || isNothing(form) || isEmptyNumber(field)
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

// fieldForm is a field's JSON in canonical form.
func fieldForm(field any, name string) ([]byte, error) {
	text, err := json.Marshal(field)
	if err == nil {
		err = unseen(text, field, name)
	}
	if err != nil {
		return nil, err
	}
	form, ok := canon.Append(nil, text, wholeValue)
	if !ok {
		return nil, errors.New(name + " has JSON that its readers may disagree about")
	}
	return form, nil
}

func isNothing(form []byte) bool {
	switch string(form) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// isEmptyNumber tells whether a field is a json.Number that holds none, which
// encoding/json writes as 0.
func isEmptyNumber(field any) bool {
	v := reflect.ValueOf(field)
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v.IsValid() && v.Type() == reflect.TypeFor[json.Number]() && v.Len() == 0
}
