package memdynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// UnmarshalJSON decodes a value in the protocol's form, such as {"S":"text"}. It checks only the
// form. The method checked does all other checks, because DynamoDB answers their errors with
// another type.
func (v *Value) UnmarshalJSON(data []byte) error {
	if typ, text, ok := cutScalar(data); ok {
		*v = Value{Type: typ, Text: string(text)}
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return errSerialization
	}
	*v = Value{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(allTypes, name) {
			continue
		}
		if v.Type != "" {
			v.Type = severalTypes
			return nil
		}
		v.Type = name
		if err := unmarshalAs(v, name, members[name]); err != nil {
			return errSerialization
		}
	}
	return nil
}

// MarshalJSON encodes a value in the protocol's form. The members of maps are in the order of
// their names.
func (v Value) MarshalJSON() ([]byte, error) {
	var member any
	switch v.Type {
	case TypeString, TypeNumber:
		if b, ok := appendScalar(nil, v); ok {
			return b, nil
		}
		member = v.Text
	case TypeBinary:
		member = []byte(v.Text)
	case TypeBool:
		member = v.Bool
	case TypeNull:
		member = true
	case TypeList:
		member = v.List
		if v.List == nil {
			member = []Value{}
		}
	case TypeMap:
		member = v.Map
		if v.Map == nil {
			member = map[string]Value{}
		}
	case TypeStringSet, TypeNumberSet:
		member = v.Set
	case TypeBinarySet:
		set := make([][]byte, len(v.Set))
		for i, s := range v.Set {
			set[i] = []byte(s)
		}
		member = set
	default:
		return nil, fmt.Errorf("memdynamo: a value of type %q can't be written", v.Type)
	}
	return json.Marshal(map[string]any{v.Type: member})
}

// severalTypes is the Type of a value that was sent with more than one type. The method checked
// refuses such a value.
const severalTypes = "several"

// errSerialization means that the body does not follow the protocol.
var errSerialization = errors.New("malformed attribute value")

// cutScalar returns the type and the text of a string or number whose JSON has no escapes, such
// as {"S":"text"}. Most values are of this kind, and need no JSON decoder. ok is false for all
// other values.
func cutScalar(data []byte) (typ string, text []byte, ok bool) {
	const begin, end = `{"S":"`, `"}`
	if len(data) < len(begin)+len(end) || !bytes.HasSuffix(data, []byte(end)) {
		return "", nil, false
	}
	switch string(data[:len(begin)]) {
	case `{"S":"`:
		typ = TypeString
	case `{"N":"`:
		typ = TypeNumber
	default:
		return "", nil, false
	}
	text = data[len(begin) : len(data)-len(end)]
	return typ, text, !slices.ContainsFunc(text, escaped)
}

// escaped reports whether encoding/json may write this byte of a string in another form.
func escaped(c byte) bool {
	switch c {
	case '"', '\\', '<', '>', '&':
		return true
	}
	return c < ' ' || c >= utf8.RuneSelf
}

var allTypes = []string{
	TypeString, TypeNumber, TypeBinary, TypeBool, TypeNull,
	TypeList, TypeMap, TypeStringSet, TypeNumberSet, TypeBinarySet,
}

// unmarshalAs decodes data into the field of v for the type.
func unmarshalAs(v *Value, typ string, data []byte) error {
	switch typ {
	case TypeString, TypeNumber:
		return json.Unmarshal(data, &v.Text)
	case TypeBinary:
		var b []byte
		err := json.Unmarshal(data, &b)
		v.Text = string(b)
		return err
	case TypeBool, TypeNull:
		return json.Unmarshal(data, &v.Bool)
	case TypeList:
		return json.Unmarshal(data, &v.List)
	case TypeMap:
		return json.Unmarshal(data, &v.Map)
	case TypeStringSet, TypeNumberSet:
		return json.Unmarshal(data, &v.Set)
	default:
		var set [][]byte
		err := json.Unmarshal(data, &set)
		for _, b := range set {
			v.Set = append(v.Set, string(b))
		}
		return err
	}
}

// appendScalar appends the JSON of a string or number that needs no escapes. It returns false if
// v needs them.
func appendScalar(b []byte, v Value) ([]byte, bool) {
	for i := range len(v.Text) {
		if escaped(v.Text[i]) {
			return b, false
		}
	}
	b = append(append(b, `{"`...), v.Type...)
	b = append(append(b, `":"`...), v.Text...)
	return append(b, `"}`...), true
}
