package lowlevel

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Reader reads JSON from left to right. Each method takes one thing, with the
// white space before it, or reports false: then the text is given up.
//
// What it returns shares its memory with the text, but for what was escaped.
type Reader struct {
	text string
	at   int
}

// maxDepth bounds nested values: DynamoDB has up to 32 levels (AWS, "Quotas in
// Amazon DynamoDB").
const maxDepth = 40

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

// take takes the character, if it comes next.
func (r *Reader) take(c byte) bool {
	r.space()
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// word takes the word.
func (r *Reader) word(w string) bool {
	r.space()
	if !strings.HasPrefix(r.text[r.at:], w) {
		return false
	}
	r.at += len(w)
	return true
}

// end tells whether nothing more comes.
func (r *Reader) end() bool {
	r.space()
	return r.at == len(r.text)
}

// object takes an object; member takes each member's value.
func (r *Reader) object(member func(name string) bool) bool {
	return r.sequence('{', '}', func() bool {
		name, ok := r.str()
		return ok && r.take(':') && member(name)
	})
}

// sequence takes what stands between two brackets, separated by commas.
func (r *Reader) sequence(opens, closes byte, one func() bool) bool {
	if !r.take(opens) {
		return false
	}
	if r.take(closes) {
		return true
	}
	for one() {
		if r.take(closes) {
			return true
		}
		if !r.take(',') {
			return false
		}
	}
	return false
}

// str takes a text.
func (r *Reader) str() (string, bool) {
	if !r.take('"') {
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

// attributes takes an object of attribute values.
func (r *Reader) attributes(depth int) (Attributes, bool) {
	const usual = 14 // in an item of ours; a map of more is twice the size
	attrs := make(Attributes, usual)
	ok := r.object(func(name string) bool {
		v, ok := r.value(depth)
		if _, twice := attrs[name]; !ok || twice {
			return false
		}
		attrs[name] = v
		return true
	})
	return attrs, ok
}

// value takes an attribute value: an object whose one member says its type.
func (r *Reader) value(depth int) (v types.AttributeValue, ok bool) {
	if depth > maxDepth || !r.take('{') {
		return nil, false
	}
	kind, ok := r.str()
	if !ok || !r.take(':') {
		return nil, false
	}
	switch kind {
	case "S":
		var s string
		s, ok = r.str()
		v = &types.AttributeValueMemberS{Value: s}
	case "N":
		var s string
		s, ok = r.str()
		v = &types.AttributeValueMemberN{Value: s}
	case "B":
		var data []byte
		data, ok = r.binary()
		v = &types.AttributeValueMemberB{Value: data}
	case "BOOL":
		var is bool
		is, ok = r.boolean()
		v = &types.AttributeValueMemberBOOL{Value: is}
	case "NULL":
		var is bool
		is, ok = r.boolean()
		v = &types.AttributeValueMemberNULL{Value: is}
	case "M":
		var m Attributes
		m, ok = r.attributes(depth + 1)
		v = &types.AttributeValueMemberM{Value: m}
	case "L":
		var l []types.AttributeValue
		l, ok = list(r, func() (types.AttributeValue, bool) { return r.value(depth + 1) })
		v = &types.AttributeValueMemberL{Value: l}
	case "SS":
		var s []string
		s, ok = list(r, r.str)
		v = &types.AttributeValueMemberSS{Value: s}
	case "NS":
		var s []string
		s, ok = list(r, r.str)
		v = &types.AttributeValueMemberNS{Value: s}
	case "BS":
		var s [][]byte
		s, ok = list(r, r.binary)
		v = &types.AttributeValueMemberBS{Value: s}
	default:
		return nil, false
	}
	return v, ok && r.take('}')
}

func (r *Reader) binary() ([]byte, bool) {
	s, ok := r.str()
	if !ok {
		return nil, false
	}
	return Binary(s)
}

// Binary is the bytes of a text in base64.
func Binary(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // which the decoder would pass over
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil
}

func (r *Reader) boolean() (is, ok bool) {
	if r.word("true") {
		return true, true
	}
	return false, r.word("false")
}

// Value takes an attribute value.
func (r *Reader) Value() (types.AttributeValue, bool) { return r.value(0) }

// Scalar takes an attribute value of type S, N or B, as the text that stands for
// it: a binary one in base64.
func (r *Reader) Scalar() (kind, text string, ok bool) {
	if !r.take('{') {
		return "", "", false
	}
	kind, ok = r.str()
	if !ok || kind != "S" && kind != "N" && kind != "B" || !r.take(':') {
		return "", "", false
	}
	text, ok = r.str()
	return kind, text, ok && r.take('}')
}

func list[T any](r *Reader, one func() (T, bool)) ([]T, bool) {
	members := []T{}
	ok := r.sequence('[', ']', func() bool {
		m, ok := one()
		members = append(members, m)
		return ok
	})
	return members, ok
}
