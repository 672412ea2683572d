package emf

import (
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/measure"
)

// appendDimension appends the value of a dimension. It replaces a blank value with "(none)",
// because CloudWatch rejects blank values.
func appendDimension(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = measure.None
	}
	return appendText(b, text, maxDimension)
}

// appendText appends a text to a JSON string, but at most maxBytes bytes: a longer text is cut.
// CloudWatch accepts only printable ASCII in the value of a dimension. Every other byte, and what
// JSON would escape, is written as %XX.
func appendText(b []byte, text string, maxBytes int) []byte {
	const digits = "0123456789ABCDEF"
	end := len(b) + maxBytes
	for _, c := range []byte(text) {
		plain := ' ' <= c && c < 0x7f && c != '"' && c != '\\'
		switch {
		case plain && len(b) < end:
			b = append(b, c)
		case !plain && len(b)+2 < end:
			b = append(b, '%', digits[c>>4], digits[c&15])
		default:
			return b
		}
	}
	return b
}

// The maximum lengths, in bytes, of strings in a document, the line of JSON that the Observer
// writes. Longer strings are cut.
const (
	maxDimension = 1024 // CloudWatch's limit for the value of a dimension
	maxRecord    = 128  // for a record's id, which is always shorter
)
