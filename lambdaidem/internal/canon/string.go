package canon

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads the string whose opening quote is at s.pos, and adds its canonical form to the
// output. It returns false if the string is invalid. The canonical form escapes only quotes,
// backslashes and control characters, each in the shortest way and with lower-case hexadecimal
// digits.
func (s *scanner) string() bool {
	src := s.src
	i := s.pos + 1
	for {
		i = plain(src, i)
		if i == len(src) {
			return false
		}
		switch src[i] {
		case '"':
			s.pos = i + 1
			return true
		case '\\':
			r, size := unescape(src[i:])
			if size == 0 {
				return false
			}
			s.pos = i
			s.flush()
			s.buf = appendEscaped(s.buf, r)
			i += size
			s.copyPos = i
		default: // a control character
			return false
		}
	}
}

// plain returns the position of the first byte in src[i:] that has a special meaning in a
// JSON string or is not allowed in one: a quote, a backslash or a control character. It
// returns len(src) if there is none.
func plain(src []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	for ; i+8 <= len(src); i += 8 {
		// Check eight bytes at once. The variable quote has a 0 byte wherever w has a quotation
		// mark, and the variable backslash has one wherever w has a backslash. Subtracting 1 from a
		// 0 byte sets its high bit, and so does subtracting a space from a control character. Only
		// the first marked byte counts, because a borrow may mark later bytes wrongly.
		w := binary.LittleEndian.Uint64(src[i:])
		quote, backslash := w^('"'*ones), w^('\\'*ones)
		found := (quote-ones)&^quote | (backslash-ones)&^backslash | (w-' '*ones)&^w
		if found &= highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' {
		i++
	}
	return i
}

// unescape decodes the escape at the start of src. It returns the code point and the length
// of the escape, including both halves of a surrogate pair. The length is 0 if there is no
// valid escape.
func unescape(src []byte) (rune, int) {
	if len(src) < 2 {
		return 0, 0
	}
	switch c := src[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(src)
		if !utf16.IsSurrogate(r) {
			if r < 0 {
				return 0, 0
			}
			return r, 6
		}
		// DecodeRune returns U+FFFD unless the two escapes are a valid surrogate pair.
		if r = utf16.DecodeRune(r, hex4(src[6:])); r == utf8.RuneError {
			return 0, 0
		}
		return r, 12
	}
	return 0, 0
}

// hex4 returns the number in the escape \uXXXX at the start of src, or -1 if there is no
// such escape.
func hex4(src []byte) rune {
	if len(src) < 6 || src[0] != '\\' || src[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range src[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendEscaped appends r as the canonical form writes it in a string.
func appendEscaped(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if r < ' ' {
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	}
	return utf8.AppendRune(dst, r)
}
