// Package jsonread parses JSON that was written by this project or by DynamoDB, and is
// optimized for speed. It rejects JSON that these writers do not produce, even if it is
// valid. For JSON that it rejects, a caller needs a second, complete parser, such as
// encoding/json.
package jsonread

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Reader parses a JSON text from left to right. Each method consumes one token or value,
// and the white space before it. If a method that parses a value reports false, the text
// is rejected: the position is then undefined, and the Reader must not be used any more.
//
// The strings that it returns share memory with the text, except those that contained
// escapes.
type Reader struct {
	text string
	at   int
}

// New returns a reader of the text.
func New(text string) Reader { return Reader{text: text} }

func (r *Reader) space() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// Take consumes the character c and reports whether it came next. If it did not, only
// white space is consumed.
func (r *Reader) Take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// Word consumes the literal w, such as null, and reports whether it came next. If it did
// not, only white space is consumed.
func (r *Reader) Word(w string) bool {
	r.space()
	if !strings.HasPrefix(r.text[r.at:], w) {
		return false
	}
	r.at += len(w)
	return true
}

// End reports whether nothing but white space is left.
func (r *Reader) End() bool {
	r.space()
	return r.at == len(r.text)
}

// Object parses an object. It calls member with the name of each member; member must
// parse the member's value, and report false to reject the text.
func (r *Reader) Object(member func(name string) bool) bool {
	return r.Sequence('{', '}', func() bool {
		name, ok := r.Text()
		return ok && r.Take(':') && member(name)
	})
}

// Sequence parses comma-separated values between the brackets opens and closes. It calls
// one to parse each value; one must report false to reject the text.
func (r *Reader) Sequence(opens, closes byte, one func() bool) bool {
	if !r.Take(opens) {
		return false
	}
	if r.Take(closes) {
		return true
	}
	for one() {
		if r.Take(closes) {
			return true
		}
		if !r.Take(',') {
			return false
		}
	}
	return false
}

// Text parses a string. It rejects strings that are not valid UTF-8, and escapes of
// unpaired surrogates.
func (r *Reader) Text() (string, bool) {
	if !r.Take('"') {
		return "", false
	}
	rest, all := r.text[r.at:], byte(0)
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			r.at += i + 1
			return rest[:i], all < utf8.RuneSelf || utf8.ValidString(rest[:i])
		case c == '\\':
			return r.escapedText(i)
		case c < ' ':
			return "", false
		default:
			all |= c
		}
	}
	return "", false
}

// escapedText parses the rest of a string after its opening quote. Its first escape
// begins i bytes after the reader's position.
func (r *Reader) escapedText(i int) (string, bool) {
	var b strings.Builder
	rest := r.text[r.at:]
	b.Grow(closingQuote(rest, i)) // an escape is never shorter than the character that it encodes
	b.WriteString(rest[:i])
	for i < len(rest) {
		switch c := rest[i]; {
		case c == '"':
			r.at += i + 1
			return b.String(), utf8.ValidString(b.String())
		case c < ' ':
			return "", false
		case c != '\\':
			b.WriteByte(c)
			i++
		case i+1 < len(rest) && shortEscapes[rest[i+1]] != 0:
			b.WriteByte(shortEscapes[rest[i+1]])
			i += 2
		default:
			unit, size := escape(rest[i:])
			if size == 0 {
				return "", false
			}
			b.WriteRune(unit)
			i += size
		}
	}
	return "", false
}

// closingQuote returns the index of the quote that ends a string whose first escape
// begins at index i. If there is no such quote, it returns len(text) or len(text)+1.
func closingQuote(text string, i int) int {
	for i < len(text) && text[i] != '"' {
		if text[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

// shortEscapes maps the second character of each two-character escape, such as the n of
// \n, to the character that the escape encodes. Other entries are 0.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape decodes the \u escape, or the surrogate pair of two, that text begins with. It
// returns the character and the length of the escape in bytes. The length is 0 if the
// escape is invalid or a surrogate has no partner.
func escape(text string) (rune, int) {
	unit, ok := hex4(text)
	if !ok || !utf16.IsSurrogate(unit) {
		return unit, sizeIf(ok, len(`\uffff`))
	}
	low, ok := hex4(text[len(`\uffff`):])
	whole := utf16.DecodeRune(unit, low)
	return whole, sizeIf(ok && whole != utf8.RuneError, 2*len(`\uffff`))
}

func sizeIf(ok bool, size int) int {
	if ok {
		return size
	}
	return 0
}

// hex4 returns the value of the \u escape that text begins with, and whether text begins
// with one.
func hex4(text string) (rune, bool) {
	digits, ok := strings.CutPrefix(text, `\u`)
	if !ok || len(digits) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[:4], 16, 16)
	return rune(n), err == nil
}

// Int parses an integer of at most nine digits without leading zeros, which is how
// encoding/json writes integers.
func (r *Reader) Int() (int, bool) {
	r.space()
	rest := r.text[r.at:]
	digits := 0
	if strings.HasPrefix(rest, "-") {
		digits = 1
	}
	end := digits
	for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
		end++
	}
	const most = 9
	if n := end - digits; n == 0 || n > most || n > 1 && rest[digits] == '0' {
		return 0, false
	}
	n, err := strconv.Atoi(rest[:end])
	r.at += end
	return n, err == nil
}

// Bool parses true or false. It returns the value, and whether there was one.
func (r *Reader) Bool() (is, ok bool) {
	if r.Word("true") {
		return true, true
	}
	return false, r.Word("false")
}

// List parses an array. It calls one to parse each element, and returns the elements; one
// must report false to reject the text. An empty array gives an empty, non-nil slice.
func List[T any](r *Reader, one func() (T, bool)) ([]T, bool) {
	members := []T{}
	ok := r.Sequence('[', ']', func() bool {
		m, ok := one()
		members = append(members, m)
		return ok
	})
	return members, ok
}
