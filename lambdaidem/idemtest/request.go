package idemtest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Request is an HTTP request. Its methods build the events of all HTTP sources that a guard
// supports. A field with its zero value gets its default.
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
	// Key is the idempotency key. A key that contains a comma or a double quote, or begins or ends
	// with a space, is sent in double quotes, as a String of RFC 9651. Gateways and servers would
	// change it otherwise. Any other key is sent unchanged. Default: none; the request then has no
	// header for the key.
	Key string
	// KeyHeader is the name of the header that carries the key. It must match the guard's
	// Options.KeyHeader. Default: "Idempotency-Key".
	KeyHeader string
	// Body is the request's body. A body that is not UTF-8 is encoded as base64 in
	// events. Default: empty.
	Body string
	// Header has the request's headers besides the header with the key. If there is a body and
	// Header has no Content-Type, the request gets the Content-Type application/json.
	Header http.Header
	// Caller is the sender as authenticated by the gateway. Default: not authenticated. A method
	// that makes an event, such as [Request.FunctionURL], panics if that kind of event can't
	// contain the caller. Function URLs support [IAM] only. HTTP APIs support all but [APIKey].
	// Load balancers and net/http don't identify callers.
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
