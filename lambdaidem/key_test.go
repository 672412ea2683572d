package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// keyed returns the first request with the given header value, byte for byte.
func keyed(header string) request {
	in := first()
	in.Headers["idempotency-key"] = header
	return in
}

func TestK1_BareAndStringFormAreOneKey(t *testing.T) {
	for _, forms := range [][]string{
		{`abc`, `"abc"`, ` abc `, "\t\"abc\"  ", `"abc";v=1`},
		{`a\b`, `"a\\b"`},
		{`a b`, `"a b"`},
		{`:YWJj:`, `":YWJj:"`}, // a bare key is text, even if RFC 9651 reads it as bytes
		{`?1`, `"?1"`},
		{`42`, `"42"`},
		{`a;b=c`, `"a;b=c"`},
		{`'quoted'`, `"'quoted'"`},
	} {
		t.Run(forms[0], func(t *testing.T) {
			r := newRig(nil)
			one := r.send(t, keyed(forms[0]))
			if one.StatusCode != http.StatusCreated {
				t.Fatalf("%q got %d %s", forms[0], one.StatusCode, one.Body)
			}
			for _, form := range forms[1:] {
				wantReplay(t, r.send(t, keyed(form)), one)
			}
			r.wantRuns(t, 1)
		})
	}
}

func TestK1_StringEscapes(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.ShowKeys = true })
	r.send(t, keyed(`"say \"hi\", \\o/"`))
	if got, want := r.seen.last(t).Key, `say "hi", \o/`; got != want {
		t.Errorf("the key is %q, want %q", got, want)
	}
}

// The answer is 400, the handler does not run, and nothing is stored.
func TestK1_InvalidKeysAreRefused(t *testing.T) {
	for name, header := range map[string]string{
		"empty":                     "",
		"blank":                     "  \t",
		"empty string":              `""`,
		"list":                      `a, b`,
		"list without space":        `a,b`,
		"list of strings":           `"a", "b"`,
		"bare and string":           `a, "b"`,
		"unterminated":              `"abc`,
		"lone quote":                `"`,
		"unterminated escape":       `"abc\"`,
		"unknown escape":            `"a\bc"`,
		"quote inside":              `a"b`,
		"quote at the end":          `abc"`,
		"text after the string":     `"abc"def`,
		"two strings":               `"a""b"`,
		"broken parameter":          `"abc";=`,
		"control character":         "a\x01b",
		"control in a string":       "\"a\x01b\"",
		"newline":                   "a\nb",
		"tab inside":                "a\tb",
		"delete":                    "a\x7fb",
		"not ASCII":                 "schlüssel",
		"not ASCII in a string":     `"schlüssel"`,
		"not UTF-8":                 "a\xffb",
		"space first in a string":   `" a"`,
		"space last in a string":    `"a "`,
		"256 characters":            strings.Repeat("a", 256),
		"256 in a string":           `"` + strings.Repeat("a", 256) + `"`,
		"256 escapes":               `"` + strings.Repeat(`\\`, 256) + `"`,
		"10 KB":                     strings.Repeat("a", 10<<10),
		"10 KB of quotes":           strings.Repeat(`"`, 10<<10),
		"10 KB in a string":         `"` + strings.Repeat("a", 10<<10) + `"`,
		"10 KB of parameters":       `"a"` + strings.Repeat(";a", 5<<10),
		"10 KB of spaces in quotes": `"` + strings.Repeat(" ", 10<<10) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			wantProblem(t, r.send(t, keyed(header)), http.StatusBadRequest, lambdaidem.ErrKeyInvalid)
			r.wantRuns(t, 0)
			r.wantEvents(t, lambdaidem.EventKeyInvalid)
			if calls := r.store.allCalls(); len(calls) > 0 {
				t.Errorf("the store was asked to %v", calls)
			}
		})
	}
}

func TestK1_LongestKeysAreAccepted(t *testing.T) {
	for _, header := range []string{
		strings.Repeat("a", 255), `"` + strings.Repeat("a", 255) + `"`, `"` + strings.Repeat(`\"`, 255) + `"`, "~", "!",
	} {
		r := newRig(nil)
		if out := r.send(t, keyed(header)); out.StatusCode != http.StatusCreated {
			t.Errorf("%.10q got %d %s", header, out.StatusCode, out.Body)
		}
	}
}

