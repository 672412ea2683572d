package iam

import (
	"strings"
	"unicode"
)

// literal is the escape character of a pattern: the rune after it matches only itself. Policies
// and requests don't contain it, because AWS refuses a text with U+0000.
const literal = '\x00'

// quote returns a pattern that matches only the text itself.
func quote(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '*' || r == '?' {
			b.WriteRune(literal)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// matches reports whether a text matches a pattern, in which * stands for any number of
// characters and ? for one.
func matches(pattern, text string) bool {
	return matchRunes([]rune(pattern), []rune(text))
}

// matchesFold is like matches but ignores case.
func matchesFold(pattern, text string) bool {
	return matchRunes([]rune(strings.Map(unicode.ToLower, pattern)), []rune(strings.Map(unicode.ToLower, text)))
}

// matchRunes returns to the last * on a mismatch and lets it match one more rune. Its time is at
// most the product of the two lengths.
func matchRunes(pattern, text []rune) bool {
	p, t := 0, 0
	star, from := -1, 0 // the last * in the pattern, and where the text after it began
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
			continue
		case p < len(pattern) && pattern[p] == '?':
			p, t = p+1, t+1
			continue
		case p+1 < len(pattern) && pattern[p] == literal && pattern[p+1] == text[t]:
			p, t = p+2, t+1
			continue
		case p < len(pattern) && pattern[p] != literal && pattern[p] == text[t]:
			p, t = p+1, t+1
			continue
		case star < 0:
			return false
		}
		from++
		p, t = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
