package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func anonymous(o *lambdaidem.Options) { o.AnonymousCallers, o.Observer = true, lambdaidem.Discard }

// posted returns a POST to path with a key.
func posted(t *testing.T, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
	r.Header.Set("Idempotency-Key", "k")
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// The first answer and the replay are what the handler would answer unguarded.
func TestV1_MiddlewareReplays(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"status alone": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"body alone":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"binary":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff, 0, 1, 0xfe}) },
		"several writes": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			_, _ = io.WriteString(w, "b")
		},
		"error":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such order", http.StatusNotFound) },
		"no content":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"early hints": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProcessing); w.WriteHeader(201) },
		"second status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.Header().Set("Late", "1")
			_, _ = io.WriteString(w, "x")
		},
		"repeated headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Link", "b")
			w.Header().Add("Link", "a")
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2")
			w.WriteHeader(201)
		},
		"echo": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Length", fmt.Sprint(r.ContentLength, err))
			_, _ = w.Write(body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain := serveReal(t, h)
			guarded := lambdaidem.New(memstore.New(), anonymous).Middleware(h)
			for i := range 2 {
				got := serveReal(t, guarded)
				if again := got.Header.Get(mark) == "true"; again != (i == 1) {
					t.Errorf("answer %d is a replay: %v", i, again)
				}
				got.Header.Del(mark)
				if !reflect.DeepEqual(got, plain) {
					t.Errorf("answer %d is %+v, unguarded it is %+v", i, got, plain)
				}
			}
		})
	}
}

// The mux's pattern is the route template. A pattern for a subtree is not.
func TestF1_PatternsAreRouteTemplates(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		status int
		runs   int
	}{
		{"/payments/1", "/payments/2", 422, 1}, // the same route and another payload
		{"/payments/1", "/payments/1", 200, 1},
		{"/tree/a", "/tree/b", 200, 2},
		{"/rest/a", "/rest/b", 200, 2},
		{"/exact/", "/payments/1", 200, 2},
	} {
		runs := 0
		h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }))
		mux := http.NewServeMux()
		for _, pattern := range []string{"POST /payments/{id}", "POST /exact/{$}", "/tree/", "/rest/{path...}"} {
			mux.Handle(pattern, h)
		}
		serve(mux, posted(t, c.a))
		if w := serve(mux, posted(t, c.b)); w.Code != c.status || runs != c.runs {
			t.Errorf("%s after %s: %d after %d runs", c.b, c.a, w.Code, runs)
		}
	}
}

func TestF2_MiddlewareKeepsCallersApart(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.Discard
		o.Principal = func(_ context.Context, r *lambdaidem.Request) (string, error) {
			if v := r.Values("X-Session"); len(v) == 1 {
				return v[0], nil
			}
			return "", errors.New("no session")
		}
	})
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Session")) }))
	for _, who := range []string{"alice", "bob", "alice"} {
		r := posted(t, "/a")
		r.Header.Set("X-Session", who)
		if w := serve(h, r); w.Body.String() != who {
			t.Errorf("%s got %q", who, w.Body)
		}
	}
	if w := serve(h, posted(t, "/a")); w.Code != http.StatusForbidden {
		t.Errorf("a caller whom nothing tells apart got %d", w.Code)
	}
}

// A streaming response is refused with an explanation at the first attempt to stream.
func TestV1_FlushAndHijackAreRefused(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous)
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.Flush(); !errors.Is(err, lambdaidem.ErrStreaming) || !strings.Contains(err.Error(), "stream") {
			t.Errorf("Flush returned %v", err)
		}
		if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijack returned %v", err)
		}
		if _, ok := w.(http.Flusher); ok {
			t.Error("the writer says that it can flush")
		}
		w.WriteHeader(201)
	}))
	if w := serve(h, posted(t, "/a")); w.Code != 201 {
		t.Errorf("the answer is %d", w.Code)
	}
}

