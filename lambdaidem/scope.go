package lambdaidem

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// scope returns the identity without the key, as readable text: "namespace method route principal
// tenant". An empty tenant is left out. The parameter route is the result of Guard.readable.
// scopePart escapes spaces within the parts, so that different identities never have the same text.
func (i *Identity) scope(route string) string {
	method := i.Method
	switch {
	case i.Handler:
		method = "invoke"
	case i.Message:
		method = "message"
	}
	s := scopePart(i.Namespace) + " " + scopePart(method) + " " + route + " " + scopePart(i.Principal)
	if i.Tenant != "" {
		s += " " + scopePart(i.Tenant)
	}
	return s
}

// readable returns the target of a call as text for scopes and events: the host followed by the
// result of Identity.resource, which is an operation, a route template or a path. Options.ScopePath
// shortens a path, because a path may contain a secret.
func (g *Guard) readable(i *Identity) string {
	of := i.resource()
	if i.kind() == "path" && g.opts.ScopePath != nil {
		of = g.opts.ScopePath(of)
	}
	return scopePart(i.Host + of)
}

// maxScopePart is the maximum length of each part of a scope in bytes, before escaping.
// Callers and paths may be long, and every record and every event contains the scope.
const maxScopePart = 256

// scopePart returns s as a part of a scope, with spaces and percent signs escaped. If s is longer
// than maxScopePart, scopePart cuts it and appends a hash, so that two long texts with the same
// beginning differ.
func scopePart(s string) string {
	whole := s
	if len(s) > maxScopePart {
		s = s[:maxScopePart]
		for len(s) > 0 && !utf8.RuneStart(whole[len(s)]) { // don't cut within a character
			s = s[:len(s)-1]
		}
	}
	if strings.ContainsAny(s, " %") {
		s = scopeEscapes.Replace(s)
	}
	if len(whole) > maxScopePart {
		sum := sha256.Sum256([]byte(whole))
		// Mark the cut with "%~". No uncut part contains that text, because its percent signs are
		// escaped.
		s += "%~" + hex.EncodeToString(sum[:8])
	}
	return s
}

// scopeEscapes escapes spaces and percent signs in a part of a scope. It is made only once,
// because making a Replacer takes longer than using it.
var scopeEscapes = strings.NewReplacer(" ", "%20", "%", "%25")
