package idemtest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Request is an HTTP request that can be had as each event that a guard takes.
// The zero value of every field is its default.
//
//	r := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`, Caller: idemtest.JWT("https://issuer.example.com", "alice")}
//	answer := idemtest.Twice(t, guard.APIGatewayV2(createPayment), r.APIGatewayV2())
//
// Every method makes a new event, which shares nothing with the Request.
type Request struct {
	// Method is the HTTP method. Default: POST.
	Method string
	// Path is the concrete path, escaped as it stands in a URL. Default: "/".
	// (HTTP APIs decode the path of their events, and this does not: where that
	// matters, give it decoded.)
	Path string
	// Route is the route template, without the method: "/payments/{id}", say;
	// path parameters of API Gateway events are taken from it. Function URLs and
	// load balancers know none. Default: Path.
	Route string
	// Query is the raw query, without "?". Default: none.
	Query string
	// Key is the idempotency key. Where its text needs it, it is sent as an RFC
	// 9651 String, in quotes. Default: none, and no header.
	Key string
	// KeyHeader carries the key: the guard's Options.KeyHeader. Default:
	// "Idempotency-Key".
	KeyHeader string
	// Body is the request's body. One that is not UTF-8 travels as base64 in
	// events. Default: empty.
	Body string
	// Header has further headers. Where it has no Content-Type and there is a
	// body, that is application/json.
	Header http.Header
	// Caller is whom the gateway vouches for. Default: nobody. A method whose
	// event can't carry the caller panics and says so: function URLs know
	// [IAM] alone, HTTP APIs no [APIKey], load balancers and net/http nobody.
	Caller Caller
}

// host is the host of every request, whatever Request.Header says.
const host = "example.com"

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

// sentKey returns a key as a header carries it: bare, or as an RFC 9651 String where
// a gateway or a server would take the bare text apart.
func sentKey(key string) string {
	if !strings.ContainsAny(key, `,"`) && strings.Trim(key, " ") == key {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// HTTP returns the request as a net/http server hands it to a handler: with a
// RequestURI, the Host example.com and the body's length.
func (r Request) HTTP(ctx context.Context) *http.Request {
	r = r.withDefaults()
	if r.Caller.kind != nobody {
		r.Caller.cantCarry("a net/http request", "nobody: Options.Principal reads one from the request or its context")
	}
	out := httptest.NewRequestWithContext(ctx, r.Method, r.target(), strings.NewReader(r.Body))
	r.Header.Del("Host") // a server keeps it apart
	out.Header = r.Header
	return out
}

// target returns what a client asks a server for.
func (r Request) target() string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}

// Identity returns what the request's record is identified by as an event of API
// Gateway, [Request.APIGateway] or [Request.APIGatewayV2], so that
//
//	guard.RecordID(r.Identity())
//
// is the record's id. That holds for a guard without an Options.Principal of its
// own; with one, put what it returns into Identity.Principal. Other sources have
// no route template, or a host, and so an identity of another form:
// [Request.IdentityFunctionURL], [Request.IdentityALB], [Request.IdentityHTTP].
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

// IdentityFunctionURL is [Request.Identity] for [Request.FunctionURL].
func (r Request) IdentityFunctionURL() lambdaidem.Identity {
	r = r.withDefaults()
	who := r.identity()
	who.Principal, who.Path = r.Caller.Principal(), r.Path
	return who
}

// IdentityALB is [Request.Identity] for [Request.ALB] and
// [Request.ALBMultiValue].
func (r Request) IdentityALB() lambdaidem.Identity {
	r = r.withDefaults()
	who := r.identity()
	who.Path = r.Path
	return who
}

// IdentityHTTP is [Request.Identity] for [Request.HTTP], where an http.ServeMux
// serves the request by a pattern that ends in Route: "POST /payments/{id}",
// say. Where the middleware stands around the mux, or a router leads to it that
// does not set the Pattern of http.Request, the record goes by path: set Route of the result
// to "" and Path to the request's path.
func (r Request) IdentityHTTP() lambdaidem.Identity {
	who := r.Identity()
	who.Principal, who.Host = "", host
	return who
}

func (r Request) identity() lambdaidem.Identity {
	return lambdaidem.Identity{Method: strings.ToUpper(r.Method), Key: r.Key}
}

// namesRoute reports whether a template names one route. The path stands in for
// one that does not.
func namesRoute(template string) bool {
	return template != "$default" && !strings.Contains(template, "+}") && !strings.HasSuffix(template, "/") && !strings.HasSuffix(template, "...}")
}
