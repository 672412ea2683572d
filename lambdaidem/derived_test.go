package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// keyBy sets a key function and counts its calls.
func keyBy(calls *int, f func(*lambdaidem.Request) (string, error)) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) {
		o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
			*calls++
			return f(r)
		}
	}
}

// orderID returns the ID in the body as the key.
func orderID(r *lambdaidem.Request) (string, error) {
	var body struct{ ID string }
	err := json.Unmarshal(r.Body, &body)
	return body.ID, err
}

func optionalKeys(o *lambdaidem.Options) { o.KeyOptional = true }

func TestK5_AFunctionFindsTheKey(t *testing.T) {
	calls := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		return response{StatusCode: 201, Body: lambdaidem.Key(ctx)}, nil
	}, keyBy(&calls, orderID))
	one := r.send(t, post("header-1", `{"ID":"o-1"}`))
	if one.Body != "o-1" {
		t.Errorf("the key is %q", one.Body)
	}
	wantReplay(t, r.send(t, post("", `{"ID":"o-1"}`)), one)
	wantReplay(t, r.send(t, post(`"broken`, `{"ID":"o-1"}`)), one) // the header is not read
	if out := r.send(t, post("header-1", `{"ID":"o-2"}`)); replayed(out) || out.Body != "o-2" {
		t.Errorf("another key got %+v", out)
	}
	wantProblem(t, r.send(t, post("", `{"ID":"o-1","more":1}`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	if r.wantRuns(t, 2); calls != 5 {
		t.Errorf("the function was called %d times for 5 requests", calls)
	}
}

// The key function gets all of the request.
func TestK5_TheFunctionSeesTheWholeRequest(t *testing.T) {
	calls := 0
	var seen lambdaidem.Request
	r := newRig(nil, keyBy(&calls, func(r *lambdaidem.Request) (string, error) {
		seen = *r
		return r.Values("x-tenant")[0] + string(r.Body), nil
	}))
	in := post("", base64.StdEncoding.EncodeToString([]byte("body")))
	in.IsBase64Encoded, in.RawQueryString, in.Headers["X-Tenant"] = true, "a=1", "t-"
	r.send(t, in)
	if seen.Method != "POST" || seen.Path != "/payments" || seen.Route != "/payments" || seen.Query != "a=1" || string(seen.Body) != "body" {
		t.Errorf("it saw %+v", seen)
	}
}

func TestK5_ADerivedKeyIsHeldToTheRules(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		err    error
		opt    func(*lambdaidem.Options)
		status int
		code   lambdaidem.Code
		kind   lambdaidem.Kind
	}{
		"missing":                    {"", nil, nil, 400, lambdaidem.ErrKeyMissing, lambdaidem.EventKeyMissing},
		"invalid":                    {" x", nil, nil, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"too long":                   {strings.Repeat("k", 256), nil, nil, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"no UUID":                    {"order-1", nil, func(o *lambdaidem.Options) { o.ValidateKey = lambdaidem.UUIDKey }, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"empty, valid":               {"", nil, func(o *lambdaidem.Options) { o.ValidateKey = func(string) error { return nil } }, 400, lambdaidem.ErrKeyMissing, lambdaidem.EventKeyMissing},
		"an error":                   {"k", errWire, nil, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"an error and optional keys": {"", errWire, optionalKeys, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"invalid and optional keys":  {"\n", nil, optionalKeys, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
		"rejected":                   {"", lambdaidem.Reject(409, "no_order", "There is no order."), nil, 409, "no_order", lambdaidem.EventKeyInvalid},
		"rejected and wrapped":       {"", fmt.Errorf("a: %w", lambdaidem.Reject(409, "no_order", "There is no order.")), nil, 409, "no_order", lambdaidem.EventKeyInvalid},
		"rejected as missing":        {"", lambdaidem.Reject(428, lambdaidem.ErrKeyMissing, "Send an order."), nil, 428, lambdaidem.ErrKeyMissing, lambdaidem.EventKeyMissing},
		"a nil error":                {"", (*lambdaidem.Error)(nil), nil, 400, lambdaidem.ErrKeyInvalid, lambdaidem.EventKeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			var all []func(*lambdaidem.Options)
			if c.opt != nil {
				all = append(all, c.opt)
			}
			r := newRig(nil, append(all, keyBy(&calls, func(*lambdaidem.Request) (string, error) { return c.key, c.err }))...)
			out := r.send(t, post("header", "{}"))
			wantProblem(t, out, c.status, c.code)
			wantNoInternals(t, out)
			r.wantEvents(t, c.kind)
			if n := len(r.store.allCalls()); n > 0 || calls != 1 {
				t.Errorf("the store was asked %d times, the function %d times", n, calls)
			}
			r.wantRuns(t, 0)
			if e := r.seen.last(t); c.err == errWire && !errors.Is(e.Err, errWire) { //nolint:errorlint // errWire itself
				t.Errorf("the observer saw %v", e.Err)
			}
		})
	}
}

// A typed handler's key function refuses in the same way.
func TestK5_AKeyFunctionOfATypedHandlerMayReject(t *testing.T) {
	g, seen := lambdaidem.New(memstore.New()), &recorder{}
	g = g.With(func(o *lambdaidem.Options) { o.Observer = seen })
	h := lambdaidem.Handler(g, "op", func(_ context.Context, o order) (string, error) {
		return "", fmt.Errorf("order %s: %w", o.ID, lambdaidem.Reject(404, "no_order", "There is no order."))
	}, func(context.Context, order) (int, error) { return 1, nil })
	if _, err := h(t.Context(), order{"x"}); !errors.Is(err, lambdaidem.Code("no_order")) {
		t.Errorf("the error is %v", err)
	}
	if kinds := seen.kinds(); !slices.Equal(kinds, []lambdaidem.Kind{lambdaidem.EventKeyInvalid}) {
		t.Errorf("the observer saw %v", kinds)
	}
}

// For a request that runs unguarded, the key function isn't called. A request without a key runs
// unguarded if the options allow that.
func TestK5_UnguardedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		opt  func(*lambdaidem.Options)
		asks int
	}{
		"another method": {`{"ID":"o"}`, func(o *lambdaidem.Options) { o.Methods = []string{"PUT"} }, 0},
		"skipped":        {`{"ID":"o"}`, func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }, 0},
		"no key":         {`{}`, optionalKeys, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			r := newRig(nil, keyBy(&calls, orderID), c.opt)
			for range 2 {
				if out := r.send(t, post("header", c.body)); out.StatusCode != 201 || replayed(out) {
					t.Errorf("it got %+v", out)
				}
			}
			if r.wantRuns(t, 2); calls != 2*c.asks {
				t.Errorf("the function was called %d times", calls)
			}
			r.wantEvents(t, lambdaidem.EventBypassed, lambdaidem.EventBypassed)
		})
	}
}

// With optional keys, a request without a header is still guarded if the key function returns a
// key.
func TestK5_OptionalKeysAreStillGuarded(t *testing.T) {
	calls := 0
	r := newRig(nil, keyBy(&calls, orderID), optionalKeys)
	one := r.send(t, post("", `{"ID":"o-1"}`))
	wantReplay(t, r.send(t, post("", `{"ID":"o-1"}`)), one)
	if calls != 2 {
		t.Errorf("the function was called %d times for 2 requests", calls)
	}
}

// The key function isn't called for a request that exceeds the limits, whether keys are optional or
// not.
func TestS2_KeyFunctionsSeeNoMoreThanTheBounds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*request)
		opt    func(*lambdaidem.Options)
		status int
		code   lambdaidem.Code
	}{
		"body":    {func(in *request) { in.Body = "12345" }, func(o *lambdaidem.Options) { o.MaxBody = 4 }, 413, lambdaidem.ErrBodyTooLarge},
		"headers": {func(in *request) { in.Headers["a"], in.Headers["b"] = "", "" }, func(o *lambdaidem.Options) { o.MaxHeaders = 2 }, 431, lambdaidem.ErrHeadersTooMany},
		"target":  {func(in *request) { in.RawQueryString = "12345" }, func(o *lambdaidem.Options) { o.MaxURI = 20 }, 414, lambdaidem.ErrURITooLong},
		"base64":  {func(in *request) { in.IsBase64Encoded = true; in.Body = "!" }, func(*lambdaidem.Options) {}, 400, lambdaidem.ErrRequestInvalid},
	} {
		for _, optional := range []bool{false, true} {
			r := newRig(nil, c.opt, func(o *lambdaidem.Options) {
				o.KeyOptional = optional
				o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
					t.Errorf("%s: the function was called with %+v", name, r)
					return "", nil
				}
			})
			in := post("k", "{}")
			c.change(&in)
			wantProblem(t, r.send(t, in), c.status, c.code)
			r.wantRuns(t, 0)
		}
	}
}

