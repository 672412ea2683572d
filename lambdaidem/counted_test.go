package lambdaidem_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func ignoring(pointers ...string) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) { o.FingerprintIgnore = pointers }
}

func counting(headers ...string) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) { o.FingerprintHeaders = headers }
}

func secrets(all ...string) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) {
		o.FingerprintSecrets = nil
		for _, s := range all {
			o.FingerprintSecrets = append(o.FingerprintSecrets, []byte(s))
		}
	}
}

// unsignedToo also accepts unsigned fingerprints.
func unsignedToo(o *lambdaidem.Options) {
	o.FingerprintSecrets = append(o.FingerprintSecrets, lambdaidem.Unsigned())
}

const (
	oldSecret = "old-secret-of-16"
	newSecret = "new-secret-of-16"
)

// later returns the same service after a deployment: another guard on r's store.
func (r *rig) later(h handler, optFns ...func(*lambdaidem.Options)) *rig {
	next := &rig{store: r.store, seen: r.seen, guard: r.guard.With(optFns...)}
	next.handler = next.guarded(h)
	return next
}

// wantSame checks whether the rig accepts b as a retry of a, and a as a retry of b.
func wantSame(t *testing.T, a, b request, same bool, optFns ...func(*lambdaidem.Options)) {
	t.Helper()
	for _, pair := range [][2]request{{a, b}, {b, a}} {
		r := newRig(nil, optFns...)
		r.send(t, pair[0])
		out := r.send(t, pair[1])
		if !replayed(out) {
			wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		}
		if replayed(out) != same {
			t.Errorf("%q is a retry of %q: %v, want %v", pair[1].Body, pair[0].Body, replayed(out), same)
		}
	}
}

func TestF4_IgnoredPartsDontCount(t *testing.T) {
	for _, c := range []struct {
		name     string
		pointers []string
		a, b     string
		same     bool
	}{
		{"another value", []string{"/t"}, `{"a":1,"t":1}`, `{"t":{"x":[2]},"a":1}`, true},
		{"absent", []string{"/t"}, `{"a":1,"t":1}`, `{"a":1}`, true},
		{"null", []string{"/t"}, `{"a":1,"t":null}`, `{"a":1}`, true},
		{"what else there is", []string{"/t"}, `{"a":1,"t":1}`, `{"a":2,"t":1}`, false},
		{"further inside", []string{"/t"}, `{"a":{"t":1}}`, `{"a":{"t":2}}`, false},
		{"another case", []string{"/t"}, `{"a":1,"T":1}`, `{"a":1,"T":2}`, false},
		{"in an object", []string{"/meta/at"}, `{"meta":{"at":1,"by":2}}`, `{"meta":{"at":3,"by":2}}`, true},
		{"the object that held it", []string{"/meta/at"}, `{"meta":{"at":1}}`, `{}`, false},
		{"an element", []string{"/l/0"}, `{"l":[1,2]}`, `{"l":[3,2]}`, true},
		{"another element", []string{"/l/0"}, `{"l":[1,2]}`, `{"l":[1,3]}`, false},
		{"an element that moved", []string{"/l/0"}, `{"l":[1,2]}`, `{"l":[2]}`, false},
		{"elements that moved", []string{"/l/0", "/l/2"}, `{"l":[0,1,0,2]}`, `{"l":[0,1,2]}`, false},
		{"a number that seems alike", []string{"/t"}, `{"a":9007199254740993,"t":1}`, `{"a":9007199254740992,"t":1}`, false},
		{"a pointer into nothing", []string{"/x/y"}, `{"a":1}`, `{"b":1}`, false},
		{"a pointer into text", []string{"/a/0"}, `{"a":"xy"}`, `{"a":"zy"}`, false},
		{"several", []string{"/t", "/u"}, `{"a":1,"t":1}`, `{"u":2,"a":1}`, true},
		{"ambiguous", []string{"/t"}, `{"a":1,"t":1,"t":2}`, `{"a":1,"t":1,"t":3}`, false},
		{"ambiguous elsewhere", []string{"/t"}, `{"a":1,"A":1,"t":1}`, `{"a":1,"A":1,"t":2}`, false},
		{"no JSON", []string{"/t"}, `{"a":1,"t":1`, `{"a":1,"t":2`, false},
		{"left out and ambiguous", []string{"/t"}, `{"a":1}`, `{"a":1,"t":1,"t":1}`, false},
	} {
		t.Run(c.name, func(t *testing.T) { wantSame(t, post("k", c.a), post("k", c.b), c.same, ignoring(c.pointers...)) })
	}
}