// The length of the header, including parameters, is limited before it is parsed.
func TestS2_TheKeysHeaderIsBounded(t *testing.T) {
	for size, want := range map[int]int{1024: 201, 1025: 400} {
		header := `"key";a="` + strings.Repeat("x", size-len(`"key";a=""`)) + `"`
		if out := newRig(nil).send(t, keyed(header)); len(header) != size || out.StatusCode != want {
			t.Errorf("a header of %d bytes got %d %s", len(header), out.StatusCode, out.Body)
		}
	}
}

func TestK1_TwoValuesAreInvalid(t *testing.T) {
	send := map[string]func(*rig) (int, string){
		"REST API": func(r *rig) (int, string) {
			out, err := r.guard.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
				r.runs.Add(1)
				return events.APIGatewayProxyResponse{}, nil
			})(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Headers: map[string]string{"Idempotency-Key": "b"},
				MultiValueHeaders: map[string][]string{"Idempotency-Key": {"a", "b"}}})
			return out.StatusCode, errText(err) + out.Body
		},
		"ALB": func(r *rig) (int, string) {
			out, err := r.guard.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
				r.runs.Add(1)
				return events.ALBTargetGroupResponse{}, nil
			})(t.Context(), events.ALBTargetGroupRequest{HTTPMethod: "POST", MultiValueHeaders: map[string][]string{"idempotency-key": {"a", "a"}}})
			return out.StatusCode, errText(err) + out.Body
		},
		"names that differ by case": func(r *rig) (int, string) {
			in := first()
			in.Headers["Idempotency-Key"] = "key-1"
			out, err := r.handler(t.Context(), in)
			return out.StatusCode, errText(err) + out.Body
		},
		"net/http": func(r *rig) (int, string) {
			w, in := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			in.Header.Add("Idempotency-Key", "a")
			in.Header.Add("idempotency-key", "b")
			r.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true }).
				Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { r.runs.Add(1) })).ServeHTTP(w, in)
			return w.Code, w.Body.String()
		},
	}
	for name, f := range send {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			if status, body := f(r); status != http.StatusBadRequest || !strings.Contains(body, string(lambdaidem.ErrKeyInvalid)) {
				t.Errorf("two values got %d %s", status, body)
			}
			r.wantRuns(t, 0)
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestK1_HeaderNameIsConfigurableAndWithoutCase(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.KeyHeader = "X-Request-Id" })
	in := post("", "{}")
	in.Headers["x-REQUEST-id"] = "abc"
	r.send(t, in)
	in.Headers = map[string]string{"X-Request-ID": `"abc"`, "content-type": "application/json"}
	if out := r.send(t, in); !replayed(out) {
		t.Errorf("the second request got %+v", out)
	}
	out := r.send(t, first()) // it has the default header, which doesn't count here
	wantProblem(t, out, http.StatusBadRequest, lambdaidem.ErrKeyMissing)
	if !strings.Contains(out.Body, "X-Request-Id") {
		t.Errorf("the answer does not name the header: %s", out.Body)
	}
}

func TestK1_FormsAreOneKeyForAnyText(t *testing.T) {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.StringMatching(`[!#-+\--~]([ !#-+\--~]{0,30}[!#-+\--~])?`).Draw(rt, "key")
		r := newRig(nil)
		one := r.send(t, keyed(key))
		if one.StatusCode != http.StatusCreated {
			rt.Fatalf("the bare key got %d %s", one.StatusCode, one.Body)
		}
		if out := r.send(t, keyed(`"`+escape(key)+`"`)); !replayed(out) {
			rt.Fatalf("the String got %d %s", out.StatusCode, out.Body)
		}
	})
}

// Whatever the header contains, the answer is the handler's or a 400 with a code, and nothing
// panics.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"", "abc", `"abc"`, `"a\"b"`, `"a`, `a,b`, `"a", "b"`, `"a";b="c"`, "\xff", "\x00", `"\`, ":YQ==:", "(a b)", `"é"`, "@1", `%"a"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.ShowKeys = true })
		out := r.send(t, keyed(header))
		switch out.StatusCode {
		case http.StatusBadRequest:
			wantProblem(t, out, http.StatusBadRequest, lambdaidem.ErrKeyInvalid)
		case http.StatusCreated:
			key := r.seen.last(t).Key
			if err := lambdaidem.PrintableKey(key); err != nil {
				t.Fatalf("%q was taken for the key %q: %v", header, key, err)
			}
			again := r.send(t, keyed(`"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`))
			if !replayed(again) {
				t.Fatalf("%q and its String form are two keys", header)
			}
		default:
			t.Fatalf("%q got %d %s", header, out.StatusCode, out.Body)
		}
	})
}

