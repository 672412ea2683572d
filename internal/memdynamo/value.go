package memdynamo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The types of an attribute value, as the protocol writes them.
const (
	TypeString    = "S"
	TypeNumber    = "N"
	TypeBinary    = "B"
	TypeBool      = "BOOL"
	TypeNull      = "NULL"
	TypeList      = "L"
	TypeMap       = "M"
	TypeStringSet = "SS"
	TypeNumberSet = "NS"
	TypeBinarySet = "BS"
)

// maxDepth is the maximum nesting depth of lists and maps ("Constraints", Nested attribute
// depth).
const maxDepth = 32

// Value is one attribute value. Values are shared between items and snapshots, so they must not
// be modified.
type Value struct {
	Type string           // one of the Type constants
	Text string           // TypeString; TypeNumber as plain decimal text; TypeBinary as raw bytes
	Bool bool             // TypeBool
	List []Value          // TypeList
	Map  map[string]Value // TypeMap
	Set  []string         // the three types of sets, with sorted elements in the form of Text
}

// Item is an item of a table, or a key. It must not be modified.
type Item map[string]Value

// String returns a value of type S.
func String(text string) Value { return Value{Type: TypeString, Text: text} }

// Number returns a value of type N.
func Number(n int64) Value { return Value{Type: TypeNumber, Text: strconv.FormatInt(n, 10)} }

// severalTypes is the Type of a value that was sent with more than one type. The method checked
// refuses such a value.
const severalTypes = "several"

// errSerialization means that the body does not follow the protocol.
var errSerialization = errors.New("malformed attribute value")

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

