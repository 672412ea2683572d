package memdynamo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
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

func numberValue(n number) Value { return Value{Type: TypeNumber, Text: n.String()} }

// mustNumber parses the text of a number that was checked before. It panics on an error.
func mustNumber(text string) number {
	n, err := parseNumber(text)
	if err != nil {
		panic(fmt.Sprintf("memdynamo: stored number %q: %v", text, err))
	}
	return n
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

// literal returns the value as in DynamoDB's messages, such as {N:2}.
func (v Value) literal() string {
	text := v.Text
	if v.Type == TypeBinary {
		text = base64.StdEncoding.EncodeToString([]byte(v.Text))
	}
	return "{" + v.Type + ":" + text + "}"
}
