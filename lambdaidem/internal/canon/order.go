package canon

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// Members are ordered by their folded names. Names that fold to the same are
// duplicates, so this is a total order wherever there is a canonical form, and
// one sort both orders members and finds duplicates. The order hangs on Go's
// Unicode tables for letters that gain a case in a later version: the worst that
// comes of it is one value with two forms, never two values with one.
//
// Reordering is put off until the text is read: an object that is moved with
// each object around it would be copied once for each level. Since it does not
// change the length of any value, the place of each is known beforehand.

// An opened object is one whose members are being read.
type opened struct {
	start     int  // in out
	members   int  // where its members begin, in open
	names     int  // where their names begin, in names
	moved     int  // how many objects were to be reordered before it
	unordered bool // the members so far are not in order
}

// An object that was read, and whose members are to be reordered.
type object struct {
	start, end   uint32 // in out
	first, count uint32 // its members, in sorted
	moved        uint32 // how many such objects came before it and what it holds
}

// A member of an object that is open.
type member struct {
	prefix     uint64 // the first 8 bytes of the folded name
	name, last uint32 // the folded name, in names
	position
}

// A position is where in out a member stands, and the objects in it that are
// to be reordered: the last ones of moved[:moved].
type position struct {
	start, end uint32
	moved      uint32
}

// begin opens an object.
func (s *scanner) begin() opened {
	return opened{start: s.at(), members: len(s.open), names: len(s.names), moved: len(s.moved)}
}

// name reads a member's name.
func (s *scanner) name() (member, bool) {
	start, name, begin := s.at(), len(s.names), s.pos
	if !s.string() {
		return member{}, false
	}
	spelt := s.src[begin:s.pos]
	if s.from > begin { // it has an escape
		s.flush()
		spelt = s.out[start:]
	}
	// Folding the canonical spelling does no harm to its escapes: they stay
	// different from each other and from all else, and none ends in an i.
	s.names = appendFolded(s.names, spelt[1:len(spelt)-1])
	return member{
		prefix:   prefix(s.names, name),
		name:     uint32(name),
		last:     uint32(len(s.names)),
		position: position{start: uint32(start)},
	}, true
}

// add adds m, its value now read, to the object o.
func (s *scanner) add(o *opened, m member) bool {
	count := len(s.open) - o.members
	if count == s.lim.Members {
		return false
	}
	m.end = uint32(s.at())
	m.moved = uint32(len(s.moved))
	if count > 0 && !o.unordered {
		c := s.compare(&s.open[len(s.open)-1], &m)
		if c == 0 {
			return false
		}
		o.unordered = c > 0
	}
	s.open = append(s.open, m)
	return true
}

// end closes the object o, its last byte now taken.
func (s *scanner) end(o opened) bool {
	if o.unordered {
		members := s.open[o.members:]
		if !s.sort(members) {
			return false
		}
		s.moved = append(s.moved, object{
			start: uint32(o.start),
			end:   uint32(s.at()),
			first: uint32(len(s.sorted)),
			count: uint32(len(members)),
			moved: uint32(o.moved),
		})
		for i := range members {
			s.sorted = append(s.sorted, members[i].position)
		}
	}
	s.open = s.open[:o.members]
	s.names = s.names[:o.names]
	return true
}

// sort puts members in order. It reports false if two have the same name.
func (s *scanner) sort(members []member) bool {
	const few = 12
	if len(members) > few {
		slices.SortFunc(members, func(a, b member) int { return s.compare(&a, &b) })
		for i := 1; i < len(members); i++ {
			if s.compare(&members[i-1], &members[i]) == 0 {
				return false
			}
		}
		return true
	}
	for i := 1; i < len(members); i++ { // each to its place among those before it
		for j := i; j > 0; j-- {
			c := s.compare(&members[j-1], &members[j])
			if c == 0 {
				return false
			}
			if c < 0 {
				break
			}
			members[j-1], members[j] = members[j], members[j-1]
		}
	}
	return true
}

// compare orders members by their folded names.
func (s *scanner) compare(a, b *member) int {
	s.cost++
	switch {
	case a.prefix < b.prefix:
		return -1
	case a.prefix > b.prefix:
		return 1
	}
	x, y := s.names[a.name:a.last], s.names[b.name:b.last]
	s.cost += min(len(x), len(y))
	return bytes.Compare(x, y)
}

// prefixSize is how many bytes of a name its prefix has, and how many there is room for
// behind each name: appendFolded sees to that, since what it appends is no longer than
// the name was.
const prefixSize = 8