// A text whose media type isn't JSON counts byte by byte and has no parts.
func TestF4_ABodyOfAnotherTypeHasNoParts(t *testing.T) {
	text := func(body string) request {
		in := post("k", body)
		in.Headers["content-type"] = "text/plain"
		return in
	}
	wantSame(t, text(`{"a":1,"t":1}`), text(`{"a":1,"t":2}`), false, ignoring("/t"))
}

func TestF4_IgnoredPartsOfPayloads(t *testing.T) {
	type event struct{ ID, Trace string }
	g := lambdaidem.New(memstore.New(), quiet, ignoring("/Trace"))
	do := func(e event) error {
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "k", Payload: e}, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	h := lambdaidem.Handler(g, "charge", func(context.Context, event) (string, error) { return "k", nil }, func(context.Context, event) (int, error) { return 1, nil })
	handle := func(e event) error { _, err := h(t.Context(), e); return err }
	for name, call := range map[string]func(event) error{"Do": do, "Handler": handle} {
		for _, e := range []event{{"o", "1"}, {"o", "2"}, {"o", ""}} {
			if err := call(e); err != nil {
				t.Errorf("%s of %v: %v", name, e, err)
			}
		}
		if err := call(event{"p", "1"}); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
			t.Errorf("%s of another payload: %v", name, err)
		}
	}
}

func TestF4_ChosenHeadersCount(t *testing.T) {
	with := func(headers ...string) request { // "name: value"
		in := first()
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			in.Headers[name] = value
		}
		return in
	}
	for _, c := range []struct {
		name string
		a, b request
		same bool
	}{
		{"equal", with("x-a: 1"), with("x-a: 1"), true},
		{"another case", with("X-A: 1"), with("x-a: 1"), true},
		{"white space around", with("x-a:  1\t"), with("x-a: 1"), true},
		{"another value", with("x-a: 1"), with("x-a: 2"), false},
		{"another value's case", with("x-a: a"), with("x-a: A"), false},
		{"absent and empty", with(), with("x-a: "), false},
		{"absent and there", with(), with("x-a: 1"), false},
		{"under another name", with("x-a: 1"), with("x-b: 1"), false},
		{"split otherwise", with("x-a: 1", "x-b: 23"), with("x-a: 12", "x-b: 3"), false},
		{"one not chosen", with("x-c: 1"), with("x-c: 2"), true},
	} {
		t.Run(c.name, func(t *testing.T) { wantSame(t, c.a, c.b, c.same, counting("x-B", "X-a")) })
	}
}

// Events in payload format 2.0 have the cookies in their own field.
func TestF4_ACookieHeaderCounts(t *testing.T) {
	with := func(cookies ...string) request {
		in := first()
		in.Cookies = cookies
		return in
	}
	seen := func(o *lambdaidem.Options) {
		o.Skip = func(r *lambdaidem.Request) bool {
			if got := r.Values("cookie"); len(got) > 1 || len(got) == 1 && got[0] != "a=1; b=2" && got[0] != "a=1" && got[0] != "a=2" {
				t.Errorf("the Cookie header is %q", got)
			}
			return false
		}
	}
	wantSame(t, with("a=1", "b=2"), with("a=1", "b=2"), true, counting("Cookie"), seen)
	wantSame(t, with("a=1"), with("a=2"), false, counting("Cookie"), seen)
	wantSame(t, with("a=1"), with(), false, counting("cookie"), seen)
	wantSame(t, with("a=1"), with("a=2"), true)
	h := lambdaidem.New(memstore.New(), anonymous, counting("Cookie")).FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{StatusCode: http.StatusCreated}, nil
	})
	for cookie, want := range map[string]int{"a=1": http.StatusCreated, "a=2": http.StatusUnprocessableEntity} {
		in := events.LambdaFunctionURLRequest{RawPath: "/", Headers: map[string]string{"idempotency-key": "key-1"}, Cookies: []string{"a=1"}}
		in.RequestContext.HTTP.Method = http.MethodPost
		if _, err := h(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		in.Cookies = []string{cookie}
		if out, err := h(t.Context(), in); err != nil || out.StatusCode != want {
			t.Errorf("a function URL with the cookie %s answers %d, %v, want %d", cookie, out.StatusCode, err, want)
		}
	}
}

