package canon_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value as F3 defines equality: the order of members doesn't matter, numbers are
// compared by their text, and strings by their code points.
type value struct {
	kind    byte // the kind as in jsontext.Kind: n f t " 0 { [
	text    string
	members map[string]*value
	items   []*value
}

// parse reads src with jsontext, which shares no code with package canon.
func parse(src []byte) (*value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(src))
	v, err := parseNext(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("after the value: %w", err)
	}
	return v, nil
}

func parseNext(d *jsontext.Decoder) (*value, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &value{kind: byte(tok.Kind())}
	switch v.kind {
	case '{':
		v.members = map[string]*value{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if v.members[key], err = parseNext(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
	case '[':
		for d.PeekKind() != ']' {
			item, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		_, err = d.ReadToken()
	default:
		v.text = tok.String()
	}
	return v, err
}

// nameVariants reports whether an object in v has two names that some JSON reader treats as the
// same. It compares every pair of names, so v should be small.
func (v *value) nameVariants() bool {
	if anySameName(v.names()) {
		return true
	}
	return slices.ContainsFunc(v.children(), (*value).nameVariants)
}

// anySameName reports whether some JSON reader treats two of the names as the same.
func anySameName(names []string) bool {
	for i, a := range names {
		for _, b := range names[:i] {
			if sameName(a, b) {
				return true
			}
		}
	}
	return false
}

// sameName reports whether some JSON reader treats a and b as the same name. It implements the same
// rule as Append, in another way.
func sameName(a, b string) bool {
	return strings.EqualFold(plainName(a), plainName(b))
}

var (
	ignored = strings.NewReplacer("_", "", "-", "")
	anyI    = regexp.MustCompile(`[iIİı]\x{307}*`)
)

func plainName(name string) string {
	return anyI.ReplaceAllString(ignored.Replace(name), "i")
}

// mostMembers returns the number of members of the largest object in v.
func (v *value) mostMembers() int {
	most := len(v.members)
	for _, child := range v.children() {
		most = max(most, child.mostMembers())
	}
	return most
}

// depth returns the maximum nesting of arrays and objects in v.
func (v *value) depth() int {
	if v.kind != '{' && v.kind != '[' {
		return 0
	}
	deepest := 0
	for _, child := range v.children() {
		deepest = max(deepest, child.depth())
	}
	return deepest + 1
}

func (v *value) names() []string {
	var names []string
	for name := range v.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (v *value) children() []*value {
	children := slices.Clone(v.items)
	for _, name := range v.names() {
		children = append(children, v.members[name])
	}
	return children
}

// spell returns v as JSON, with order of members, white space and escapes chosen by rng.
func (v *value) spell(rng *rand.Rand) []byte {
	return append(v.appendTo(space(nil, rng), rng), space(nil, rng)...)
}

func (v *value) appendTo(dst []byte, rng *rand.Rand) []byte {
	switch v.kind {
	case '{':
		dst = append(dst, '{')
		names := v.names()
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = space(quote(space(dst, rng), name, rng), rng)
			dst = space(append(dst, ':'), rng)
			dst = space(v.members[name].appendTo(dst, rng), rng)
		}
		return append(space(dst, rng), '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = space(item.appendTo(space(dst, rng), rng), rng)
		}
		return append(space(dst, rng), ']')
	case '"':
		return quote(dst, v.text, rng)
	}
	return append(dst, v.text...)
}

func space(dst []byte, rng *rand.Rand) []byte {
	for rng.IntN(3) == 0 {
		dst = append(dst, " \t\r\n"[rng.IntN(4)])
	}
	return dst
}

// quote appends s as a JSON string. rng chooses how each rune is spelled.
func quote(dst []byte, s string, rng *rand.Rand) []byte {
	const short = "\"\\/\b\f\n\r\t"
	dst = append(dst, '"')
	for _, r := range s {
		i := strings.IndexRune(short, r)
		switch {
		case i >= 0 && (r != '/' || rng.IntN(2) == 0) && rng.IntN(2) == 0:
			dst = append(dst, '\\', `"\/bfnrt`[i])
		case r < ' ' || r == '"' || r == '\\' || rng.IntN(4) == 0:
			format := []string{`\u%04x`, `\u%04X`}[rng.IntN(2)]
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				dst = fmt.Appendf(dst, format, high)
				r = low
			}
			dst = fmt.Appendf(dst, format, r)
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// mutate changes v or one value inside it, chosen by rng. The result is always a different value by
// the rules of F3.
func (v *value) mutate(rng *rand.Rand) {
	if children := v.children(); len(children) > 0 && rng.IntN(4) > 0 {
		children[rng.IntN(len(children))].mutate(rng)
		return
	}
	switch v.kind {
	case '{':
		names := v.names()
		fresh := "new"
		for slices.ContainsFunc(names, func(name string) bool { return sameName(name, fresh) }) {
			fresh += "er"
		}
		added := &value{kind: 'n', text: "null"}
		if len(names) > 0 && rng.IntN(2) == 0 { // rename a member
			old := names[rng.IntN(len(names))]
			added = v.members[old]
			delete(v.members, old)
		}
		v.members[fresh] = added
	case '[':
		v.items = append(v.items, &value{kind: 't', text: "true"})
	case '"':
		runes := []rune(v.text)
		switch i := rng.IntN(len(runes) + 1); {
		case i == len(runes):
			v.text += "\x00"
		case rng.IntN(2) == 0:
			v.text = string(slices.Delete(runes, i, i+1))
		default:
			runes[i] ^= 1 // flipping this bit never makes a surrogate
			v.text = string(runes)
		}
	case '0':
		switch {
		case strings.ContainsAny(v.text, "eE"):
			v.text += "0"
		case strings.Contains(v.text, "."):
			v.text += []string{"0", "e0"}[rng.IntN(2)]
		case rng.IntN(2) == 0 || strings.HasSuffix(v.text, "0"):
			v.text += []string{".0", "e0", "E0"}[rng.IntN(3)]
		default:
			v.text += fmt.Sprint(rng.IntN(10))
		}
	default:
		*v = value{kind: '"', text: v.text} // the string "null" is not the value null
	}
}
