package canon

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"
)

// This file sorts the members of objects by their folded names. Two names that some JSON
// reader may treat as the same have the same folded name. They are duplicates, and a text
// with duplicates has no canonical form, so one sort both orders members and finds
// duplicates. Folding depends on the Unicode tables of the Go version. If a later version
// adds a case variant of a letter, a value may get another form, but two different values
// never get the same form.
//
// Members are reordered only after the whole text is read. If each object were reordered
// when it ends, an inner object would be copied again for every object around it.
// Reordering does not change the length of a value, so the final position of each member is
// known beforehand.

// opened is an object whose members are being read.
type opened struct {
	start     int  // position of the object in the output
	members   int  // index of its first member in scanner.openMembers
	names     int  // offset of its first member's folded name in scanner.names
	inner     int  // len(scanner.toReorder) when the object began
	unordered bool // the members read so far are not sorted
}

// object is an object that has been read and whose members must be reordered.
type object struct {
	start, end   uint32 // position of the object in the output
	first, count uint32 // its members are scanner.sorted[first:first+count]
	inner        uint32 // len(scanner.toReorder) when the object began: the index of the first object inside it, if there is one
}

// member is a member of an object that is being read.
type member struct {
	prefix     uint64 // the first 8 bytes of the folded name, for fast comparisons
	name, last uint32 // the folded name is scanner.names[name:last]
	position
}

// position says where a member is in the output before members are reordered: from start to end. If
// the member contains objects that must be reordered too, they are the last ones in
// scanner.toReorder[:endInner]: those that begin at or after start.
type position struct {
	start, end uint32
	endInner   uint32 // len(scanner.toReorder) after the member was read
}

// begin starts reading an object.
func (s *scanner) begin() opened {
	return opened{start: s.at(), members: len(s.openMembers), names: len(s.names), inner: len(s.toReorder)}
}

// name reads the name of a member. It reports false if the name is not a valid string.
func (s *scanner) name() (member, bool) {
	start, name, begin := s.at(), len(s.names), s.pos
	if !s.string() {
		return member{}, false
	}
	spelt := s.src[begin:s.pos]
	if s.copyPos > begin { // the name has an escape, so its canonical spelling is in buf
		s.flush()
		spelt = s.buf[start:]
	}
	// Fold an escape such as \n like other text. The folded escapes, such as \N, still differ from
	// each other and from all other text.
	s.names = appendFolded(s.names, spelt[1:len(spelt)-1])
	return member{
		prefix:   prefix(s.names, name),
		name:     uint32(name),
		last:     uint32(len(s.names)),
		position: position{start: uint32(start)},
	}, true
}

// add adds the member m to the object o after the value of m has been read. It reports false if the
// object has too many members, or if m has the same name as the member before it.
func (s *scanner) add(o *opened, m member) bool {
	count := len(s.openMembers) - o.members
	if count == s.lim.Members {
		return false
	}
	m.end = uint32(s.at())
	m.endInner = uint32(len(s.toReorder))
	// As long as the members come in the order of their names, comparing neighbors finds every
	// duplicate. Otherwise s.end sorts the members and finds the duplicates.
	if count > 0 && !o.unordered {
		c := s.compare(&s.openMembers[len(s.openMembers)-1], &m)
		if c == 0 {
			return false
		}
		o.unordered = c > 0
	}
	s.openMembers = append(s.openMembers, m)
	return true
}

// end ends the object o, whose closing brace has been read. It reports false if two members
// have the same name.
func (s *scanner) end(o opened) bool {
	if o.unordered {
		members := s.openMembers[o.members:]
		if !s.sort(members) {
			return false
		}
		s.toReorder = append(s.toReorder, object{
			start: uint32(o.start),
			end:   uint32(s.at()),
			first: uint32(len(s.sorted)),
			count: uint32(len(members)),
			inner: uint32(o.inner),
		})
		for i := range members {
			s.sorted = append(s.sorted, members[i].position)
		}
	}
	s.openMembers = s.openMembers[:o.members]
	s.names = s.names[:o.names]
	return true
}

// sort sorts members by name. It reports false if two members have the same name.
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
	for i := 1; i < len(members); i++ { // insertion sort
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

// compare compares the folded names of the members a and b. It returns -1, 0 or 1, as bytes.Compare
// does.
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

// prefixSize is the number of bytes in member.prefix. appendFolded leaves this much capacity after
// each name, so that the function prefix can read prefixSize bytes even if the name is shorter.
const prefixSize = 8

// prefix returns the first 8 bytes of the last name in names, which begins at start, as a number.
// The numbers sort as the names do. If the name is shorter, the remaining bytes are zero.
func prefix(names []byte, start int) uint64 {
	p := binary.BigEndian.Uint64(names[start : start+prefixSize])
	if behind := prefixSize - (len(names) - start); behind > 0 {
		p = p >> (8 * behind) << (8 * behind)
	}
	return p
}

// reorder copies s.spelt[start:end], a piece of the output, to dst, and sorts the members of each
// object in the copy. dst has the length end-start. The objects to sort are the last ones in
// s.toReorder[:n], those that begin at or after the position start.
func (s *scanner) reorder(dst []byte, start, end, n int) {
	for n > 0 && int(s.toReorder[n-1].start) >= start {
		o := s.toReorder[n-1]
		copy(dst[int(o.end)-start:], s.spelt[o.end:end])
		s.cost += end - int(o.end)
		at := int(o.start) + 1 - start
		for i, m := range s.sorted[o.first : o.first+o.count] {
			if i > 0 {
				dst[at] = ','
				at++
			}
			next := at + int(m.end-m.start)
			if m.endInner > 0 && s.toReorder[m.endInner-1].start >= m.start {
				s.reorder(dst[at:next], int(m.start), int(m.end), int(m.endInner))
			} else { // the member has no object to reorder
				copy(dst[at:next], s.spelt[m.start:m.end])
				s.cost += next - at
			}
			at = next
		}
		dst[at] = '}'
		end, n = int(o.start)+1, int(o.inner)
	}
	copy(dst, s.spelt[start:end])
	s.cost += end - start
}

// retained returns the size of the scanner's buffers in bytes.
func (s *scanner) retained() int {
	return cap(s.buf) + cap(s.names) +
		cap(s.openMembers)*int(unsafe.Sizeof(member{})) +
		cap(s.toReorder)*int(unsafe.Sizeof(object{})) +
		cap(s.sorted)*int(unsafe.Sizeof(position{}))
}
