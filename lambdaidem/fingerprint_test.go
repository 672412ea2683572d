package lambdaidem_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// sameRequest reports whether the guard accepts b as a retry of a.
func sameRequest(t testing.TB, a, b request) bool {
	t.Helper()
	r := newRig(nil)
	if out := r.send(t, a); out.StatusCode != http.StatusCreated {
		t.Fatalf("the first request got %d %s", out.StatusCode, out.Body)
	}
	out := r.send(t, b)
	if !replayed(out) {
		wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		r.wantRuns(t, 1)
	}
	return replayed(out)
}

func TestF3_JSONCountsByValue(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"member order", `{"a":1,"b":[1,{"c":2,"d":3}]}`, `{"b":[1,{"d":3,"c":2}],"a":1}`, true},
		{"white space", `{"a":[1,2]}`, " {\r\n\t\"a\" : [ 1 , 2 ] } \n", true},
		{"escapes", `{"a":"é/"}`, `{"\u0061":"\u00E9\/"}`, true},
		{"surrogate pair", `"😀"`, `"\ud83d\uDE00"`, true},
		{"element order", `[1,2]`, `[2,1]`, false},
		{"value", `{"amount":100}`, `{"amount":101}`, false},
		{"beyond float64", `{"amount":9007199254740993}`, `{"amount":9007199254740992}`, false},
		{"number text", `{"amount":1.0}`, `{"amount":1}`, false},
		{"exponent", `1e2`, `100`, false},
		{"minus zero", `-0`, `0`, false},
		{"null and absent", `{"a":null}`, `{}`, false},
		{"text and number", `"1"`, `1`, false},
		{"normal forms", `"é"`, "\"e\u0301\"", false},
		{"empty and null", ``, `null`, false},
		{"array and object", `[]`, `{}`, false},
		{"nesting", `[[],[]]`, `[[[]]]`, false},
		{"name and value", `{"a":"b"}`, `{"b":"a"}`, false},
		{"duplicate members", `{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		{"duplicate member", `{"a":1,"a":1}`, `{"a":1}`, false},
		{"escaped duplicate", `{"a":1,"\u0061":2}`, `{"\u0061":2,"a":1}`, false},
		{"trailing data", `{"a":1}{}`, `{"a":1}`, false},
		{"trailing order", `{"a":1,"b":2}x`, `{"b":2,"a":1}x`, false},
		{"lone surrogate", `"\ud800"`, `"\ud801"`, false},
		{"lone surrogate and replacement", `"\ud800"`, `"\ufffd"`, false},
		{"invalid UTF-8", "\"\xff\"", "\"\xfe\"", false},
		{"invalid UTF-8 and replacement", "\"\xff\"", "\"\ufffd\"", false},
		{"byte order mark", "\ufeff{}", `{}`, false},
		{"broken", `{"a":1,`, `{"a":1, `, false},
		{"NaN", `NaN`, `NaN `, false},
		{"leading zero", `01`, `1`, false},
		{"comment", `{}//`, `{}`, false},
		{"single quotes", `{'a':1}`, `{"a":1}`, false},
		{"same garbage", `{"a":`, `{"a":`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sameRequest(t, post("k", c.a), post("k", c.b)); got != c.same {
				t.Errorf("%q and %q are the same request: %v, want %v", c.a, c.b, got, c.same)
			}
		})
	}
}

