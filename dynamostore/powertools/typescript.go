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

// typeScriptMembers returns the members of an object in the order of deepSort and JSON.stringify:
// first the names that are array indexes, such as "12", in numeric order, then the other names,
// compared in lower case. It returns an error for a name with a capital letter outside ASCII,
// because the lower case of such a letter depends on the version of Unicode.
func typeScriptMembers(v *value) ([]member, error) {
	for _, name := range v.names {
		for _, r := range name {
			if r >= utf8.RuneSelf && unicode.ToLower(r) != r {
				return nil, fmt.Errorf("the member name %q has the capital letter %q, whose place in the order that Powertools makes is not known; set Selection.ID", name, r)
			}
		}
	}
	// JavaScript puts array indexes first, in whatever order members are added (ECMA-262,
	// OrdinaryOwnPropertyKeys).
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
	// deepSort drops a member named __proto__: it assigns to obj["__proto__"], which sets the
	// object's prototype and adds no member.
	return slices.DeleteFunc(members, func(m member) bool { return m.name == "__proto__" }), nil
}

// arrayIndex returns the number that a member name stands for, if the name is an array index:
// an integer from 0 to 2^32-2 without leading zeros (ECMA-262, "array index").
func arrayIndex(name string) (int64, bool) {
	i, err := strconv.ParseUint(name, 10, 32)
	return int64(i), err == nil && i < math.MaxUint32 && strconv.FormatUint(i, 10) == name
}
