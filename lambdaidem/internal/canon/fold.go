package canon

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// appendFolded appends to dst the folded form of the name of an object's member. The name must be
// spelled as in the canonical form. Two names have the same folded form if and only if the rules of
// these JSON readers, alone or combined, make the names equal:
//
//   - encoding/json ignores case as strings.EqualFold does.
//   - encoding/json/v2 with MatchCaseInsensitiveNames also ignores underscores and dashes.
//   - Protobuf reads user_id and userId as one field.
//   - json-iterator, like strings.ToLower, reads İ as i.
//   - Jackson in the Turkish locale reads ı as I.
//   - Jackson in other locales reads İ as an i and a combining dot above (U+0307).
//
// Unlike full case folding, appendFolded does not replace ß with ss: no known reader does.
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
		// The I at the end of dst stands for an i. Drop a combining dot after it: Jackson reads İ
		// as an i and this dot, so both spellings must have the same folded form.
		if r == dotAbove && len(dst) > start && dst[len(dst)-1] == 'I' {
			continue
		}
		dst = utf8.AppendRune(dst, fold(r))
	}
	return dst
}

// fold returns the same rune for all runes that are equal under simple case folding: the smallest
// of them, such as I for i. It also returns I for the Turkish letters İ and ı, because some JSON
// readers treat them as an i.
func fold(r rune) rune {
	if r == 'İ' || r == 'ı' {
		return 'I'
	}
	for {
		// SimpleFold returns the next larger rune that equals r under simple case folding.
		// If r is the largest of these runes, it returns the smallest.
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}

// foldedASCII maps each ASCII byte of a member's name to its folded form. Names are compared in
// folded form. The value 0 means that the byte is dropped. No name contains a byte 0 itself,
// because the canonical form escapes control characters.
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

const dotAbove = '\u0307'