// An unguarded request can stream.
func TestK4_UnguardedRequestsStream(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush returned %v", err)
		}
	}))
	if w := serve(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil)); !w.Flushed {
		t.Error("nothing was flushed")
	}
}

// A status that makes net/http panic makes the guard panic too, and the record is released.
func TestX2_MiddlewarePanicsAtNoStatus(t *testing.T) {
	store := newFaulty()
	h := lambdaidem.New(store, anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(0) }))
	func() {
		defer func() {
			if got := recover(); !strings.Contains(fmt.Sprint(got), "invalid WriteHeader code 0") {
				t.Errorf("recovered %v", got)
			}
		}()
		serve(h, posted(t, "/a"))
	}()
	if calls := store.allCalls(); !slices.Equal(calls, []string{acquire, release}) {
		t.Errorf("the store was asked to %v", calls)
	}
}

// A 7xx status can't be meant as an answer. It is sent as it is, and the record is released.
func TestX1_MiddlewareReleases7xx(t *testing.T) {
	store := newFaulty()
	h := lambdaidem.New(store, anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(700) }))
	if w := serve(h, posted(t, "/a")); w.Code != 700 || store.count(release) != 1 {
		t.Errorf("the answer is %d after %v", w.Code, store.allCalls())
	}
}

func TestX2_MiddlewareSendsNothingOfAPanickedHandler(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}))
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // it has to be the very value
				t.Errorf("recovered %v", got)
			}
		}()
		h.ServeHTTP(w, posted(t, "/a"))
	}()
	if w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("it sent %v %q", w.Header(), w.Body)
	}
}

func TestL6_MiddlewareTellsTheAttempt(t *testing.T) {
	var numbers []int
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		numbers = append(numbers, lambdaidem.Attempt(r.Context()))
		w.WriteHeader(503)
	}))
	serve(h, posted(t, "/a"))
	serve(h, posted(t, "/a"))
	if !slices.Equal(numbers, []int{1, 2}) {
		t.Errorf("the attempts are %v", numbers)
	}
}

// A body that is too large or incomplete is the client's error.
func TestS2_MiddlewareBoundsTheBody(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.MaxBody = 10 }).
		Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	for status, body := range map[int]io.Reader{413: strings.NewReader("01234567890"), 400: iotest.ErrReader(errors.New("secret: reset"))} {
		r := posted(t, "/a")
		r.Body = io.NopCloser(body)
		if w := serve(h, r); w.Code != status || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("the answer is %d %s, want %d", w.Code, w.Body, status)
		}
	}
}

// The limit of an outer handler (http.MaxBytesHandler) is reported in the same way.
func TestS2_MiddlewareSaysThatAnOuterBoundWasPassed(t *testing.T) {
	h := http.MaxBytesHandler(lambdaidem.New(memstore.New(), anonymous).
		Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })), 10)
	r := posted(t, "/a")
	r.Body = io.NopCloser(strings.NewReader("01234567890"))
	if w := serve(h, r); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "larger than 10 bytes") {
		t.Errorf("the answer is %d %s", w.Code, w.Body)
	}
}

func TestK4_BypassedBodiesPassWhole(t *testing.T) {
	body := strings.Repeat("x", 100)
	for name, opt := range map[string]func(*lambdaidem.Options){
		"skip":   func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } },
		"no key": func(o *lambdaidem.Options) { o.KeyOptional = true },
	} {
		t.Run(name, func(t *testing.T) {
			g := lambdaidem.New(memstore.New(), opt, func(o *lambdaidem.Options) { o.MaxBody, o.AnonymousCallers = 10, true })
			var got []byte
			var err error
			h := g.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, err = io.ReadAll(r.Body) }))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", strings.NewReader(body)))
			if string(got) != body || err != nil {
				t.Errorf("the handler read %d bytes of %d, and %v", len(got), len(body), err)
			}
		})
	}
}

