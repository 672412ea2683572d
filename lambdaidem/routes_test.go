package lambdaidem_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// says returns a handler that answers with the given name.
func says(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
}

// Two routes never share a record, whichever router leads to them, however they are mounted, and
// whatever the patterns are.
func TestF1_RoutersKeepRoutesApart(t *testing.T) {
	guarded := func() func(http.Handler) http.Handler {
		return lambdaidem.New(memstore.New(), anonymous).Middleware
	}
	for name, c := range map[string]struct {
		routes func() http.Handler
		urls   [2]string
	}{
		"stripped prefixes": {func() http.Handler {
			g, outer := guarded(), http.NewServeMux()
			for _, tenant := range []string{"a", "b"} {
				inner := http.NewServeMux()
				inner.Handle("POST /payments", g(says(tenant)))
				outer.Handle("/tenant-"+tenant+"/", http.StripPrefix("/tenant-"+tenant, inner))
			}
			return outer
		}, [2]string{"/tenant-a/payments", "/tenant-b/payments"}},
		"stripped prefixes that look like the pattern": {func() http.Handler {
			g, outer := guarded(), http.NewServeMux()
			for _, tenant := range []string{"a", "b"} {
				inner := http.NewServeMux()
				inner.Handle("POST /{x}/{y}", g(says(tenant)))
				outer.Handle("/"+tenant+"/", http.StripPrefix("/"+tenant, inner))
			}
			return outer
		}, [2]string{"/a/x/y", "/b/x/y"}},
		"rewritten paths of one length": {func() http.Handler {
			g := guarded()
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name := r.URL.Path
				inner := http.NewServeMux()
				inner.Handle("POST /payments", g(says(name)))
				r.URL.Path = "/payments"
				inner.ServeHTTP(w, r)
			})
		}, [2]string{"/tenant-a", "/tenant-b"}},
		"rewritten paths that both fit one pattern": {func() http.Handler {
			g := guarded()
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name := r.URL.Path
				inner := http.NewServeMux()
				inner.Handle("POST /{version}/pay", g(says(name)))
				r.URL.Path = "/v1/pay"
				inner.ServeHTTP(w, r)
			})
		}, [2]string{"/a/pay", "/b/pay"}},
		"hosts that an inner handler rewrote": {func() http.Handler {
			g := guarded()
			return lambdaidem.Outermost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				name := r.Host
				r.Host = "internal"
				g(says(name)).ServeHTTP(w, r)
			}))
		}, [2]string{"http://a.example.com/pay", "http://b.example.com/pay"}},
		"hosts in patterns": {func() http.Handler {
			g, m := guarded(), http.NewServeMux()
			m.Handle("POST a.example.com/", g(says("a")))
			m.Handle("POST b.example.com/", g(says("b")))
			return m
		}, [2]string{"http://a.example.com/", "http://b.example.com/"}},
		"hosts in patterns of one route": {func() http.Handler {
			g, m := guarded(), http.NewServeMux()
			m.Handle("POST a.example.com/pay", g(says("a")))
			m.Handle("POST b.example.com/pay", g(says("b")))
			return m
		}, [2]string{"http://a.example.com/pay", "http://b.example.com:8080/pay"}},
		"hosts of an outer mux": {func() http.Handler {
			g, outer := guarded(), http.NewServeMux()
			for _, tenant := range []string{"a", "b"} {
				inner := http.NewServeMux()
				inner.Handle("POST /payments", g(says(tenant)))
				outer.Handle(tenant+".example.com/", inner)
			}
			return outer
		}, [2]string{"http://a.example.com/payments", "http://b.example.com/payments"}},
		"subtrees": {func() http.Handler {
			g, m := guarded(), http.NewServeMux()
			m.Handle("POST /tree/", g(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })))
			return m
		}, [2]string{"/tree/a", "/tree/b"}},
		"chi, a middleware of a route": {func() http.Handler {
			g, r := guarded(), chi.NewRouter()
			r.Route("/api", func(r chi.Router) {
				r.Use(g)
				r.Method(http.MethodPost, "/payments", says("payments"))
				r.Method(http.MethodPost, "/refunds", says("refunds"))
			})
			return r
		}, [2]string{"/api/payments", "/api/refunds"}},
		"chi, one handler in two mounts": {func() http.Handler {
			g, r := guarded(), chi.NewRouter()
			for _, tenant := range []string{"a", "b"} {
				r.Route("/tenant-"+tenant, func(r chi.Router) { r.With(g).Method(http.MethodPost, "/{kind}", says(tenant)) })
			}
			return r
		}, [2]string{"/tenant-a/payments", "/tenant-b/payments"}},
		"chi, a regular expression": {func() http.Handler {
			g, r := guarded(), chi.NewRouter()
			r.With(g).Method(http.MethodPost, "/{kind:a|b}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, chi.URLParam(r, "kind"))
			}))
			return r
		}, [2]string{"/a", "/b"}},
		"gorilla": {func() http.Handler {
			g, r := guarded(), mux.NewRouter()
			r.Use(mux.MiddlewareFunc(g))
			r.Handle("/payments", says("payments")).Methods(http.MethodPost)
			r.Handle("/refunds", says("refunds")).Methods(http.MethodPost)
			return r
		}, [2]string{"/payments", "/refunds"}},
		"gorilla, by host": {func() http.Handler {
			g, r := guarded(), mux.NewRouter()
			r.Host("{tenant}.example.com").Path("/pay").Handler(g(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, mux.Vars(r)["tenant"])
			})))
			return r
		}, [2]string{"http://a.example.com/pay", "http://b.example.com/pay"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := c.routes()
			one, two := serve(h, posted(t, c.urls[0])), serve(h, posted(t, c.urls[1]))
			if one.Code != 200 || two.Code != 200 || one.Body.String() == two.Body.String() || two.Header().Get(mark) != "" {
				t.Errorf("%s got %d %q, then %s got %d %q", c.urls[0], one.Code, one.Body, c.urls[1], two.Code, two.Body)
			}
			for i, url := range c.urls {
				again := serve(h, posted(t, url))
				if again.Header().Get(mark) == "" || again.Body.String() != []string{one.Body.String(), two.Body.String()}[i] {
					t.Errorf("%s again got %q", url, again.Body)
				}
			}
		})
	}
}

