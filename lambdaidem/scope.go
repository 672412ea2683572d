package lambdaidem

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// scope returns the readable form of the parts but for the key: namespace, method,
// host and route, principal and, if there is one, tenant, parted by single
// spaces; "invoke" of Handler and "message" of a queue or a stream stand for the method. Each part stands as in
// scopePart, so that no two choices of parts are one text.
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

// readable returns what is asked for, as scopes and events have it. A concrete path
// may hold a secret, so Options.ScopePath has a say.
func (g *Guard) readable(i *Identity) string {
	of := i.resource()
	if i.kind() == "path" && g.opts.ScopePath != nil {
		of = g.opts.ScopePath(of)
	}
	return scopePart(i.Host + of)
}

// template returns what is asked for, if that is one of few: see [Event]. route is how
// events have the whole of it.
func (i *Identity) template(route string) string {
	switch {
	case i.kind() == "path", i.Message && strings.HasPrefix(i.Operation, busOperation+":"):
		return ""
	case i.Host == "":
		return route
	case i.Method == "":
		return scopePart(i.resource())
	}
	return scopePart(i.Method) + " " + scopePart(i.resource())
}

// maxScopePart bounds each part of a scope, in bytes: callers, routes and
// paths may be long, and the text stands in every record and every event.
const maxScopePart = 256

// scopePart returns one part of a scope: a space in it is %20 and a percent sign
// %25. What is longer than maxScopePart is cut, and "%~" and 16 hexadecimal
// digits of its SHA-256 tell it from others that begin like it; no part that is
// whole can have them, since its percent signs are escaped.
func scopePart(s string) string {
	whole := s
	if len(s) > maxScopePart {
		s = s[:maxScopePart]
		for len(s) > 0 && !utf8.RuneStart(whole[len(s)]) { // not in the middle of a character
			s = s[:len(s)-1]
		}
	}
	if strings.ContainsAny(s, " %") {
		s = scopeEscapes.Replace(s)
	}
	if len(whole) > maxScopePart {
		sum := sha256.Sum256([]byte(whole))
		s += "%~" + hex.EncodeToString(sum[:8])
	}
	return s
}

// A replacer is built once: that takes longer than its use.
var scopeEscapes = strings.NewReplacer(" ", "%20", "%", "%25")
