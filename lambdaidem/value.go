package lambdaidem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// What a record keeps of a value of Do and Handler, and how the value is rebuilt
// (R1). A replay has the same JSON as the first answer, or there is none.

// storable is the JSON that a record keeps of v, and the value that the first
// caller is to get: v itself, unless v's JSON can be rebuilt by value alone (an
// interface that holds a struct comes back as a map, its members in another
// order). Then all callers get the rebuilt value, the first one too. The error
// says that JSON can't carry v.
func storable[T any](v T) ([]byte, T, error) {
	if raw, ok := any(&v).(*json.RawMessage); ok {
		if *raw != nil && !json.Valid(*raw) {
			return nil, v, fmt.Errorf("the %T is no JSON", v)
		}
		return append([]byte{}, *raw...), v, nil
	}
	text, err := toJSON(v)
	if err == nil {
		err = unseen(text, v, "the result")
	}
	if err != nil {
		return nil, v, err
	}
	if _, err := rebuilt[T](text); err == nil {
		return text, v, nil
	}
	for _, numbers := range numberForms {
		again, err := fromJSON[T](text, numbers)
		if err != nil {
			continue
		}
		stable, err := toJSON(again)
		if err != nil || !sameJSON(text, stable) {
			continue
		}
		if again, err = rebuilt[T](stable); err == nil {
			return stable, again, nil
		}
	}
	return nil, v, fmt.Errorf("the result of type %T can't be rebuilt from its JSON", v)
}

// rebuilt is the value whose JSON text is. The error says that there is none of
// this type, such as where the type has changed since.
func rebuilt[T any](text []byte) (T, error) {
	var v T
	if raw, ok := any(&v).(*json.RawMessage); ok {
		if len(text) > 0 { // a nil one was stored as no text
			*raw = bytes.Clone(text)
		}
		return v, nil
	}
	var why error
	for _, numbers := range numberForms {
		again, err := fromJSON[T](text, numbers)
		if err == nil {
			var its []byte
			if its, err = toJSON(again); err == nil && bytes.Equal(its, text) {
				return again, nil
			}
		}
		if why == nil {
			why = err
		}
	}
	if why == nil {
		why = fmt.Errorf("its JSON as a %T would be another", v)
	}
	return v, why
}

// numberForms are how numbers in an interface come back: as float64, as
// encoding/json has it, or as json.Number where a float64 would be another
// number.
var numberForms = [...]bool{false, true}

func fromJSON[T any](text []byte, numbers bool) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if numbers {
		dec.UseNumber()
	}
	return v, dec.Decode(&v)
}

// toJSON is a value's JSON as Lambda's runtime writes it, without escapes for
// HTML.
func toJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// sameJSON tells whether two texts are one value, as F3 has it. Names that some
// readers fold together have no canonical form; among what encoding/json itself
// wrote they are told apart, and a member that was there twice shows in the
// length.
func sameJSON(a, b []byte) bool {
	x, okX := canon.Append(nil, a, wholeValue)
	y, okY := canon.Append(nil, b, wholeValue)
	if okX && okY {
		return bytes.Equal(x, y)
	}
	if len(a) != len(b) {
		return false
	}
	v, errV := fromJSON[any](a, true)
	w, errW := fromJSON[any](b, true)
	return errV == nil && errW == nil && reflect.DeepEqual(v, w)
}

// payloadJSON is a payload as it is compared (F5). What encoding/json can't show
// would make different payloads equal, so it is refused (F3).
func payloadJSON(payload any) ([]byte, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	return text, unseen(text, payload, "the payload")
}
