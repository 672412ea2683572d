package powertools

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// This file writes data as the libraries write it before they hash it.

// appendPython appends the data as json.dumps(data, sort_keys=True) writes it.
func appendPython(b []byte, v *value) []byte {
	switch v.kind {
	case kindNumber:
		return append(b, pythonNumber(v)...)
	case kindString:
		return appendPythonString(b, v.text)
	case kindArray:
		b = append(b, '[')
		for i, element := range v.elements {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendPython(b, element)
		}
		return append(b, ']')
	case kindObject:
		b = append(b, '{')
		for i, m := range sortedMembers(v, strings.Compare) {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendPythonString(b, m.name)
			b = appendPython(append(b, ": "...), m.value)
		}
		return append(b, '}')
	default:
		return appendLiteral(b, v)
	}
}

// pythonNumber returns a number as Python writes it after json.loads has read it: an int with
// all its digits, or a float with the fewest digits that identify it.
func pythonNumber(v *value) string {
	if v.isInteger() {
		if v.text == "-0" {
			return "0"
		}
		return v.text
	}
	f := float(v.text)
	switch abs := math.Abs(f); {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case abs != 0 && (abs < 1e-4 || abs >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return withFraction(strconv.FormatFloat(f, 'f', -1, 64))
}

// withFraction appends ".0" to a number that has no fraction.
func withFraction(number string) string {
	if strings.Contains(number, ".") {
		return number
	}
	return number + ".0"
}

// float returns a number as a float64. A number that is too large is infinite, as it is in
// Python and JavaScript.
func float(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64) // the only possible error is that of a number that is too large
	return f
}

// appendPythonString appends a string in ASCII. A character outside ASCII becomes one \u escape
// for each of its UTF-16 code units.
func appendPythonString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r >= ' ' && r <= '~' && r != '"' && r != '\\':
			b = append(b, byte(r))
		case r < utf8.RuneSelf:
			b = appendEscape(b, r, "%04x")
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		}
	}
	return append(b, '"')
}

// appendEscape appends the escape of a quotation mark, a backslash or a control character.
// hexadecimal is the format of control characters that have no short escape.
func appendEscape(b []byte, r rune, hexadecimal string) []byte {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
		return append(b, '\\', `"\bfnrt`[i])
	}
	return fmt.Appendf(b, `\u`+hexadecimal, r)
}

