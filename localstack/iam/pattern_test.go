package iam

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// matches returns the same as an equivalent regular expression.
func TestMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?/")), 0, 8, -1).Draw(t, "pattern")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab*/")), 0, 10, -1).Draw(t, "text")
		meaning := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		if got, want := matches(pattern, text), regexp.MustCompile(`^`+meaning+`$`).MatchString(text); got != want {
			t.Fatalf("matches(%q, %q) = %v; want %v", pattern, text, got, want)
		}
		if matches(quote(pattern), text) != (pattern == text) {
			t.Fatalf("the quoted pattern %q matches %q: %v", pattern, text, pattern != text)
		}
	})
}
