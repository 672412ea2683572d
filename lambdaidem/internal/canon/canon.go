// Package canon writes JSON texts in one spelling, so that two texts that
// every reader takes for the same value have the same bytes and can be
// compared by their hash.
//
// What does not matter to a reader is dropped: white space, the order of an
// object's members, and the way a string is escaped. What may matter is kept:
// a number is its own text (1.0 is not 1, and 9007199254740993 is not
// 9007199254740992), a string is its code points, without any Unicode
// normalisation. What readers disagree about has no canonical form at all, see
// [Append].
//
// RFC 8785 (JCS) is not what is wanted here: it passes every number through a
// float64, which makes 9007199254740993 and 9007199254740992 equal, and so one
// payment of two. The output differs from JCS in that, and in the order of
// members, which is not JCS's UTF-16 order. The jsontext package of
// go-json-experiment can be told to keep numbers as they are, and is the oracle
// of the fuzz tests; it takes about 2.1 times as long on a body of 1 KB
// (BenchmarkAgainstJSONText: 2.0 to 2.3), and has no opinion on names that
// differ by case or underscores.
package canon

import (
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// The limits that hold where a field of [Limits] is zero or less.
const (
	// DefaultBytes is above the 6 MB that a Lambda function can be sent
	// (AWS: "Lambda quotas").
	DefaultBytes = 8 << 20
	// DefaultDepth is several times the depth of payloads met in practice.
	DefaultDepth = 64
	// DefaultMembers bounds the logarithmic factor of sorting at 14.
	DefaultMembers = 1 << 14

	maxDepth = 10_000
)

// Limits bound the work that one text can cause. A text beyond a limit is
// still comparable, byte by byte. Zero, or less, means the default. Texts that
// are to be compared must be given the same limits.
type Limits struct {
	// Bytes is the longest text, in bytes: by default DefaultBytes, at most
	// math.MaxInt32.
	Bytes int
	// Depth is how many arrays and objects may be open at once: by default
	// DefaultDepth, at most 10,000, since each takes a stack frame. The same
	// bound holds in encoding/json.
	Depth int
	// Members is how many members one object may have: by default
	// DefaultMembers.
	Members int
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	l.Bytes = min(l.Bytes, math.MaxInt32) // positions are kept in 32 bits
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	l.Depth = min(l.Depth, maxDepth)
	if l.Members <= 0 {
		l.Members = DefaultMembers
	}
	return l
}

// Append appends the canonical form of the JSON text src to dst and reports
// true. The form is itself valid JSON, never longer than src, and its own
// canonical form.
//
// It returns dst as it was and false when src is beyond the limits, or when
// readers of JSON may disagree about its value:
//   - src is not exactly one value of RFC 8259: it is empty, broken, followed
//     by more, led by a byte order mark, or not UTF-8;
//   - an escape names half of a surrogate pair (RFC 8259, section 8.2);
//   - two members of an object, however escaped, have the same name, or names
//     that some reader takes for the same, so that their order decides: they
//     differ only by case as in [strings.EqualFold], by underscores and dashes,
//     or by the Turkish forms of i (İ and ı, and i with a dot above). So
//     user_id, userId and user-id are one name, and _ is the empty name.
//
// Then only src itself, byte by byte, tells it from other texts. Under the same
// limits no text without a form equals the form of another, so that the two
// kinds can't be taken for each other.
//
// Whatever src holds, time and memory are linear in len(src): the buffers hold
// at most about ten times src. Append may be called by several goroutines at
// once. dst must not share memory with src.
func Append(dst, src []byte, lim Limits) ([]byte, bool) {
	lim = lim.withDefaults()
	if len(src) > lim.Bytes || !utf8.Valid(src) {
		return dst, false
	}
	s := scanners.Get().(*scanner)
	defer s.recycle()
	s.reset(src, lim)
	if !s.text() {
		return dst, false
	}
	at := len(dst)
	dst = slices.Grow(dst, len(s.spelt))[:at+len(s.spelt)]
	s.place(dst[at:], 0, len(s.spelt), len(s.moved))
	return dst, true
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// maxRetained is how many bytes of buffers one scanner may keep for the next
// text. A larger one, grown by a rare large text, is left to the collector.
const maxRetained = 256 << 10

// recycle keeps the scanner's buffers for another text, but no reference to
// this one.
func (s *scanner) recycle() {
	if s.retained() > maxRetained {
		return
	}
	s.src, s.spelt = nil, nil
	scanners.Put(s)
}
