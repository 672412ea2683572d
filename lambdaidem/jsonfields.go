package lambdaidem

import (
	"cmp"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// This file applies the rules of encoding/json about embedded structs: which fields appear
// in the JSON of a struct, and which are missing from it although no tag omits them.

// jsonField is a field that encoding/json considers when it writes a struct.
type jsonField struct {
	name      string // name in JSON
	index     []int  // for reflect.Value.FieldByIndex
	tagged    bool   // the name comes from the tag
	omitEmpty bool
	omitZero  bool
	byPointer bool   // the field belongs to a struct that is embedded by pointer
	quoted    bool   // the option "string" applies: the value is written inside a JSON string
	path      string // the Go expression for the field, such as "Base.ID"

	// plainZero and addressableZero return the results of the method zero. They compute them once.
	plainZero, addressableZero func() (text string, omitted bool)
}

// hiddenField describes an exported struct field that encoding/json does not write, although no tag
// omits the field.
type hiddenField struct {
	reason string // which field is missing and why, for an error text
	// shadowed reports whether the field is hidden because encoding/json prefers another field of
	// the same name, which is embedded less deeply or, at the same depth, has its name from a tag.
	// Programmers often shadow a field on purpose.
	shadowed bool
}

// jsonFields returns the fields of the struct type t that encoding/json writes, in the order of the
// struct. It disregards the methods MarshalJSON and MarshalText of t. The result hidden describes
// one exported field that encoding/json does not write, although no tag omits the field. hidden is
// nil if there is no such field. If there are several, jsonFields chooses one that is not shadowed,
// if possible.
func jsonFields(t reflect.Type) (fields []jsonField, hidden *hiddenField) {
	var all []jsonField
	var repeated *hiddenField
	type embedded struct {
		t     reflect.Type
		index []int
		path  string

		byPointer bool // it, or a struct in which it is embedded, is embedded by pointer
	}
	visited := map[reflect.Type]bool{}
	for level := []embedded{{t: t}}; len(level) > 0; {
		var next []embedded
		for _, e := range level {
			if visited[e.t] { // encoding/json does not write an embedded type's fields twice
				repeated = &hiddenField{reason: fmt.Sprintf("JSON shows nothing of %s, since %v is embedded twice", strings.TrimSuffix(e.path, "."), e.t)}
				continue
			}
			visited[e.t] = true
			for i := range e.t.NumField() {
				f := e.t.Field(i)
				tag := f.Tag.Get("json")
				base := indirect(f.Type)
				embeds := f.Anonymous && base.Kind() == reflect.Struct
				if tag == "-" || !f.IsExported() && !embeds {
					continue
				}
				name, options, _ := strings.Cut(tag, ",")
				if !validJSONName(name) {
					name = ""
				}
				index := append(slices.Clone(e.index), i)
				if name == "" && embeds {
					next = append(next, embedded{base, index, e.path + f.Name + ".", e.byPointer || base != f.Type})
					continue
				}
				has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
				field := jsonField{name: cmp.Or(name, f.Name), index: index, tagged: name != "", path: e.path + f.Name,
					omitEmpty: has("omitempty"), omitZero: has("omitzero"), byPointer: e.byPointer}
				switch indirect(f.Type).Kind() { //nolint:exhaustive // encoding/json ignores the option for other kinds
				case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
					reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.String:
					field.quoted = has("string")
				}
				all = append(all, field)
			}
		}
		level = next
	}
	byName := map[string][]jsonField{}
	for _, f := range all { // all is sorted by depth
		byName[f.name] = append(byName[f.name], f)
	}
	for _, f := range all {
		same := byName[f.name]
		slices.SortStableFunc(same, func(a, b jsonField) int {
			return cmp.Or(cmp.Compare(len(a.index), len(b.index)), -cmp.Compare(btoi(a.tagged), btoi(b.tagged)))
		})
		first := same[0]
		switch {
		case len(same) == 1:
			fields = append(fields, f)
		case len(same[1].index) == len(first.index) && same[1].tagged == first.tagged:
			hidden = &hiddenField{reason: fmt.Sprintf("JSON shows neither %s nor %s, since both are called %q", first.path, same[1].path, f.name)}
		case slices.Equal(first.index, f.index):
			fields = append(fields, f)
			if hidden == nil || hidden.shadowed {
				hidden = &hiddenField{shadowed: true, reason: fmt.Sprintf("JSON shows %s and not %s, since both are called %q", first.path, same[1].path, f.name)}
			}
		}
	}
	slices.SortFunc(fields, func(a, b jsonField) int { return slices.Compare(a.index, b.index) })
	if repeated != nil && (hidden == nil || hidden.shadowed) {
		hidden = repeated
	}
	return fields, hidden
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// validJSONName reports whether encoding/json accepts s as a name in a struct tag.
func validJSONName(s string) bool {
	if s == "" {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c)
	})
}