// The fingerprint, too, uses the target that the client asked for.
func TestF3_FingerprintsAreOfTheUnstrippedTarget(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))
	outer := http.NewServeMux()
	outer.HandleFunc("POST /{tenant}/pay", func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = "" // some handlers rewrite the query
		h.ServeHTTP(w, r)
	})
	serve(outer, posted(t, "/a/pay?amount=1"))
	for url, want := range map[string]int{"/a/pay?amount=2": 422, "/b/pay?amount=1": 422, "/a/pay?amount=1": 200} {
		if w := serve(outer, posted(t, url)); w.Code != want {
			t.Errorf("%s: %d, want %d", url, w.Code, want)
		}
	}
}

// A pattern replaces the path in the route only if it is a pattern of the mux with wildcards for
// single segments.
func TestF1_APatternStandsInOnlyForItsOwnRoute(t *testing.T) {
	for _, c := range []struct {
		pattern, a, b string
		status        int // of b after a; the payload differs by the path
	}{
		{"POST /p/{id}", "/p/1", "/p/2", 422},
		{"/p/{id}", "/p/1", "/p/2", 422},
		{"POST  \t/p/{id}", "/p/1", "/p/2", 422},
		{"example.com/p/{id}", "/p/1", "/p/2", 422},
		{"Example.com/p/{id}", "http://Example.com/p/1", "http://Example.com/p/2", 422},
		{"POST /p/{id}/{$}", "/p/1/", "/p/2/", 422},
		{"POST /p q/{id}", "/p%20q/1", "/p%20q/2", 422},
		{"POST /p/{id}", "/p/a%2Fb", "/p/c", 422},
		{"POST /p/{rest...}", "/p/1", "/p/2", 200},
		{"POST /", "/p/1", "/p/2", 200},
	} {
		m := http.NewServeMux()
		m.Handle(c.pattern, lambdaidem.New(memstore.New(), anonymous).Middleware(says("x")))
		if w := serve(m, posted(t, c.a)); w.Code != 200 {
			t.Fatalf("%s: %s got %d", c.pattern, c.a, w.Code)
		}
		if w := serve(m, posted(t, c.b)); w.Code != c.status {
			t.Errorf("%s: %s after %s got %d, want %d", c.pattern, c.b, c.a, w.Code, c.status)
		}
	}
	// A pattern that something else wrote into the request is not used.
	for _, pattern := range []string{"PUT /p/1", "PUT /p/{id}", "/p/{id:[0-9]+}", "/*", "/p/*", "/p/{*rest}", "/p", "/p/1/2", "other.example/p/1", "p", "", "/p/{$}"} {
		h := lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))
		for _, path := range []string{"/p/1", "/p/2"} {
			r := posted(t, path)
			r.Pattern = pattern
			if w := serve(h, r); w.Code != 200 || w.Header().Get(mark) != "" {
				t.Errorf("pattern %q: %s got %d", pattern, path, w.Code)
			}
		}
	}
	// A wildcard is one segment that is not empty.
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))
	for _, path := range []string{"/p/", "/p/1"} {
		r := posted(t, path)
		r.Pattern = "/p/{id}"
		if w := serve(h, r); w.Code != 200 || w.Header().Get(mark) != "" {
			t.Errorf("%s got %d", path, w.Code)
		}
	}
}

