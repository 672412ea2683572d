package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// With the guard, a client gets the same answer as without it, both for the first request and for
// replays. This covers headers of outer handlers, the handler's changes to them, and trailers.
func TestR1_MiddlewareChangesNothing(t *testing.T) {
	outerHeader := func(next http.Handler) http.Handler {
		n := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			h := w.Header()
			h.Set("Vary", "Origin")
			h.Set("Set-Cookie", "outer=1")
			h.Set("X-Powered-By", "outer")
			h.Set("X-Request-Number", fmt.Sprint(n))
			h.Set("Cache-Control", "no-store")
			next.ServeHTTP(w, r)
		})
	}
	for name, h := range map[string]http.HandlerFunc{
		"nothing":    func(http.ResponseWriter, *http.Request) {},
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"no content, written": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("writing a body with 204: %v", err)
			}
		},
		"not modified, written": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("writing a body with 304: %v", err)
			}
		},
		"adds": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Accept")
			w.Header().Add("Set-Cookie", "inner=1")
			w.Header().Add("Set-Cookie", "inner=2")
			w.Header().Add("X-New", "1")
		},
		"replaces": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Vary", "*")
			w.Header()["Set-Cookie"] = []string{"inner=1", "outer=1"}
			w.Header().Set("Cache-Control", "private")
		},
		"takes away": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("X-Powered-By")
			w.Header().Del("Set-Cookie")
		},
		"reads": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Seen", w.Header().Get("Vary")) },
		"late": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.Header().Del("Vary")
			w.Header().Add("X-Late", "1")
		},
		"no sniffing": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>")
		},
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "<html>")
		},
		"declared trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Trailer", "X-Checksum, x-count")
			w.Header().Add("Trailer", "X-Unset")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Checksum", "abc")
			w.Header()["X-Count"] = []string{"1", "2"}
			w.Header().Set("X-Undeclared", "1")
		},
		"prefixed trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"X-Before", "1")
			_, _ = io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"X-After", "2")
		},
		"too long for its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "abc")
			if _, err := io.WriteString(w, "d"); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("writing more than was declared: %v", err)
			}
		},
		"odd length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "no")
			_, _ = io.WriteString(w, "abc")
		},
	} {
		t.Run(name, func(t *testing.T) {
			send := func(s *httptest.Server) realAnswer {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/a", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Idempotency-Key", "k")
				return exchange(t, s, r)
			}
			plain, guarded := httptest.NewServer(outerHeader(h)), httptest.NewServer(outerHeader(lambdaidem.New(memstore.New(), anonymous).Middleware(h)))
			defer plain.Close()
			defer guarded.Close()
			for i := range 3 {
				want, got := send(plain), send(guarded)
				if again := got.header.Get(mark) == "true"; again != (i > 0) {
					t.Errorf("answer %d is a replay: %v", i, again)
				}
				got.header.Del(mark)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("answer %d:\ngot  %+v\nwant %+v", i, got, want)
				}
			}
		})
	}
}

// UnstoredHeaders are not stored, whichever way a header was set.
func TestR2_UnstoredHeadersOfMiddleware(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) {
		o.UnstoredHeaders = []string{"set-cookie", "x-secret", "X-Powered-By"}
	})
	inner := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "session=secret")
		w.Header().Add("Trailer", "X-Secret")
		w.Header().Del("X-Powered-By")
		w.WriteHeader(201)
		w.Header().Set("X-Secret", "secret")
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "outer=1")
		w.Header().Set("X-Powered-By", "outer")
		inner.ServeHTTP(w, r)
	}))
	defer s.Close()
	for i, want := range []struct{ cookies, trailer, by string }{{"[outer=1 session=secret]", "secret", ""}, {"[outer=1]", "", "outer"}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		got := exchange(t, s, r)
		if fmt.Sprint(got.header["Set-Cookie"]) != want.cookies || got.trailer.Get("X-Secret") != want.trailer || got.header.Get("X-Powered-By") != want.by {
			t.Errorf("answer %d: %+v", i, got)
		}
	}
}

// Hooks and marks replace what outer handlers set, also where the handler has added to an outer
// handler's values.
func TestR2_MarksReplaceWhatOuterHandlersSet(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) {
		o.ReplayMarks = append(o.ReplayMarks, lambdaidem.Mark{Name: "x-cache", Value: "HIT"})
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, r *lambdaidem.Response) {
			r.Set("vary", "hook")
			r.Set("Link", "hook")
		}
	})
	inner := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Link", "inner")
	}))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Link", "outer")
		inner.ServeHTTP(w, r)
	})
	serve(h, posted(t, "/a"))
	w := serve(h, posted(t, "/a"))
	for name, want := range map[string]string{mark: "[true]", "x-cache": "[HIT]", "X-Cache": "[]", "vary": "[hook]", "Link": "[hook]"} {
		if got := fmt.Sprint(w.Header()[name]); got != want {
			t.Errorf("the replay has %s: %s, want %s", name, got, want)
		}
	}
}

