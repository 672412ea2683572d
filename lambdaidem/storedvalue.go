package lambdaidem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// This file converts the results of Do and Handler to the JSON that a record stores, and
// back. A replay returns a value with the same JSON as the first caller's, or an error.

// storable returns the JSON to store for v, and the value that the first caller receives. That
// value is decoded from the stored JSON, like the value that later callers receive, so it lacks
// whatever the JSON lacks, such as unexported fields.
//
// If v is a stream, if JSON can't represent v, or if decoding changes more than the order of
// members, storable returns v itself and an error.
func storable[T any](v T) ([]byte, T, error) {
	if _, stream := any(v).(io.Reader); stream { // streams can't see this if T is an interface type
		return nil, v, streamRefused(fmt.Sprintf("a result of type %T", v))
	}
	if raw, ok := any(&v).(*json.RawMessage); ok {
		if *raw != nil && !json.Valid(*raw) {
			return nil, v, fmt.Errorf("the %T is no JSON", v)
		}
		return append([]byte{}, *raw...), v, nil
	}
	text, err := toJSON(v)
	if err == nil {
		err = unseen(text, v, "the result", false)
	}
	if err != nil {
		return nil, v, err
	}
	if again, err := decodeExact[T](text); err == nil {
		return text, again, nil
	}
	// A struct in an interface is decoded as a map, whose JSON has its members in another order.
	// Store that JSON, so that the first result and its replays have the same JSON.
	for _, numbers := range numberForms {
		again, err := fromJSON[T](text, numbers)
		if err != nil {
			continue
		}
		stable, err := toJSON(again)
		if err != nil || !sameJSON(text, stable) {
			continue
		}
		if again, err = decodeExact[T](stable); err == nil {
			return stable, again, nil
		}
	}
	return nil, v, fmt.Errorf("the result of type %T can't be rebuilt from its JSON", v)
}

// decodeExact decodes text, which is JSON, into a T. It returns an error if encoding the T again
// does not reproduce text.
func decodeExact[T any](text []byte) (T, error) { return rebuild[T](text, sameText) }

// replayed decodes a stored JSON text into a T for a replay. The type T may have changed since
// the text was stored: it may have new fields, which are then zero. replayed returns an
// error if T lacks a field that the text has.
func replayed[T any](text []byte) (T, error) { return rebuild[T](text, sameExceptNewFields) }

// rebuild decodes text into a T and checks that nothing was lost: it encodes the T again and calls
// accept with the T, its new JSON and text. rebuild tries both ways to decode numbers; see
// numberForms. If both fail, it returns the error of the first.
func rebuild[T any](text []byte, accept func(v any, encoded, text []byte) error) (T, error) {
	var v T
	if raw, ok := any(&v).(*json.RawMessage); ok {
		if len(text) > 0 { // a nil RawMessage is stored as an empty text
			*raw = bytes.Clone(text)
		}
		return v, nil
	}
	var firstErr error
	for _, numbers := range numberForms {
		again, err := fromJSON[T](text, numbers)
		if err == nil {
			var encoded []byte
			if encoded, err = toJSON(again); err == nil {
				if err = accept(again, encoded, text); err == nil {
					return again, nil
				}
			}
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return v, firstErr
}

// sameText returns an error, which names the type of v, if the parameters encoded and text differ
// in any byte. encoded is the JSON of v, and text is the JSON from which v was decoded.
func sameText(v any, encoded, text []byte) error {
	if !bytes.Equal(encoded, text) {
		return fmt.Errorf("its JSON as a %T would be another", v)
	}
	return nil
}

// sameExceptNewFields compares two JSON texts: the parameter encoded, which is the JSON of v, and
// the parameter text, which was stored. It returns an error if their values differ, except that
// encoded may have additional struct fields that are zero. The type of v may have gained these
// fields since the text was stored.
func sameExceptNewFields(v any, encoded, text []byte) error {
	if bytes.Equal(encoded, text) {
		return nil
	}
	bare, err := bareJSON(v)
	if err != nil {
		return err
	}
	if contains(encoded, text) && contains(text, bare) {
		return nil
	}
	return sameText(v, encoded, text)
}

// contains reports whether two JSON texts, the parameters whole and part, have the same value,
// except that whole may have additional members, in objects at any depth.
func contains(whole, part []byte) bool {
	v, errV := fromJSON[any](whole, true)
	w, errW := fromJSON[any](part, true)
	return errV == nil && errW == nil && covers(v, w)
}

// covers is like contains, for decoded JSON.
func covers(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		all, ok := whole.(map[string]any)
		for name, v := range part {
			w, there := all[name]
			ok = ok && there && covers(w, v)
		}
		return ok
	case []any:
		all, ok := whole.([]any)
		if ok = ok && len(all) == len(part); ok {
			for i := range part {
				ok = ok && covers(all[i], part[i])
			}
		}
		return ok
	}
	return whole == part
}

// numberForms has both values of fromJSON's parameter useNumber, in the order to try them. With
// false, a number in an interface is decoded as a float64, like in encoding/json. With true, it is
// decoded as a json.Number, for numbers that a float64 can't represent exactly.
var numberForms = [...]bool{false, true}

// fromJSON decodes text into a T. If useNumber is true, it decodes numbers in interfaces as
// json.Numbers.
func fromJSON[T any](text []byte, useNumber bool) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if useNumber {
		dec.UseNumber()
	}
	return v, dec.Decode(&v)
}

// toJSON returns the JSON of v without HTML escapes and without a newline at the end, as the
// Lambda runtime of aws-lambda-go writes it.
func toJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// sameJSON reports whether two JSON texts that encoding/json wrote have the same value. It compares
// the canonical forms of the texts. A text has no canonical form if JSON readers may disagree about
// its value, for example if two member names differ only in case.
func sameJSON(a, b []byte) bool {
	x, okX := canon.Append(nil, a, wholeValue)
	y, okY := canon.Append(nil, b, wholeValue)
	if okX && okY {
		return bytes.Equal(x, y)
	}
	// One of the texts has no canonical form, so compare the decoded values. Compare the lengths of
	// the texts too, because decoding drops one of two members that have the same name.
	if len(a) != len(b) {
		return false
	}
	v, errV := fromJSON[any](a, true)
	w, errW := fromJSON[any](b, true)
	return errV == nil && errW == nil && reflect.DeepEqual(v, w)
}
