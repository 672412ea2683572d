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

// Outermost lets a [Guard.Middleware] further inside know what the client asked
// for and sent, whatever handlers between them strip, rewrite or read. Put it
// around everything else:
//
//	http.ListenAndServe(addr, lambdaidem.Outermost(handler))
//
// It changes no answer. It is needed where the request comes from something
// else than a net/http server and so has no RequestURI (lambdaurl of
// aws-lambda-go, for one), and where bodies come without a Content-Length
// through handlers that may have read some of them. The middleware says so when
// it needs it.
func Outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o := originalOf(r); o != nil && o.uri == r.RequestURI { // one is outside of this one
			next.ServeHTTP(w, r)
			return
		}
		o := &original{uri: r.RequestURI, host: r.Host, length: r.ContentLength}
		if o.uri == "" { // a client's form of request, where 0 may mean unknown
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

// original is a request as it came, as far as the guard needs it.
type original struct {
	uri    string
	host   string
	length int64 // declared; -1: unknown
	read   int64 // bytes of the body that were handed out
}

type originalKey struct{}

func originalOf(r *http.Request) *original {
	o, _ := r.Context().Value(originalKey{}).(*original)
	return o
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	o *original
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.o.read += int64(n)
	return n, err
}

// target is what a client asked for, before any handler changed it. The host is
// without its port, in lower case. What was rewritten counts as both: the whole
// of what was asked for, rewrittenTo, and what became of it.
type target struct{ host, path, query string }

const rewrittenTo = " > "

// targetOf reads what a request asks for: its own line, which a router
// that strips a prefix from r.URL leaves as it was; and, behind Outermost, what
// the client's was, which a handler may have replaced, or which a request that a
// handler made of it has not.
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
			asked = target{both(first.host, asked.host), both(first.path, asked.path), both(first.query, asked.query)}
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

func both(first, second string) string {
	if first == second {
		return first
	}
	return first + rewrittenTo + second
}

// routeOf returns the route template of a request that an http.ServeMux matched, and
// the pattern's host, in lower case. Both are empty unless the pattern is
// provably one route: it names one, it fits what the client asked for as a
// whole, and nothing rewrote that on the way. A nested mux behind a stripped
// prefix and the pattern of another router fail in one of these; then the
// concrete path stands in.
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
	if host != "" && host != asked.host || !fits(template, asked.path) {
		return "", ""
	}
	return host, template
}

// fits reports whether a pattern's path is one route and matches a path, segment
// by segment, as http.ServeMux does. A subtree ("/a/"), a rest ("{rest...}") and
// another router's wildcard ("*") are no one route.
func fits(template, path string) bool {
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
			if g == "" || strings.ContainsAny(w, ":") { // a pattern of another router's making
				return false
			}
		case w != g:
			return false
		}
	}
	return true
}

// hostname returns a host without its port, the brackets of an IPv6 address and the
// dot that may end a name.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), ".")
}

// bodyLength returns how many bytes of body the client sent, known once the body was
// read to its end; -1 if nobody knows. A handler that replaced the body says by
// ContentLength how long it is now.
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

// unread stands for whatever length the body has, since nobody read of it
// before; someRead for more than is left.
const (
	unread   = -2
	someRead = math.MaxInt64
)

// isFirst reports whether a server hands its requests to h without any other
// handler before it but a mux: then nobody has read the body.
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