// appendTypeScript appends the data as JSON.stringify(deepSort(data)) writes it, where deepSort
// is the function of Powertools that sorts the members of objects.
func appendTypeScript(b []byte, v *value) ([]byte, error) {
	var err error
	switch v.kind {
	case kindNumber:
		f := float(v.text)
		switch {
		case math.IsInf(f, 0):
			return append(b, "null"...), nil
		case f == 0: // JavaScript writes -0 as 0
			return append(b, '0'), nil
		}
		text, err := json.Marshal(f) // encoding/json writes a float64 as ECMAScript does
		return append(b, text...), err
	case kindString:
		return appendPlainString(b, v.text, "%04x"), nil
	case kindArray:
		b = append(b, '[')
		for i, element := range v.elements {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendTypeScript(b, element); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case kindObject:
		members, err := typeScriptMembers(v)
		if err != nil {
			return nil, err
		}
		b = append(b, '{')
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendPlainString(b, m.name, "%04x"), ':')
			if b, err = appendTypeScript(b, m.value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	default:
		return appendLiteral(b, v), nil
	}
}

// typeScriptMembers returns the members of an object in the order in which deepSort and
// JSON.stringify leave them: first the names that are array indexes, by number, then the others
// by lower-case name. JavaScript keeps array indexes first whatever the order of insertion
// (ECMA-262, OrdinaryOwnPropertyKeys). A member named __proto__ is dropped: deepSort assigns to
// it, which sets the object's prototype and adds no member.
//
// typeScriptMembers returns an error for a name with a capital letter outside ASCII, because the
// lower case of such a letter depends on the version of Unicode.
func typeScriptMembers(v *value) ([]member, error) {
	for _, name := range v.names {
		for _, r := range name {
			if r >= utf8.RuneSelf && unicode.ToLower(r) != r {
				return nil, fmt.Errorf("the member name %q has the capital letter %q, whose place in the order that Powertools makes is not known; set Selection.ID", name, r)
			}
		}
	}
	members := sortedMembers(v, func(a, b string) int {
		i, aIsIndex := arrayIndex(a)
		j, bIsIndex := arrayIndex(b)
		switch {
		case aIsIndex && bIsIndex:
			return int(i - j)
		case aIsIndex:
			return -1
		case bIsIndex:
			return 1
		}
		return slices.Compare(utf16.Encode([]rune(strings.ToLower(a))), utf16.Encode([]rune(strings.ToLower(b))))
	})
	return slices.DeleteFunc(members, func(m member) bool { return m.name == "__proto__" }), nil
}

// arrayIndex returns the number that a member name stands for, if the name is an array index:
// an integer from 0 to 2^32-2 without leading zeros (ECMA-262, "array index").
func arrayIndex(name string) (int64, bool) {
	i, err := strconv.ParseUint(name, 10, 32)
	return int64(i), err == nil && i < math.MaxUint32 && strconv.FormatUint(i, 10) == name
}

// appendJava appends the data as Jackson's JsonNode.toString writes it.
func appendJava(b []byte, v *value) ([]byte, error) {
	switch v.kind {
	case kindNumber:
		number, err := javaNumber(v)
		return append(b, number...), err
	case kindString:
		return appendPlainString(b, v.text, "%04X"), nil
	case kindArray, kindObject:
		open, closing := byte('['), byte(']')
		if v.kind == kindObject {
			open, closing = '{', '}'
		}
		b = append(b, open)
		for i, element := range v.elements {
			if i > 0 {
				b = append(b, ',')
			}
			if v.kind == kindObject {
				b = append(appendPlainString(b, v.names[i], "%04X"), ':')
			}
			var err error
			if b, err = appendJava(b, element); err != nil {
				return nil, err
			}
		}
		return append(b, closing), nil
	default:
		return appendLiteral(b, v), nil
	}
}

// javaNumber returns a number as Double.toString or BigInteger.toString writes it. It returns an
// error for a double that versions of Java may write differently: before version 19, Java did
// not always write the fewest digits (JDK-4511638).
func javaNumber(v *value) (string, error) {
	if v.isInteger() {
		if v.text == "-0" {
			return "0", nil
		}
		return v.text, nil
	}
	f := float(v.text)
	if f == 0 {
		return withFraction(strconv.FormatFloat(f, 'f', -1, 64)), nil
	}
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(strconv.FormatFloat(f, 'f', -1, 64)), "0")
	if abs := math.Abs(f); abs < 1e-3 || abs >= 1e7 || len(digits) > 15 {
		return "", fmt.Errorf("versions of Java may write the number %s differently; set Selection.ID", v.text)
	}
	return withFraction(strconv.FormatFloat(f, 'f', -1, 64)), nil
}

// appendDotNet appends the data as JsonElement.ToString writes it: the text of the value, except
// that a string has no quotation marks and no escapes, that true and false begin with a capital
// letter, and that null is empty.
func appendDotNet(b []byte, v *value) []byte {
	switch v.kind {
	case kindNull:
		return b
	case kindFalse:
		return append(b, "False"...)
	case kindTrue:
		return append(b, "True"...)
	case kindString, kindNumber:
		return append(b, v.text...)
	default:
		return append(b, v.raw...)
	}
}

// appendLiteral appends null, true or false.
func appendLiteral(b []byte, v *value) []byte {
	return append(b, [...]string{kindNull: "null", kindFalse: "false", kindTrue: "true"}[v.kind]...)
}

// appendPlainString appends a string with as few escapes as JSON allows. hexadecimal is the format
// of control characters that have no short escape.
func appendPlainString(b []byte, s, hexadecimal string) []byte {
	b = append(b, '"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' {
			b = appendEscape(b, r, hexadecimal)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// member is a member of an object.
type member struct {
	name  string
	value *value
}

// sortedMembers returns the members of an object, sorted by name. Members whose names are equal by
// compare keep their order.
func sortedMembers(v *value, compare func(a, b string) int) []member {
	members := make([]member, len(v.names))
	for i, name := range v.names {
		members[i] = member{name, v.elements[i]}
	}
	slices.SortStableFunc(members, func(a, b member) int { return compare(a.name, b.name) })
	return members
}