// promoted returns the embedded field from which the struct type t gets its MarshalJSON or
// MarshalText method. encoding/json then writes only that field. The result ok is false if there is
// no such field, or if t has no other field to write, so that nothing is lost.
func promoted(t reflect.Type) (field reflect.StructField, ok bool) {
	method := "MarshalJSON"
	of := t
	switch {
	case t.Implements(jsonMarshaler):
	case reflect.PointerTo(t).Implements(jsonMarshaler):
		of = reflect.PointerTo(t)
	case t.Implements(textMarshaler):
		method = "MarshalText"
	case reflect.PointerTo(t).Implements(textMarshaler):
		method, of = "MarshalText", reflect.PointerTo(t)
	default:
		return field, false
	}
	m, _ := of.MethodByName(method)
	// reflect can't distinguish a promoted method from a declared one. But the compiler
	// generates the code of a promoted method, and names "<autogenerated>" as its source file.
	f := runtime.FuncForPC(m.Func.Pointer())
	if f == nil {
		return field, false
	}
	if file, _ := f.FileLine(f.Entry()); file != "<autogenerated>" {
		return field, false
	}
	others := false
	for i := range t.NumField() {
		f := t.Field(i)
		_, direct := f.Type.MethodByName(method)
		_, byPointer := reflect.PointerTo(f.Type).MethodByName(method)
		switch {
		case f.Anonymous && (direct || byPointer) && !ok:
			field, ok = f, true
		case isWritten(f) && (!f.Anonymous || !hides(indirect(f.Type))): // don't count an embedded struct that JSON never shows, such as sync.Mutex
			others = true
		}
	}
	return field, ok && others
}

var hiddenFields sync.Map // results of hiddenIn: reflect.Type to *hiddenField

// hiddenIn returns an exported field of t, or of a type that t contains, that encoding/json does
// not write, although no tag omits it. For example, two embedded structs have fields with the same
// name. hiddenIn returns nil if there is no such field. It does not examine the values of
// interfaces. It caches the result for each type.
func hiddenIn(t reflect.Type) *hiddenField {
	if t == nil {
		return nil
	}
	if known, ok := hiddenFields.Load(t); ok {
		return known.(*hiddenField) //nolint:forcetypeassert // nothing else is stored
	}
	found := findHidden(t, map[reflect.Type]bool{})
	hiddenFields.Store(t, found)
	return found
}

// hiddenFrom returns the reason why encoding/json does not write the field that hiddenIn(t)
// returns, or "" if hiddenIn(t) is nil. For a shadowed field it returns "" unless strict is true.
func hiddenFrom(t reflect.Type, strict bool) string {
	if found := hiddenIn(t); found != nil && (strict || !found.shadowed) {
		return found.reason
	}
	return ""
}

func findHidden(t reflect.Type, met map[reflect.Type]bool) *hiddenField {
	if met[t] {
		return nil
	}
	met[t] = true
	switch t.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.Pointer:
		return findHidden(t.Elem(), met)
	case reflect.Struct:
		if field, ok := promoted(t); ok {
			return &hiddenField{reason: fmt.Sprintf("JSON shows nothing of %v but the %v embedded in it, whose method makes all of the JSON; "+
				"give that field a name, or the type a MarshalJSON of its own", t, field.Type)}
		}
	}
	if marshals(t) || marshals(reflect.PointerTo(t)) {
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // no other kind holds anything
	case reflect.Slice, reflect.Array:
		return findHidden(t.Elem(), met)
	case reflect.Map:
		return worse(findHidden(t.Key(), met), findHidden(t.Elem(), met))
	case reflect.Struct:
		fields, hidden := jsonFields(t)
		if hidden != nil {
			hidden.reason = fmt.Sprintf("of %v %s; give one of them another name", t, hidden.reason)
		}
		for _, f := range fields {
			hidden = worse(hidden, findHidden(t.FieldByIndex(f.index).Type, met))
		}
		return hidden
	}
	return nil
}

// worse returns one of two hidden fields. It prefers a field that is not shadowed, because such a
// field is more likely to be hidden by mistake, and otherwise the first field. If one field is nil,
// worse returns the other field.
func worse(a, b *hiddenField) *hiddenField {
	if a == nil || b != nil && a.shadowed && !b.shadowed {
		return b
	}
	return a
}
