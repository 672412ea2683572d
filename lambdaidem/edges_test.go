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
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The tests in this file repeat findings of a security review. Each finding gave a caller the
// answer of another one, or caused a second effect.

// If an outer handler rewrites a request or makes a new one, the result is another route than the
// client's, also behind Outermost.
func TestF1_RewrittenTargetsAreRoutesOfTheirOwn(t *testing.T) {
	routes := func() (http.Handler, *http.ServeMux) {
		g, m := lambdaidem.New(memstore.New(), anonymous), http.NewServeMux()
		for _, pattern := range []string{"POST /payments", "POST /refunds", "POST /v1/pay", "POST /v2/pay", "POST a.example.com/pay", "POST b.example.com/pay"} {
			m.Handle(pattern, g.Middleware(says(pattern)))
		}
		return m, m
	}
	for name, c := range map[string]struct {
		outer func(http.Handler) http.HandlerFunc
		urls  [2]string // or the value of a header
	}{
		"requests of a batch, by URL alone": {func(h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				sub, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.Header.Get("X-To"), nil) //nolint:gosec // it is served here, not sent
				if err != nil {
					t.Error(err)
				}
				sub.Header.Set("Idempotency-Key", "k")
				h.ServeHTTP(w, sub)
			}
		}, [2]string{"/payments", "/refunds"}},
		"requests of a batch, by target": {func(h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				sub := r.Clone(r.Context())
				sub.URL, sub.RequestURI = &url.URL{Path: r.Header.Get("X-To")}, r.Header.Get("X-To")
				h.ServeHTTP(w, sub)
			}
		}, [2]string{"/payments", "/refunds"}},
		"a version by header": {func(h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path = r.Header.Get("X-To")
				h.ServeHTTP(w, r)
			}
		}, [2]string{"/v1/pay", "/v2/pay"}},
		"a host by header": {func(h http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				r.URL.Path, r.RequestURI, r.Host = "/pay", "/pay", r.Header.Get("X-To")
				h.ServeHTTP(w, r)
			}
		}, [2]string{"a.example.com", "b.example.com"}},
	} {
		for _, behind := range []bool{true, false} {
			if !behind && name == "requests of a batch, by URL alone" {
				continue // refused, because it has no target
			}
			t.Run(fmt.Sprint(name, behind), func(t *testing.T) {
				m, _ := routes()
				var h http.Handler = c.outer(m)
				if behind {
					h = lambdaidem.Outermost(lambdaidem.Outermost(h))
				}
				for i := range 2 {
					for _, to := range c.urls {
						r := posted(t, "/batch")
						r.Header.Set("X-To", to)
						w := serve(h, r)
						if w.Code != 200 || !strings.Contains(w.Body.String(), to) || (w.Header().Get(mark) != "") != (i == 1) {
							t.Errorf("time %d: %s got %d %s %v", i, to, w.Code, w.Body, w.Header())
						}
					}
				}
			})
		}
	}
}

// If an outer handler also strips a prefix from the request line, only Outermost lets the guard see
// the original.
func TestF1_OutermostSeesThroughARewrittenRequestLine(t *testing.T) {
	g := lambdaidem.New(memstore.New(), anonymous)
	outer := http.NewServeMux()
	for _, tenant := range []string{"a", "b"} {
		h := g.Middleware(says(tenant))
		outer.HandleFunc("/"+tenant+"/", func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path, r.RequestURI = "/pay", "/pay"
			h.ServeHTTP(w, r)
		})
	}
	for _, tenant := range []string{"a", "b", "a"} {
		if w := serve(lambdaidem.Outermost(outer), posted(t, "/"+tenant+"/pay?amount=1")); w.Body.String() != tenant {
			t.Errorf("%s got %s", tenant, w.Body)
		}
	}
	// The client's query is part of the payload, although it has been removed by now (F3).
	if w := serve(lambdaidem.Outermost(outer), posted(t, "/a/pay?amount=2")); w.Code != 422 {
		t.Errorf("another query got %d %s", w.Code, w.Body)
	}
}

// Different spellings of one host count as the same host.
func TestF1_SpellingsOfAHost(t *testing.T) {
	h := lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))
	for _, hosts := range [][]string{{"example.com", "EXAMPLE.com.", "example.com:80", "Example.Com.:8080"}, {"[::1]", "[::1]:80"}, {"10.0.0.1", "10.0.0.1:9"}} {
		for i, host := range hosts {
			r := posted(t, "/a")
			r.Host = host
			if w := serve(h, r); (w.Header().Get(mark) != "") != (i > 0) {
				t.Errorf("%s got %v", host, w.Header())
			}
		}
	}
}

