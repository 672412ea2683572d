package lambdaidem

import (
	"context"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Identity identifies a record. Identities that differ have different records, unless the
// comment on a field says that the difference does not matter. A guard makes the Identity of
// each request itself. To find the record of a key, pass an Identity to [Guard.RecordID].
type Identity struct {
	Namespace string // Options.Namespace; [Guard.RecordID] replaces "" with the guard's namespace
	Tenant    string // Lambda's tenant id; empty unless the function has tenant isolation
	Principal string // the caller: Request.Principal, or the result of Options.Principal

	// Method, Host, Route and Path are set for HTTP requests.
	//
	//   - Method is in upper case.
	//   - Host is the host of a net/http request, in lower case. It is empty for events.
	//   - Route is the route template. The names of its parameters don't matter.
	//   - Path is the requested path, escaped as the client sent it. In an event of an HTTP API,
	//     the path is decoded. Path matters only without a Route, or if Route is a catch-all like
	//     {proxy+}.
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

// chooseRouteOrPath clears Path if Route is the template of a single route. If Route is empty or a
// catch-all, such as "/{proxy+}", chooseRouteOrPath clears Route, so that Path identifies the
// record: a catch-all matches many paths, and each path needs its own records.
func (i *Identity) chooseRouteOrPath() {
	if isCatchAll(i.Route) {
		i.Route = ""
	} else {
		i.Path = ""
	}
}

// tenantOf returns the tenant id of an invocation, or "" if the function has no tenant
// isolation (AWS Lambda, "Tenant isolation").
func tenantOf(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.TenantID
	}
	return ""
}
