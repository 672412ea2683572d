package httpkey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate"
	"github.com/lambdaidem/toolkit/propagate/httpkey"
)

// Request adds the downstream key of the name to the header, even if the request has
// another context.
func TestV4_TheHeaderHasTheDownstreamKey(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		if err := httpkey.Request(ctx, "charge", r); err != nil {
			return 0, err
		}
		if want := (http.Header{"Idempotency-Key": {lambdaidem.DownstreamKey(ctx, "charge")}}); !reflect.DeepEqual(r.Header, want) {
			t.Errorf("%v, want %v", r.Header, want)
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	if err := httpkey.Request(t.Context(), "charge", r); !errors.Is(err, propagate.ErrUnguarded) || len(r.Header) != 0 {
		t.Errorf("%v, %v", err, r.Header)
	}
}

// Another key is never replaced, and the caller's header map is not changed.
func TestV4_Headers(t *testing.T) {
	for name, c := range map[string]struct {
		have      http.Header
		key, want string
		err       string
	}{
		"no map":               {nil, "k", "k", ""},
		"none":                 {http.Header{"A": {"b"}}, "k", "k", ""},
		"no value":             {http.Header{"Idempotency-Key": {}}, "k", "k", ""},
		"the same":             {http.Header{"Idempotency-Key": {"k"}}, "k", "k", ""},
		"the same, quoted":     {http.Header{"Idempotency-Key": {`"k"`}}, "k", `"k"`, ""},
		"another":              {http.Header{"Idempotency-Key": {"j"}}, "k", "", "another key already: the header Idempotency-Key"},
		"an empty one":         {http.Header{"Idempotency-Key": {""}}, "k", "", "another key already"},
		"another in any case":  {http.Header{"idempotency-key": {"j"}}, "k", "", "another key already: the header idempotency-key"},
		"twice":                {http.Header{"Idempotency-Key": {"k", "k"}}, "k", "", "another key already"},
		"with a comma":         {nil, `a,b`, `"a,b"`, ""},
		"with a double quote":  {nil, `a"\`, `"a\"\\"`, ""},
		"with a backslash":     {nil, `a\b`, `a\b`, ""},
		"a comma, bare":        {http.Header{"Idempotency-Key": {"a,b"}}, "a,b", "", "another key already"},
		"empty":                {nil, "", "", "empty"},
		"no text for a header": {nil, "a\r\n", "", "printable"},
		"too long":             {nil, strings.Repeat("k", 256), "", "256"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			before := c.have.Clone()
			r.Header = c.have
			err := httpkey.RequestWithKey(c.key, r)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(c.have, before) {
				t.Errorf("the caller's map is %v", c.have)
			}
			if err == nil && c.want != "" && r.Header.Get("Idempotency-Key") != c.want {
				t.Errorf("%v", r.Header)
			}
			if err == nil && before["A"] != nil && r.Header.Get("A") != "b" {
				t.Errorf("%v", r.Header)
			}
		})
	}
}