// What was read between two Outermost handlers counts.
func TestF3_OutermostTwice(t *testing.T) {
	h := lambdaidem.Outermost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 8)
		lambdaidem.Outermost(lambdaidem.New(memstore.New(), anonymous).Middleware(says("x"))).ServeHTTP(w, r)
	}))
	if got := sendReal(t, h, "AAAAAAAAsame", true); got.status != 500 {
		t.Errorf("the answer is %d %s", got.status, got.body)
	}
	// Outermost changes nothing else: a request without a body still has none.
	none := lambdaidem.Outermost(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			t.Errorf("the body is a %T", r.Body)
		}
	}))
	r := posted(t, "/a")
	r.Body = http.NoBody
	serve(none, r)
}

// A request that is guarded twice is refused, and nothing is stored.
func TestG3_GuardedTwice(t *testing.T) {
	seen := &recorder{}
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.Observer = seen })
	h := g.Middleware(g.Middleware(says("x")))
	for range 2 {
		if w := serve(h, posted(t, "/a")); w.Code != 500 || w.Header().Get(mark) != "" {
			t.Errorf("it got %d %v", w.Code, w.Header())
		}
	}
	if kinds := fmt.Sprint(seen.kinds()); kinds != "[key_invalid released key_invalid released]" || !strings.Contains(seen.all()[0].Err.Error(), "Namespace") {
		t.Errorf("the observer saw %v", kinds)
	}
	other := g.Middleware(g.With(func(o *lambdaidem.Options) { o.Namespace = "inner" }).Middleware(says("x")))
	if w := serve(other, posted(t, "/a")); w.Code != 200 {
		t.Errorf("two guards of two namespaces: %d", w.Code)
	}
}

// A temporary refusal by an inner guard is not stored, also if it arrived over HTTP.
func TestX1_AnothersRefusalOfTheMomentIsNotStored(t *testing.T) {
	for code, stored := range map[lambdaidem.Code]bool{lambdaidem.ErrInProgress: false, lambdaidem.ErrAttemptAbandoned: false, "insufficient_funds": true} {
		for policy, state := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
			for _, answer := range []response{
				{StatusCode: 409, Body: `{"code":"` + string(code) + `"}`},
				{StatusCode: 409, Body: encode64(`{"code":"` + string(code) + `"}`), IsBase64Encoded: true},
			} {
				r := newRig(func(context.Context, request) (response, error) { return answer, nil }, func(o *lambdaidem.Options) { o.Policy = policy })
				r.send(t, first())
				if stored {
					state = lambdaidem.Completed
				}
				if got := r.record(t).State; got != state {
					t.Errorf("%s under %s: the record is %s, want %s", code, policy, got, state)
				}
			}
			r := newRig(func(context.Context, request) (response, error) {
				return response{StatusCode: 200, Body: `{"code":"` + string(code) + `"}`}, nil // it contains a refusal's code, but isn't one
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			r.send(t, first())
			if got := r.record(t).State; got != lambdaidem.Completed {
				t.Errorf("a 200 with %s under %s: the record is %s", code, policy, got)
			}
		}
	}
}

// In a joined error, a part without a mark may come from a call that had an effect.
func TestX2_JoinedErrorsUnderHold(t *testing.T) {
	nothing, unknown, gone := lambdaidem.Retryable(errWire), errors.New("reset"), lambdaidem.Reject(404, "gone", "Gone.")
	for _, c := range []struct {
		err         error
		rerun, hold lambdaidem.State
	}{
		{errors.Join(nothing, unknown), lambdaidem.Released, lambdaidem.InProgress},
		{fmt.Errorf("%w; rollback: %w", nothing, unknown), lambdaidem.Released, lambdaidem.InProgress},
		{fmt.Errorf("pay: %w", nothing), lambdaidem.Released, lambdaidem.Released},
		{errors.Join(gone, unknown), lambdaidem.Completed, lambdaidem.InProgress},
		{errors.Join(nothing, nothing), lambdaidem.Released, lambdaidem.Released},
		{errors.Join(nothing, lambdaidem.Uncertain(unknown)), lambdaidem.InProgress, lambdaidem.InProgress},
		{lambdaidem.Retryable(errors.Join(unknown, errWire)), lambdaidem.Released, lambdaidem.Released},
		{lambdaidem.Permanent(lambdaidem.Reject(503, "closed", "Closed.")), lambdaidem.Completed, lambdaidem.Completed},
		{(*lambdaidem.Error)(nil), lambdaidem.Released, lambdaidem.InProgress},
	} {
		for policy, want := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: c.rerun, lambdaidem.Hold: c.hold} {
			r := newRig(func(context.Context, request) (response, error) { return response{}, c.err }, func(o *lambdaidem.Options) { o.Policy = policy })
			_, _ = r.handler(t.Context(), first())
			if got := r.record(t).State; got != want {
				t.Errorf("%#v under %s: the record is %s, want %s", c.err, policy, got, want)
			}
		}
	}
}