// Without the request line, the guard can't know what was stripped from the path.
func TestF1_ARequestWithoutItsTargetIsRefused(t *testing.T) {
	seen := &recorder{}
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.Observer = seen })
	inner := http.NewServeMux()
	inner.Handle("POST /payments", g.Middleware(says("paid")))
	outer := http.NewServeMux()
	for _, tenant := range []string{"/a", "/b"} {
		outer.Handle(tenant+"/", http.StripPrefix(tenant, inner))
	}
	request := func(path string) *http.Request { // as lambdaurl of aws-lambda-go makes them
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com"+path, strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		return r
	}
	if w := serve(outer, request("/a/payments")); w.Code != 500 || !strings.Contains(w.Body.String(), string(lambdaidem.ErrRequestInvalid)) {
		t.Errorf("it got %d %s", w.Code, w.Body)
	}
	if err := seen.last(t).Err; err == nil || !strings.Contains(err.Error(), "Outermost") {
		t.Errorf("the log says %v", err)
	}
	unread := request("/a/payments")
	unread.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) // another error doesn't hide this one
	if w := serve(outer, unread); w.Code != 500 || !strings.Contains(seen.last(t).Err.Error(), "Outermost") {
		t.Errorf("with a body that breaks off it got %d, and the log says %v", w.Code, seen.last(t).Err)
	}
	for i := range 2 {
		for _, path := range []string{"/a/payments", "/b/payments"} {
			if w := serve(lambdaidem.Outermost(outer), request(path)); w.Code != 200 || (w.Header().Get(mark) != "") != (i == 1) {
				t.Errorf("%s, time %d, behind Outermost: %d %s", path, i, w.Code, w.Header())
			}
		}
	}
}

// A body that can't be known completely never counts as equal to another.
func TestF3_BodiesThatWereReadBefore(t *testing.T) {
	reads := func(n int64, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n < 0 {
				_, _ = io.Copy(io.Discard, r.Body)
			} else {
				_, _ = io.CopyN(io.Discard, r.Body, n)
			}
			next.ServeHTTP(w, r)
		})
	}
	for _, read := range []int64{-1, 1, 5} {
		for _, chunked := range []bool{false, true} {
			for _, known := range []bool{false, true} { // if Outermost counts the body
				t.Run(fmt.Sprint(read, chunked, known), func(t *testing.T) {
					h := reads(read, lambdaidem.New(memstore.New(), anonymous).Middleware(says("paid")))
					if known {
						h = lambdaidem.Outermost(h)
					}
					want := 500
					if chunked && !known {
						want = 411
					}
					for _, body := range []string{"amount=1", "amount=2"} {
						if got := sendReal(t, h, body, chunked); got.status != want || !strings.Contains(got.body, string(lambdaidem.ErrBodyUnknown)) {
							t.Errorf("%s: the answer is %d %s, want %d", body, got.status, got.body, want)
						}
					}
				})
			}
		}
	}
}