func TestF3_PathQueryAndMediaTypeCount(t *testing.T) {
	with := func(change func(*request)) request {
		in := post("k", `{"a":1,"b":2}`)
		change(&in)
		return in
	}
	plain := with(func(*request) {})
	query := func(q string) request { return with(func(in *request) { in.RawQueryString = q }) }
	media := func(m, body string) request {
		return with(func(in *request) { in.Headers["content-type"], in.Body = m, body })
	}
	var as, bs []string // enough of them to reveal a sort that isn't stable
	for i := range 50 {
		as, bs = append(as, fmt.Sprint("a=", i)), append(bs, fmt.Sprint("b=", i))
	}
	var mixed []string
	for i := range as {
		mixed = append(mixed, as[i], bs[i])
	}
	for _, c := range []struct {
		name string
		a, b request
		same bool
	}{
		{"query order of many", query(strings.Join(mixed, "&")), query(strings.Join(append(bs, as...), "&")), true},
		{"path", plain, with(func(in *request) { in.RawPath = "/payments/1" }), false},
		{"query", plain, query("a=1"), false},
		{"query order", query("b=2&a=1&c"), query("c&a=1&b=2"), true},
		{"query order of one name", query("a=1&a=2"), query("a=2&a=1"), false},
		{"query order of one name in two spellings", query("a=1&%61=2"), query("%61=2&a=1"), false},
		{"query order of a name in two spellings among others", query("b=3&a+x=1&a%20x=2"), query("a+x=1&a%20x=2&b=3"), true},
		{"query value", query("a=1&b=2"), query("a=2&b=1"), false},
		{"query escapes", query("a=%31"), query("a=1"), false},
		{"query and path", with(func(in *request) { in.RawPath, in.RawQueryString = "/a", "b" }), with(func(in *request) { in.RawPath, in.RawQueryString = "/ab", "" }), false},
		{"query and body", with(func(in *request) { in.RawQueryString, in.Body = "x", "y" }), with(func(in *request) { in.RawQueryString, in.Body = "", "xy" }), false},
		{"charset", media("application/json; charset=utf-8", `{"a":1,"b":2}`), media("application/json", `{"b":2,"a":1}`), true},
		{"+json", media("application/merge-patch+json", `{"a":1,"b":2}`), media("application/merge-patch+json", `{"b":2,"a":1}`), true},
		{"no media type", media("", `{"a":1,"b":2}`), media("", `{"b":2,"a":1}`), true},
		{"text", media("text/plain", `{"a":1,"b":2}`), media("text/plain", `{"b":2,"a":1}`), false},
		{"form", media("application/x-www-form-urlencoded", "a=1&b=2"), media("application/x-www-form-urlencoded", "b=2&a=1"), false},
		{"JSON and text", media("application/json", `{"a":1}`), media("text/plain", `{"a":1}`), false},
		{"broken media type", media("application/json;;=", `{"a":1,"b":2}`), media("application/json;;=", `{"b":2,"a":1}`), false},
		{"other headers", plain, with(func(in *request) { in.Headers["x-trace"] = "1" }), true},
		{"base64", plain, with(func(in *request) {
			in.Body, in.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(`{"b":2,"a":1}`)), true
		}), true},
		{"base64 text taken as text", with(func(in *request) { in.Body, in.IsBase64Encoded = "AAAA", true }), with(func(in *request) { in.Body = "AAAA" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sameRequest(t, c.a, c.b); got != c.same {
				t.Errorf("they are the same request: %v, want %v", got, c.same)
			}
			if got := sameRequest(t, c.b, c.a); got != c.same {
				t.Errorf("the other way round they are the same request: %v, want %v", got, c.same)
			}
		})
	}
}

// A JSON text that is nested too deeply counts byte by byte. So does one that different readers
// read differently. A text that counts byte by byte never equals one that is read as JSON.
func TestF3_DepthBoundCountsByteByByte(t *testing.T) {
	deep := func(n int, inner string) string { return strings.Repeat("[", n) + inner + strings.Repeat("]", n) }
	if sameRequest(t, post("k", deep(64, " ")), post("k", deep(64, ""))) == false {
		t.Error("64 levels do not count by value")
	}
	if sameRequest(t, post("k", deep(65, " ")), post("k", deep(65, ""))) {
		t.Error("65 levels count by value")
	}
}