// The release of an inner call does not decide about the handler around it. The handler's own
// result does, both at first and when it replays.
func TestG2_AnInnerCallSpeaksForItself(t *testing.T) {
	for _, c := range []struct {
		err  error
		want lambdaidem.State
	}{
		{lambdaidem.Retryable(errWire), lambdaidem.InProgress},
		{lambdaidem.Reject(429, "slow_down", "Slow down."), lambdaidem.InProgress},
		{lambdaidem.Reject(402, "pay_first", "Pay first."), lambdaidem.Completed},
		{lambdaidem.Permanent(errWire), lambdaidem.Completed},
	} {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.err })
			if !errors.Is(err, c.err) && c.want == lambdaidem.InProgress {
				t.Errorf("Do returned %v", err)
			}
			return response{}, err
		}, hold)
		for _, key := range []string{"one", "two"} { // the second key meets a replay, if there is one
			_, _ = r.handler(t.Context(), post(key, "{}"))
			rec, err := r.store.Store.Get(t.Context(), r.guard.RecordID(lambdaidem.Identity{Method: "POST", Route: "/payments", Key: key}), r.store.allClaims()[0].Now)
			if err != nil || rec.State != c.want {
				t.Errorf("%v, key %s: the outer record is %s, want %s", c.err, key, rec.State, c.want)
			}
		}
	}
}

// A lost answer of an inner call does not decide about the handler around it.
func TestG2_AnInnerAnswerThatIsLost(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (hidden, error) { return hidden{errWire}, nil })
		return response{StatusCode: 201}, err
	}, hold)
	for i, want := range []lambdaidem.State{lambdaidem.Completed, lambdaidem.InProgress} {
		key := fmt.Sprint("key-", i)
		_, _ = r.handler(t.Context(), post(key, "{}"))
		rec, err := r.store.Store.Get(t.Context(), r.guard.RecordID(lambdaidem.Identity{Method: "POST", Route: "/payments", Key: key}), r.store.allClaims()[0].Now)
		if err != nil || rec.State != want {
			t.Errorf("key %s: the record is %s, want %s", key, rec.State, want)
		}
	}
}

// A typed handler inside a guarded one returns what Do would return there, including the marks. It
// has another scope than a call of the same name.
func TestX2_ATypedHandlerInsideAGuardedOne(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		h := lambdaidem.Handler(r.guard, "charge", func(context.Context, order) (string, error) { return "k", nil },
			func(context.Context, order) (int, error) { return 0, lambdaidem.Retryable(&cardError{"down"}) })
		_, err := h(ctx, order{})
		if down := (*cardError)(nil); !errors.As(err, &down) {
			t.Errorf("the error is %v, a %T", err, err)
		}
		if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Error(err)
		}
		return response{StatusCode: 201}, nil
	})
	r.send(t, first())
	scopes := map[string]bool{}
	for _, c := range r.store.allClaims() {
		scopes[c.Scope] = true
	}
	if len(scopes) != 3 {
		t.Errorf("three records have the scopes %v", scopes)
	}
}

type hiddenID struct{ id string }

