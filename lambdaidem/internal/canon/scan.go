package canon

import "slices"

// scanner reads a JSON text in one pass. Its output is the text in canonical form, except that the
// members of objects still have the order of src.
//
// The output is buf followed by src[copyPos:pos]. The scanner copies to buf only at white space or
// an escape, because the output differs from src there.
//
// src must be valid UTF-8. The methods return false as soon as the text turns out to have no
// canonical form. After that, only reset may be called.
type scanner struct {
	src     []byte
	copyPos int // the first byte of src that is not yet copied to buf
	pos     int // the next byte of src to read
	lim     Limits

	buf         []byte     // the output, without src[copyPos:pos]
	spelt       []byte     // the whole output, set at the end of the text; may be src
	openMembers []member   // the members read so far of all objects that have not ended
	names       []byte     // the folded names of those members
	toReorder   []object   // objects that have ended and whose members must be reordered, inner before outer
	sorted      []position // the members of the objects in toReorder, in their new order
	cost        int        // comparisons, compared bytes and copied bytes; tests check that it grows linearly
}

func (s *scanner) reset(src []byte, lim Limits) {
	*s = scanner{
		src:         src,
		lim:         lim,
		buf:         s.buf[:0],
		openMembers: s.openMembers[:0],
		names:       s.names[:0],
		toReorder:   s.toReorder[:0],
		sorted:      s.sorted[:0],
	}
}

// text reads a whole JSON text: one value and nothing after it. It returns false if the text is
// invalid or has no canonical form.
func (s *scanner) text() bool {
	if !s.value(0) || s.peek() != 0 || s.pos != len(s.src) {
		return false
	}
	if s.spelt = s.src; s.copyPos > 0 {
		s.flush()
		s.spelt = s.buf
	}
	return true
}

// at returns the length of the output so far.
func (s *scanner) at() int { return len(s.buf) + s.pos - s.copyPos }

// flush copies src[copyPos:pos] to buf. Before that, it enlarges buf so that the rest of src
// fits too. That is enough for the whole output, because the canonical form is never longer
// than the text.
func (s *scanner) flush() {
	s.buf = append(slices.Grow(s.buf, len(s.src)-s.copyPos), s.src[s.copyPos:s.pos]...)
	s.copyPos = s.pos
}

// value reads one value. depth is the number of arrays and objects around the value. value returns
// false if the value is invalid, is nested too deeply or has no canonical form for another reason.
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

// number reads a number (RFC 8259, section 6). It returns false if there is no valid number. The
// canonical form of a number is its text, because a conversion could make two large numbers equal.
// So 1.0 and 1 are different values.
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

// digits returns the position after the digits that begin at src[i], or i if there are none.
func digits(src []byte, i int) int {
	for i < len(src) && '0' <= src[i] && src[i] <= '9' {
		i++
	}
	return i
}

// peek skips white space and returns the next byte, without moving past it. At the end of
// the text, peek returns 0. A byte 0 in the text gives the same result, but JSON does not
// allow that byte in any place where peek is called.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) && s.src[s.pos] > ' ' { // the usual case
		return s.src[s.pos]
	}
	return s.space()
}

// space skips white space and returns the next byte, or 0 at the end of the text. It is the slow
// path of peek.
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
		s.copyPos, s.pos = end, end
	}
	if s.pos == len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

// take reads the byte that peek returned.
func (s *scanner) take() { s.pos++ }