// A body without a declared length is known completely if no handler can have read from it, or if
// Outermost counts it.
func TestF3_ChunkedBodiesThatNobodyRead(t *testing.T) {
	guarded := func() http.Handler { return lambdaidem.New(memstore.New(), anonymous).Middleware(says("paid")) }
	muxed := func(h http.Handler) http.Handler {
		m := http.NewServeMux()
		m.Handle("POST /a", h)
		return m
	}
	passing := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
	}
	givesBack := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(string(body))), int64(len(body))
			h.ServeHTTP(w, r)
		})
	}
	for name, h := range map[string]http.Handler{
		"the server's own handler": guarded(),
		"the mux's own handler":    muxed(guarded()),
		"behind Outermost":         lambdaidem.Outermost(passing(guarded())),
		"given back":               passing(givesBack(guarded())),
		"given back, Outermost":    lambdaidem.Outermost(givesBack(guarded())),
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				body   string
				status int
				mark   bool
			}{{"amount=1", 200, false}, {"amount=1", 200, true}, {"amount=2", 422, false}} {
				if got := sendReal(t, h, c.body, true); got.status != c.status || (got.header.Get(mark) != "") != c.mark {
					t.Errorf("%s: the answer is %d %v %s", c.body, got.status, got.header, got.body)
				}
			}
		})
	}
	for name, h := range map[string]http.Handler{
		"another handler before it": passing(guarded()),
		"another handler in a mux":  muxed(passing(guarded())),
		"a mux within a mux": func() http.Handler {
			m, g := http.NewServeMux(), guarded()
			m.Handle("POST /b", g)
			m.HandleFunc("POST /a", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				r.URL.Path = "/b"
				m.ServeHTTP(w, r)
			})
			return m
		}(),
		"a method that another handler overrode": func() http.Handler {
			m, g := http.NewServeMux(), guarded()
			m.Handle("PATCH /a", g)
			m.HandleFunc("POST /a", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				r.Method = http.MethodPatch
				g.ServeHTTP(w, r)
			})
			return m
		}(),
	} {
		if got := sendReal(t, h, "amount=1", true); got.status != 411 {
			t.Errorf("%s: the answer is %d %s", name, got.status, got.body)
		}
	}
}

// If a request wasn't made by a server, a length of 0 may mean that the length is unknown, so
// Outermost counts its body.
func TestF3_BodiesOfRequestsThatNoServerMade(t *testing.T) {
	request := func(body string) *http.Request { // as lambdaurl of aws-lambda-go makes them
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/a", io.NopCloser(strings.NewReader(body)))
		if err != nil || r.ContentLength != 0 {
			t.Fatalf("the length is %d, %v", r.ContentLength, err)
		}
		r.Header.Set("Idempotency-Key", "k")
		return r
	}
	g := lambdaidem.New(memstore.New(), anonymous).Middleware(says("paid"))
	h := lambdaidem.Outermost(g)
	for _, c := range []struct {
		body   string
		status int
	}{{"amount=1", 200}, {"amount=1", 200}, {"amount=2", 422}, {"", 422}} {
		if w := serve(h, request(c.body)); w.Code != c.status {
			t.Errorf("%q got %d %s", c.body, w.Code, w.Body)
		}
	}
	reads := lambdaidem.Outermost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		g.ServeHTTP(w, r)
	}))
	if w := serve(reads, request("amount=1")); w.Code != 500 || !strings.Contains(w.Body.String(), string(lambdaidem.ErrBodyUnknown)) {
		t.Errorf("a body that was read got %d %s", w.Code, w.Body)
	}
}

type realAnswer struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
}

// sendReal sends a POST to /a to a real server.
func sendReal(t *testing.T, h http.Handler, body string, chunked bool) realAnswer {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/a", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if chunked {
		r.ContentLength = -1
	}
	r.Header.Set("Idempotency-Key", "k")
	return exchange(t, s, r)
}

func exchange(t *testing.T, s *httptest.Server, r *http.Request) realAnswer {
	t.Helper()
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Del("Date")
	return realAnswer{resp.StatusCode, resp.Header, resp.Trailer, string(text)}
}