// A value that JSON can't represent is neither compared nor replayed as if it were empty.
func TestF5_ValuesThatJSONCannotSee(t *testing.T) {
	type nested struct{ In any }
	count := new(atomic.Int64)
	count.Store(7)
	secret, err := url.Parse("https://user:password@example.com/")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := url.Parse("https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		value any
		ok    bool
	}{
		{struct{ Hidden }{Hidden{"a"}}, false}, {struct{ Count }{7}, true}, {byPointer{"a"}, false}, {&byPointer{"a"}, true}, {[]byPointer{{"a"}}, true}, {&struct{ B byPointer }{byPointer{"a"}}, true}, {locked(), true},
		{hiddenID{"a"}, false}, {&hiddenID{"a"}, false}, {nested{hiddenID{"a"}}, false}, {[]any{map[string]any{"a": &hiddenID{"a"}}}, false},
		{errWire, false}, {count, false}, {secret, false}, {map[string]*hiddenID{"a": {"a"}}, false}, {[]hiddenID{{"a"}}, false},
		{nested{}, true}, {struct{}{}, true}, {hiddenID{}, true}, {(*hiddenID)(nil), true}, {plain, true}, {charge, true},
		{struct {
			sync.Mutex
			N int
		}{N: 1}, true},
		{struct {
			H hiddenID `json:"-"`
			N int
		}{hiddenID{"a"}, 1}, true},
	} {
		r := newCharges()
		_, err := r.do(t, lambdaidem.Call{Operation: "op", Key: fmt.Sprint("key-", i), Payload: c.value})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, lambdaidem.ErrRequestInvalid) {
			t.Errorf("%T as a payload: %v", c.value, err)
		}
	}
	c := newCharges()
	do := func() (*hiddenID, error) {
		return lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (*hiddenID, error) { return &hiddenID{"ch_1"}, nil })
	}
	if got, err := do(); err != nil || got.id != "ch_1" || c.seen.last(t).Kind != lambdaidem.EventAnswerLost {
		t.Errorf("the first call returned %v, %v", got, err)
	}
	if got, err := do(); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
		t.Errorf("the second call returned %v, %v", got, err)
	}
}

type (
	Hidden    hiddenID
	Count     int
	byPointer hiddenID
)

// encoding/json doesn't call MarshalJSON on a value that has no address.
func (p *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal(p.id) }

type counter struct {
	sync.Mutex
	N int
}

func locked() *counter {
	c := new(counter)
	c.Lock()
	return c
}

// shown is a string key: encoding/json uses the string itself and doesn't call MarshalText.
type shown string

func (shown) MarshalText() ([]byte, error) { return []byte("x"), nil }

// numbered is a key that encoding/json marshals with MarshalText.
type numbered struct{ n byte }

func (n numbered) MarshalText() ([]byte, error) { return []byte{n.n}, nil }

type aliased struct{ Name string }

func (a aliased) MarshalJSON() ([]byte, error) {
	type plain aliased
	return json.Marshal(plain(a))
}

type ring struct {
	Text json.RawMessage
	Self *ring `json:",omitzero"`
}

func (r *ring) IsZero() bool { return true }

// Invalid UTF-8 is found in map keys and in values that marshal themselves. A cycle in fields that
// JSON leaves out doesn't cause an endless loop.
func TestF3_TextsThatHide(t *testing.T) {
	loop := &ring{Text: json.RawMessage(`"\ufffd"`)}
	loop.Self = loop
	for name, payload := range map[string]any{
		"key": map[textual]int{"\xff": 1}, "marshaler": aliased{"\xff"}, "pointer to a marshaler": &aliased{"\xff"}, "cycle": loop,
		"marshaler by pointer": &byPointer{"\xff"}, "key as it is": map[shown]int{"\xff": 1}, "key that marshals": map[numbered]int{{0xff}: 1},
	} {
		_, err := newCharges().do(t, lambdaidem.Call{Operation: "op", Key: "k", Payload: payload})
		if !errors.Is(err, lambdaidem.ErrRequestInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The body of a request that runs unguarded is streamed as it would be without the guard.
func TestK4_UnguardedBodiesAreNotRead(t *testing.T) {
	for name, set := range map[string]func(*testing.T, *lambdaidem.Options){
		"key optional": func(_ *testing.T, o *lambdaidem.Options) { o.KeyOptional = true },
		"off":          func(t *testing.T, _ *lambdaidem.Options) { t.Setenv(lambdaidem.SwitchOff, "1") },
	} {
		t.Run(name, func(t *testing.T) {
			set(t, &lambdaidem.Options{})
			seen := &recorder{}
			g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.Observer = seen; set(t, o) })
			body, client := io.Pipe()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", body)
			serve(g.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				go func() { _, _ = client.Write([]byte("late")); _ = client.Close() }() // written only now
				if text, err := io.ReadAll(r.Body); string(text) != "late" || err != nil {
					t.Errorf("the handler read %q, %v", text, err)
				}
			})), r)
			if len(seen.kinds()) != 1 {
				t.Errorf("the observer saw %v", seen.kinds())
			}
		})
	}
}

// A header that outer handlers set only on the retry stays. A header that the handler set is the
// handler's own, even if its value equals the outer handler's.
func TestR1_OuterHeadersThatChange(t *testing.T) {
	n := 0
	inner := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "inner=1")
		w.Header().Add("Vary", "Accept")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(201)
	}))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Content-Type", "application/json")
		} else {
			w.Header().Set("Set-Cookie", "csrf=2")
			w.Header().Set("Vary", "Origin")
		}
		inner.ServeHTTP(w, r)
	})
	serve(h, posted(t, "/a"))
	w := serve(h, posted(t, "/a"))
	if got := fmt.Sprint(w.Header()["Set-Cookie"], w.Header()["Vary"], w.Header()["Content-Type"]); got != "[csrf=2 inner=1] [Origin Accept] [application/json]" {
		t.Errorf("the replay has %s", got)
	}
}