func TestK2_Validators(t *testing.T) {
	for _, c := range []struct {
		name     string
		validate func(string) error
		valid    []string
		invalid  []string
	}{
		{"PrintableKey", lambdaidem.PrintableKey,
			[]string{"a", "a b", "~!", strings.Repeat("a", 255)},
			[]string{"", " a", "a ", "\ta", "a\x7f", "ä", strings.Repeat("a", 256)}},
		{"TokenKey", lambdaidem.TokenKey,
			[]string{"abcdefgh", "A_b-0123", strings.Repeat("a", 255)},
			[]string{"", "abcdefg", "abcdefg ", "abcd.efgh", "äääääääää", strings.Repeat("a", 256)}},
		{"UUIDKey", lambdaidem.UUIDKey,
			[]string{"0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11", "0D1D9C5E-6F0A-1C5E-0D0E-7A2F6F1F7B11", "00000000-0000-0000-0000-000000000000"},
			[]string{"", "0d1d9c5e6f0a4c5e9d0e7a2f6f1f7b11", "{0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11}", "urn:uuid:0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11",
				"0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b1g", "0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b1", "0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b111", "0d1d9c5e-6f0a-4c5e-9d0e07a2f6f1f7b11", "-d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11"}},
		{"UUIDv4or7Key", lambdaidem.UUIDv4or7Key,
			[]string{"0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11", "01890a5d-ac96-774b-bcce-b302099a8057", "01890A5D-AC96-774B-ACCE-B302099A8057"},
			[]string{"0d1d9c5e-6f0a-1c5e-9d0e-7a2f6f1f7b11", "0d1d9c5e-6f0a-4c5e-cd0e-7a2f6f1f7b11", "00000000-0000-0000-0000-000000000000", ""}},
	} {
		for _, key := range c.valid {
			if err := c.validate(key); err != nil {
				t.Errorf("%s(%.40q): %v", c.name, key, err)
			}
		}
		for _, key := range c.invalid {
			if c.validate(key) == nil {
				t.Errorf("%s(%.40q) is allowed", c.name, key)
			}
		}
	}
}

func TestK2_OwnValidatorDecidesAndItsTextIsTold(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.ValidateKey = func(key string) error {
			if key != "mine" {
				return fmt.Errorf("it is %q and not mine", key)
			}
			return nil
		}
	})
	if out := r.send(t, keyed("mine")); out.StatusCode != http.StatusCreated {
		t.Errorf("the valid key got %d", out.StatusCode)
	}
	out := r.send(t, keyed("yours"))
	wantProblem(t, out, http.StatusBadRequest, lambdaidem.ErrKeyInvalid)
	if !strings.Contains(out.Body, "not mine") {
		t.Errorf("the answer does not say what the validator said: %s", out.Body)
	}
}

func TestK3_NoKeyIsRefused(t *testing.T) {
	r := newRig(nil)
	out := r.send(t, post("", "{}"))
	wantProblem(t, out, http.StatusBadRequest, lambdaidem.ErrKeyMissing)
	if !strings.Contains(out.Body, "Idempotency-Key") {
		t.Errorf("the answer does not name the header: %s", out.Body)
	}
	r.wantRuns(t, 0)
	r.wantEvents(t, lambdaidem.EventKeyMissing)
}

func TestK3_OptionalKeysRunUnguardedAndNeverShare(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.KeyOptional = true })
	for range 2 {
		if out := r.send(t, post("", "{}")); out.StatusCode != http.StatusCreated || replayed(out) {
			t.Errorf("a request without a key got %+v", out)
		}
	}
	r.wantRuns(t, 2)
	r.wantEvents(t, lambdaidem.EventBypassed, lambdaidem.EventBypassed)
	if calls := r.store.allCalls(); len(calls) > 0 {
		t.Errorf("the store was asked to %v", calls)
	}
}

// An empty key isn't a missing key: the client meant to send one.
func TestK3_OptionalKeysAreStillValidated(t *testing.T) {
	for _, header := range []string{"", `""`, `"a`} {
		r := newRig(nil, func(o *lambdaidem.Options) {
			o.KeyOptional = true
			o.ValidateKey = func(string) error { return nil }
		})
		wantProblem(t, r.send(t, keyed(header)), http.StatusBadRequest, lambdaidem.ErrKeyInvalid)
		r.wantRuns(t, 0)
	}
}

