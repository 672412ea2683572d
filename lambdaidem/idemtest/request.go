package idemtest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Request is an HTTP request, from which methods build the events of every HTTP source that
// a guard supports. A field with its zero value gets its default.
//
//	r := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`, Caller: idemtest.JWT("https://issuer.example.com", "alice")}
//	answer := idemtest.Twice(t, guard.APIGatewayV2(createPayment), r.APIGatewayV2())
//
// Every method returns a new event, which shares no memory with the Request.
type Request struct {
	// Method is the HTTP method. Default: POST.
	Method string
	// Path is the path, escaped as in a URL, such as "/payments/42". A real HTTP API decodes
	// the path in its events, but the method APIGatewayV2 leaves Path as it is. If the
	// difference matters to a test, set Path to the decoded path. Default: "/".
	Path string
	// Route is the route template without the method, such as "/payments/{id}". The path
	// parameters of API Gateway events are derived from it. Function URLs and load
	// balancers have no route templates. Default: Path.
	Route string
	// Query is the raw query, without "?". Default: none.
	Query string
	// Key is the idempotency key. A key that a gateway or server would change is sent as a String
	// of RFC 9651, in double quotes. Any other key is sent unchanged. Default: none; the request
	// then has no header for the key.
	Key string
	// KeyHeader is the name of the header that carries the key. It must match the guard's
	// Options.KeyHeader. Default: "Idempotency-Key".
	KeyHeader string
	// Body is the request's body. A body that is not UTF-8 is encoded as base64 in
	// events. Default: empty.
	Body string
	// Header has further headers. If there is a body and Header has no Content-Type, the
	// request gets the Content-Type application/json.
	Header http.Header
	// Caller is the sender as authenticated by the gateway. Default: not authenticated.
	// Each method of Request that makes an event panics if that kind of event can't contain
	// the caller. Function URLs support [IAM] only. HTTP APIs support all but [APIKey]. Load
	// balancers and net/http support no Caller.
	Caller Caller
}

// host is the host of every request, whatever Request.Header says.
const host = "example.com"

// withDefaults returns a copy of r with the defaults filled in. The copy has its own Header,
// which also contains the key and the Content-Type.
func (r Request) withDefaults() Request {
	r.Method = cmp.Or(r.Method, http.MethodPost)
	r.Path = cmp.Or(r.Path, "/")
	r.Route = cmp.Or(r.Route, r.Path)
	r.KeyHeader = cmp.Or(r.KeyHeader, "Idempotency-Key")
	header := make(http.Header, len(r.Header)+2)
	for name, values := range r.Header {
		for _, v := range values {
			header.Add(name, v)
		}
	}
	if r.Body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	if r.Key != "" {
		header.Set(r.KeyHeader, sentKey(r.Key))
	}
	r.Header = header
	return r
}

// sentKey returns the value of the key's header. It is the key itself, unless a gateway or
// server would split it at a comma, unquote it or trim it. Such a key is sent as a String of
// RFC 9651, in double quotes.
func sentKey(key string) string {
	if !strings.ContainsAny(key, `,"`) && strings.Trim(key, " ") == key {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// HTTP returns the request as a net/http server passes it to a handler: with a RequestURI,
// the Host example.com and the length of the body.
func (r Request) HTTP(ctx context.Context) *http.Request {
	r = r.withDefaults()
	if r.Caller.kind != nobody {
		r.Caller.cantCarry("a net/http request", "nobody: Options.Principal reads one from the request or its context")
	}
	out := httptest.NewRequestWithContext(ctx, r.Method, r.target(), strings.NewReader(r.Body))
	r.Header.Del("Host") // a server moves this header to Request.Host
	out.Header = r.Header
	return out
}

// target returns the request target of the request line: the path and the query.
func (r Request) target() string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}

// Identity returns the identity of the record that a guard keeps for the request, if the
// request arrives as an event of [Request.APIGateway] or [Request.APIGatewayV2]. Pass it to
// Guard.RecordID to get the record's id:
//
//	id := guard.RecordID(r.Identity())
//
// If the guard has Options.Principal, first set the field Principal of the identity to the
// value that Options.Principal returns. For requests of other sources, use
// [Request.IdentityFunctionURL], [Request.IdentityALB] or [Request.IdentityHTTP]. Their
// identities differ: those of function URLs and load balancers have no route template, and
// those of net/http requests contain the host.
func (r Request) Identity() lambdaidem.Identity {
	r = r.withDefaults()
	who := r.identity()
	who.Principal = r.Caller.Principal()
	if namesRoute(r.Route) {
		who.Route = r.Route
	} else {
		who.Path = r.Path
	}
	return who
}

// IdentityFunctionURL returns the identity of the record, like [Request.Identity], for an
// event of [Request.FunctionURL].
func (r Request) IdentityFunctionURL() lambdaidem.Identity {
	r = r.withDefaults()
	who := r.identity()
	who.Principal, who.Path = r.Caller.Principal(), r.Path
	return who
}

// IdentityALB returns the identity of the record, like [Request.Identity], for an event of
// [Request.ALB] or [Request.ALBMultiValue].
func (r Request) IdentityALB() lambdaidem.Identity {
	r = r.withDefaults()
	who := r.identity()
	who.Path = r.Path
	return who
}

// IdentityHTTP returns the identity of the record, like [Request.Identity], for a request of
// [Request.HTTP] that an http.ServeMux routes by a pattern ending in Route, such as
// "POST /payments/{id}".
//
// A guard that does not know the route identifies the record by the path. This happens if the
// guard's middleware wraps the mux, or if the router is not an http.ServeMux and does not set
// http.Request.Pattern. In these cases, set Route of the result to "" and Path to the request's
// path.
func (r Request) IdentityHTTP() lambdaidem.Identity {
	who := r.Identity()
	who.Principal, who.Host = "", host
	return who
}

// identity returns the parts of the identity that are the same for every source.
func (r Request) identity() lambdaidem.Identity {
	return lambdaidem.Identity{Method: strings.ToUpper(r.Method), Key: r.Key}
}

// namesRoute reports whether a template names a route. A catch-all does not: $default,
// {proxy+}, or a pattern of http.ServeMux that ends in "/" or "{name...}". A guard then uses
// the request's path.
func namesRoute(template string) bool {
	return template != "$default" && !strings.Contains(template, "+}") && !strings.HasSuffix(template, "/") && !strings.HasSuffix(template, "...}")
}
