package canon

import "slices"

// A scanner reads one JSON text once, from left to right. It writes the value
// to out in canonical spelling but with the members in the order of src, and
// notes in moved which objects must have theirs reordered.
//
// Its methods report false as soon as the text is found to have no canonical
// form; the scanner is then good for nothing but reset. They rely on src being
// valid UTF-8.
type scanner struct {
	src []byte
	pos int // the next byte of src
	lim Limits

	out    []byte     // what was read, never longer than src up to pos
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
		out:    slices.Grow(s.out[:0], len(src)),
		open:   s.open[:0],
		names:  s.names[:0],
		moved:  s.moved[:0],
		sorted: s.sorted[:0],
	}
}

// text reads a whole JSON text: one value and nothing after it.
func (s *scanner) text() bool {
	return s.value(0) && s.peek() == 0 && s.pos == len(s.src)
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
	s.out = append(s.out, word...)
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
	s.out = append(s.out, src[s.pos:i]...)
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
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take copies the byte at pos, which the caller has peeked at.
func (s *scanner) take() {
	s.out = append(s.out, s.src[s.pos])
	s.pos++
}