// The length of a target is checked before the target is used, in every kind of handler, and events
// contain only a short form of it.
func TestS2_LongTargetsAreRefused(t *testing.T) {
	long := strings.Repeat("a", 410_000)
	for name, change := range map[string]func(*request){
		"path":  func(in *request) { in.RouteKey, in.RawPath = "$default", "/"+long },
		"query": func(in *request) { in.RawQueryString = long },
		"route": func(in *request) { in.RouteKey = "POST /" + long },
	} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.FailOpen = true })
		in := first()
		change(&in)
		wantProblem(t, r.send(t, in), http.StatusRequestURITooLong, lambdaidem.ErrURITooLong)
		r.wantRuns(t, 0)
		if n := len(r.store.allCalls()); n > 0 {
			t.Errorf("%s: the store was asked %d times", name, n)
		}
		if e := r.seen.last(t); len(e.Scope) > 1000 || len(e.Route) > 1000 || e.Kind != lambdaidem.EventKeyInvalid {
			t.Errorf("%s: the event has a scope of %d bytes", name, len(e.Scope))
		}
	}
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))
	if w := serve(h, posted(t, "/"+long)); w.Code != http.StatusRequestURITooLong {
		t.Errorf("net/http: %d", w.Code)
	}
	exact := newRig(nil, func(o *lambdaidem.Options) { o.MaxURI = len("/payments/payments?") })
	in := first()
	in.RawQueryString = "?"
	if out := exact.send(t, in); out.StatusCode != 201 {
		t.Errorf("at the bound: %+v", out)
	}
	in.RawQueryString = "??"
	wantProblem(t, exact.send(t, in), http.StatusRequestURITooLong, lambdaidem.ErrURITooLong)
}

// Each part of a scope is limited separately, so that route and caller can still be found and told
// apart.
func TestS2_ScopesAreBoundedPartByPart(t *testing.T) {
	long := strings.Repeat("é", 2000)
	scope := func(principal, operation string) string {
		r := newRig(nil)
		if _, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: operation, Principal: principal, Key: "k"},
			func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		return r.store.allClaims()[0].Scope
	}
	seen := map[string]bool{}
	for _, principal := range []string{long, long + "x", long[:500]} {
		for _, operation := range []string{"op" + long, "op" + long + "x"} {
			s := scope(principal, operation)
			parts := strings.Split(s, " ")
			if len(s) > 1000 || len(parts) != 4 || !strings.HasPrefix(parts[2], "opé") || !strings.HasPrefix(parts[3], "éé") || seen[s] || !strings.Contains(s, "%~") {
				t.Errorf("the scope is %q", s)
			}
			seen[s] = true
		}
	}
	for _, before := range []string{"", "a", "ab", "abc"} { // a part is never cut within a character
		if s := scope("p", before+strings.Repeat("€", 200)); !utf8.ValidString(s) || !strings.HasPrefix(strings.Split(s, " ")[2], before+"€") {
			t.Errorf("the scope is %q", s)
		}
	}
	// A part that looks like a shortened part gets another scope.
	cut := strings.Split(scope(long, "op"), " ")[3]
	if again := strings.Split(scope(cut, "op"), " ")[3]; again == cut {
		t.Errorf("two callers are told as %q", cut)
	}
}

// A path may contain a secret. ScopePath shortens what events show of the path. The caller stays
// visible, and the record stays the same.
func TestS2_PathsCanBeShortenedInScopes(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.ScopePath = func(path string) string { return strings.TrimSuffix(path, "SECRET") + "…" }
	})
	in := first()
	in.RouteKey, in.RawPath = "$default", "/reset/SECRET"
	r.send(t, in)
	plain := newRig(nil)
	plain.send(t, in)
	e := r.seen.last(t)
	if text := fmt.Sprintf("%+v %+v", e, r.record(t)); strings.Contains(text, "SECRET") || !strings.Contains(e.Scope, "/reset/…") || e.Route != "POST /reset/…" {
		t.Errorf("the event and the record are %s", text)
	}
	if a, b := r.store.allClaims()[0].ID, plain.store.allClaims()[0].ID; a != b {
		t.Errorf("the record is %s, want %s", a, b)
	}
	// A template contains no secret, so it isn't shortened.
	r.send(t, first())
	if e := r.seen.last(t); e.Route != "POST /payments" {
		t.Errorf("the route is told as %q", e.Route)
	}
}
