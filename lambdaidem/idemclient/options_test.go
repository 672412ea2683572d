package idemclient_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// New panics if an option is invalid, and the panic names the option.
func TestC1_NewNamesWhatIsInvalid(t *testing.T) {
	type options = idemclient.Options
	for field, set := range map[string]func(*options){
		"KeyHeader":     func(o *options) { o.KeyHeader = "Idempotency Key" },
		"Methods":       func(o *options) { o.Methods = []string{"POST", ""} },
		"Methods ":      func(o *options) { o.Methods = []string{} },
		"MaxAttempts":   func(o *options) { o.MaxAttempts = -1 },
		"InitialWait":   func(o *options) { o.InitialWait = -1 },
		"MaxWait":       func(o *options) { o.InitialWait, o.MaxWait = 2, 1 },
		"MaxRetryAfter": func(o *options) { o.MaxRetryAfter = -time.Second },
		"MaxWait ":      func(o *options) { o.MaxWait = math.MaxInt64/2 + 1 }, // one more than the maximum
		"MaxBuffer":     func(o *options) { o.MaxBuffer = -1 },
	} {
		field = strings.TrimSpace(field)
		if said := panicOf(func() { idemclient.New(nil, []string{host}, set) }); !strings.HasPrefix(said, "idemclient: Options."+field+" is ") {
			t.Errorf("%s: %q", field, said)
		}
	}
}

// An option function receives the default values. A field that it sets to the zero value gets its
// default again.
func TestC1_OptionsBeginWithTheirDefaults(t *testing.T) {
	base := &script{steps: []step{answer(201, "")}}
	var o idemclient.Options
	c := client(base, func(given *idemclient.Options) { o = *given; *given = idemclient.Options{} })
	if o.KeyHeader != "Idempotency-Key" || o.NewKey == nil || fmt.Sprint(o.Methods) != "[POST PATCH]" || o.MaxAttempts != 6 ||
		o.InitialWait != 200*time.Millisecond || o.MaxWait != 10*time.Second || o.MaxRetryAfter != time.Minute || o.MaxBuffer != 6<<20 {
		t.Errorf("%+v", o)
	}
	resp, err := c.Do(post(t.Context(), t, "x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	base.oneKey(t)
}

// A host is one exact origin. New panics on any other text.
func TestC1_Hosts(t *testing.T) {
	for _, invalid := range []string{
		"", " ", "api.example.com/", "api.example.com/v1", "https://api.example.com/", "ftp://api.example.com", "://api.example.com",
		"user@api.example.com", "api.example.com?x", "api.example.com#x", "api.example.com:", "api.example.com:0", "api.example.com:65536",
		"api.example.com:https", "*.example.com", "*", "bücher.*", "bü_cher.example", "api.example.com..", ".", "a b.example", "a%20b.example", "[fe80::1%25eth0]", "::1", ":443", "https://", "a\n",
	} {
		if said := panicOf(func() { idemclient.New(nil, []string{host, invalid}) }); !strings.HasPrefix(said, fmt.Sprintf("idemclient: New: hosts[1] is %q; ", invalid)) {
			t.Errorf("%q: %q", invalid, said)
		}
	}
	if said := panicOf(func() { idemclient.New(nil, nil) }); !strings.HasPrefix(said, "idemclient: New: hosts is empty") {
		t.Error(said)
	}

	for entry, c := range map[string]struct{ guarded, not []string }{
		"API.example.com":      {[]string{"https://api.example.com", "https://api.example.com:443", "HTTPS://api.example.com"}, []string{"http://api.example.com", "http://api.example.com:80", "https://api.example.com..", "https://api.example.com.evil.example", "https://api.example.com:80"}},
		"api.example.com:8443": {[]string{"https://api.example.com:8443", "https://api.example.com:08443"}, []string{"https://api.example.com", "http://api.example.com:8443"}},
		"http://internal:8080": {[]string{"http://internal:8080"}, []string{"https://internal:8080", "http://internal"}},
		"HTTP://internal":      {[]string{"http://internal", "http://internal:80"}, []string{"https://internal"}},
		"https://localhost":    {[]string{"https://localhost"}, []string{"http://localhost"}},
		"localhost":            {[]string{"https://localhost", "http://localhost", "http://LOCALHOST:80"}, []string{"http://localhost:8080", "http://127.0.0.1", "http://localhost.evil.example"}},
		"localhost:8080":       {[]string{"https://localhost:8080", "http://localhost:8080"}, []string{"http://localhost"}},
		"127.0.0.1:9":          {[]string{"http://127.0.0.1:9"}, []string{"http://127.0.0.2:9", "http://127.0.0.1.evil.example:9"}},
		"127.1.2.3":            {[]string{"http://127.1.2.3"}, nil},
		"[::1]:9":              {[]string{"http://[::1]:9", "https://[0:0:0:0:0:0:0:1]:9"}, []string{"http://[::2]:9"}},
		"10.0.0.1":             {[]string{"https://10.0.0.1"}, []string{"http://10.0.0.1"}},
		"[2001:db8::1]":        {[]string{"https://[2001:DB8::1]"}, []string{"http://[2001:db8::1]"}},
		"10.0.0.2":             {nil, []string{"https://10.0.0.2."}}, // 10.0.0.2 with a dot at its end is a name for DNS, not an IP address
	} {
		for url, want := range urls(c.guarded, c.not) {
			if got := getsKey(t, entry, url); got != want {
				t.Errorf("host %s, request to %s: guarded is %v", entry, url, got)
			}
		}
	}
}

// A host name can be spelled in several ways. net/http dials the same machine for all of them, so a
// request to any of them gets the key.
func TestC1_EverySpellingOfAHostGetsTheKey(t *testing.T) {
	for _, spellings := range [][]string{
		{"api.example.com", "API.example.com.", "ａｐｉ.example.com", "api。example。com。"},
		{"bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "XN--BCHER-KVA.example.", "bu\u0308cher.example"},
	} {
		for _, entry := range spellings {
			for _, spelling := range spellings {
				if !getsKey(t, entry, "https://"+spelling+"/payments") {
					t.Errorf("host %s: a request to %s has no key", entry, spelling)
				}
			}
			for _, other := range []string{"bucher.example", "xn--bcher-kva.evil.example", "b\u00fc\u00adcher.examples"} {
				if getsKey(t, entry, "https://"+other+"/payments") {
					t.Errorf("host %s: a request to %s has a key", entry, other)
				}
			}
		}
	}
}

// getsKey reports whether a client for the host entry adds a key to a request to url.
func getsKey(t *testing.T, entry, url string) bool {
	t.Helper()
	base := &script{steps: []step{answer(201, "")}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := idemclient.New(base, []string{entry}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return len(base.sent[0].keys) == 1
}

func urls(guarded, not []string) map[string]bool {
	all := make(map[string]bool)
	for _, u := range guarded {
		all[u] = true
	}
	for _, u := range not {
		all[u] = false
	}
	return all
}

func panicOf(f func()) (said string) {
	defer func() {
		if p := recover(); p != nil {
			said = fmt.Sprint(p)
		}
	}()
	f()
	return ""
}

// http.Client's CloseIdleConnections calls CloseIdleConnections of base, if base has that method.
func TestC1_CloseIdleConnections(t *testing.T) {
	base := &idle{}
	client(base).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("%d calls reached base", base.closed)
	}
	client(&script{}).CloseIdleConnections() // a base without the method
}

type idle struct {
	http.RoundTripper
	closed int
}

func (i *idle) CloseIdleConnections() { i.closed++ }