// String returns the value in the protocol's form, for messages and timelines.
func (v Value) String() string {
	b, err := v.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// String returns the item in the protocol's form, attributes in the order of their
// names.
func (i Item) String() string {
	b, err := json.Marshal(i)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// checked returns the value as DynamoDB stores it, with numbers in plain form and sets in order.
// It returns an error if DynamoDB would refuse the value.
func (v Value) checked() (Value, error) { return v.checkedAt(0) }

func (v Value) checkedAt(depth int) (Value, error) {
	if depth >= maxDepth {
		return v, invalidf("Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit")
	}
	switch v.Type {
	case "":
		return v, invalidf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case severalTypes:
		return v, invalidf("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case TypeNull:
		if !v.Bool {
			return v, invalidf("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return Value{Type: TypeNull}, nil
	case TypeNumber:
		n, err := parseNumber(v.Text)
		if errors.Is(err, errNumberSyntax) {
			return v, fmt.Errorf("%w: %s", err, v.Text)
		}
		return numberValue(n), err
	case TypeList:
		list := make([]Value, len(v.List))
		for i, e := range v.List {
			e, err := e.checkedAt(depth + 1)
			if err != nil {
				return v, err
			}
			list[i] = e
		}
		return Value{Type: TypeList, List: list}, nil
	case TypeMap:
		m := make(map[string]Value, len(v.Map))
		for _, name := range slices.Sorted(maps.Keys(v.Map)) {
			if name == "" {
				return v, invalidf("Empty attribute name")
			}
			e, err := v.Map[name].checkedAt(depth + 1)
			if err != nil {
				return v, err
			}
			m[name] = e
		}
		return Value{Type: TypeMap, Map: m}, nil
	case TypeStringSet, TypeNumberSet, TypeBinarySet:
		return v.checkedSet()
	}
	return v, nil
}

func (v Value) checkedSet() (Value, error) {
	const invalid = "One or more parameter values were invalid: "
	if len(v.Set) == 0 {
		kind := map[string]string{
			TypeStringSet: "An string set  may not be empty",
			TypeNumberSet: "An number set  may not be empty",
			TypeBinarySet: "Binary sets should not be empty",
		}[v.Type]
		return v, validationError(invalid + kind)
	}
	set := make([]string, len(v.Set))
	for i, e := range v.Set {
		if v.Type == TypeNumberSet {
			n, err := parseNumber(e)
			if errors.Is(err, errNumberSyntax) {
				return v, fmt.Errorf("%w: %s", err, e)
			}
			if err != nil {
				return v, err
			}
			e = n.String()
		}
		set[i] = e
	}
	out := newSet(v.Type, set)
	if len(out.Set) == len(v.Set) {
		return out, nil
	}
	switch v.Type {
	case TypeStringSet:
		return v, invalidf("%sInput collection [%s] contains duplicates.", invalid, strings.Join(v.Set, ", "))
	case TypeNumberSet:
		return v, invalidf("Input collection contains duplicates")
	default:
		texts := make([]string, len(v.Set))
		for i, e := range v.Set {
			texts[i] = base64.StdEncoding.EncodeToString([]byte(e))
		}
		return v, invalidf("%sInput collection [%s]of type BS contains duplicates.", invalid, strings.Join(texts, ", "))
	}
}

// newSet returns a set with these elements, without duplicates. Elements are sorted by value in
// number sets, and by bytes in other sets.
func newSet(typ string, elements []string) Value {
	set := slices.Clone(elements)
	if typ == TypeNumberSet {
		slices.SortFunc(set, func(a, b string) int { return mustNumber(a).cmp(mustNumber(b)) })
	} else {
		slices.Sort(set)
	}
	return Value{Type: typ, Set: slices.Compact(set)}
}

func numberValue(n number) Value { return Value{Type: TypeNumber, Text: n.String()} }

// mustNumber parses the text of a number that was checked before. It panics on an error.
func mustNumber(text string) number {
	n, err := parseNumber(text)
	if err != nil {
		panic(fmt.Sprintf("memdynamo: stored number %q: %v", text, err))
	}
	return n
}

// checkedItem returns the item with all its attributes checked.
func checkedItem(item Item) (Item, error) {
	out := make(Item, len(item))
	for _, name := range slices.Sorted(maps.Keys(item)) {
		if name == "" {
			return nil, invalidf("Empty attribute name")
		}
		v, err := item[name].checked()
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// equal implements DynamoDB's operator =: the types and the values must be equal, at every depth.
// Both values were checked, so equal numbers and sets have equal texts.
func (v Value) equal(w Value) bool {
	if v.Type != w.Type {
		return false
	}
	switch v.Type {
	case TypeList:
		return slices.EqualFunc(v.List, w.List, Value.equal)
	case TypeMap:
		return maps.EqualFunc(v.Map, w.Map, Value.equal)
	default:
		return v.Text == w.Text && v.Bool == w.Bool && slices.Equal(v.Set, w.Set)
	}
}

// compare compares two values of the same type: strings and binary values by bytes, and numbers
// by value. ok is false if the types differ or have no order.
//
// Strings are ordered by their UTF-8 bytes, as AWS documents. DynamoDB Local orders them by
// UTF-16 code units. The two orders differ only between a character beyond U+FFFF and one from
// U+E000 to U+FFFF.
func (v Value) compare(w Value) (c int, ok bool) {
	if v.Type != w.Type {
		return 0, false
	}
	switch v.Type {
	case TypeString, TypeBinary:
		return strings.Compare(v.Text, w.Text), true
	case TypeNumber:
		return mustNumber(v.Text).cmp(mustNumber(w.Text)), true
	}
	return 0, false
}

// length implements DynamoDB's function size. ok is false if the type has no size. AWS does not
// document the unit for strings; here, as in DynamoDB Local, it is the UTF-16 code unit.
func (v Value) length() (n int, ok bool) {
	switch v.Type {
	case TypeString:
		return utf16Length(v.Text), true
	case TypeBinary:
		return len(v.Text), true
	case TypeList:
		return len(v.List), true
	case TypeMap:
		return len(v.Map), true
	case TypeStringSet, TypeNumberSet, TypeBinarySet:
		return len(v.Set), true
	}
	return 0, false
}

func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// contains implements DynamoDB's function contains.
func (v Value) contains(w Value) bool {
	switch v.Type {
	case TypeString, TypeBinary:
		return w.Type == v.Type && strings.Contains(v.Text, w.Text)
	case TypeStringSet, TypeNumberSet, TypeBinarySet:
		return w.Type+"S" == v.Type && slices.Contains(v.Set, w.Text)
	case TypeList:
		return slices.ContainsFunc(v.List, w.equal)
	}
	return false
}

// Size returns the item's size in bytes by AWS's rule ("DynamoDB Item sizes and formats"): the
// sum of the sizes of names and values. Capacity and the limit of 400 KB are based on it. The
// size of an absent item is 0.
func (i Item) Size() int {
	size := 0
	for name, v := range i {
		size += len(name) + v.size()
	}
	return size
}

func (v Value) size() int {
	const perDocument, perElement = 3, 1
	switch v.Type {
	case TypeString, TypeBinary:
		return len(v.Text)
	case TypeNumber:
		return mustNumber(v.Text).size()
	case TypeList:
		size := perDocument
		for _, e := range v.List {
			size += perElement + e.size()
		}
		return size
	case TypeMap:
		size := perDocument
		for name, e := range v.Map {
			size += perElement + len(name) + e.size()
		}
		return size
	case TypeStringSet, TypeBinarySet:
		size := 0
		for _, e := range v.Set {
			size += len(e)
		}
		return size
	case TypeNumberSet:
		size := 0
		for _, e := range v.Set {
			size += mustNumber(e).size()
		}
		return size
	}
	return 1 // BOOL, NULL
}

// literal returns the value as in DynamoDB's messages, such as {N:2}.
func (v Value) literal() string {
	text := v.Text
	if v.Type == TypeBinary {
		text = base64.StdEncoding.EncodeToString([]byte(v.Text))
	}
	return "{" + v.Type + ":" + text + "}"
}
