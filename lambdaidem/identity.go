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

// Identity is what a record is identified by. Two identities that differ in
// any part are two records. A guard makes one of each request by itself; by
// hand it leads from a key to its record, see [Guard.RecordID].
type Identity struct {
	Namespace string // Options.Namespace; empty: the guard's own
	Tenant    string // Lambda's tenant id, where the function has tenant isolation; else empty
	Principal string // whose key it is: as Request.Principal has it, or as Options.Principal says

	// Of a request over HTTP: the method in upper case, and the route template, in
	// which the names of parameters don't count, or, where there is none, the concrete path as the client asked for it,
	// escaped as it came. Host is the host of a net/http request, in lower case;
	// events have none.
	Method, Host, Route, Path string

	// Of [Do] and [Handler], instead: what is done. Handler tells which.
	Operation string
	Handler   bool
	// Of a message of a queue or a stream: Operation is its source, and OwnID says
	// that Key is the id that the source gave it, not one that its sender gave.
	Message, OwnID bool

	Key string // as the guard reads it: without the quotes of an RFC 9651 String
}

// RecordID returns the id under which the store keeps the record of an identity:
// what a handler gets from [RecordID] in its context, what events name, and
// what stands in the table.
func (g *Guard) RecordID(i Identity) string {
	if i.Namespace == "" {
		i.Namespace = g.opts.Namespace
	}
	i.settle()
	return i.id()
}

// settle lets the path stand in for a route template that names no route.
func (i *Identity) settle() {
	if isCatchAll(i.Route) {
		i.Route = ""
	} else {
		i.Path = ""
	}
}

// kind says what of is. Kinds never share a record.
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

// of returns what is asked for: a template, a concrete path, or an operation.
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
