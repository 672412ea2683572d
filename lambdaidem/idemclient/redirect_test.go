package idemclient_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// redirects returns a step that answers by URL: "307 https://…" redirects, and a number alone is
// the status of the response.
func redirects(answers map[string]string) step {
	return func(r *http.Request) (*http.Response, error) {
		status, to, _ := strings.Cut(answers[r.URL.String()], " ")
		code := map[string]int{"301": 301, "302": 302, "303": 303, "307": 307, "308": 308, "200": 200, "503": 503}[status]
		if to == "" {
			return answer(code, "")(r)
		}
		return answer(code, "", "Location", to)(r)
	}
}

// A redirected request keeps its key if it goes to one of the client's hosts. It loses the key
// if it goes to another host or leaves https, whether the caller or the client has set the key.
func TestC1_RedirectsAndKeys(t *testing.T) {
	const a, b, evil = "https://a.example/", "https://b.example/", "https://evil.example/"
	for name, c := range map[string]struct {
		answers map[string]string
		want    string // "METHOD URL key|…" of each attempt; key is k: the operation's key, -: none, ?: k if the caller has set it, because net/http copies the header, otherwise none
	}{
		"307 on the same host":      {map[string]string{a: "307 /next", a + "next": "200"}, "POST " + a + " k|POST " + a + "next k"},
		"308 to another given host": {map[string]string{a: "308 " + b, b: "200"}, "POST " + a + " k|POST " + b + " k"},
		"307 to another host":       {map[string]string{a: "307 " + evil, evil: "200"}, "POST " + a + " k|POST " + evil + " -"},
		"307 out of https":          {map[string]string{a: "307 http://a.example/", "http://a.example/": "200"}, "POST " + a + " k|POST http://a.example/ -"},
		"307 to another port":       {map[string]string{a: "307 https://a.example:444/", "https://a.example:444/": "200"}, "POST " + a + " k|POST https://a.example:444/ -"},
		"307 out and back":          {map[string]string{a: "307 " + evil, evil: "307 " + b, b: "200"}, "POST " + a + " k|POST " + evil + " -|POST " + b + " k"},
		"out, on and back": {map[string]string{a: "307 " + evil, evil: "308 " + evil + "2", evil + "2": "307 " + b, b: "200"},
			"POST " + a + " k|POST " + evil + " -|POST " + evil + "2 -|POST " + b + " k"},
		"303 to another host": {map[string]string{a: "303 " + evil, evil: "200"}, "POST " + a + " k|GET " + evil + " -"},
		"303, then out":       {map[string]string{a: "303 /done", a + "done": "307 " + evil, evil: "200"}, "POST " + a + " k|GET " + a + "done ?|GET " + evil + " -"},
	} {
		for whose, own := range map[string]http.Header{"new": {}, "the caller's": {"Idempotency-Key": {"k"}}, "the caller's, in lower case": {"idempotency-key": {"k"}}} {
			t.Run(name+"/"+whose, func(t *testing.T) {
				base := &script{steps: []step{redirects(c.answers)}}
				made := 0
				cl := &http.Client{Transport: idemclient.New(base, []string{"a.example", "b.example"}, func(o *idemclient.Options) {
					o.NewKey = func(*http.Request) (string, error) { made++; return "k", nil }
				})}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a, strings.NewReader("body"))
				if err != nil {
					t.Fatal(err)
				}
				r.Header = own.Clone()
				resp, err := cl.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				want := strings.Split(c.want, "|")
				if len(base.sent) != len(want) {
					t.Fatalf("%d were sent: %+v", len(base.sent), base.sent)
				}
				for i, s := range base.sent {
					key := "-"
					if len(s.keys) > 0 {
						key = strings.Join(s.keys, ",")
					}
					line := s.method + " " + s.url + " " + key
					wanted := strings.ReplaceAll(want[i], "?", map[bool]string{true: "-", false: "k"}[whose == "new"])
					if line != wanted {
						t.Errorf("%d: %s, want %s", i+1, line, wanted)
					}
					if s.method == http.MethodPost && s.body != "body" {
						t.Errorf("%d had the body %q", i+1, s.body)
					}
				}
				if whose == "new" && made != 1 {
					t.Errorf("%d keys were made", made)
				}
			})
		}
	}
}

