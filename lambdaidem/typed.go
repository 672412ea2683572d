package lambdaidem

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// A typed payload counts by its JSON without those fields of structs that are zero,
// so that a type may gain a field: what was recorded before, and what a client sends
// that knows nothing of the field, stays the same payload. Only fields are left out.
// The entries of maps, the elements of lists, what raw JSON has and what a type's
// own MarshalJSON writes count as they are.

// typedJSON is the JSON of a value as it counts.
type typedJSON struct {
	text []byte
	// form describes the static type behind the text. Texts of two different forms may
	// differ only because a new version of the program added a field, so they don't prove
	// that the payloads differ. What a client may choose is not part of the form: neither
	// the keys of maps nor the types of values in interfaces.
	form   []byte
	nested int
}

// countTyped returns how v counts. v must be a value that json.Marshal accepts.
func countTyped(v any) (*typedJSON, error) {
	c := &typedJSON{}
	if v == nil {
		c.text = []byte("null")
		return c, nil
	}
	c.form = appendPart(c.form, formOf(reflect.TypeOf(v)))
	return c, c.value(reflect.ValueOf(v), false)
}

var errTooDeep = errors.New("the value is nested too deep")

func (c *typedJSON) value(v reflect.Value, quoted bool) error {
	if c.nested++; c.nested > maxNested {
		return errTooDeep
	}
	defer func() { c.nested-- }()
	switch {
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
		if v.IsNil() {
			c.text = append(c.text, "null"...)
			return nil
		}
		return c.value(v.Elem(), quoted)
	case v.CanAddr() && !marshals(v.Type()) && marshals(reflect.PointerTo(v.Type())):
		return c.leaf(v.Addr(), false)
	case marshals(v.Type()):
		return c.leaf(v, false)
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
			if err := c.value(v.Index(i), false); err != nil {
				return err
			}
		}
		c.text = append(c.text, ']')
		return nil
	}
	return c.leaf(v, quoted)
}

// leaf appends what encoding/json makes of a value.
func (c *typedJSON) leaf(v reflect.Value, quoted bool) error {
	text, err := json.Marshal(v.Interface())
	if err == nil && quoted {
		text, err = json.Marshal(string(text))
	}
	if err != nil {
		return err //nolint:wrapcheck // the caller says whose
	}
	c.text = append(c.text, text...)
	return nil
}

func (c *typedJSON) fields(v reflect.Value) error {
	c.text = append(c.text, '{')
	first := true
	for _, f := range fieldsOf(v.Type()) {
		of, err := v.FieldByIndexErr(f.index)
		if err != nil || f.leftOut(of) { // err: it is in an embedded pointer that is nil
			continue
		}
		if !first {
			c.text = append(c.text, ',')
		}
		first = false
		if err := c.name(f.name); err != nil {
			return err
		}
		if err := c.value(of, f.quoted); err != nil {
			return err
		}
	}
	c.text = append(c.text, '}')
	return nil
}

// leftOut reports whether a field doesn't count.
func (f *jsonField) leftOut(v reflect.Value) bool {
	if v.IsZero() {
		return true
	}
	if f.omitEmpty {
		switch v.Kind() { //nolint:exhaustive // every other kind is empty if it is zero
		case reflect.Slice, reflect.Map:
			return v.Len() == 0
		}
	}
	if f.omitZero {
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		if v.CanAddr() {
			if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
				return z.IsZero()
			}
		}
	}
	return false
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
	// encoding/json knows how a key is written: as a text, a number, or by MarshalText.
	text, err := json.Marshal(names.Interface())
	if err != nil {
		return err //nolint:wrapcheck // the caller says whose
	}
	var order map[string]int
	if err := json.Unmarshal(text, &order); err != nil {
		return err //nolint:wrapcheck // the caller says whose
	}
	if len(order) != len(keys) {
		return errors.New("two keys of a map have one name in JSON")
	}
	c.text = append(c.text, '{')
	sorted := make([]string, 0, len(order))
	for name := range order {
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
		if err := c.value(v.MapIndex(keys[order[name]]), false); err != nil {
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

var fieldLists sync.Map // reflect.Type to []jsonField

// fieldsOf returns what jsonFields shows, worked out once for each type.
func fieldsOf(t reflect.Type) []jsonField {
	if known, ok := fieldLists.Load(t); ok {
		return known.([]jsonField) //nolint:forcetypeassert // nothing else is stored
	}
	fields, _ := jsonFields(t)
	fieldLists.Store(t, fields)
	return fields
}

var forms sync.Map // reflect.Type to string

// formOf returns a digest of what a type's JSON has: the same for every program
// whose type has the same fields.
func formOf(t reflect.Type) string {
	if known, ok := forms.Load(t); ok {
		return known.(string) //nolint:forcetypeassert // nothing else is stored
	}
	sum := sha256.Sum256(appendForm(nil, t, map[reflect.Type]int{}))
	form := string(sum[:16])
	forms.Store(t, form)
	return form
}

func appendForm(b []byte, t reflect.Type, met map[reflect.Type]int) []byte {
	for t.Kind() == reflect.Pointer && !marshals(t) {
		t = t.Elem()
	}
	if n, ok := met[t]; ok {
		return fmt.Appendf(b, "again %d;", n)
	}
	met[t] = len(met)
	if marshals(t) || marshals(reflect.PointerTo(t)) {
		return fmt.Appendf(b, "%v;", t)
	}
	b = fmt.Appendf(b, "%v", t.Kind())
	switch t.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.Slice, reflect.Array:
		b = appendForm(append(b, ' '), t.Elem(), met)
	case reflect.Map:
		b = appendForm(appendForm(append(b, ' '), t.Key(), met), t.Elem(), met)
	case reflect.Struct:
		b = append(b, '{')
		for _, f := range fieldsOf(t) {
			b = fmt.Appendf(b, "%q %t ", f.name, f.quoted)
			b = appendForm(b, t.FieldByIndex(f.index).Type, met)
		}
		b = append(b, '}')
	}
	return append(b, ';')
}
