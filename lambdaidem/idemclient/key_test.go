package idemclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Each request gets its own random UUID of version 4 and keeps it in all retries, even if
// requests run concurrently.
func TestC1_EachRequestHasOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attempts := make(map[string]int)
		rt := idemclient.New(roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			key := r.Header.Get("Idempotency-Key")
			if attempts[key]++; attempts[key] < 3 {
				return nil, errNetwork
			}
			return answer(201, key)(r)
		}), []string{host})
		var wg sync.WaitGroup
		for range 50 {
			r := post(t.Context(), t, "x")
			wg.Go(func() {
				resp, err := rt.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, key := read(t, resp)
				if err := lambdaidem.UUIDv4or7Key(key); err != nil || key[14] != '4' {
					t.Errorf("%q: %v", key, err)
				}
			})
		}
		wg.Wait()
		if len(attempts) != 50 {
			t.Errorf("50 requests had %d keys", len(attempts))
		}
		for key, n := range attempts {
			if n != 3 {
				t.Errorf("%s was sent %d times", key, n)
			}
		}
	})
}

// The key in the request's header takes precedence over the context's key, which takes
// precedence over a new key.
func TestC1_WhichKey(t *testing.T) {
	const uuid = "new"
	for name, c := range map[string]struct {
		header  http.Header
		context string
		want    []string
	}{
		"new":                        {nil, "", []string{uuid}},
		"of the context":             {nil, "order-1", []string{"order-1"}},
		"of the header":              {http.Header{"Idempotency-Key": {"mine"}}, "order-1", []string{"mine"}},
		"of the header in any case":  {http.Header{"idempotency-KEY": {"mine"}}, "order-1", []string{"mine"}},
		"as it is, quotes and all":   {http.Header{"Idempotency-Key": {`"mi\"ne"`}}, "", []string{`"mi\"ne"`}},
		"several are the server's":   {http.Header{"Idempotency-Key": {"a", "b"}}, "", []string{"a", "b"}},
		"a header without any value": {http.Header{"Idempotency-Key": {}}, "", []string{uuid}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{answer(503, ""), answer(201, "")}}
				ctx := t.Context()
				if c.context != "" {
					ctx = idemclient.WithKey(ctx, c.context)
				}
				r := post(ctx, t, "x")
				r.Header = c.header
				resp, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) {
					o.NewKey = func(*http.Request) (string, error) { return uuid, nil }
				}).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if len(base.sent) != 2 {
					t.Fatalf("%d attempts", len(base.sent))
				}
				for i, s := range base.sent {
					if strings.Join(s.keys, "|") != strings.Join(c.want, "|") {
						t.Errorf("attempt %d had %q", i+1, s.keys)
					}
				}
			})
		})
	}
}

// If the key is invalid, or Options.NewKey fails, RoundTrip returns an error and sends nothing.
// In particular, it does not send the request without a key.
func TestC1_AnInvalidKeyIsAnError(t *testing.T) {
	noKey := errors.New("no order")
	for name, c := range map[string]struct {
		context, header string
		newKey          func(*http.Request) (string, error)
		want            string
	}{
		"empty in the context":     {context: "\x00empty", want: "the key of WithKey is invalid: it is empty"},
		"spaces":                   {context: " a", want: "space"},
		"spaces at the end":        {context: "a ", want: "space"},
		"a line break":             {context: "a\r\nX: y", want: "printable ASCII"},
		"not ASCII":                {context: "é", want: "printable ASCII"},
		"delete":                   {context: "a\x7f", want: "printable ASCII"},
		"too long":                 {context: strings.Repeat("a", 256), want: "256 characters"},
		"an empty header":          {header: "  ", want: "header Idempotency-Key is empty"},
		"the function's error":     {newKey: func(*http.Request) (string, error) { return "", noKey }, want: "Options.NewKey: no order"},
		"the function's empty one": {newKey: func(*http.Request) (string, error) { return "", nil }, want: "the key of Options.NewKey is invalid: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			base := &script{steps: []step{answer(201, "")}}
			ctx := t.Context()
			if c.context != "" {
				ctx = idemclient.WithKey(ctx, strings.TrimPrefix(c.context, "\x00empty"))
			}
			r := post(ctx, t, "x")
			body := &closing{Reader: strings.NewReader("x")}
			r.Body = body
			if c.header != "" {
				r.Header.Set("Idempotency-Key", c.header)
			}
			_, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) { o.NewKey = c.newKey }).RoundTrip(r) //nolint:bodyclose // returns an error
			if err == nil || !strings.Contains(err.Error(), c.want) || len(base.sent) != 0 {
				t.Errorf("%v after %d attempts", err, len(base.sent))
			}
			if body.closed != 1 {
				t.Errorf("the body was closed %d times", body.closed)
			}
		})
	}
	r := post(t.Context(), t, "x")
	_, err := idemclient.New(&script{}, []string{host}, func(o *idemclient.Options) {
		o.NewKey = func(*http.Request) (string, error) { return "", noKey }
	}).RoundTrip(r) //nolint:bodyclose // returns an error
	if !errors.Is(err, noKey) {
		t.Errorf("%v does not lead to the function's error", err)
	}
}

