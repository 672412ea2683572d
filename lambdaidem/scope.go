package lambdaidem

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// idPrefix marks the toolkit's records in a table shared with other tools (D4).
const idPrefix = "lambdaidem#"

// identity is what a record is identified by (F1).
type identity struct {
	kind      string // what route is: "http", a template; "path"; or "call". They never share a record
	namespace string
	principal string
	method    string
	route     string // template, concrete path, or a call's operation
	key       string
}

// id is the record's identity as one string: a prefix, and SHA-256 over the
// parts with their lengths, so that no choice of parts can collide.
func (i identity) id() string {
	var fixed [512]byte
	buf := fixed[:0]
	for _, part := range [...]string{i.kind, i.namespace, i.principal, i.method, i.route, i.key} {
		buf = appendPart(buf, part)
	}
	sum := sha256.Sum256(buf)
	var out [len(idPrefix) + 43]byte
	copy(out[:], idPrefix)
	base64.RawURLEncoding.Encode(out[len(idPrefix):], sum[:])
	return string(out[:])
}

// scope is the readable form of the parts but for the key: namespace, method,
// route, principal, parted by single spaces; a space in a part is %20 and a
// percent sign %25, so that no two scopes are one text.
func (i identity) scope() string {
	if strings.ContainsAny(i.namespace+i.method+i.route+i.principal, " %") {
		escape := scopeEscapes.Replace
		i.namespace, i.method, i.route, i.principal = escape(i.namespace), escape(i.method), escape(i.route), escape(i.principal)
	}
	return i.namespace + " " + i.method + " " + i.route + " " + i.principal
}

// A replacer is built once: that takes longer than its use.
var scopeEscapes = strings.NewReplacer(" ", "%20", "%", "%25")

// appendPart appends s with its length before it.
func appendPart(buf []byte, s string) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}

// isCatchAll tells whether a route template names no route: "$default", or one
// that ends in a greedy parameter ({proxy+} of API Gateway, {rest...} of
// net/http) or in a slash (a subtree of net/http).
func isCatchAll(template string) bool {
	return template == "" || template == "$default" ||
		strings.Contains(template, "+}") || strings.Contains(template, "...}") ||
		strings.HasSuffix(template, "/")
}
