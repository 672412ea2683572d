package commands

import (
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// unescaped returns a part of a scope, such as a caller, as the flags take it: without the
// escapes of [lambdaidem.ScopePart]. A part that was cut, because it is long, is returned as it
// is, and identifies no record.
func unescaped(part string) string {
	if text := strings.NewReplacer("%20", " ", "%25", "%").Replace(part); lambdaidem.ScopePart(text) == part {
		return text
	}
	return part
}