type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// The guard reads every key that the client can send as the original key. The client quotes a
// key that the guard would not accept bare.
func TestK1_TheGuardReadsTheKeyAsGiven(t *testing.T) {
	longest := strings.Repeat(`"`, 255)
	for key, wire := range map[string]string{
		"abc": "abc", "a b": "a b", `a\b`: `a\b`, "a,b": `"a,b"`, `"abc"`: `"\"abc\""`, `a"\,`: `"a\"\\,"`, ";=": ";=",
		longest: `"` + strings.Repeat(`\"`, 255) + `"`,
	} {
		got := ""
		guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers, o.Observer = true, lambdaidem.Discard })
		synctest.Test(t, func(t *testing.T) {
			tr := serve(t, guard.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = lambdaidem.Key(r.Context()) })))
			c := &http.Client{Transport: idemclient.New(tr, []string{"http://api"})}
			r, err := http.NewRequestWithContext(idemclient.WithKey(t.Context(), key), http.MethodPost, "http://api/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if sent := resp.Request.Header.Get("Idempotency-Key"); resp.StatusCode != 200 || got != key || sent != wire {
				t.Errorf("%q was sent as %q and read as %q: %d", key, sent, got, resp.StatusCode)
			}
		})
	}
}

// Options.KeyHeader renames the header. A key that the caller has set in that header is used.
func TestC1_AnotherHeader(t *testing.T) {
	base := &script{steps: []step{answer(201, "")}}
	c := client(base, func(o *idemclient.Options) { o.KeyHeader = "x-request-key" })
	for _, own := range []string{"", "mine"} {
		r := post(t.Context(), t, "x")
		if own != "" {
			r.Header.Set("X-Request-Key", own)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	first, second := base.sent[0], base.sent[1]
	if err := lambdaidem.UUIDKey(first.header.Get("X-Request-Key")); err != nil || len(first.keys) != 0 || second.header.Get("X-Request-Key") != "mine" {
		t.Errorf("%v, %v", first.header, second.header)
	}
}

// As http.RoundTripper requires, the caller's request is not changed.
func TestC1_TheCallersRequestIsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{func(r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Base", "scribbled") // this base breaks the contract
			return answer(503, "")(r)
		}}}
		body := &closing{Reader: strings.NewReader("x")}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("A", "b")
		before := *r
		headers := r.Header.Clone()
		resp, err := idemclient.New(base, []string{host}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(r.Header) != len(headers) || r.Header.Get("A") != "b" {
			t.Errorf("the header is %v", r.Header)
		}
		if r.Body != before.Body || r.GetBody != nil || r.ContentLength != before.ContentLength || r.URL != before.URL {
			t.Errorf("the request is %+v", r)
		}
		if body.closed != 1 {
			t.Errorf("the body was closed %d times", body.closed)
		}
		for i, s := range base.sent {
			if s.header.Get("X-Base") != "" {
				t.Errorf("attempt %d has what base wrote before", i+1)
			}
		}
	})
}

// An unguarded request reaches base unchanged, and is sent once.
func TestC1_WhatIsNotGuardedPassesUntouched(t *testing.T) {
	skip := func(o *idemclient.Options) {
		o.Skip = func(r *http.Request) bool { return r.URL.Path == "/health" }
	}
	for name, c := range map[string]struct {
		method, url string
		optFns      []func(*idemclient.Options)
		guarded     bool
	}{
		"POST":                 {"POST", "https://api.example.com/", nil, true},
		"PATCH":                {"PATCH", "https://api.example.com/", nil, true},
		"in lower case":        {"post", "https://api.example.com/", nil, true},
		"GET":                  {"GET", "https://api.example.com/", nil, false},
		"GET without a name":   {"", "https://api.example.com/", nil, false},
		"PUT":                  {"PUT", "https://api.example.com/", nil, false},
		"PUT by option":        {"PUT", "https://api.example.com/", []func(*idemclient.Options){func(o *idemclient.Options) { o.Methods = []string{"put"} }}, true},
		"POST without option":  {"POST", "https://api.example.com/", []func(*idemclient.Options){func(o *idemclient.Options) { o.Methods = []string{"put"} }}, false},
		"skipped":              {"POST", "https://api.example.com/health", []func(*idemclient.Options){skip}, false},
		"not skipped":          {"POST", "https://api.example.com/", []func(*idemclient.Options){skip}, true},
		"another host":         {"POST", "https://example.com/", nil, false},
		"a host below":         {"POST", "https://x.api.example.com/", nil, false},
		"another port":         {"POST", "https://api.example.com:8443/", nil, false},
		"the same port, said":  {"POST", "https://api.example.com:443/", nil, true},
		"plain HTTP":           {"POST", "http://api.example.com/", nil, false},
		"plain HTTP on 443":    {"POST", "http://api.example.com:443/", nil, false},
		"the host in capitals": {"POST", "https://API.Example.COM/", nil, true},
		"the host as a user":   {"POST", "https://api.example.com@evil.example/", nil, false},
		"with a user":          {"POST", "https://user@api.example.com/", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen *http.Request
				base := &script{steps: []step{func(r *http.Request) (*http.Response, error) { seen = r; return answer(503, "")(r) }}}
				r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Method = c.method
				resp, err := idemclient.New(base, []string{host}, c.optFns...).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if c.guarded && (len(base.sent) != 6 || base.oneKey(t) == "") {
					t.Errorf("%d attempts", len(base.sent))
				}
				if !c.guarded && (seen != r || len(base.sent) != 1 || len(base.sent[0].keys) != 0) {
					t.Errorf("%d attempts, %+v", len(base.sent), base.sent)
				}
			})
		})
	}
}

// A request without a URL gets the error of base, as it would without this transport.
func TestC1_ARequestWithoutURL(t *testing.T) {
	refused := errors.New("http: nil Request.URL")
	r := (&http.Request{Method: http.MethodPost}).WithContext(context.WithoutCancel(t.Context()))
	base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused })
	if _, err := idemclient.New(base, []string{host}).RoundTrip(r); !errors.Is(err, refused) { //nolint:bodyclose // returns an error
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