func TestF4_RepeatedHeadersCountEach(t *testing.T) {
	for name, other := range map[string][]string{"joined": {"a, b"}, "in another order": {"b", "a"}, "one alone": {"a"}, "one twice": {"a", "a", "b"}, "none": {}} {
		h := lambdaidem.New(memstore.New(), anonymous, counting("X-A")).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		send := func(values []string) *httptest.ResponseRecorder {
			r := posted(t, "/")
			r.Header["X-A"] = values
			return serve(h, r)
		}
		send([]string{"a", "b"})
		if w := send([]string{"a", "b"}); w.Code != 200 {
			t.Errorf("the same values got %d", w.Code)
		}
		if w := send(other); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// Stored records remain valid only if the fingerprints stay the same.
func TestF4_FingerprintsAreStable(t *testing.T) {
	text := func(body string, parts ...string) []byte {
		var out []byte
		for _, p := range parts {
			out = append(binary.BigEndian.AppendUint64(out, uint64(len(p))), p...)
		}
		return append(out, body...)
	}
	mac := hmac.New(sha256.New, []byte(newSecret))
	mac.Write(text(`j{"amount":100}`, "POST", "/payments", ""))
	signed := hex.EncodeToString(mac.Sum(nil))
	plain := func(text []byte) string {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:])
	}
	withTime := post("k", `{"t":1,"amount":100}`)
	for name, c := range map[string]struct {
		in   request
		opts []func(*lambdaidem.Options)
		want string
	}{
		"ignored":          {withTime, []func(*lambdaidem.Options){ignoring("/t")}, plain(text(`j{"amount":100}`, "POST", "/payments", ""))},
		"headers":          {first(), []func(*lambdaidem.Options){counting("X-Z", "content-TYPE", "x-z")}, plain(text(`j{"amount":100}`, "POST", "/payments", "", "content-type", "1", "application/json", "x-z", "0"))},
		"secret":           {first(), []func(*lambdaidem.Options){secrets(newSecret, oldSecret), unsignedToo}, signed},
		"nothing to leave": {first(), []func(*lambdaidem.Options){ignoring("/t")}, plain(text(`j{"amount":100}`, "POST", "/payments", ""))},
		"unsigned alone":   {first(), []func(*lambdaidem.Options){unsignedToo}, plain(text(`j{"amount":100}`, "POST", "/payments", ""))},
	} {
		r := newRig(nil, c.opts...)
		r.send(t, c.in)
		if _, got, _ := strings.Cut(r.store.allClaims()[0].Fingerprint, "."); got != c.want {
			t.Errorf("%s: the fingerprint is %s, want %s", name, got, c.want)
		}
	}
}

