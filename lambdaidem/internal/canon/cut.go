package canon

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pointers are places in JSON texts, as RFC 6901 names them. They are safe for
// concurrent use. Nil names none.
type Pointers struct{ root place }

// A place is named by the tokens that lead to it.
type place struct {
	named bool // by the last token of a pointer
	// What lies further inside: by a member's name in canonical spelling, and by
	// an element's position for those names that are one too.
	members  map[string]*place
	elements map[int]*place
}

// ParsePointers reads JSON Pointers (RFC 6901). The empty one, which names the
// whole text, is refused.
func ParsePointers(pointers []string) (*Pointers, error) {
	p := &Pointers{}
	for _, pointer := range pointers {
		if err := p.add(pointer); err != nil {
			return nil, fmt.Errorf("%q %w", pointer, err)
		}
	}
	return p, nil
}

func (p *Pointers) add(pointer string) error {
	switch {
	case pointer == "":
		return errors.New("names the whole text")
	case pointer[0] != '/':
		return errors.New(`does not begin with "/" (RFC 6901, section 3)`)
	case !utf8.ValidString(pointer):
		return errors.New("is not UTF-8")
	}
	at := &p.root
	for _, token := range strings.Split(pointer[1:], "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
			return errors.New(`has a "~" that is neither ~0 nor ~1 (RFC 6901, section 3)`)
		}
		at = at.inside(name)
	}
	at.named = true
	return nil
}

// inside returns the place of that name within another.
func (at *place) inside(name string) *place {
	spelled := spell(name)
	next := at.members[spelled]
	if next != nil {
		return next
	}
	next = &place{}
	if at.members == nil {
		at.members = make(map[string]*place)
	}
	at.members[spelled] = next
	// An index has no leading zeros (RFC 6901, section 4), and no sign.
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i <= math.MaxInt32 && strconv.Itoa(i) == name {
		if at.elements == nil {
			at.elements = make(map[int]*place)
		}
		at.elements[i] = next
	}
	return next
}

// spell returns a name as it stands between the quotes of the canonical form.
func spell(name string) string {
	var out []byte
	for _, r := range name {
		out = appendEscaped(out, r)
	}
	return string(out)
}

// Cut takes the members and elements that the pointers name out of a text in
// canonical form, in place, and returns what is left: again in canonical form.
// A pointer that leads nowhere changes nothing. Positions are those in the whole
// text, whatever else is taken out. Time is linear in the length of the text.
//
// Two texts are the same afterwards exactly where they differ in nothing but
// what the pointers name, or in whether that is there: what is left of an array
// stands at positions that no pointer names, so no element takes another's place.
func (p *Pointers) Cut(text []byte) []byte {
	if p == nil || len(p.root.members) == 0 {
		return text
	}
	c := cutter{text: text}
	c.value(&p.root)
	return text[:c.kept]
}

// A cutter moves what is kept of a text to its front. The text is in canonical
// form, so nothing of it is checked.
type cutter struct {
	text []byte
	pos  int // the next byte to be looked at
	kept int // how much of the text is kept so far, never beyond pos
}

// value keeps a value but for what is named in it.
func (c *cutter) value(at *place) {
	switch c.text[c.pos] {
	case '{':
		c.all('}', func(int) *place {
			return at.members[string(c.text[c.pos+1:c.afterString(c.pos)-1])]
		})
	case '[':
		c.all(']', func(i int) *place { return at.elements[i] })
	default:
		c.keep(c.after(c.pos))
	}
}

// all keeps the members of an object, or the elements of an array, but for what
// is named. find is the place of the one at pos, the i-th; nil: there is none.
func (c *cutter) all(closing byte, find func(i int) *place) {
	c.keep(c.pos + 1)
	first := c.kept
	for i := 0; c.text[c.pos] != closing; i++ {
		at := find(i)
		value := c.pos
		if closing == '}' {
			value = c.afterString(c.pos) + 1
		}
		if at != nil && at.named {
			c.pos = c.after(value)
		} else {
			if c.kept > first {
				c.text[c.kept] = ','
				c.kept++
			}
			if at == nil {
				c.keep(c.after(value))
			} else {
				c.keep(value)
				c.value(at)
			}
		}
		if c.text[c.pos] == ',' {
			c.pos++
		}
	}
	c.keep(c.pos + 1)
}

// keep keeps the text up to end.
func (c *cutter) keep(end int) {
	c.kept += copy(c.text[c.kept:], c.text[c.pos:end])
	c.pos = end
}

// after returns the position after the value that begins at i.
func (c *cutter) after(i int) int {
	depth := 0
	for {
		switch c.text[i] {
		case '"':
			i = c.afterString(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
			continue
		default:
			i = c.afterScalar(i)
		}
		if depth == 0 {
			return i
		}
	}
}

// afterScalar returns the position after a number or a literal.
func (c *cutter) afterScalar(i int) int {
	for i < len(c.text) && c.text[i] != ',' && c.text[i] != '}' && c.text[i] != ']' {
		i++
	}
	return i
}

// afterString returns the position after the string whose opening quote is at i.
func (c *cutter) afterString(i int) int {
	for i = plain(c.text, i+1); c.text[i] != '"'; {
		i = plain(c.text, i+2) // after a backslash and what it escapes
	}
	return i + 1
}