func TestK5_MiddlewareReadsTheBodyForTheFunction(t *testing.T) {
	calls := 0
	g := lambdaidem.New(memstore.New(), anonymous, keyBy(&calls, orderID))
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, string(body), lambdaidem.Key(r.Context()), err)
	}))
	for i, body := range []string{`{"ID":"o-1"}`, `{ "ID":"o-1" }`} {
		w := serve(h, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
		if want := `{"ID":"o-1"}o-1<nil>`; w.Code != 200 || w.Body.String() != want || (w.Header().Get(mark) == "true") != (i == 1) {
			t.Errorf("answer %d is %d %s", i, w.Code, w.Body)
		}
	}
	if w := serve(h, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("{}"))); w.Code != 400 || !strings.Contains(w.Body.String(), string(lambdaidem.ErrKeyMissing)) {
		t.Errorf("no key: %d %s", w.Code, w.Body)
	}
	if calls != 3 {
		t.Errorf("the function was called %d times for 3 requests", calls)
	}
}

// A request that may go without a key is unchanged: its handler reads the whole body, also the part
// after what the key function got.
func TestK5_MiddlewareLeavesAKeylessRequestUntouched(t *testing.T) {
	calls := 0
	g := lambdaidem.New(memstore.New(), anonymous, optionalKeys, keyBy(&calls, func(r *lambdaidem.Request) (string, error) { return r.Query, nil }))
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, string(body), r.ContentLength, err)
		_, streams := w.(http.Flusher)
		_, _ = fmt.Fprint(w, streams)
	}))
	for range 2 {
		w := serve(h, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("whole body")))
		if want := "whole body10 <nil>true"; w.Body.String() != want || w.Header().Get(mark) != "" {
			t.Errorf("it got %s, want %s", w.Body, want)
		}
	}
	broken := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("whole body"))))
	if w := serve(h, broken); w.Code != 400 || !strings.Contains(w.Body.String(), string(lambdaidem.ErrRequestInvalid)) {
		t.Errorf("a body that breaks off got %d %s", w.Code, w.Body)
	}
	get := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?k", iotest.ErrReader(errWire))
	if w := serve(h, get); !strings.Contains(w.Body.String(), errWire.Error()) {
		t.Errorf("the body of an unguarded method was read: %s", w.Body)
	}
	if calls != 2 {
		t.Errorf("the function was called %d times", calls)
	}
}
