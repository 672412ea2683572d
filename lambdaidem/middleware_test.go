package lambdaidem_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

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
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/a", strings.NewReader(body)))
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
		r := httptest.NewRequest("POST", "/a", nil)
		r.Header.Set("Idempotency-Key", "k")
		inner.ServeHTTP(w, r)
		if got := w.Header()["Content-Type"]; len(got) != 1 || got[0] != "application/json" || w.Header().Get("X-Outer") != "1" {
			t.Errorf("the headers are %v", w.Header())
		}
	}
}

func TestR1_EncodedBodiesAreNotSniffed(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	for name, header := range map[string]http.Header{"encoded": {"Content-Encoding": {"gzip"}}, "suppressed": {"Content-Type": nil}} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for n, v := range header {
				w.Header()[n] = v
			}
			_, _ = io.WriteString(w, "<html>")
		})
		want := serveReal(t, h)
		guarded := g.Middleware(h)
		for range 2 {
			if got := serveReal(t, guarded, "Idempotency-Key", name).Header["Content-Type"]; len(got) != len(want.Header["Content-Type"]) {
				t.Errorf("%s: Content-Type is %v, without the guard it is %v", name, got, want.Header["Content-Type"])
			}
		}
	}
}

// serveReal sends an empty POST through a real net/http server.
func serveReal(t *testing.T, h http.Handler, header ...string) *http.Response {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	defer s.Client().CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp
}

func TestF3_ABodyReadBeforeTheGuardIsRefused(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	inner := g.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest("POST", "/a", strings.NewReader("amount=1"))
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
