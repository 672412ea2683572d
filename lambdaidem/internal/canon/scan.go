package canon

import "slices"

// A scanner reads one JSON text once, from left to right. It spells the value
// canonically but with the members in the order of src, and notes in moved which
// objects must have theirs reordered.
//
// What was spelt so far is out and then src[from:pos], which is copied to out only
// when white space or an escape ends it: of a text without either, nothing is.
//
// Its methods report false as soon as the text is found to have no canonical
// form; the scanner is then good for nothing but reset. They rely on src being
// valid UTF-8.
type scanner struct {
	src  []byte
	from int // the first byte of src that is not in out, nor left out
	pos  int // the next byte of src
	lim  Limits

	out    []byte     // what was spelt, but for what is still to be copied
	spelt  []byte     // all of it, once the text was read; may be src
	open   []member   // the members so far of the objects that are open
	names  []byte     // the folded names of those members
	moved  []object   // closed objects to be reordered, inner before outer
	sorted []position // their members, in their new order
	cost   int        // comparisons, bytes compared, bytes placed: for the tests of S2
}

func (s *scanner) reset(src []byte, lim Limits) {
	*s = scanner{
		src:    src,
		lim:    lim,
		out:    s.out[:0],
		open:   s.open[:0],
		names:  s.names[:0],
		moved:  s.moved[:0],
		sorted: s.sorted[:0],
	}
}

// text reads a whole JSON text: one value and nothing after it.
func (s *scanner) text() bool {
	if !s.value(0) || s.peek() != 0 || s.pos != len(s.src) {
		return false
	}
	if s.spelt = s.src; s.from > 0 {
		s.flush()
		s.spelt = s.out
	}
	return true
}

// at is how long what was spelt so far is: where in it the next byte will be.
func (s *scanner) at() int { return len(s.out) + s.pos - s.from }

// flush copies what is still to be copied. Nothing is spelt longer than it was, so there
// is room for the rest then too.
func (s *scanner) flush() {
	s.out = append(slices.Grow(s.out, len(s.src)-s.from), s.src[s.from:s.pos]...)
	s.from = s.pos
}

// value reads any value that stands within depth arrays and objects.
func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		return s.string()
	case '{':
		return depth < s.lim.Depth && s.object(depth+1)
	case '[':
		return depth < s.lim.Depth && s.array(depth+1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) object(depth int) bool {
	o := s.begin()
	s.take()
	if s.peek() == '}' {
		s.take()
		return true
	}
	for {
		if s.peek() != '"' {
			return false
		}
		m, ok := s.name()
		if !ok || s.peek() != ':' {
			return false
		}
		s.take()
		if !s.value(depth) || !s.add(&o, m) {
			return false
		}
		switch s.peek() {
		case ',':
			s.take()
		case '}':
			s.take()
			return s.end(o)
		default:
			return false
		}
	}
}

func (s *scanner) array(depth int) bool {
	s.take()
	if s.peek() == ']' {
		s.take()
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		switch s.peek() {
		case ',':
			s.take()
		case ']':
			s.take()
			return true
		default:
			return false
		}
	}
}

func (s *scanner) literal(word string) bool {
	end := s.pos + len(word)
	if end > len(s.src) || string(s.src[s.pos:end]) != word {
		return false
	}
	s.pos = end
	return true
}

// number reads a number (RFC 8259, section 6) and keeps its text: F3 has no
// opinion on which texts are the same number.
func (s *scanner) number() bool {
	src, i := s.src, s.pos
	if i < len(src) && src[i] == '-' {
		i++
	}
	first := i
	if i = digits(src, i); i == first || (src[first] == '0' && i > first+1) {
		return false
	}
	if i < len(src) && src[i] == '.' {
		first = i + 1
		if i = digits(src, first); i == first {
			return false
		}
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		first = i
		if i = digits(src, first); i == first {
			return false
		}
	}
	s.pos = i
	return true
}

// digits returns the position after the digits of src that begin at i.
func digits(src []byte, i int) int {
	for i < len(src) && '0' <= src[i] && src[i] <= '9' {
		i++
	}
	return i
}

// peek skips white space and returns the byte after it, still to be read. At
// the end it returns 0, a byte that is valid nowhere between values.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' { // as it is almost always
		return s.src[s.pos]
	}
	return s.space()
}

// space is peek where something else may come first.
func (s *scanner) space() byte {
	begin := s.pos
	for ; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			continue
		}
		break
	}
	if end := s.pos; end > begin {
		s.pos = begin
		s.flush()
		s.from, s.pos = end, end
	}
	if s.pos == len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

// take takes the byte at pos, which the caller has peeked at.
func (s *scanner) take() { s.pos++ }
