// Package jsonread reads JSON that programs of this project wrote, or DynamoDB did,
// as quickly as it can be read. It is strict: what is unusual it gives up, and its
// callers have a generous reader for that.
package jsonread

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Reader reads JSON from left to right. Each method takes one thing, with the
// white space before it, or reports false: then the text is given up.
//
// What it returns shares its memory with the text, but for what was escaped.
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

// Take takes the character, if it comes next.
func (r *Reader) Take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// Word takes the word.
func (r *Reader) Word(w string) bool {
	r.space()
	if !strings.HasPrefix(r.text[r.at:], w) {
		return false
	}
	r.at += len(w)
	return true
}

// End tells whether nothing more comes.
func (r *Reader) End() bool {
	r.space()
	return r.at == len(r.text)
}

// Object takes an object; member takes each member's value.
func (r *Reader) Object(member func(name string) bool) bool {
	return r.Sequence('{', '}', func() bool {
		name, ok := r.Text()
		return ok && r.Take(':') && member(name)
	})
}

// Sequence takes what stands between two brackets, separated by commas.
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

// Text takes a text.
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
			return r.escaped(i)
		case c < ' ':
			return "", false
		default:
			all |= c
		}
	}
	return "", false
}

// escaped takes the rest of a text whose first escape stands i bytes further on.
func (r *Reader) escaped(i int) (string, bool) {
	var b strings.Builder
	rest := r.text[r.at:]
	b.Grow(closing(rest, i)) // no escape is shorter than what it stands for
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
		case i+1 < len(rest) && short[rest[i+1]] != 0:
			b.WriteByte(short[rest[i+1]])
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

// closing returns where the quote stands that ends a text whose first escape stands at i.
// If there is none, it is the end, or a byte after it.
func closing(text string, i int) int {
	for i < len(text) && text[i] != '"' {
		if text[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

// short is what the escapes of two characters stand for, by the second of them.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape returns the character that an escape of hexadecimal digits stands for, and the
// escape's size in bytes: 0, if it is none.
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

// hex4 returns the number that follows a backslash and a u.
func hex4(text string) (rune, bool) {
	digits, ok := strings.CutPrefix(text, `\u`)
	if !ok || len(digits) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[:4], 16, 16)
	return rune(n), err == nil
}

// Int takes a whole number as encoding/json writes it, of up to nine digits.
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

// Bool takes true or false.
func (r *Reader) Bool() (is, ok bool) {
	if r.Word("true") {
		return true, true
	}
	return false, r.Word("false")
}

// List takes an array; one takes each member.
func List[T any](r *Reader, one func() (T, bool)) ([]T, bool) {
	members := []T{}
	ok := r.Sequence('[', ']', func() bool {
		m, ok := one()
		members = append(members, m)
		return ok
	})
	return members, ok
}
