package powertools

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