// The key of a PUT or DELETE is the caller's own, because these methods are not guarded by default.
// A redirect must not send this key to another host either.
func TestC1_TheCallersKeyOfAnUnguardedMethodLeavesNoHost(t *testing.T) {
	const a, b, evil, worse = "https://a.example/", "https://b.example/", "https://evil.example/", "https://worse.example/"
	answers := redirects(map[string]string{a: "307 " + b, b: "308 " + evil, evil: "307 " + worse, worse: "200"})
	for name, c := range map[string]struct {
		method   string
		nameless bool // the base does not set Response.Request
		options  func(*idemclient.Options)
	}{
		"PUT":    {method: http.MethodPut},
		"DELETE": {method: http.MethodDelete},
		"PUT, through a base that names no request": {method: http.MethodPut, nameless: true},
		"POST that is skipped":                      {method: http.MethodPost, options: func(o *idemclient.Options) { o.Skip = func(*http.Request) bool { return true } }},
	} {
		t.Run(name, func(t *testing.T) {
			base := &script{steps: []step{answers}}
			rt := roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(r)
				if c.nameless {
					resp.Request = nil
				}
				return resp, err
			})
			var options []func(*idemclient.Options)
			if c.options != nil {
				options = append(options, c.options)
			}
			r, err := http.NewRequestWithContext(t.Context(), c.method, a, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Idempotency-Key", "mine")
			resp, err := (&http.Client{Transport: idemclient.New(rt, []string{"a.example", "b.example"}, options...)}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			var got []string
			for _, s := range base.sent {
				got = append(got, s.url+strings.Join(s.keys, ","))
			}
			if want := []string{a + "mine", b + "mine", evil, worse}; !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

// If the caller sends a key to a host that was not passed to New, the client leaves the key alone,
// even when that host redirects the request.
func TestC1_AnotherHostsOwnKeysPass(t *testing.T) {
	base := &script{steps: []step{redirects(map[string]string{"https://x.example/": "307 https://y.example/", "https://y.example/": "200"})}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x.example/", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "mine")
	resp, err := client(base).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if key := base.oneKey(t); key != "mine" || len(base.sent) != 2 {
		t.Errorf("%q over %d requests", key, len(base.sent))
	}
}

// All retries and redirects of a request have the same key.
func TestC1_RetriesOnBothSidesOfARedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{
			fails(errNetwork), answer(503, ""), answer(307, "", "Location", "/next"),
			fails(errNetwork), answer(503, ""), answer(201, ""),
		}}
		resp, err := client(base).Do(post(t.Context(), t, "body"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(base.sent) != 6 || base.sent[5].url != "https://"+host+"/next" {
			t.Errorf("%+v", base.sent)
		}
		if err := lambdaidem.UUIDKey(base.oneKey(t)); err != nil {
			t.Error(err)
		}
		for i, s := range base.sent {
			if s.body != "body" {
				t.Errorf("attempt %d had the body %q", i+1, s.body)
			}
		}
		base.closed(t)
	})
}

// http.Client stops an endless series of redirects. All of the requests have the same key.
func TestC1_EndlessRedirects(t *testing.T) {
	base := &script{steps: []step{answer(307, "", "Location", "/again")}}
	resp, err := client(base).Do(post(t.Context(), t, "body"))
	if err == nil || !strings.Contains(err.Error(), "stopped after 10 redirects") {
		t.Error(err)
	}
	if resp != nil {
		_ = resp.Body.Close()
	}
	if base.oneKey(t); len(base.sent) != 10 {
		t.Errorf("%d requests", len(base.sent))
	}
	base.closed(t)
}

// As http.RoundTripper requires, a request is not changed even if its key is removed.
func TestC1_ARedirectIsNotChanged(t *testing.T) {
	base := &script{steps: []step{answer(200, "")}}
	rt := idemclient.New(base, []string{host})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://evil.example", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "mine")
	r.Response = &http.Response{Request: post(t.Context(), t, "x")}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if r.Header.Get("Idempotency-Key") != "mine" || len(base.sent[0].keys) != 0 || base.sent[0].body != "x" {
		t.Errorf("the request has %v, %+v was sent", r.Header, base.sent[0])
	}
}

// A redirected request keeps its key even if base sets no Response.Request or a wrong one.
func TestC1_RedirectsByABaseThatNamesNoRequest(t *testing.T) {
	for name, named := range map[string]*http.Request{"none": nil, "another": post(t.Context(), t, "x")} {
		t.Run(name, func(t *testing.T) {
			base := &script{steps: []step{answer(307, "", "Location", "/next"), answer(201, "")}}
			resp, err := client(roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := base.RoundTrip(r)
				resp.Request = named
				return resp, err
			})).Do(post(t.Context(), t, "x"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if key := base.oneKey(t); len(base.sent) != 2 || resp.Request.Header.Get("Idempotency-Key") != key {
				t.Errorf("%+v; the answer's request has %v", base.sent, resp.Request.Header)
			}
		})
	}
}
