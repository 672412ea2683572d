package lambdaidem

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Outermost records the URL, the host and the body length of each request as the client
// sent them, for a [Guard.Middleware] inside next. Handlers between the two may strip a
// prefix, rewrite the URL or read the body. Put Outermost around all other handlers:
//
//	http.ListenAndServe(addr, lambdaidem.Outermost(handler))
//
// The middleware needs Outermost in two cases:
//
//   - The request does not come from a net/http server and so has no RequestURI, as with
//     lambdaurl of aws-lambda-go.
//   - The body has no Content-Length and comes through other handlers, which may have read
//     some of it.
//
// Without Outermost, the middleware refuses such a request with an error that asks for it.
// Outermost does not change the response.
func Outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o := originalOf(r); o != nil && o.uri == r.RequestURI { // another Outermost is around this one
			next.ServeHTTP(w, r)
			return
		}
		o := &original{uri: r.RequestURI, host: r.Host, length: r.ContentLength}
		if o.uri == "" { // not from a net/http server: a ContentLength of 0 may mean unknown
			o.uri = r.URL.RequestURI()
			if r.ContentLength == 0 && r.Body != nil && r.Body != http.NoBody {
				o.length = -1
			}
		}
		inner := r.WithContext(context.WithValue(r.Context(), originalKey{}, o))
		inner.RequestURI = o.uri
		if r.Body != nil && r.Body != http.NoBody {
			inner.Body = &countedBody{r.Body, o}
		}
		next.ServeHTTP(w, inner)
	})
}

// original is a copy of the parts of a request that handlers around the guarded one may change.
// Outermost makes it before they run.
type original struct {
	uri    string // the request URI
	host   string // the Host header
	length int64  // the declared Content-Length; -1 if unknown
	read   int64  // the number of bytes that were read from the body
}

type originalKey struct{}

func originalOf(r *http.Request) *original {
	o, _ := r.Context().Value(originalKey{}).(*original)
	return o
}

// countedBody is a request body that counts the bytes that handlers read from it. The count is
// in original.read. bodyLength uses the count as the length of a body without a Content-Length.
type countedBody struct {
	io.ReadCloser
	o *original
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.o.read += int64(n)
	return n, err
}

// target is the host, path and query that the client requested. The host is in lower case and
// has no port. If an outer handler has rewritten one of these values, its field has the
// original value, " > " and the new value. Two different requests therefore have different
// records, even if an outer handler rewrites both to the same URL.
type target struct{ host, path, query string }

const rewrittenTo = " > "

// targetOf returns the target of a request. It reads RequestURI and not URL, because
// http.StripPrefix and routers change only URL. Behind Outermost it also uses the original
// URI and host: a handler may have replaced RequestURI, or made a new request without one.
func targetOf(r *http.Request) (target, *Error) {
	o, uri := originalOf(r), r.RequestURI
	if o != nil && uri == "" {
		uri = r.URL.RequestURI()
	}
	if uri == "" {
		return target{}, &Error{Code: ErrRequestInvalid, Status: http.StatusInternalServerError,
			Detail: "What the client asked for can't be told.",
			Err: errors.New("the request has no RequestURI, so a path that was stripped can't be told from one that was not: " +
				"put lambdaidem.Outermost around the outermost handler; in tests make requests by httptest.NewRequest")}
	}
	asked, err := parseTarget(r.Host, uri)
	if err == nil && o != nil && (o.uri != uri || o.host != r.Host) {
		var first target
		if first, err = parseTarget(o.host, o.uri); err == nil {
			asked = target{joinRewritten(first.host, asked.host), joinRewritten(first.path, asked.path), joinRewritten(first.query, asked.query)}
		}
	}
	if err != nil {
		return target{}, requestInvalid("The request's target is no URI.", errors.Unwrap(err)) // without the URI itself
	}
	if now := r.URL.EscapedPath(); !strings.HasSuffix(asked.path, now) {
		asked.path += rewrittenTo + now
	}
	return asked, nil
}

func parseTarget(host, uri string) (target, error) {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return target{}, err
	}
	return target{host: strings.ToLower(hostname(host)), path: u.EscapedPath(), query: u.RawQuery}, nil
}

