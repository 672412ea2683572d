package lambdaidem

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unicode/utf8"
)

// This file finds values that encoding/json does not write completely. Two values that
// differ only in a part that is not written have the same JSON. They would have the same
// fingerprint, and no caller would receive that part of a result.
//
// A struct is allowed to have fields that are unexported or have the tag json:"-", as long as it
// has other fields too. Every Go programmer expects encoding/json to leave these out, and generated
// types such as protobuf messages have them.

// unseen returns an error if text, the JSON of v, does not show all of v. name describes v in the
// error. These parts of v cause an error:
//
//   - a string that is not UTF-8: encoding/json replaces the invalid bytes with U+FFFD;
//   - a struct that is not zero and has no exported fields: encoding/json writes nothing of it;
//   - an exported field that encoding/json does not write, although no tag omits the field. If
//     strict is false, shadowed fields are allowed; see hiddenField.
func unseen(text []byte, v any, name string, strict bool) error {
	if reason := hiddenFrom(reflect.TypeOf(v), strict); reason != "" {
		return fmt.Errorf("%s is of a type whose JSON hides a part: %s", name, reason)
	}
	// If text has the escape \ufffd, search v for strings that are not UTF-8. encoding/json writes
	// this escape only for invalid bytes, but a MarshalJSON method may also write it for the
	// character U+FFFD.
	s := search{strict: strict, texts: bytes.Contains(text, []byte(`\ufffd`))}
	if t := reflect.TypeOf(v); t == nil || !s.texts && !mayHide(t) {
		return nil
	}
	if found := s.value(reflect.ValueOf(v)); found != nil {
		return errors.New(name + found.path + " " + found.fault)
	}
	return nil
}

// Limits for a search, which visits a value and the values in it. The limits also end the search of
// a value that contains itself. encoding/json accepts such a value if the cycle is in a part that
// it does not write, but a search may visit that part.
const (
	maxVisits = 1 << 20 // maximum number of values to visit
	maxNested = 1000    // maximum nesting depth; it is the depth at which encoding/json begins to look for cycles
)

// search visits a value and the values in it, and looks for one that encoding/json does not
// write completely.
type search struct {
	texts          bool // also look for strings that are not UTF-8
	strict         bool // also look for shadowed fields: see unseen
	visits, nested int
}

// hidden describes a value that encoding/json does not write completely: its path, such as
// ".Items[2]", and its fault.
type hidden struct{ path, fault string }

func (h *hidden) at(path string) *hidden {
	h.path = path + h.path
	return h
}

func notUTF8() *hidden {
	return &hidden{fault: "holds a text that is not UTF-8; make it a []byte"}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	rawJSON       = reflect.TypeFor[json.RawMessage]()
)

func (s *search) value(v reflect.Value) *hidden {
	if !v.IsValid() {
		return nil
	}
	s.nested++
	defer func() { s.nested-- }()
	if s.visits++; s.visits > maxVisits || s.nested > maxNested {
		return &hidden{fault: "is too large or too deep to be looked at"}
	}
	t := v.Type()
	switch {
	case v.Kind() == reflect.Interface && !v.IsNil():
		if reason := hiddenFrom(v.Elem().Type(), s.strict); reason != "" {
			return &hidden{fault: "is of a type whose JSON hides a part: " + reason}
		}
		return s.value(v.Elem())
	case v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer:
		return s.value(v.Elem())
	case marshals(t), v.CanAddr() && marshals(reflect.PointerTo(t)):
		return s.ownText(v)
	}
	switch v.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.String:
		if s.texts && !utf8.ValidString(v.String()) {
			return notUTF8()
		}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil // encoding/json writes bytes as base64 or as numbers, so none is lost
		}
		for i := range v.Len() {
			if found := s.value(v.Index(i)); found != nil {
				return found.at(fmt.Sprintf("[%d]", i))
			}
		}
	case reflect.Map:
		return s.entries(v)
	case reflect.Struct:
		return s.fields(v)
	}
	return nil
}

