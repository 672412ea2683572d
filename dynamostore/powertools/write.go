package powertools

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file writes data as the libraries write it before they hash it.

// appendEscape appends the escape of a quotation mark, a backslash or a control character.
// hexadecimal is the format, such as "%04x", for control characters that have no short escape.
func appendEscape(b []byte, r rune, hexadecimal string) []byte {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
		return append(b, '\\', `"\bfnrt`[i])
	}
	return fmt.Appendf(b, `\u`+hexadecimal, r)
}

// appendLiteral appends null, true or false.
func appendLiteral(b []byte, v *value) []byte {
	return append(b, [...]string{kindNull: "null", kindFalse: "false", kindTrue: "true"}[v.kind]...)
}

// appendPlainString appends a string with as few escapes as JSON allows. hexadecimal is the format,
// such as "%04x", for control characters that have no short escape.
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

// sortedMembers returns the members of an object, sorted by name with the function compare. If
// compare returns 0 for two names, the two members keep their order.
func sortedMembers(v *value, compare func(a, b string) int) []member {
	members := make([]member, len(v.names))
	for i, name := range v.names {
		members[i] = member{name, v.elements[i]}
	}
	slices.SortStableFunc(members, func(a, b member) int { return compare(a.name, b.name) })
	return members
}