func TestF3_StoredDigestIsSHA256(t *testing.T) {
	r := newRig(nil)
	r.send(t, first())
	f := r.store.allClaims()[0].Fingerprint
	if settings, digest, _ := strings.Cut(f, "."); len(settings) != 12 || len(digest) != 64 || strings.Trim(settings+digest, "0123456789abcdef") != "" {
		t.Errorf("the fingerprint is %q", f)
	}
}

// Different payloads never count as equal. The check uses encoding/json: if two bodies count as
// equal, both must be valid JSON and decode to the same value.
func FuzzFingerprint(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`}, {`1.0`, `1`}, {`9007199254740993`, `9007199254740992`}, {`"\u0061"`, `"a"`},
		{`{"a":1,"a":2}`, `{"a":2}`}, {`"\ud800"`, `"\ufffd"`}, {"\"\xff\"", "\"\ufffd\""}, {"\ufeff1", "1"}, {`[1]`, `[1] `}, {`{"a":1,"A":2}`, `{"A":2,"a":1}`}, {"", "null"}, {"[", "[ "},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		same := sameRequest(t, post("k", a), post("k", b))
		if a == b && !same {
			t.Fatalf("%q is not the same as itself", a)
		}
		if a == b || !same {
			return
		}
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			t.Fatalf("%q and %q are taken for one, and are not UTF-8", a, b)
		}
		if va, vb := normal(t, a), normal(t, b); va != vb {
			t.Fatalf("%q and %q are taken for one, and mean %s and %s", a, b, va, vb)
		}
	})
}

// normal writes a JSON text again with encoding/json, and keeps the numbers as they are written.
func normal(t *testing.T, text string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q is taken for JSON: %v", text, err)
	}
	if dec.More() {
		t.Fatalf("%q is taken for one JSON value", text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

func TestF3_RepeatedParametersOfARESTAPINeverCollide(t *testing.T) {
	send := func(g *lambdaidem.Guard, query map[string][]string) int {
		out, err := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 200}, nil
		})(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a",
			Headers: map[string]string{"Idempotency-Key": "k"}, MultiValueQueryStringParameters: query})
		if err != nil {
			t.Fatal(err)
		}
		return out.StatusCode
	}
	for _, c := range []struct{ a, b map[string][]string }{
		{map[string][]string{"a b": {"1", "2"}}, map[string][]string{"a b": {"1"}, "a+b": {"2"}}},
		{map[string][]string{"a": {"1&b=2"}}, map[string][]string{"a": {"1"}, "b": {"2"}}},
		{map[string][]string{"a": {"1", "2"}}, map[string][]string{"a": {"2", "1"}}},
		{map[string][]string{"a=b": {""}}, map[string][]string{"a": {"b="}}},
		{map[string][]string{"a": {""}}, nil},
	} {
		g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
		if got := send(g, c.a); got != http.StatusOK {
			t.Fatalf("%v got %d", c.a, got)
		}
		if got := send(g, c.a); got != http.StatusOK {
			t.Errorf("%v again got %d", c.a, got)
		}
		if got := send(g, c.b); got != http.StatusUnprocessableEntity {
			t.Errorf("%v after %v got %d, want 422", c.b, c.a, got)
		}
	}
}

// The order of a map never decides which of two headers counts.
func TestF3_TwoContentTypesCountByteByByte(t *testing.T) {
	for i := range 20 {
		r := newRig(nil)
		in := first()
		in.Headers["Content-Type"] = "text/plain"
		r.send(t, in)
		if out := r.send(t, in); !replayed(out) {
			t.Fatalf("round %d: the same request got %d", i, out.StatusCode)
		}
	}
}

// The handler does not run and the record does not change, whether it is completed or in progress,
// with a current lease or a dead one, and under either policy.
func TestF5_OtherPayloadIsRefused(t *testing.T) {
	other := post("key-1", `{"amount":999}`)
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			refuse := func(t *testing.T, r *rig) {
				t.Helper()
				was, runs := r.record(t), r.runs.Load()
				wantProblem(t, r.send(t, other), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
				r.wantRuns(t, runs)
				if is := r.record(t); !sameRecord(is, was) {
					t.Errorf("the record changed from %+v to %+v", was, is)
				}
				if got := r.seen.last(t); got.Kind != lambdaidem.EventMismatch {
					t.Errorf("the observer saw %v", got.Kind)
				}
			}
			setPolicy := func(o *lambdaidem.Options) { o.Policy = policy }
			t.Run("completed", func(t *testing.T) {
				r := newRig(nil, setPolicy)
				r.send(t, first())
				refuse(t, r)
			})
			t.Run("failed", func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { return response{StatusCode: 404}, nil }, setPolicy)
				r.send(t, first())
				refuse(t, r)
			})
			t.Run("in progress", func(t *testing.T) {
				var r *rig
				r = newRig(func(context.Context, request) (response, error) {
					refuse(t, r)
					return response{StatusCode: 201}, nil
				}, setPolicy)
				r.send(t, first())
			})
			t.Run("dead", func(t *testing.T) {
				now := newTicker()
				r := newRig(func(context.Context, request) (response, error) {
					return response{StatusCode: 500}, lambdaidem.Uncertain(errWire)
				}, setPolicy, now.option)
				if _, err := r.handler(t.Context(), first()); err == nil {
					t.Fatal("the handler's error got lost")
				}
				now.advance(leaseWithoutDeadline)
				refuse(t, r)
			})
		})
	}
}

func TestF5_StatusByOption(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.MismatchStatus = http.StatusConflict })
	r.send(t, first())
	wantProblem(t, r.send(t, post("key-1", `{}`)), http.StatusConflict, lambdaidem.ErrPayloadMismatch)
}

// Only a released record loses its fingerprint.
func TestF5_AReleasedKeyTakesACorrectedRequest(t *testing.T) {
	fail := true
	r := newRig(func(_ context.Context, in request) (response, error) {
		if fail {
			return response{StatusCode: 503}, nil
		}
		return response{StatusCode: 201, Body: in.Body}, nil
	})
	r.send(t, first())
	fail = false
	corrected := post("key-1", `{"amount":1}`)
	if out := r.send(t, corrected); out.StatusCode != http.StatusCreated || out.Body != corrected.Body {
		t.Errorf("the corrected request got %d %s", out.StatusCode, out.Body)
	}
	wantProblem(t, r.send(t, first()), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

// A fingerprint is a SHA-256 over the parts with their lengths, and over the body after a letter
// that says how the body counts. Stored records must keep their fingerprints: when a retry arrives
// at another version of the program, its payload must still match.
func TestF3_FingerprintsAreStable(t *testing.T) {
	digest := func(taken byte, body string, parts ...string) string {
		var text []byte
		for _, p := range parts {
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(p))), p...)
		}
		sum := sha256.Sum256(append(append(text, taken), body...))
		return hex.EncodeToString(sum[:])
	}
	r := newRig(nil)
	in := post("json", ` { "amount" : 100 } `)
	in.RawQueryString = "b=1&a=2"
	r.send(t, in)
	in = post("text", ` { "amount" : 100 } `)
	in.Headers["content-type"] = "text/plain"
	r.send(t, in)
	if _, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		digest('j', `{"amount":100}`, "POST", "/payments", "a=2&b=1"),
		digest('b', ` { "amount" : 100 } `, "POST", "/payments", ""),
		digest('j', `{"ID":"o-1"}`, "charge"),
	} {
		// The prefix is the one for the default settings. Another prefix would make every stored
		// record impossible to compare.
		want = []string{"ba262921ab78", "ba262921ab78", "ac505ab4419c"}[i] + "." + want
		if got := r.store.allClaims()[i].Fingerprint; got != want {
			t.Errorf("fingerprint %d is %s, want %s", i, got, want)
		}
	}
}