func TestR1_HeadersOfOuterHandlersAreReplacedNotDoubled(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	inner := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	for range 2 {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Outer", "1")
		r := posted(t, "/a")
		inner.ServeHTTP(w, r)
		if got := w.Header()["Content-Type"]; len(got) != 1 || got[0] != "application/json" || w.Header().Get("X-Outer") != "1" {
			t.Errorf("the headers are %v", w.Header())
		}
	}
}

// A handler may change a value in place instead of setting the header again.
func TestR1_AValueOfAnOuterHandlersHeaderThatIsChangedInPlace(t *testing.T) {
	inner := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Outer"][0] = "new"
		w.WriteHeader(http.StatusCreated)
	}))
	for range 2 {
		w := httptest.NewRecorder()
		w.Header()["X-Outer"] = []string{"old", "second"}
		inner.ServeHTTP(w, posted(t, "/a"))
		if got := w.Header()["X-Outer"]; !slices.Equal(got, []string{"new", "second"}) {
			t.Errorf("the header is %q", got)
		}
	}
}

func TestR1_EncodedBodiesAreNotSniffed(t *testing.T) {
	for name, header := range map[string]http.Header{"encoded": {"Content-Encoding": {"gzip"}}, "suppressed": {"Content-Type": nil}} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for n, v := range header {
				w.Header()[n] = v
			}
			_, _ = io.WriteString(w, "<html>")
		})
		want := serveReal(t, h)
		guarded := lambdaidem.New(memstore.New(), anonymous).Middleware(h)
		for range 2 {
			if got := serveReal(t, guarded).Header["Content-Type"]; len(got) != len(want.Header["Content-Type"]) {
				t.Errorf("%s: Content-Type is %v, without the guard it is %v", name, got, want.Header["Content-Type"])
			}
		}
	}
}

// answer is a response that a client got over a real connection.
type answer struct {
	Status int
	Header http.Header // without the date
	Body   string
}

// serveReal sends an empty POST with a key through a real net/http server.
func serveReal(t *testing.T, h http.Handler) answer {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	resp.Header.Del("Date")
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func TestF3_ABodyReadBeforeTheGuardIsRefused(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	inner := g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", strings.NewReader("amount=1"))
	r.Header.Set("Idempotency-Key", "k")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	inner.ServeHTTP(w, r)
	if w.Code != 500 {
		t.Errorf("the guard can't see the body and answered %d %s", w.Code, w.Body)
	}
}

// An outer handler that parses a form reads the body, so the request is refused whatever the body's
// length.
func TestF3_AFormParsedBeforeTheGuardIsRefused(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	for media, body := range map[string]string{
		"application/x-www-form-urlencoded": "amount=1",
		"multipart/form-data; boundary=b":   "--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1\r\n--b--\r\n",
	} {
		r := posted(t, "/a")
		r.Header.Set("Content-Type", media)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		if r.FormValue("amount") != "1" {
			t.Fatalf("%s: the form is %v", media, r.Form)
		}
		if w := serve(h, r); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), string(lambdaidem.ErrBodyUnknown)) {
			t.Errorf("%s: the answer is %d %s", media, w.Code, w.Body)
		}
	}
}

// A handler that reads a form part by part leaves only a marker in the request, and no parsed
// values.
func TestF3_AFormReadByPartsBeforeTheGuardIsRefused(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	r := posted(t, "/a")
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1\r\n--b--\r\n")), -1
	parts, err := r.MultipartReader()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parts.NextPart(); err != nil || r.PostForm != nil {
		t.Fatal(r.PostForm, err)
	}
	if w := serve(h, r); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), string(lambdaidem.ErrBodyUnknown)) {
		t.Errorf("the answer is %d %s", w.Code, w.Body)
	}
}

