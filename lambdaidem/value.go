package lambdaidem

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// What a record keeps of a value of Do and Handler, and how the value is rebuilt.
// A replay has the same JSON as the first answer, or there is none.

// storable returns the JSON that a record keeps of v, and the value that the first
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
		err = unseen(text, v, "the result", false)
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

// rebuilt returns the value whose JSON text is. The error says that there is none of
// this type, such as where the type has changed since.
func rebuilt[T any](text []byte) (T, error) { return rebuild[T](text, sameText) }

// replayed returns the value of a stored text. A type that gained fields since still
// has it: they are zero. A type that lost one doesn't.
func replayed[T any](text []byte) (T, error) { return rebuild[T](text, grown) }

// rebuild returns the value that text decodes to, if its own JSON is as good as text.
func rebuild[T any](text []byte, good func(v any, its, text []byte) error) (T, error) {
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
			if its, err = toJSON(again); err == nil {
				if err = good(again, its, text); err == nil {
					return again, nil
				}
			}
		}
		if why == nil {
			why = err
		}
	}
	return v, why
}

func sameText(v any, its, text []byte) error {
	if !bytes.Equal(its, text) {
		return fmt.Errorf("its JSON as a %T would be another", v)
	}
	return nil
}

// grown accepts a JSON that has all that the stored one has, and beyond that only
// fields of structs that are zero.
func grown(v any, its, text []byte) error {
	if bytes.Equal(its, text) {
		return nil
	}
	counted, err := countTyped(v)
	if err != nil {
		return err
	}
	if has(its, text) && has(text, counted.text) {
		return nil
	}
	return sameText(v, its, text)
}

// has reports whether a JSON text has all members of another one, and is the same
// otherwise.
func has(whole, part []byte) bool {
	v, errV := fromJSON[any](whole, true)
	w, errW := fromJSON[any](part, true)
	return errV == nil && errW == nil && covers(v, w)
}

func covers(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		all, ok := whole.(map[string]any)
		for name, v := range part {
			its, there := all[name]
			ok = ok && there && covers(its, v)
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

// toJSON returns a value's JSON as Lambda's runtime writes it, without escapes for
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

// sameJSON reports whether two texts are one value, as F3 has it. Names that some
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

// typedPayload returns what counts of a typed payload. What encoding/json can't show
// would make different payloads equal, so it is refused.
func typedPayload(v any) (payload, error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = unseen(text, v, "the payload", true)
	}
	if err != nil {
		return payload{}, err
	}
	counted, err := countTyped(v)
	if err != nil {
		return payload{}, err
	}
	return payload{body: counted.text, json: true, form: string(counted.form)}, nil
}
