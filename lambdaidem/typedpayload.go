package lambdaidem

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// This file computes the text from which the fingerprint of a Go value is made. The text is
// the value's JSON without struct fields that are zero. A new version of a program may
// therefore add a field to a type: if the field is zero, the fingerprint stays the same,
// and a retry matches a record that an older version made. Only struct fields are left
// out. The text contains all entries of maps, all elements of lists, raw JSON, and what
// MarshalJSON methods write.

// typedPayload returns the payload of a call for the Go value v. The fingerprint is made from this
// payload. The parameter ignored has JSON Pointers to the values that are left out of the
// fingerprint. If the JSON of v hides a part of v, typedPayload returns an error, because two
// values that differ only in that part would have the same fingerprint; see unseen.
func typedPayload(v any, ignored *canon.Pointers) (payload, error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = unseen(text, v, "the payload", true)
	}
	if err != nil {
		return payload{}, err
	}
	counted, err := newTypedJSON(v, ignored)
	if err != nil {
		return payload{}, err
	}
	return payload{body: counted.text, json: true, form: string(counted.form)}, nil
}

// typedJSON describes a Go value: it has the text from which the value's fingerprint is made,
// and a digest of the value's type.
type typedJSON struct {
	text []byte // the JSON without zero struct fields
	// form is a digest of the value's static type; see formOf. If two payloads differ in both text
	// and form, the guard does not conclude that the values differ: a new version of the program
	// may have changed the type, and with it the text.
	form    []byte
	ignored *canon.Pointers // the values that don't count, as JSON Pointers into the value that is being appended
	bare    bool            // see bareJSON
	nested  int             // the current nesting depth, to stop at a cycle
}

// newTypedJSON returns the typedJSON of v. The caller removes the values to which the JSON Pointers
// in the parameter ignored lead. So that the rest is the same for each of these values, a struct
// field that is such a value, or contains one, is in the text even if it is zero. json.Marshal must
// accept v.
func newTypedJSON(v any, ignored *canon.Pointers) (*typedJSON, error) {
	c := &typedJSON{ignored: ignored}
	if v == nil {
		c.text = []byte("null")
		return c, nil
	}
	c.form = appendPart(c.form, formOf(reflect.TypeOf(v)))
	return c, c.value(reflect.ValueOf(v), false)
}

// bareJSON returns the JSON of v without any struct field that is zero. Two values of different
// versions of a type have the same bareJSON if they differ only in zero fields that one version
// lacks.
func bareJSON(v any) ([]byte, error) {
	if v == nil {
		return []byte("null"), nil
	}
	c := &typedJSON{bare: true}
	err := c.value(reflect.ValueOf(v), false)
	return c.text, err
}

var errTooDeep = errors.New("the value is nested too deep")

func (c *typedJSON) value(v reflect.Value, quoted bool) error {
	if c.nested++; c.nested > maxNested {
		return errTooDeep
	}
	defer func() { c.nested-- }()
	switch {
	case marshals(v.Type()):
		return c.leaf(v, false)
	case marshalsByPointer(v):
		return c.leaf(v.Addr(), false)
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
		if v.IsNil() {
			c.text = append(c.text, "null"...)
			return nil
		}
		return c.value(v.Elem(), quoted)
	}
	switch v.Kind() { //nolint:exhaustive // every other kind holds nothing
	case reflect.Struct:
		return c.fields(v)
	case reflect.Map:
		return c.entries(v)
	case reflect.Slice, reflect.Array:
		bytes := v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && !marshals(reflect.PointerTo(v.Type().Elem()))
		if bytes || v.Kind() == reflect.Slice && v.IsNil() {
			return c.leaf(v, false)
		}
		c.text = append(c.text, '[')
		for i := range v.Len() {
			if i > 0 {
				c.text = append(c.text, ',')
			}
			if err := c.below(strconv.Itoa(i), v.Index(i), false); err != nil {
				return err
			}
		}
		c.text = append(c.text, ']')
		return nil
	}
	return c.leaf(v, quoted)
}

// marshalsByPointer reports whether encoding/json writes v by a method of the pointer to v.
func marshalsByPointer(v reflect.Value) bool {
	return v.CanAddr() && marshals(reflect.PointerTo(v.Type()))
}

// leaf appends the JSON that json.Marshal writes for v. If quoted is true, v belongs to a
// field with the tag option "string".
func (c *typedJSON) leaf(v reflect.Value, quoted bool) error {
	if v.Kind() == reflect.Interface { // let json.Marshal see the interface's type, and not the type of the value in it
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p
	}
	marshal := json.Marshal
	if c.bare { // escape a string with the option "string" as stored results do
		marshal = toJSON
	}
	text, err := marshal(v.Interface())
	if err == nil && quoted {
		text, err = json.Marshal(string(text))
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller adds what the value is
	}
	c.text = append(c.text, text...)
	return nil
}

