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

// idPrefix begins the id of every record, so that the records can share a table with items
// of other tools.
const idPrefix = "lambdaidem#"

// Identity identifies a record. Identities that differ have different records, unless the
// comment on a field says that the difference does not matter. A guard makes the Identity of
// each request itself. To find the record of a key, pass an Identity to [Guard.RecordID].
type Identity struct {
	Namespace string // Options.Namespace; [Guard.RecordID] replaces "" by the guard's namespace
	Tenant    string // Lambda's tenant id; empty unless the function has tenant isolation
	Principal string // the caller: Request.Principal, or the result of Options.Principal

	// Method, Host, Route and Path are set for HTTP requests.
	//
	//   - Method is in upper case.
	//   - Host is the host of a net/http request, in lower case. It is empty for events.
	//   - Route is the route template. The names of its parameters don't matter.
	//   - Path is the path that the client requested, escaped as the client sent it. In an event
	//     of an HTTP API, the path is decoded. Path does not matter if Route names a single route,
	//     and not a catch-all like {proxy+}.
	Method, Host, Route, Path string

	// Operation is the operation name that was given to [Do] or [Handler], or the source of
	// a message. It is empty for HTTP requests.
	Operation string
	Handler   bool // true for a call of a [Handler], false for any other call
	// Message and OwnID are for messages of a queue, topic, event bus or stream. Message is true
	// for every such message. OwnID is true if Key is the id that the source gave the message, and
	// false if Key comes from the sender or from BatchOptions.Key.
	Message, OwnID bool

	Key string // the idempotency key; a quoted header value (an RFC 9651 String) without its quotes
}

// RecordID returns the id of the record that i identifies. It is the id that the table and
// the events of an observer contain, and that the function [RecordID] returns in a handler.
func (g *Guard) RecordID(i Identity) string {
	if i.Namespace == "" {
		i.Namespace = g.opts.Namespace
	}
	i.settle()
	return g.idOf(&i)
}

// settle clears Path or Route, so that only the other one identifies the record. It clears
// Path if Route is the template of a single route. It clears Route if that is missing or is a
// catch-all, such as "/{proxy+}": a catch-all matches many paths, and each path needs its own
// records.
func (i *Identity) settle() {
	if isCatchAll(i.Route) {
		i.Route = ""
	} else {
		i.Path = ""
	}
}

// kind returns the kind of call that the identity is for. The kind is part of the record's
// id, so a route and an operation of the same name have different records.
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

// resource returns what the call is for. For an HTTP request, this is the route template, or the
// path if there is no template. For any other call, it is the operation.
func (i *Identity) resource() string {
	switch {
	case i.Operation != "":
		return i.Operation
	case i.Route == "":
		return i.Path
	default:
		return i.Route
	}
}

// resourceInID returns the resource in the form that the record's id is made from. In this
// form, the parameters of a route template have no names: "/payments/{id}" becomes
// "/payments/{}". Renaming a parameter therefore does not change the id. That is safe, because
// templates that differ only in these names match the same paths.
func (i *Identity) resourceInID() string {
	if i.kind() != "http" || !strings.Contains(i.Route, "{") {
		return i.resource()
	}
	segments := strings.Split(i.Route, "/")
	for n, s := range segments {
		if isParameter(s) {
			segments[n] = "{}" // no template has this segment
		}
	}
	return strings.Join(segments, "/")
}

// isParameter reports whether a segment of a route template is a parameter such as "{id}".
// It returns false for "{$}", which marks the end of a path in net/http. It also returns
// false for a parameter with a pattern for its value, such as "{id:[0-9]+}" in other routers.
func isParameter(segment string) bool {
	name, opened := strings.CutPrefix(segment, "{")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.", c)
	})
}

// idOf returns the id of the record that i identifies: idPrefix, Options.IDPrefix and "#" if that
// option is set, and the SHA-256 of the parts of the identity in base64. The length of each part
// is hashed before the part, so that different identities have different hashes.
//
// Host and tenant come last, each after a label. If they are empty, they are left out. Both were
// added in a later version, and identities without them must keep the ids that they had before.
func (g *Guard) idOf(i *Identity) string {
	var fixed [512]byte
	buf := fixed[:0]
	for _, part := range [...]string{i.kind(), i.Namespace, i.Principal, i.Method, i.resourceInID(), i.Key} {
		buf = appendPart(buf, part)
	}
	if i.Host != "" {
		buf = appendPart(appendPart(buf, "host"), i.Host)
	}
	if i.Tenant != "" {
		buf = appendPart(appendPart(buf, "tenant"), i.Tenant)
	}
	sum := sha256.Sum256(buf)
	buf = append(fixed[:0], idPrefix...)
	if g.opts.IDPrefix != "" {
		buf = append(append(buf, g.opts.IDPrefix...), '#')
	}
	return string(base64.RawURLEncoding.AppendEncode(buf, sum[:]))
}

// appendPart appends the length of s, in eight bytes, and then s.
func appendPart(buf []byte, s string) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}

// tenantOf returns the tenant id of an invocation, or "" if the function has no tenant
// isolation (AWS Lambda, "Tenant isolation").
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}

// isCatchAll reports whether a route template is missing or does not name a single route:
// it is "$default", has a greedy parameter ({proxy+} in API Gateway, {rest...} in
// net/http), or ends in a slash.
func isCatchAll(template string) bool {
	return template == "" || template == "$default" || strings.Contains(template, "+}") || strings.HasSuffix(template, "...}") || strings.HasSuffix(template, "/")
}