// joinRewritten returns a value for a field of target. first is the value that the client sent,
// and second is the value that the guard received. If they are equal, joinRewritten returns
// first, and otherwise both of them, separated by rewrittenTo.
func joinRewritten(first, second string) string {
	if first == second {
		return first
	}
	return first + rewrittenTo + second
}

// routeOf returns two parts of the http.ServeMux pattern that matched a request: the host, in
// lower case, and the path. The caller uses the path as the route template.
//
// Both results are empty in the following cases, and the concrete path then identifies the
// record:
//
//   - The pattern does not match what the client requested: the method, the host and the
//     complete path. For example, the mux may be behind http.StripPrefix.
//   - The pattern can match paths with different numbers of segments.
//   - The pattern has a syntax that only other routers know.
func routeOf(r *http.Request, asked target) (host, template string) {
	if r.URL.EscapedPath() != asked.path {
		return "", ""
	}
	pattern := r.Pattern
	if i := strings.IndexAny(pattern, " \t"); i >= 0 {
		if method := pattern[:i]; method != r.Method {
			return "", ""
		}
		pattern = strings.TrimLeft(pattern[i+1:], " \t")
	}
	slash := strings.IndexByte(pattern, '/')
	if slash < 0 {
		return "", ""
	}
	host, template = strings.ToLower(pattern[:slash]), pattern[slash:]
	if host != "" && host != asked.host || !matchesOneRoute(template, asked.path) {
		return "", ""
	}
	return host, template
}

// matchesOneRoute reports whether template, the path of a pattern, matches path. It compares the two
// segment by segment, as http.ServeMux does. It returns false for a template that matches any number
// of segments: a subtree ("/a/"), a rest ("{rest...}") or the wildcard of another router ("*").
func matchesOneRoute(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) || strings.Contains(template, "*") {
		return false
	}
	for i, w := range want {
		g, err := url.PathUnescape(got[i])
		last := i == len(want)-1
		switch {
		case err != nil:
			return false
		case w == "{$}":
			if !last || g != "" {
				return false
			}
		case last && w == "", strings.HasSuffix(w, "...}"):
			return false
		case strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}"):
			if g == "" || strings.ContainsAny(w, ":") { // a colon: the syntax of another router
				return false
			}
		case w != g:
			return false
		}
	}
	return true
}

// hostname returns a host without its port, without the brackets of an IPv6 address, and
// without a dot at the end.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// bodyLength returns the number of bytes in the body that the client sent. readBody compares
// this number with the bytes that it has read itself, to detect that an outer handler has read
// a part of the body. first is the result of isFirst.
//
// The number is r.ContentLength, or else the number of bytes that Outermost has counted. The
// count is complete only after the body was read to its end, so call bodyLength after that. An
// outer handler that replaces the body must set r.ContentLength to the length of the new body.
//
// If there is neither a Content-Length nor a count, the result is not a length. It then says
// whether outer handlers have read from the body: unread, someRead, or -1 if this is not known.
func bodyLength(r *http.Request, first bool) int64 {
	o := originalOf(r)
	counted := o != nil && o.uri == r.RequestURI
	switch {
	case r.ContentLength > 0, r.ContentLength == 0 && (!counted || o.length >= 0):
		return r.ContentLength
	case counted:
		return o.read
	case r.PostForm != nil, r.MultipartForm != nil:
		return someRead
	case first:
		return unread
	default:
		return -1
	}
}

// Results of bodyLength for a body of unknown length. unread means that no outer handler has
// read any of the body, so readBody accepts whatever it has read itself. someRead means that an
// outer handler has read a part of the body. The number someRead is larger than any body, so
// that readBody finds that bytes are missing and refuses the request.
const (
	unread   = -2
	someRead = math.MaxInt64
)

// isFirst reports whether the server calls h directly, or through an http.ServeMux only. No
// other handler can then have read the body.
func isFirst(r *http.Request, asked target, h *guarded) bool {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if server == nil || r.URL.EscapedPath() != asked.path || r.Form != nil || r.PostForm != nil || r.MultipartForm != nil {
		return false
	}
	root := server.Handler
	if root == nil {
		root = http.DefaultServeMux
	}
	if mux, ok := root.(*http.ServeMux); ok {
		var pattern string
		if root, pattern = mux.Handler(r); pattern != r.Pattern {
			return false
		}
	}
	first, ok := root.(*guarded)
	return ok && first == h
}