// An invalid Content-Length doesn't limit the body, and a trailer that was removed again isn't
// sent.
func TestR1_OddLengthsAndTrailers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"negative": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "-1")
			_, _ = io.WriteString(w, "body")
		},
		"taken back": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("X-Sum", "1")
			w.WriteHeader(200)
			_, _ = io.WriteString(w, "body")
			w.Header().Del("X-Sum")
		},
	} {
		guarded := lambdaidem.New(memstore.New(), anonymous).Middleware(h)
		want := sendReal(t, h, "x", false)
		for range 2 {
			got := sendReal(t, guarded, "x", false)
			if got.body != want.body || fmt.Sprint(got.trailer) != fmt.Sprint(want.trailer) {
				t.Errorf("%s: got %q %v, want %q %v", name, got.body, got.trailer, want.body, want.trailer)
			}
		}
	}
}

// Without a key, the principal function is not called.
func TestK3_OptionalKeysNeedNoPrincipal(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) { o.KeyOptional = true })
	h := lambdaidem.Handler(g, "op", func(context.Context, order) (string, error) { return "", nil }, func(context.Context, order) (int, error) { return 7, nil },
		func(o *lambdaidem.HandlerOptions[order]) {
			o.Principal = func(context.Context, order) (string, error) { return "", errWire }
		})
	if n, err := h(t.Context(), order{}); n != 7 || err != nil {
		t.Errorf("it returned %d, %v", n, err)
	}
}

// A skipped call inside a guarded handler is part of that handler: RecordID returns the handler's
// record.
func TestK6_ASkippedCallIsOfTheRecordAroundIt(t *testing.T) {
	var r *rig
	r = newRig(func(outer context.Context, _ request) (response, error) {
		skipped := charge
		skipped.Skip = true
		_, err := lambdaidem.Do(outer, r.guard, skipped, func(ctx context.Context) (int, error) {
			if got := lambdaidem.Key(ctx) + lambdaidem.RecordID(ctx); got != lambdaidem.Key(outer)+lambdaidem.RecordID(outer) || lambdaidem.Attempt(ctx) != 1 {
				t.Errorf("it has %q, attempt %d", got, lambdaidem.Attempt(ctx))
			}
			return 1, nil
		})
		return response{StatusCode: 201}, err
	})
	r.send(t, first())
}

// Rare errors and outcomes.
func TestX2_OddErrors(t *testing.T) {
	// A Lambda error without a type and with an empty text replays unchanged.
	g := lambdaidem.New(memstore.New(), quiet)
	for range 2 {
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errors.New("")) })
		if err == nil || err.Error() != "" {
			t.Errorf("the error is %q", err)
		}
	}
	// A mark without a status still gives a 503.
	r := newRig(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Retryable(&lambdaidem.Error{Code: "mine"})
	})
	wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrRetryable)
	r = newRig(func(context.Context, request) (response, error) {
		return response{}, lambdaidem.Permanent(&lambdaidem.Error{Code: "mine"})
	})
	wantProblem(t, r.send(t, first()), 500, lambdaidem.ErrPermanent)
	// An outcome rule that changes its argument doesn't change the answer.
	r = newRig(status(201), func(o *lambdaidem.Options) {
		o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
			r.Status, r.Body = 500, "changed"
			return lambdaidem.OutcomeSucceeded
		}
	})
	one := r.send(t, first())
	wantReplay(t, r.send(t, first()), one)
	// A raw JSON result that isn't valid JSON is lost, and isn't replaced by null.
	seen := &recorder{}
	g = lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = seen })
	if _, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (json.RawMessage, error) { return json.RawMessage{}, nil }); err != nil || seen.last(t).Kind != lambdaidem.EventAnswerLost {
		t.Errorf("%v, %v", err, seen.kinds())
	}
	// An invalid request target isn't shown.
	seen.forget()
	bad := posted(t, "/a")
	bad.RequestURI = "secret\x7f"
	w := serve(lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) { o.Observer = seen }).Middleware(says("x")), bad)
	if w.Code != 400 || strings.Contains(fmt.Sprint(seen.last(t).Err), "secret") {
		t.Errorf("it got %d, and the log %v", w.Code, seen.last(t).Err)
	}
}

func encode64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
