package lambdaidem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// idPrefix marks the toolkit's records in a table shared with other tools.
const idPrefix = "lambdaidem#"

// Identity identifies a record. Identities that differ in any field have different records.
// A guard makes the Identity of each request itself. Use one with [Guard.RecordID] to find
// the record of a key.
type Identity struct {
	Namespace string // Options.Namespace; empty: the guard's own
	Tenant    string // Lambda's tenant id, if the function has tenant isolation
	Principal string // the caller: Request.Principal, or the result of Options.Principal

	// For HTTP requests: the method in upper case, and the route template, or the path if
	// there is no template. The names of a template's parameters don't matter. The path is
	// the one that the client asked for, with its escapes. Host is the host of a net/http
	// request in lower case, and empty for events.
	Method, Host, Route, Path string

	// For [Do] and [Handler]: the name of the operation. Handler is true for Handler.
	Operation string
	Handler   bool
	// For a message of a queue or a stream: Operation is the message's source. OwnID says
	// that Key is the id that the source gave the message, and not a key of the sender.
	Message, OwnID bool

	Key string // without the quotes of an RFC 9651 String
}

// RecordID returns the id of the record of an identity. It is the id in the table and in
// events, and the one that [RecordID] returns in a handler.
func (g *Guard) RecordID(i Identity) string {
	if i.Namespace == "" {
		i.Namespace = g.opts.Namespace
	}
	i.settle()
	return i.id()
}

// settle replaces a route template that names no route by the path.
func (i *Identity) settle() {
	if isCatchAll(i.Route) {
		i.Route = ""
	} else {
		i.Path = ""
	}
}

// kind returns a word for what of returns. Two kinds never share a record.
func (i *Identity) kind() string {
	switch {
	case i.Message && i.OwnID:
		return "delivery"
	case i.Message:
		return "message"
	case i.Handler:
		return "handler"
	case i.Operation != "":
		return "call"
	case i.Route == "":
		return "path"
	default:
		return "http"
	}
}

// of returns the template, the path or the operation.
func (i *Identity) of() string {
	switch {
	case i.Operation != "":
		return i.Operation
	case i.Route == "":
		return i.Path
	default:
		return i.Route
	}
}

// counted returns what is asked for as a record's id has it: in a template the
// position of a parameter counts and not its name, so that one can be renamed. Two
// templates that differ in names alone match the same paths.
func (i *Identity) counted() string {
	if i.kind() != "http" || !strings.Contains(i.Route, "{") {
		return i.of()
	}
	segments := strings.Split(i.Route, "/")
	for n, s := range segments {
		if isParameter(s) {
			segments[n] = "{}" // which is no segment of any template
		}
	}
	return strings.Join(segments, "/")
}

// isParameter reports whether a segment of a template is a parameter with a name:
// not "{$}", which ends a path, nor one with a rule for its value, as other routers
// have it.
func isParameter(segment string) bool {
	name, opened := strings.CutPrefix(segment, "{")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.", c)
	})
}

// id returns the identity as one string: a prefix, and SHA-256 over the parts with
// their lengths, so that no choice of parts can collide. A host and a tenant
// come last, each after its name, and only where there is one: what has neither
// keeps the id that it always had.
func (i *Identity) id() string {
	var fixed [512]byte
	buf := fixed[:0]
	for _, part := range [...]string{i.kind(), i.Namespace, i.Principal, i.Method, i.counted(), i.Key} {
		buf = appendPart(buf, part)
	}
	if i.Host != "" {
		buf = appendPart(appendPart(buf, "host"), i.Host)
	}
	if i.Tenant != "" {
		buf = appendPart(appendPart(buf, "tenant"), i.Tenant)
	}
	sum := sha256.Sum256(buf)
	var out [len(idPrefix) + 43]byte
	copy(out[:], idPrefix)
	base64.RawURLEncoding.Encode(out[len(idPrefix):], sum[:])
	return string(out[:])
}

// appendPart appends s with its length before it.
func appendPart(buf []byte, s string) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}

// tenantOf returns the tenant of an invocation of a function with tenant isolation
// (AWS Lambda, "Tenant isolation"); else empty.
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}

// isCatchAll reports whether a route template names no route: "$default", one that
// ends in a greedy parameter ({proxy+} of API Gateway, {rest...} of net/http), or
// in a slash.
func isCatchAll(template string) bool {
	return template == "" || template == "$default" || strings.Contains(template, "+}") || strings.HasSuffix(template, "...}") || strings.HasSuffix(template, "/")
}
