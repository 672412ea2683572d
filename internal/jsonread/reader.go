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
	rest := r.text[r.at:]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			r.at += i + 1
			return rest[:i], utf8.ValidString(rest[:i])
		case c == '\\':
			return r.escaped(i)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped takes the rest of a text whose first escape stands i bytes further on.
func (r *Reader) escaped(i int) (string, bool) {
	var b strings.Builder
	b.Grow(closing(r.text[r.at:], i)) // no escape is shorter than what it stands for
	for {
		rest := r.text[r.at:]
		for i < len(rest) && rest[i] != '"' && rest[i] != '\\' && rest[i] >= ' ' {
			i++
		}
		if i >= len(rest) || rest[i] < ' ' {
			return "", false
		}
		b.WriteString(rest[:i])
		r.at += i + 1
		if rest[i] == '"' {
			return b.String(), utf8.ValidString(b.String())
		}
		c, ok := r.escape()
		if !ok {
			return "", false
		}
		b.WriteRune(c)
		i = 0
	}
}

// closing is where the quote stands that ends a text whose first escape stands at i.
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

// escape takes what follows a backslash.
func (r *Reader) escape() (rune, bool) {
	if r.at >= len(r.text) {
		return 0, false
	}
	c := r.text[r.at]
	r.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
	default:
		return 0, false
	}
	unit, ok := r.hex4()
	if !ok || !utf16.IsSurrogate(unit) {
		return unit, ok
	}
	if !strings.HasPrefix(r.text[r.at:], `\u`) {
		return 0, false
	}
	r.at += 2
	low, ok := r.hex4()
	whole := utf16.DecodeRune(unit, low)
	return whole, ok && whole != utf8.RuneError
}

func (r *Reader) hex4() (rune, bool) {
	if len(r.text)-r.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(r.text[r.at:r.at+4], 16, 16)
	r.at += 4
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