// Payload format 2.0 has no multiValueHeaders, so a replay sends none.
func TestR1_HTTPAPIReplaysWhatTheGatewaySends(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, Headers: map[string]string{"X-A": "sent"},
			MultiValueHeaders: map[string][]string{"X-A": {"ignored"}, "X-B": {"ignored"}, "Set-Cookie": {"ignored=1"}}}, nil
	})
	r.send(t, first())
	out := r.send(t, first())
	if out.Headers["X-A"] != "sent" || out.Headers["X-B"] != "" || len(out.MultiValueHeaders) > 0 || len(out.Cookies) > 0 {
		t.Errorf("the replay is %+v", out)
	}
	// A header that a hook sets to several values becomes one header in payload format 2.0. Cookies
	// have their own field.
	hooked := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, Cookies: []string{"a=1"}}, nil
	},
		func(o *lambdaidem.Options) {
			o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, r *lambdaidem.Response) {
				r.Header["Link"], r.Header["Set-Cookie"] = []string{"x", "y"}, []string{"b=2", "c=3"}
			}
		})
	hooked.send(t, first())
	if out := hooked.send(t, first()); out.Headers["Link"] != "x, y" || fmt.Sprint(out.Cookies) != "[b=2 c=3 a=1]" {
		t.Errorf("the hooked replay is %+v", out)
	}
}

// A REST API merges headers and multiValueHeaders by its own rule, so a replay has both maps as the
// handler wrote them.
func TestR1_RESTReplaysBothHeaderMaps(t *testing.T) {
	type (
		single = map[string]string
		multi  = map[string][]string
	)
	for name, c := range map[string]struct {
		single single
		multi  multi
	}{
		"one name, one value":        {single{"X-A": "1"}, multi{"X-A": {"2"}}},
		"one name, several":          {single{"X-A": "1"}, multi{"X-A": {"2", "1", "3"}}},
		"names that differ in case":  {single{"x-a": "1", "X-B": "b"}, multi{"X-A": {"2"}, "X-b": {"3", "4"}}},
		"three spellings":            {single{"x-a": "1", "X-a": "2"}, multi{"X-A": {"3"}}},
		"not UTF-8":                  {single{"x-a": "\xff"}, multi{"X-A": {"\xfe"}}},
		"a list of none":             {single{"x-a": "1"}, multi{"X-A": {}}},
		"names that have one of two": {single{"X-A": "1"}, multi{"X-B": {"2", "3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := lambdaidem.New(memstore.New(), quiet)
			h := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
				return events.APIGatewayProxyResponse{StatusCode: 200, Headers: maps.Clone(c.single), MultiValueHeaders: maps.Clone(c.multi)}, nil
			})
			in := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a", Headers: map[string]string{"idempotency-key": "k"}}
			for i := range 2 {
				out, err := h(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				delete(out.Headers, mark)
				if !reflect.DeepEqual(out.Headers, c.single) || !reflect.DeepEqual(out.MultiValueHeaders, c.multi) {
					t.Errorf("answer %d is %v %v, want %v %v", i, out.Headers, out.MultiValueHeaders, c.single, c.multi)
				}
			}
		})
	}
	// A header that is removed is removed from both maps.
	g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) { o.UnstoredHeaders = []string{"X-a"} })
	h := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200, Headers: single{"x-a": "1"}, MultiValueHeaders: multi{"X-A": {"2"}}}, nil
	})
	in := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a", Headers: map[string]string{"idempotency-key": "k"}}
	for i := range 2 {
		out, err := h(t.Context(), in)
		if text := strings.ToLower(fmt.Sprint(out.Headers, out.MultiValueHeaders)); err != nil || strings.Contains(text, "x-a:") != (i == 0) {
			t.Errorf("answer %d has %s, %v", i, text, err)
		}
	}
}

// Values that the handler adds to an outer handler's header go into this answer only, even if the
// outer handler sets the same slice in every answer.
func TestR1_AnswersShareNoHeaderValues(t *testing.T) {
	shared := append(make([]string, 0, 8), "Origin")
	inner := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", r.URL.Path)
	}))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Vary"] = shared
		inner.ServeHTTP(w, r)
	})
	one, two := serve(h, posted(t, "/one")), serve(h, posted(t, "/two"))
	if got := fmt.Sprint(one.Header()["Vary"], two.Header()["Vary"]); got != "[Origin /one] [Origin /two]" {
		t.Errorf("the answers have %s", got)
	}
}