// below appends v, which is the struct field, list element or map entry called name in the value
// that is being appended.
func (c *typedJSON) below(name string, v reflect.Value, quoted bool) error {
	whole := c.ignored
	c.ignored = whole.Below(name)
	err := c.value(v, quoted)
	c.ignored = whole
	return err
}

// fields appends the struct v as a JSON object. It leaves out the fields for which encoding/json
// writes the same as for a zero value of their type.
func (c *typedJSON) fields(v reflect.Value) error {
	c.text = append(c.text, '{')
	start := len(c.text)
	fields := fieldsOf(v.Type())
	for i := range fields {
		of, err := v.FieldByIndexErr(fields[i].index)
		if err != nil { // the field belongs to an embedded nil pointer
			continue
		}
		before := len(c.text)
		if before > start {
			c.text = append(c.text, ',')
		}
		leaveOut, err := c.field(&fields[i], of)
		if err != nil {
			return err
		}
		if leaveOut {
			c.text = c.text[:before]
		}
	}
	c.text = append(c.text, '}')
	return nil
}

// field appends the field f, whose value is v. If encoding/json writes the same for v as for a zero
// value, leaveOut is true, and the caller must remove what field has appended.
func (c *typedJSON) field(f *jsonField, v reflect.Value) (leaveOut bool, err error) {
	isIgnored := c.ignored.Below(f.name) != nil // or a part of it is: the JSON then depends on what the caller removes
	if v.IsZero() && (!f.byPointer || c.bare) && !isIgnored {
		return true, nil
	}
	zeroText, zeroIsOmitted := f.zero(v.CanAddr())
	switch isOmitted := f.isOmitted(v); {
	case isOmitted && (zeroIsOmitted || isIgnored):
		return true, nil
	case isOmitted: // IsZero reports true for v, but not for a zero value: append a name that no field has
		err := c.name(f.name + "\x00")
		c.text = append(c.text, "null"...)
		return false, err
	}
	if err := c.name(f.name); err != nil {
		return false, err
	}
	start := len(c.text)
	if err := c.below(f.name, v, f.quoted); err != nil {
		return false, err
	}
	return !isIgnored && string(c.text[start:]) == zeroText, nil
}

// zero returns what encoding/json writes for the field if its value is zero. If encoding/json omits
// the field, omitted is true. Otherwise text is the text of the zero value, or "" if its MarshalJSON
// or MarshalText method fails or panics. Pass the result of [reflect.Value.CanAddr] for the field:
// encoding/json calls the methods of a pointer only for an addressable value.
func (f *jsonField) zero(addressable bool) (text string, omitted bool) {
	if addressable {
		return f.addressableZero()
	}
	return f.plainZero()
}

// textOf returns what encoding/json writes for the field if its value is the zero value zero. For
// the results, see the method zero.
func (f *jsonField) textOf(zero reflect.Value) (text string, omitted bool) {
	if f.byPointer { // if the whole struct is zero, the embedded pointer is nil
		return "", true
	}
	defer func() { _ = recover() }()
	if f.isOmitted(zero) {
		return "", true
	}
	var c typedJSON
	if err := c.value(zero, f.quoted); err != nil {
		return "", false
	}
	return string(c.text), false
}

// isOmitted reports whether encoding/json omits the field if its value is v.
func (f *jsonField) isOmitted(v reflect.Value) bool {
	return f.omitEmpty && isEmpty(v) || f.omitZero && isZero(v)
}

// isEmpty reports whether v is empty according to the tag option omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // every other kind is empty if it is zero
	case reflect.Array, reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

type zeroer interface{ IsZero() bool }

var hasIsZero = reflect.TypeFor[zeroer]()

// isZero reports whether v is zero according to the tag option omitzero. Like encoding/json, it
// looks for the method IsZero in the static type of v and in the pointer to that type, and does not
// call it on a nil pointer.
func isZero(v reflect.Value) bool {
	t := v.Type()
	if t.Implements(hasIsZero) {
		value := v
		if v.Kind() == reflect.Interface {
			value = v.Elem()
		}
		isNil := !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
		return isNil || v.Interface().(zeroer).IsZero() //nolint:forcetypeassert // its type implements zeroer
	}
	if reflect.PointerTo(t).Implements(hasIsZero) {
		addressable := reflect.New(t)
		addressable.Elem().Set(v)
		return addressable.Interface().(zeroer).IsZero() //nolint:forcetypeassert // its type implements zeroer
	}
	return v.IsZero()
}