// net/http accepts methods in any case. One in lower case counts as the same method.
func TestK4_MiddlewareMatchesMethodsWithoutCase(t *testing.T) {
	runs := 0
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }))
	for i, method := range []string{"post", "Post", "POST"} {
		r := posted(t, "/a")
		r.Method = method
		if w := serve(h, r); (w.Header().Get(mark) != "") != (i > 0) || w.Code != 200 {
			t.Errorf("%s got %d %v", method, w.Code, w.Header())
		}
	}
	if runs != 1 {
		t.Errorf("it ran %d times", runs)
	}
}

// A path counts in its escaped form, because an escaped slash is part of a segment for one handler
// and the end of a segment for another.
func TestF3_EscapingOfAPathCounts(t *testing.T) {
	guarded := func() http.Handler { return lambdaidem.New(memstore.New(), anonymous).Middleware(says("x")) }
	routed := func() http.Handler {
		m := http.NewServeMux()
		m.Handle("POST /orders/{id}", guarded())
		return m
	}
	for _, c := range []struct {
		h      http.Handler
		a, b   string
		status int
	}{
		{guarded(), "/orders/a%2Fb", "/orders/a/b", 200}, // another record
		{guarded(), "/orders/a%2Fb", "/orders/a%2fb", 200},
		{routed(), "/orders/a%2Fb", "/orders/a%252Fb", 422}, // the same route, another payload
		{routed(), "/orders/%61", "/orders/a", 422},
	} {
		if w := serve(c.h, posted(t, c.a)); w.Code != 200 {
			t.Fatalf("%s got %d %s", c.a, w.Code, w.Body)
		}
		if w := serve(c.h, posted(t, c.b)); w.Code != c.status || w.Header().Get(mark) != "" {
			t.Errorf("%s after %s got %d %v", c.b, c.a, w.Code, w.Header())
		}
		if w := serve(c.h, posted(t, c.a)); w.Code != 200 || w.Header().Get(mark) == "" {
			t.Errorf("%s again got %d %v", c.a, w.Code, w.Header())
		}
	}
}

// Each value of a repeated header counts towards the limit.
func TestS2_MiddlewareCountsEveryHeaderValue(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.MaxHeaders = 5 }).Middleware(says("x"))
	for values, want := range map[int]int{4: 200, 5: 431} {
		r := posted(t, "/a")
		for range values {
			r.Header.Add("X-Repeated", "1")
		}
		if w := serve(h, r); w.Code != want {
			t.Errorf("the key and %d values of a header got %d, want %d", values, w.Code, want)
		}
	}
}

// An incomplete body is not a payload, however much of it arrived and whatever its declared length.
func TestF3_ABodyThatBreaksOffIsRefused(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	const came = "amount=1"
	for _, declared := range []int64{int64(len(came)), int64(len(came)) + 1, -1} {
		for _, outermost := range []bool{false, true} {
			r := posted(t, "/a")
			r.ContentLength = declared
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(came), iotest.ErrReader(io.ErrUnexpectedEOF)))
			whole := h
			if outermost {
				whole = lambdaidem.Outermost(h)
			}
			if w := serve(whole, r); w.Code != 400 || !strings.Contains(w.Body.String(), string(lambdaidem.ErrRequestInvalid)) {
				t.Errorf("declared %d, behind Outermost %v: %d %s", declared, outermost, w.Code, w.Body)
			}
		}
	}
}

// A hook or an operator may spell the header of an answer differently from net/http, which then
// must not add a Content-Type of its own.
func TestR1_AContentTypeInLowerCaseIsTheOnlyOne(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, r *lambdaidem.Response) {
			r.Set("content-type", "application/json")
		}
	})
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	for n := range 2 {
		out := serveReal(t, h)
		replayed := out.Header.Get(mark) == "true"
		if got := out.Header["Content-Type"]; replayed != (n > 0) || len(got) != 1 || replayed && got[0] != "application/json" {
			t.Errorf("replayed: %v; the response has the Content-Type %q", replayed, got)
		}
	}
}