func (s *search) entries(v reflect.Value) *hidden {
	for entries := v.MapRange(); entries.Next(); {
		key := entries.Key()
		if key.Kind() == reflect.String { // encoding/json writes such a key as it is, even if it has a MarshalText method
			if s.texts && !utf8.ValidString(key.String()) {
				return notUTF8().at("[key]")
			}
		} else if found := s.value(key); found != nil {
			return found.at("[key]")
		}
		if found := s.value(entries.Value()); found != nil {
			return found.at("[…]")
		}
	}
	return nil
}

func (s *search) fields(v reflect.Value) *hidden {
	t := v.Type()
	if hides(t) && !v.IsZero() {
		return &hidden{fault: fmt.Sprintf("is a %s, of which JSON sees nothing: it has no exported field and marshals nothing", t)}
	}
	for i := range v.NumField() {
		f := t.Field(i)
		if !isWritten(f) || f.Anonymous && hides(indirect(f.Type)) { // skip an embedded struct that JSON never shows, such as sync.Mutex
			continue
		}
		if found := s.value(v.Field(i)); found != nil {
			return found.at("." + f.Name)
		}
	}
	return nil
}

// ownText calls the MarshalJSON or MarshalText method of v and returns a fault if the resulting
// text is not UTF-8. It also returns a fault if the text of MarshalJSON has the escape \ufffd,
// because the method may have written it in place of invalid bytes. Otherwise it returns nil.
func (s *search) ownText(v reflect.Value) *hidden {
	t := v.Type()
	// Skip a json.RawMessage: its MarshalJSON method returns the JSON as it is, and replaces no
	// invalid bytes.
	if !s.texts || t == rawJSON || !v.CanInterface() {
		return nil
	}
	own := v.Interface()
	if !marshals(t) {
		own = v.Addr().Interface()
	}
	switch m := own.(type) {
	case json.Marshaler:
		if text, err := m.MarshalJSON(); err == nil && (bytes.Contains(text, []byte(`\ufffd`)) || !utf8.Valid(text)) {
			return notUTF8()
		}
	case encoding.TextMarshaler:
		if text, err := m.MarshalText(); err == nil && !utf8.Valid(text) {
			return notUTF8()
		}
	}
	return nil
}

func marshals(t reflect.Type) bool { return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) }

// isWritten reports whether encoding/json writes the field, or fields that are promoted from it.
func isWritten(f reflect.StructField) bool {
	return f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous)
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// hides reports whether t is a struct that has fields, but none that encoding/json writes.
// It disregards the methods MarshalJSON and MarshalText.
func hides(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return false
	}
	for _, f := range reflect.VisibleFields(t) {
		promotes := f.Anonymous && f.Tag.Get("json") == "" && indirect(f.Type).Kind() == reflect.Struct
		if f.IsExported() && !promotes && f.Tag.Get("json") != "-" {
			return false
		}
	}
	return true
}

var hiding sync.Map // results of mayHide: reflect.Type to bool

// mayHide reports whether a value of type t can be, or can contain, a struct that encoding/json
// writes without any field; see hides. If t is or contains an interface, mayHide returns true,
// because the interface may hold a value of any type. mayHide caches the result for each type.
func mayHide(t reflect.Type) bool {
	if known, ok := hiding.Load(t); ok {
		return known.(bool)
	}
	may := couldHide(t, map[reflect.Type]bool{})
	hiding.Store(t, may)
	return may
}

func couldHide(t reflect.Type, met map[reflect.Type]bool) bool {
	if met[t] || marshals(t) {
		return false
	}
	met[t] = true
	switch t.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return couldHide(t.Elem(), met)
	case reflect.Struct:
		if hides(t) {
			return true
		}
		for i := range t.NumField() {
			if f := t.Field(i); isWritten(f) && couldHide(f.Type, met) {
				return true
			}
		}
	}
	return false
}