// One guard begins a record, and another with other secrets gets the retry. The cases list whether
// the fingerprints match.
func TestF4_SecretsRotate(t *testing.T) {
	other := post("key-1", `{"amount":101}`)
	for _, c := range []struct {
		name    string
		was, is []func(*lambdaidem.Options)
		matches bool
	}{
		{"the same", opts(secrets(oldSecret)), opts(secrets(oldSecret)), true},
		{"a new one first", opts(secrets(oldSecret)), opts(secrets(newSecret, oldSecret)), true},
		{"a new one last", opts(secrets(newSecret)), opts(secrets(oldSecret, newSecret)), true},
		{"two older ones", opts(secrets("a-third-secret-16")), opts(secrets(newSecret, oldSecret, "a-third-secret-16")), true},
		{"the old one gone", opts(secrets(oldSecret)), opts(secrets(newSecret)), false},
		{"none before", opts(), opts(secrets(newSecret)), false},
		{"none before, among several", opts(), opts(secrets(newSecret, oldSecret)), false},
		{"none before, by choice", opts(), opts(secrets(newSecret), unsignedToo), true},
		{"none before, by choice among several", opts(), opts(secrets(newSecret, oldSecret), unsignedToo), true},
		{"the old one gone, by choice", opts(secrets(oldSecret)), opts(secrets(newSecret), unsignedToo), false},
		{"none after", opts(secrets(oldSecret)), opts(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := newRig(nil, c.was...)
			one := was.send(t, first())
			is := was.beside(c.is...)
			for range 2 {
				if out := is.send(t, first()); c.matches {
					wantReplay(t, out, one)
				} else {
					wantProblem(t, out, http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
				}
			}
			wantProblem(t, is.send(t, other), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
			is.wantRuns(t, 0)
		})
	}
}

func opts(all ...func(*lambdaidem.Options)) []func(*lambdaidem.Options) { return all }

// The options for parts and headers apply to old secrets in the same way as to the new one.
func TestF4_OldSecretsCountTheSame(t *testing.T) {
	was := newRig(nil, secrets(oldSecret), ignoring("/t"), counting("x-a"))
	send := func(r *rig, body, header string) response {
		in := post("key-1", body)
		in.Headers["x-a"] = header
		return r.send(t, in)
	}
	one := send(was, `{"a":1,"t":1}`, "1")
	is := was.beside(secrets(newSecret, oldSecret), ignoring("/t"), counting("x-a"))
	wantReplay(t, send(is, `{"t":2,"a":1}`, "1"), one)
	wantProblem(t, send(is, `{"t":2,"a":2}`, "1"), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	wantProblem(t, send(is, `{"t":2,"a":1}`, "2"), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

func TestF4_TheCacheKnowsOldSecrets(t *testing.T) {
	r := newRig(nil, roomy, secrets(oldSecret))
	r.send(t, first())
	next := r.later(nil, secrets(newSecret, oldSecret)) // shares the cache
	next.wantFromMemory(t, first())
	wantProblem(t, next.send(t, post("key-1", "{}")), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	wantProblem(t, r.later(nil, secrets(newSecret)).send(t, first()), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

func TestF4_OptimisticAttemptsKnowOldSecrets(t *testing.T) {
	r, _ := withLedger(enlisting(created), optimistic, secrets(oldSecret))
	one := r.send(t, first())
	next := r.later(enlisting(created), secrets(newSecret, oldSecret))
	wantReplay(t, next.send(t, first()), one)
	wantProblem(t, next.send(t, post("key-1", "{}")), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
}

// Fingerprints with old secrets are made only if the first one doesn't match: a call that needs
// none makes as many allocations with a hundred old secrets as with one.
func TestF4_OldFingerprintsAreMadeLate(t *testing.T) {
	many := []string{newSecret, oldSecret}
	for i := range 100 {
		many = append(many, fmt.Sprintf("an-older-secret-%d", i))
	}
	runs := func(optFn func(*lambdaidem.Options), body string) float64 {
		r := newRig(nil, optFn)
		r.send(t, first())
		return testing.AllocsPerRun(100, func() { r.send(t, post("key-1", body)) })
	}
	few, same := runs(secrets(many[:2]...), first().Body), runs(secrets(many...), first().Body)
	if same > few+5 {
		t.Errorf("a replay takes %.0f allocations with 100 more secrets, %.0f without", same, few)
	}
	if mismatch := runs(secrets(many...), "{}"); mismatch < few+100 {
		t.Errorf("a mismatch takes %.0f allocations with 100 more secrets: they were not asked", mismatch)
	}
}

// The panic of New names the field and never shows a secret.
func TestF4_BadOptionsPanic(t *testing.T) {
	for field, bad := range map[string][]func(*lambdaidem.Options){
		"FingerprintIgnore":     {ignoring(""), ignoring("a"), ignoring("/ok", "/~2"), ignoring("/\xff")},
		"FingerprintHeaders":    {counting(""), counting("X-A", "a b"), counting("é")},
		"FingerprintSecrets[0]": {secrets(""), secrets("15-bytes-secret")},
		"FingerprintSecrets[1]": {secrets(newSecret, ""), secrets(newSecret, "15-bytes-secret")},
	} {
		for _, opt := range bad {
			func() {
				defer func() {
					text := fmt.Sprint(recover())
					if !strings.Contains(text, "lambdaidem: Options."+field) || strings.Contains(text, "secret-of") || strings.Contains(text, "bytes-secret") {
						t.Errorf("a wrong %s panicked with %q", field, text)
					}
				}()
				lambdaidem.New(memstore.New(), opt)
			}()
		}
	}
}

// A later change to the user's own slices doesn't affect the guard.
func TestF4_OptionsAreNobodyElses(t *testing.T) {
	pointers, headers, secret := []string{"/t"}, []string{"X-A"}, []byte(newSecret)
	all := [][]byte{secret}
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.FingerprintIgnore, o.FingerprintHeaders, o.FingerprintSecrets = pointers, headers, all
	})
	one := r.send(t, first())
	pointers[0], headers[0], all[0] = "/amount", "Content-Type", nil
	clear(secret)
	wantReplay(t, r.send(t, first()), one)
	wantReplay(t, r.later(nil).send(t, first()), one)

	r.guard.With(func(o *lambdaidem.Options) {
		o.FingerprintIgnore[0], o.FingerprintHeaders[0] = "/amount", "Content-Type"
		clear(o.FingerprintSecrets[0])
	})
	wantReplay(t, r.later(nil).send(t, first()), one)
	if !slices.Equal(pointers, []string{"/amount"}) {
		t.Errorf("the user's slice became %q", pointers)
	}
}
