package idemtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func newGuard(optFns ...func(*lambdaidem.Options)) *lambdaidem.Guard {
	return lambdaidem.New(memstore.New(), append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Observer, o.AnonymousCallers = lambdaidem.Discard, true
	}}, optFns...)...)
}

func created(context.Context, request) (response, error) {
	return response{StatusCode: 201, Body: "created", Headers: map[string]string{"One": "1"}, Cookies: []string{"a=1"}}, nil
}

func TestTwice_AcceptsAGuardedHandler(t *testing.T) {
	declined := func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Permanent(errDeclined)
	}
	for name, h := range map[string]func(context.Context, request) (response, error){"an answer": created, "a failure": declined,
		"nothing": func(context.Context, request) (response, error) { return response{StatusCode: 204}, nil }} {
		if got := failures(t, func(f *fake) { idemtest.Twice(f, newGuard().APIGatewayV2(h), post()) }); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if out := idemtest.Twice(t, newGuard().APIGatewayV2(created), post()); out.Body != "created" {
		t.Errorf("it returned %+v", out)
	}
}

func TestTwice_AcceptsATypedHandler(t *testing.T) {
	h := lambdaidem.Handler(newGuard(), "charge", func(_ context.Context, id string) (string, error) { return id, nil }, func(_ context.Context, _ string) (int64, error) { return 9007199254740993, nil })
	if got := failures(t, func(f *fake) { idemtest.Twice(f, h, "order-1") }); got != "" {
		t.Error(got)
	}
}

func TestTwice_Complains(t *testing.T) {
	n := 0
	counts := func(context.Context, request) (response, error) {
		n++
		return response{StatusCode: 201, Body: fmt.Sprint("payment ", n)}, nil
	}
	noKey := post()
	noKey.Headers = nil // the request then has no key
	dropped := newGuard(func(o *lambdaidem.Options) { o.UnstoredHeaders = []string{"One"} })
	renumbered := newGuard(func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, r *lambdaidem.Response) { r.Status++ }
	})
	for name, c := range map[string]struct {
		handler func(context.Context, request) (response, error)
		in      request
		want    []string
	}{
		"an unguarded handler":      {counts, post(), []string{"ran no guarded handler", "the two answers differ"}},
		"a handler that is skipped": {newGuard(func(o *lambdaidem.Options) { o.Methods = []string{"PUT"} }).APIGatewayV2(counts), post(), []string{"ran again", "the two answers differ"}},
		"an event without a key":    {newGuard().APIGatewayV2(counts), noKey, []string{"ran no guarded handler"}},
		"a 5xx":                     {newGuard().APIGatewayV2(func(context.Context, request) (response, error) { return response{StatusCode: 500}, nil }), post(), []string{"ran again"}},
		"errors that differ": {func(context.Context, request) (response, error) { n++; return response{}, fmt.Errorf("error %d", n) }, post(),
			[]string{"first error", "second error"}},
		"a header that is not replayed": {dropped.APIGatewayV2(created), post(), []string{"the two answers differ", "one:"}},
		"another status":                {renumbered.APIGatewayV2(created), post(), []string{"the two answers differ", "202"}},
	} {
		got := failures(t, func(f *fake) { idemtest.Twice(f, c.handler, c.in) })
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: it complains %q, and not of %q", name, got, want)
			}
		}
	}
}

func TestTwice_ComplainsOfAnAnswerThatIsNoJSON(t *testing.T) {
	got := failures(t, func(f *fake) {
		idemtest.Twice(f, func(context.Context, int) (func(), error) { return func() {}, nil }, 1)
	})
	if !strings.Contains(got, "encode the answer") {
		t.Errorf("it complains %q", got)
	}
}

func httpRequest(t *testing.T, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "k")
	return r
}

func TestTwiceHTTP_AcceptsAGuardedHandler(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	if got := failures(t, func(f *fake) {
		answer := idemtest.TwiceHTTP(f, newGuard().Middleware(echo), httpRequest(t, "body"))
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusCreated || string(body) != "body" || err != nil {
			t.Errorf("it returned %d %q, %v", answer.StatusCode, body, err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}); got != "" {
		t.Error(got)
	}
}

func TestTwiceHTTP_Complains(t *testing.T) {
	n := 0
	counts := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprint(w, "payment ", n)
	})
	for name, c := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"an unguarded handler": {counts, "the two answers differ"},
		"no run at all":        {http.NotFoundHandler(), "ran no guarded handler"},
		"a skipped request":    {newGuard(func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }).Middleware(counts), "ran again"},
	} {
		got := failures(t, func(f *fake) {
			if err := idemtest.TwiceHTTP(f, c.handler, httpRequest(t, "")).Body.Close(); err != nil {
				t.Error(err)
			}
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: it complains %q, and not of %q", name, got, c.want)
		}
	}
}