func TestK4_MethodsGuardedByDefault(t *testing.T) {
	for method, guarded := range map[string]bool{"POST": true, "PATCH": true, "patch": true, "GET": false, "HEAD": false,
		"PUT": false, "DELETE": false, "OPTIONS": false, "TRACE": false, "": false, "POSTS": false} {
		r := newRig(nil)
		in := post("", "{}") // no key: refused if guarded, unchanged if not
		in.RequestContext.HTTP.Method = method
		out := r.send(t, in)
		if guarded {
			wantProblem(t, out, http.StatusBadRequest, lambdaidem.ErrKeyMissing)
			continue
		}
		if out.StatusCode != http.StatusCreated {
			t.Errorf("%s got %d %s", method, out.StatusCode, out.Body)
		}
		r.wantEvents(t, lambdaidem.EventBypassed)
	}
}

// A request with a method that isn't guarded is unchanged. No limit applies, a body that can't be
// decoded is passed on, and the handler's error is returned as it is.
func TestK4_OtherMethodsPassUntouched(t *testing.T) {
	failed := errors.New("own")
	r := newRig(func(_ context.Context, in request) (response, error) {
		return response{StatusCode: 500, Body: in.Body}, failed
	},
		func(o *lambdaidem.Options) { o.MaxBody = 1 })
	in := keyed(`"broken`)
	in.RequestContext.HTTP.Method, in.Body, in.IsBase64Encoded = http.MethodPut, "not base64", true
	out, err := r.handler(t.Context(), in)
	if !errors.Is(err, failed) || out.Body != in.Body || out.StatusCode != 500 {
		t.Errorf("it got %+v, %v", out, err)
	}
}

func TestK4_SkipLetsARequestPass(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Skip = func(r *lambdaidem.Request) bool { return len(r.Values("X-Internal")) > 0 }
	})
	in := first()
	in.Headers["x-internal"] = "1"
	r.send(t, in)
	if out := r.send(t, in); replayed(out) {
		t.Error("a skipped request was replayed")
	}
	r.send(t, first())
	if out := r.send(t, first()); !replayed(out) {
		t.Error("a request that is not skipped was not replayed")
	}
}

func TestK4_MethodsMatchWithoutCase(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.Methods = []string{"put"} })
	in := first()
	in.RequestContext.HTTP.Method = "PUT"
	r.send(t, in)
	if out := r.send(t, in); !replayed(out) {
		t.Errorf("a PUT is not guarded by the method put")
	}
	if out := r.send(t, post("", "{}")); out.StatusCode != http.StatusCreated {
		t.Errorf("a POST, which is not among the methods, got %d", out.StatusCode)
	}
}

// A function that finds the key or the caller makes a guarded call, which is refused for its own
// payload. The client must not be told to send its request with a new key.
func TestK2_ARefusedCallOfAKeyFunctionIsNotTheClients(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*lambdaidem.Options, func(context.Context) (string, error))
		status int
		code   lambdaidem.Code
	}{
		"Key": {func(o *lambdaidem.Options, find func(context.Context) (string, error)) {
			o.Key = func(ctx context.Context, _ *lambdaidem.Request) (string, error) { return find(ctx) }
		}, http.StatusBadRequest, lambdaidem.ErrKeyInvalid},
		"Principal": {func(o *lambdaidem.Options, find func(context.Context) (string, error)) {
			o.Principal = func(ctx context.Context, _ *lambdaidem.Request) (string, error) { return find(ctx) }
		}, http.StatusForbidden, lambdaidem.ErrPrincipalUnknown},
	} {
		n, orders := 0, (*lambdaidem.Guard)(nil)
		r := newRig(nil, func(o *lambdaidem.Options) {
			c.set(o, func(ctx context.Context) (string, error) {
				n++
				return lambdaidem.Do(ctx, orders, lambdaidem.Call{Operation: "number", Key: "cart-1", Payload: n}, func(context.Context) (string, error) { return "order-1", nil })
			})
		})
		orders = r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "orders" })
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
			t.Errorf("%s: the first request gets %+v", name, out)
		}
		wantProblem(t, r.send(t, first()), c.status, c.code)
	}
}

// A function that finds the key or the caller may answer with a code of the guard that is about
// the key, the request or the caller.
func TestK2_AKeyFunctionMayUseTheCodesOfKeys(t *testing.T) {
	for _, code := range []lambdaidem.Code{lambdaidem.ErrKeyMissing, lambdaidem.ErrKeyInvalid, lambdaidem.ErrRequestInvalid, lambdaidem.ErrPrincipalUnknown} {
		r := newRig(nil, func(o *lambdaidem.Options) {
			o.Key = func(context.Context, *lambdaidem.Request) (string, error) {
				return "", &lambdaidem.Error{Code: code, Status: http.StatusTeapot, Detail: "Send the header X-Order."}
			}
		})
		wantProblem(t, r.send(t, first()), http.StatusTeapot, code)
	}
}
