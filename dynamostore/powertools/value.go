package powertools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value with its members in their original order and its numbers as they were
// written. Powertools for some languages includes that order and that text in its hash, and
// encoding/json would lose them.
type value struct {
	kind     kind
	raw      []byte   // the text of an object or array in the data, without white space around it
	text     string   // a decoded string, or the text of a number
	names    []string // the names of an object's members, in the order of the text
	elements []*value // the members' values, or the elements of an array
}

type kind byte

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindString
	kindNumber
	kindArray
	kindObject
)

func (v *value) isContainer() bool { return v.kind == kindArray || v.kind == kindObject }

// isInteger reports whether the number has neither a fraction nor an exponent.
func (v *value) isInteger() bool { return !strings.ContainsAny(v.text, ".eE") }

// parse decodes one JSON value. It refuses invalid UTF-8, unpaired surrogates and objects with two
// members of the same name, because the languages read these differently.
func parse(data json.RawMessage) (*value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	raw, err := d.ReadValue()
	if err != nil {
		return nil, fmt.Errorf("it is not JSON that every language reads in the same way: %w", err)
	}
	raw = bytes.Clone(raw)
	if _, err := d.ReadToken(); err != io.EOF { //nolint:errorlint // jsontext returns io.EOF itself
		return nil, fmt.Errorf("it has more than one JSON value: %.50q", data)
	}
	return decode(jsontext.NewDecoder(bytes.NewReader(raw)), raw)
}

// decode decodes the next value from d. The parameter all is the whole input of d, which decode
// needs for value.raw.
func decode(d *jsontext.Decoder, all []byte) (*value, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err //nolint:wrapcheck // can't happen: parse has read the value before
	}
	v := &value{}
	switch token.Kind() { //nolint:exhaustive // no other kind begins a value
	case 'n':
		v.kind = kindNull
	case 'f':
		v.kind = kindFalse
	case 't':
		v.kind = kindTrue
	case '"':
		v.kind, v.text = kindString, token.String()
	case '0':
		v.kind, v.text = kindNumber, token.String()
	case '[', '{':
		v.kind = kindArray
		if token.Kind() == '{' {
			v.kind = kindObject
		}
		begin := d.InputOffset() - 1
		for d.PeekKind() != ']' && d.PeekKind() != '}' {
			if v.kind == kindObject {
				name, err := d.ReadToken()
				if err != nil {
					return nil, err //nolint:wrapcheck // as above
				}
				v.names = append(v.names, name.String())
			}
			element, err := decode(d, all)
			if err != nil {
				return nil, err
			}
			v.elements = append(v.elements, element)
		}
		if _, err := d.ReadToken(); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		v.raw = all[begin:d.InputOffset()]
	}
	return v, nil
}