func (c *typedJSON) entries(v reflect.Value) error {
	if v.IsNil() {
		c.text = append(c.text, "null"...)
		return nil
	}
	names := reflect.New(reflect.MapOf(v.Type().Key(), reflect.TypeFor[int]())).Elem()
	names.Set(reflect.MakeMapWithSize(names.Type(), v.Len()))
	keys := v.MapKeys()
	for i, key := range keys {
		names.SetMapIndex(key, reflect.ValueOf(i))
	}
	// Let encoding/json make the JSON name of each key, because a key may have a MarshalText
	// method. Encode a map from keys to their indexes, and decode the JSON into a map from names to
	// indexes.
	text, err := json.Marshal(names.Interface())
	if err != nil {
		return err //nolint:wrapcheck // the caller adds what the value is
	}
	var indexes map[string]int
	if err := json.Unmarshal(text, &indexes); err != nil {
		return err //nolint:wrapcheck // the caller adds what the value is
	}
	if len(indexes) != len(keys) {
		return errors.New("two keys of a map have one name in JSON")
	}
	c.text = append(c.text, '{')
	sorted := make([]string, 0, len(indexes))
	for name := range indexes {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	for i, name := range sorted {
		if i > 0 {
			c.text = append(c.text, ',')
		}
		if err := c.name(name); err != nil {
			return err
		}
		if err := c.below(name, v.MapIndex(keys[indexes[name]]), false); err != nil {
			return err
		}
	}
	c.text = append(c.text, '}')
	return nil
}

func (c *typedJSON) name(name string) error {
	text, err := json.Marshal(name)
	c.text = append(append(c.text, text...), ':')
	return err //nolint:wrapcheck // a text: can't happen
}

var fieldLists sync.Map // results of fieldsOf: reflect.Type to []jsonField

// fieldsOf returns the fields that encoding/json writes for the struct type t. It computes
// them once for each type.
func fieldsOf(t reflect.Type) []jsonField {
	if known, ok := fieldLists.Load(t); ok {
		return known.([]jsonField) //nolint:forcetypeassert // nothing else is stored
	}
	fields, _ := jsonFields(t)
	for i := range fields {
		f := &fields[i]
		of := t.FieldByIndex(f.index).Type
		f.plainZero = sync.OnceValues(func() (string, bool) { return f.textOf(reflect.Zero(of)) })
		f.addressableZero = sync.OnceValues(func() (string, bool) { return f.textOf(reflect.New(of).Elem()) })
	}
	fieldLists.Store(t, fields)
	return fields
}

var forms sync.Map // results of formOf: reflect.Type to string

// formOf returns a digest of the type t. A type has the same digest in two versions of a program if
// both declare it in the same way; see appendForm.
//
// The digest must not depend on the content of a value, such as the keys of maps or the dynamic
// types in interfaces, because a client chooses the content. If the digests of two payloads differ,
// the guard takes the program for changed, and not the payload: a client that could choose the
// digest could hide a changed payload.
func formOf(t reflect.Type) string {
	if known, ok := forms.Load(t); ok {
		return known.(string) //nolint:forcetypeassert // nothing else is stored
	}
	sum := sha256.Sum256(appendForm(nil, t, map[reflect.Type]int{}))
	form := string(sum[:16])
	forms.Store(t, form)
	return form
}

// appendForm appends a description of the type t, from which formOf makes the digest. The
// description has what determines the JSON of a value: the kind of t, the types that t contains,
// the names and tags of its fields, and the methods that encoding/json calls. numbers has a number
// for each type that has already been described. If such a type occurs again, appendForm appends
// only its number, so that the description of a recursive type ends.
func appendForm(b []byte, t reflect.Type, numbers map[reflect.Type]int) []byte {
	if n, ok := numbers[t]; ok {
		return fmt.Appendf(b, "again %d;", n)
	}
	numbers[t] = len(numbers)
	b = fmt.Appendf(b, "%v ", t.Kind())
	if t == reflect.TypeFor[json.Number]() { // encoding/json does not write it as a string
		b = append(b, "number "...)
	}
	for _, method := range []reflect.Type{jsonMarshaler, textMarshaler, hasIsZero} {
		onValue := t.Implements(method)
		if onValue || reflect.PointerTo(t).Implements(method) { // name t, because what its method does can't be described
			b = fmt.Appendf(b, "%v %t of %s %v ", method, onValue, t.PkgPath(), t)
		}
	}
	switch t.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.Pointer, reflect.Slice:
		b = appendForm(b, t.Elem(), numbers)
	case reflect.Array:
		b = appendForm(fmt.Appendf(b, "%d ", t.Len()), t.Elem(), numbers)
	case reflect.Map:
		b = appendForm(appendForm(b, t.Key(), numbers), t.Elem(), numbers)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			b = fmt.Appendf(b, "%s %q %t ", f.Name, f.Tag.Get("json"), f.Anonymous)
			if isWritten(f) {
				b = appendForm(b, f.Type, numbers)
			} else { // don't describe, for example, the internals of time.Time
				b = fmt.Appendf(b, "%v;", f.Type)
			}
		}
	}
	return append(b, ';')
}