// prefix returns the first 8 bytes of the folded name that is the last of names, from
// at on, as a number of the same order. What stands behind a shorter one is cut off.
func prefix(names []byte, at int) uint64 {
	p := binary.BigEndian.Uint64(names[at : at+prefixSize])
	if behind := prefixSize - (len(names) - at); behind > 0 {
		p = p >> (8 * behind) << (8 * behind)
	}
	return p
}

// place copies spelt[from:to] to dst, of the same length, and puts the members
// of moved[:n] that lie in it in order.
func (s *scanner) place(dst []byte, from, to, n int) {
	for n > 0 && int(s.moved[n-1].start) >= from {
		o := s.moved[n-1]
		copy(dst[int(o.end)-from:], s.spelt[o.end:to])
		s.cost += to - int(o.end)
		at := int(o.start) + 1 - from
		for i, m := range s.sorted[o.first : o.first+o.count] {
			if i > 0 {
				dst[at] = ','
				at++
			}
			next := at + int(m.end-m.start)
			if m.moved > 0 && s.moved[m.moved-1].start >= m.start {
				s.place(dst[at:next], int(m.start), int(m.end), int(m.moved))
			} else { // nothing of it moves
				copy(dst[at:next], s.spelt[m.start:m.end])
				s.cost += next - at
			}
			at = next
		}
		dst[at] = '}'
		to, n = int(o.start)+1, int(o.moved)
	}
	copy(dst, s.spelt[from:to])
	s.cost += to - from
}

// retained returns the bytes that the scanner's buffers hold on to.
func (s *scanner) retained() int {
	return cap(s.out) + cap(s.names) +
		cap(s.open)*int(unsafe.Sizeof(member{})) +
		cap(s.moved)*int(unsafe.Sizeof(object{})) +
		cap(s.sorted)*int(unsafe.Sizeof(position{}))
}

// appendFolded appends name, in UTF-8 and in canonical spelling, as a reader
// might see it that takes most names for the same. Two names fold to the same
// bytes if, and only if, steps that one reader or another takes lead from one
// to the other:
//   - without regard to case, as strings.EqualFold: encoding/json;
//   - without underscores and dashes: encoding/json/v2, with
//     MatchCaseInsensitiveNames. Protobuf reads user_id and userId as one field
//     too. A name of nothing else is the empty name;
//   - with İ as i: strings.ToLower, and so json-iterator; with ı as I: Jackson,
//     whose lower case is that of a locale, in the Turkish one;
//   - with İ as an i and U+0307, the dot above: Jackson in other locales. The
//     order of members needs an equivalence: as İ is i as well, the dot counts
//     for nothing after any i.
//
// Full case folding, which makes ss of ß, is left out: readers fold to lower
// case, where İ is the only letter that becomes more than one, and we know of
// none that does otherwise.
func appendFolded(dst, name []byte) []byte {
	start, i, n := len(dst), 0, 0
	dst = slices.Grow(dst, len(name)+prefixSize)
	for room := dst[start : start+len(name)]; i < len(name); i++ {
		c := name[i]
		if c >= utf8.RuneSelf {
			break
		}
		folded := foldedASCII[c]
		room[n] = folded
		if folded != 0 {
			n++
		}
	}
	dst = dst[:start+n]
	for i < len(name) {
		c := name[i]
		if c < utf8.RuneSelf {
			if c = foldedASCII[c]; c != 0 {
				dst = append(dst, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(name[i:])
		i += size
		if r == dotAbove && len(dst) > start && dst[len(dst)-1] == 'I' {
			continue
		}
		dst = utf8.AppendRune(dst, fold(r))
	}
	return dst
}

const dotAbove = '\u0307'

// foldedASCII is what becomes of a byte of ASCII: 0 if nothing does. No name
// holds a 0 itself, since control characters are escaped.
var foldedASCII = func() (folded [utf8.RuneSelf]byte) {
	for i := range folded {
		switch c := byte(i); {
		case c == '_' || c == '-':
		case 'a' <= c && c <= 'z':
			folded[i] = c - ('a' - 'A')
		default:
			folded[i] = c
		}
	}
	return folded
}()

// fold returns the least rune that differs from r by case only: by simple case
// folding, but for the letters i of Turkish, which have none.
func fold(r rune) rune {
	if r == 'İ' || r == 'ı' {
		return 'I'
	}
	for {
		// SimpleFold steps upwards through the runes, then back to the least.
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
