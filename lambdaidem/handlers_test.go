package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The handler's context has the key and the record's id. Both are the same in every attempt.
func TestK6_HandlersKnowKeyAndRecord(t *testing.T) {
	var keys, ids []string
	var attempts []int
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		keys, ids, attempts = append(keys, lambdaidem.Key(ctx)), append(ids, lambdaidem.RecordID(ctx)), append(attempts, lambdaidem.Attempt(ctx))
		return response{StatusCode: []int{500, 201}[len(ids)-1]}, nil
	})
	in := first()
	in.Headers["idempotency-key"] = `"key \"1\""`
	r.send(t, in)
	r.send(t, in)
	id := r.store.allClaims()[0].ID
	if len(ids) != 2 || ids[0] != id || ids[1] != id || len(id) != 54 || keys[0] != `key "1"` || keys[1] != keys[0] || attempts[1] != 2 {
		t.Errorf("the handler saw the keys %q, the records %q, the attempts %v; the record is %q", keys, ids, attempts, id)
	}
	if e := r.seen.last(t); e.RecordID != id {
		t.Errorf("the event has the record %q", e.RecordID)
	}
	if lambdaidem.Key(t.Context()) != "" || lambdaidem.RecordID(t.Context()) != "" {
		t.Error("there is a key where no guard is")
	}
	unguarded := newRig(func(ctx context.Context, _ request) (response, error) {
		if k := lambdaidem.Key(ctx) + lambdaidem.RecordID(ctx); k != "" {
			t.Errorf("an unguarded handler has %q", k)
		}
		return response{StatusCode: 201}, nil
	}, func(o *lambdaidem.Options) { o.KeyOptional = true })
	unguarded.send(t, post("", ""))
	unguarded.wantRuns(t, 1)
}

// A record's id can be computed from the parts of its identity, which are those that the guard
// takes from a request.
func TestF1_RecordIDLeadsFromAKeyToItsRecord(t *testing.T) {
	r := newRig(nil)
	in := first()
	in.RouteKey, in.RawPath = "POST /payments/{id}", "/payments/1"
	in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "i", "sub": "s"}}}
	r.send(t, in)
	route := lambdaidem.Identity{Principal: "jwt:i|s", Method: "POST", Route: "/payments/{id}", Key: "key-1"}
	in.RouteKey = "$default"
	r.send(t, in)
	path := lambdaidem.Identity{Principal: "jwt:i|s", Method: "POST", Path: "/payments/1", Key: "key-1"}
	if _, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "op", Principal: "p", Key: "k"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	call := lambdaidem.Identity{Operation: "op", Principal: "p", Key: "k"}
	h := lambdaidem.Handler(r.guard, "op", func(context.Context, order) (string, error) { return "k", nil }, func(context.Context, order) (int, error) { return 1, nil })
	if _, err := h(t.Context(), order{}); err != nil {
		t.Fatal(err)
	}
	typed := lambdaidem.Identity{Operation: "op", Handler: true, Key: "k"}
	mux := http.NewServeMux()
	mux.Handle("POST /a/{id}", r.guard.With(anonymous).Middleware(says("x")))
	serve(mux, posted(t, "http://Example.com:8080/a/1"))
	host := lambdaidem.Identity{Method: "POST", Host: "example.com", Route: "/a/{id}", Key: "k"}
	mux.Handle("POST Example.com/b/{id}", r.guard.With(anonymous).Middleware(says("x")))
	serve(mux, posted(t, "http://Example.com/b/1"))
	hostOfPattern := lambdaidem.Identity{Method: "POST", Host: "example.com", Route: "/b/{id}", Key: "k"}
	claims := r.store.allClaims()
	catchAll, rest, whole := path, path, route
	catchAll.Route, rest.Route, whole.Path = "/{proxy+}", "/{rest...}", "/payments/1"
	for who, like := range map[lambdaidem.Identity]lambdaidem.Identity{catchAll: path, rest: path, whole: route} {
		if r.guard.RecordID(who) != r.guard.RecordID(like) {
			t.Errorf("%+v is another record than %+v", who, like)
		}
	}
	for i, who := range []lambdaidem.Identity{route, path, call, typed, host, hostOfPattern} {
		if got, want := r.guard.RecordID(who), claims[i].ID; got != want {
			t.Errorf("%+v has the id %s, want %s", who, got, want)
		}
		who.Namespace = "test"
		if got, want := lambdaidem.New(memstore.New()).RecordID(who), claims[i].ID; got != want {
			t.Errorf("%+v has the id %s, want %s", who, got, want)
		}
	}
}

// Stored records keep their ids.
func TestF1_IDsAreStable(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	for want, who := range map[string]lambdaidem.Identity{
		"lambdaidem#vR5f8eeOcANxehncWBBLT3CTQ1erXFVI5Rli9r3oa00": {Principal: "jwt:i|s", Method: "POST", Route: "/payments", Key: "key-1"},
		"lambdaidem#7bNBIiU6FA6Iu4hEXx2wtZGLG3XbkuJEBJPl4pcuPbY": {Principal: "jwt:i|s", Method: "POST", Path: "/payments", Key: "key-1"},
		"lambdaidem#6zRwXnX5K1lAGplkaYXa9Ix6eB2CBGmVByAyvEiYkhg": {Principal: "p", Operation: "charge", Key: "key-1"},
	} {
		if got := g.RecordID(who); got != want {
			t.Errorf("%+v has the id %s, want %s", who, got, want)
		}
	}
}

// With IDPrefix, only the beginning of an id is different, and the record is another one.
func TestF1_AnIDPrefixMakesItsOwnRecords(t *testing.T) {
	who := lambdaidem.Identity{Principal: "p", Operation: "charge", Key: "key-1"}
	store, guards := memstore.New(), map[string]*lambdaidem.Guard{}
	for prefix, want := range map[string]string{
		"":     "lambdaidem#6zRwXnX5K1lAGplkaYXa9Ix6eB2CBGmVByAyvEiYkhg",
		"acme": "lambdaidem#acme#6zRwXnX5K1lAGplkaYXa9Ix6eB2CBGmVByAyvEiYkhg",
		"a-b_c.d:e/f=g+h@i01234567890123456789012": "lambdaidem#a-b_c.d:e/f=g+h@i01234567890123456789012#6zRwXnX5K1lAGplkaYXa9Ix6eB2CBGmVByAyvEiYkhg",
	} {
		g := lambdaidem.New(store, func(o *lambdaidem.Options) {
			o.Namespace, o.IDPrefix, o.Observer = "payments", prefix, lambdaidem.Discard
		})
		if got := g.RecordID(who); got != want {
			t.Errorf("with the prefix %q the id is %s, want %s", prefix, got, want)
		}
		if got := lambdaidem.IDPrefixOf(want); got != prefix {
			t.Errorf("the prefix of %s is %q, want %q", want, got, prefix)
		}
		guards[prefix] = g
	}
	for _, foreign := range []string{"", "acme", "other#acme#6zRw"} {
		if got := lambdaidem.IDPrefixOf(foreign); got != "" {
			t.Errorf("%q, which is no record's id, has the prefix %q", foreign, got)
		}
	}
	for prefix, g := range guards {
		for range 2 {
			answer, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "charge", Key: "key-1"}, func(ctx context.Context) (string, error) {
				return prefix + lambdaidem.RecordID(ctx), nil
			})
			if want := prefix + g.RecordID(lambdaidem.Identity{Operation: "charge", Key: "key-1"}); err != nil || answer != want {
				t.Errorf("with the prefix %q, Do = %q, %v; want %q", prefix, answer, err, want)
			}
		}
	}
}

// No two different combinations of kind and parts give the same principal.
func TestF2_PrincipalsAreUnambiguous(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][]string{{"a", "b", "c"}, {"a", "b|c"}, {"a:b", "c"}, {"a:b|c"}, {"a", "b:c"}, {"a"}, {"a", ""}, {"a", "", ""}, {"a", "%7C"}, {"a", "|"}} {
		p := lambdaidem.PrincipalOf(parts[0], parts[1:]...)
		if seen[p] {
			t.Errorf("%q makes %s, which another choice makes too", parts, p)
		}
		seen[p] = true
	}
}

// Route and caller are separate fields of an event, also in events of refused requests.
func TestO1_EventsNameRouteAndCaller(t *testing.T) {
	r := newRig(nil)
	in := first()
	in.RequestContext.Authorizer = &authorizer{JWT: &jwtAuth{Claims: map[string]string{"iss": "https://i dp/", "sub": "s"}}}
	r.send(t, in)
	in.Body, in.IsBase64Encoded = "!", true
	r.send(t, in)
	for _, e := range r.seen.all() {
		if e.Route != "POST /payments" || e.Caller != "jwt:https://i%20dp/|s" || e.Scope != "test POST /payments jwt:https://i%20dp/|s" || e.Key == "" {
			t.Errorf("the event is %+v", e)
		}
	}
	c := newCharges(func(o *lambdaidem.Options) { o.Namespace = "n" })
	if _, err := c.do(t, lambdaidem.Call{Operation: "charge", Principal: "p", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if e := c.seen.last(t); e.Route != "charge" || e.Caller != "p" || e.RecordID == "" {
		t.Errorf("the event is %+v", e)
	}
}

// If the dead attempt and the reader have different policies, the stricter one decides.
func TestL6_TheStricterPolicyDecides(t *testing.T) {
	for _, c := range []struct {
		died, reads lambdaidem.Policy
		status      int
	}{
		{lambdaidem.Rerun, lambdaidem.Rerun, 201},
		{lambdaidem.Rerun, lambdaidem.Hold, 409},
		{lambdaidem.Hold, lambdaidem.Rerun, 409},
		{lambdaidem.Hold, lambdaidem.Hold, 409},
	} {
		t.Run(string(c.died+" "+c.reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) },
					func(o *lambdaidem.Options) { o.Policy, o.TTL = c.died, 30*24*time.Hour })
				if _, err := r.handler(t.Context(), first()); err == nil {
					t.Fatal("the first attempt ended well")
				}
				time.Sleep(leaseWithoutDeadline)
				r.guard = r.guard.With(func(o *lambdaidem.Options) { o.Policy = c.reads })
				r.handler = r.guarded(nil)
				out := r.send(t, first())
				if c.status == 409 {
					wantProblem(t, out, 409, lambdaidem.ErrAttemptAbandoned)
				} else if out.StatusCode != c.status {
					t.Errorf("the answer is %+v", out)
				}
			})
		})
	}
}

// When a completion hangs, time is left for the answer: half of the reserve, at most 200 ms.
func TestX4_TimeIsLeftForTheAnswer(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: 50 * time.Millisecond, 3 * time.Second: 150 * time.Millisecond, 10 * time.Second: 200 * time.Millisecond, time.Minute: 200 * time.Millisecond,
	} {
		for verb, answer := range map[string]int{complete: 201, release: 500} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					<-ctx.Done() // uses all of its time
					return response{StatusCode: answer}, nil
				})
				r.store.failAlways(verb, hangs)
				r.sendCtx(ctx, t, first())
				if deadline, _ := ctx.Deadline(); time.Until(deadline) != want {
					t.Errorf("%s: %v of %v were left for the answer, want %v", verb, time.Until(deadline), timeout, want)
				}
			})
		}
	}
}

// Retryable says that nothing happened. It leads to a release under either policy and for each kind
// of handler.
func TestX2_RetryableIsReleased(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		var err error
		r := newRig(func(context.Context, request) (response, error) { return response{}, err }, func(o *lambdaidem.Options) {
			o.Policy, o.RetryAfter = policy, 3*time.Second
		})
		for _, c := range []struct {
			err    error
			status int
			code   lambdaidem.Code
			wait   time.Duration
		}{
			{lambdaidem.Retryable(errWire), 503, lambdaidem.ErrRetryable, 3 * time.Second},
			{lambdaidem.Retryable(lambdaidem.Reject(503, "maintenance", "Later.")), 503, "maintenance", 0},
			{lambdaidem.Retryable(lambdaidem.Reject(409, "locked", "Locked.")), 409, "locked", 0},
		} {
			err = c.err
			out := r.send(t, first())
			wantProblem(t, out, c.status, c.code)
			wantNoInternals(t, out)
			if rec := r.record(t); rec.State != lambdaidem.Released || retryAfter(t, out) != c.wait {
				t.Errorf("%v: the record is %s, Retry-After %v", c.err, rec.State, retryAfter(t, out))
			}
		}
		r.wantRuns(t, 3)
		g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) { o.Policy = policy })
		for range 2 {
			_, err := lambdaidem.Do(t.Context(), g, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
			if !errors.Is(err, lambdaidem.ErrRetryable) || !errors.Is(err, errWire) || err.Error() != errWire.Error() {
				t.Errorf("Do returned %v", err)
			}
		}
	}
	if lambdaidem.Retryable(nil) != nil {
		t.Error("Retryable(nil) is an error")
	}
	if errors.Is(lambdaidem.Retryable(lambdaidem.Reject(503, "maintenance", "")), lambdaidem.ErrRetryable) {
		t.Error("an error with a code of its own has two")
	}
}

// If an error has several marks, the most careful one counts.
func TestX2_TheMostCarefulMarkCounts(t *testing.T) {
	for _, err := range []error{
		lambdaidem.Retryable(lambdaidem.Uncertain(errWire)), lambdaidem.Uncertain(lambdaidem.Retryable(errWire)),
		lambdaidem.Permanent(lambdaidem.Uncertain(errWire)), errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Uncertain(errWire)),
	} {
		r := newRig(func(context.Context, request) (response, error) { return response{}, err })
		out, got := r.handler(t.Context(), first())                                                 // an empty answer, since an effect may have happened
		if rec := r.record(t); rec.State != lambdaidem.InProgress || got != err || out.Body != "" { //nolint:errorlint // it has to be the very error
			t.Errorf("%#v: the record is %s, and the answer %+v, %v", err, rec.State, out, got)
		}
	}
	for _, err := range []error{
		lambdaidem.Retryable(lambdaidem.Permanent(errWire)), lambdaidem.Permanent(lambdaidem.Retryable(errWire)),
		errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Permanent(errWire)),
	} {
		r := newRig(func(context.Context, request) (response, error) { return response{}, err })
		one := r.send(t, first())
		wantProblem(t, one, http.StatusInternalServerError, lambdaidem.ErrPermanent)
		wantReplay(t, r.send(t, first()), one)
	}
}

// Under Hold, every error without a mark is uncertain, also one from an inner guard. An error made
// by Reject counts by its status.
func TestX2_UnmarkedErrorsUnderHold(t *testing.T) {
	for want, errs := range map[lambdaidem.State][]error{
		lambdaidem.InProgress: {
			errors.New("connection reset by peer"), context.DeadlineExceeded, context.Canceled, http.ErrHandlerTimeout,
			&lambdaidem.Error{Code: lambdaidem.ErrInProgress, Status: 409}, lambdaidem.Reject(502, "card_network", "Unknown."),
		},
		lambdaidem.Released:  {lambdaidem.Reject(429, "slow_down", "Slow down."), lambdaidem.Retryable(errors.New("connection refused"))},
		lambdaidem.Completed: {lambdaidem.Reject(402, "pay_first", "Pay first."), lambdaidem.Permanent(errors.New("no such card"))},
	} {
		for _, err := range errs {
			r := newRig(func(context.Context, request) (response, error) { return response{}, err }, hold)
			_, _ = r.handler(t.Context(), first())
			if rec := r.record(t); rec.State != want {
				t.Errorf("%v: the record is %s, want %s", err, rec.State, want)
			}
		}
	}
}

// An outcome function that falls back to the default rule gets the policy's rule.
func TestX2_TheFallbackKnowsThePolicy(t *testing.T) {
	for policy, want := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
		for name, answer := range map[string]handler{
			"response": status(503),
			"reject": func(context.Context, request) (response, error) {
				return response{}, lambdaidem.Reject(503, "down", "Down.")
			},
		} {
			r := newRig(answer, func(o *lambdaidem.Options) {
				o.Policy = policy
				o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
					copied := *r
					return lambdaidem.DefaultOutcome(&copied)
				}
			})
			r.send(t, first())
			if rec := r.record(t); rec.State != want {
				t.Errorf("%s, %s: the record is %s", policy, name, rec.State)
			}
		}
	}
	if got := lambdaidem.DefaultOutcome(&lambdaidem.Response{Status: 500}); got != lambdaidem.OutcomeReleased {
		t.Errorf("the rule without a guard says %s", got)
	}
}

// Lambda reports the type of the marked error, not that of the mark.
func TestX2_TypedHandlersReportWhatWasMarked(t *testing.T) {
	for name, err := range map[string]error{"retryable": lambdaidem.Retryable(&cardError{"down"}), "uncertain": lambdaidem.Uncertain(&cardError{"down"}), "permanent": lambdaidem.Permanent(&cardError{"down"})} {
		for _, key := range []string{"k", ""} { // guarded, and unguarded
			g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) { o.KeyOptional = true })
			h := lambdaidem.Handler(g, "op", func(context.Context, order) (string, error) { return key, nil }, func(context.Context, order) (int, error) { return 0, err })
			if _, errorType, message := invoke(t, h, `{"ID":"o"}`); errorType != "cardError" || message != "down" {
				t.Errorf("%s: Lambda reports %q, %q", name, errorType, message)
			}
		}
	}
}

type cardError struct{ text string }

func (e *cardError) Error() string { return e.text }

// Option functions get the defaults, so they can append to them.
func TestOptions_SeeTheDefaults(t *testing.T) {
	add := func(o *lambdaidem.Options) {
		o.Methods = append(o.Methods, "put")
		o.ReplayMarks = append(o.ReplayMarks, lambdaidem.Mark{Name: "X-Cache-Lookup", Value: "HIT"})
		if o.KeyHeader != "Idempotency-Key" || o.ValidateKey == nil || o.Observer == nil || o.Clock == nil || o.MaxURI != 16<<10 {
			t.Errorf("the function sees %+v", o)
		}
	}
	for name, r := range map[string]*rig{"New": newRig(nil, add), "With": func() *rig {
		r := newRig(nil)
		r.guard = r.guard.With(add)
		r.handler = r.guarded(nil)
		return r
	}()} {
		for _, method := range []string{"POST", "PUT"} {
			in := first()
			in.RequestContext.HTTP.Method = method
			r.send(t, in)
			if out := r.send(t, in); !replayed(out) || out.Headers["X-Cache-Lookup"] != "HIT" {
				t.Errorf("%s: a second %s got %+v", name, method, out)
			}
		}
	}
	// A field that is set back to its zero value gets its default again.
	r := newRig(nil, func(o *lambdaidem.Options) { o.Methods, o.TTL = nil, 0 })
	r.send(t, first())
	if out := r.send(t, first()); !replayed(out) {
		t.Errorf("the second answer is %+v", out)
	}
}

// Skip works for Do too, and skipped calls are counted.
func TestK4_CallsCanBeSkipped(t *testing.T) {
	c := newCharges()
	call := charge
	call.Skip = true
	for want := range 2 {
		if n, err := c.do(t, call); n != want+1 || err != nil {
			t.Errorf("it returned %d, %v", n, err)
		}
	}
	if kinds := c.seen.kinds(); len(c.store.allCalls()) > 0 || len(kinds) != 2 || kinds[1] != lambdaidem.EventBypassed {
		t.Errorf("the observer saw %v", kinds)
	}
}

// The environment variable switches a guard off, and each call then reports that.
func TestSwitchOff(t *testing.T) {
	for _, value := range []string{"1", "true", "TRUE"} {
		t.Setenv(lambdaidem.SwitchOff, value)
		r := newRig(nil)
		r.send(t, first())
		if out := r.send(t, post("", "")); replayed(out) || out.StatusCode != 201 {
			t.Errorf("off, it answers %+v", out)
		}
		r.wantRuns(t, 2)
		r.wantEvents(t, lambdaidem.EventSwitchedOff, lambdaidem.EventSwitchedOff)
		c := newCharges()
		for want := range 2 {
			if n, err := c.do(t, lambdaidem.Call{Operation: "op"}); n != want+1 || err != nil {
				t.Errorf("off, Do returns %d, %v", n, err)
			}
		}
		h := lambdaidem.Handler(c.guard.With(), "op", func(context.Context, order) (string, error) { return "", errWire },
			func(context.Context, order) (int, error) { return 7, nil })
		if n, err := h(t.Context(), order{}); n != 7 || err != nil {
			t.Errorf("off, a typed handler returns %d, %v", n, err)
		}
		if w := serve(c.guard.With(anonymous).Middleware(says("x")), posted(t, "/a")); w.Body.String() != "x" {
			t.Errorf("off, the middleware answers %s", w.Body)
		}
		if len(r.store.allCalls())+len(c.store.allCalls()) > 0 {
			t.Error("the store was asked")
		}
	}
	for _, value := range []string{"", "false", "0"} {
		t.Setenv(lambdaidem.SwitchOff, value)
		r := newRig(nil)
		r.send(t, first())
		r.send(t, first())
		r.wantRuns(t, 1)
	}
	t.Setenv(lambdaidem.SwitchOff, "maybe")
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), lambdaidem.SwitchOff) {
			t.Errorf("it panicked with %v", v)
		}
	}()
	lambdaidem.New(memstore.New())
}

// A guarded call inside a guarded handler has its own record: it isn't repeated when the handler
// runs again.
func TestV1_ACallInsideAGuardedHandler(t *testing.T) {
	charges, answer := 0, 500
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		outer := lambdaidem.RecordID(ctx)
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge", Key: lambdaidem.Key(ctx)}, func(ctx context.Context) (int, error) {
			if lambdaidem.RecordID(ctx) == outer {
				t.Error("two records have one id")
			}
			charges++
			return charges, nil
		})
		return response{StatusCode: answer}, err
	})
	r.send(t, first())
	answer = 201
	if out := r.send(t, first()); out.StatusCode != 201 || charges != 1 {
		t.Errorf("the second attempt got %+v after %d charges", out, charges)
	}
	r.wantRuns(t, 2)
}

// Answer and Reject work in the same way in a handler that runs unguarded.
func TestX2_AnswerAndRejectWorkUnguarded(t *testing.T) {
	errOwn := errors.New("own")
	end := map[string]error{
		"answer": lambdaidem.Answer(response{StatusCode: http.StatusNoContent}), "reject": fmt.Errorf("pay: %w", lambdaidem.Reject(http.StatusPaymentRequired, "no_funds", "No.")),
		"own": errOwn,
	}
	h := func(_ context.Context, in request) (response, error) { return response{}, end[in.Body] }
	put := func(body string) request {
		in := post("key-1", body)
		in.RequestContext.HTTP.Method = http.MethodPut
		return in
	}
	plain := newRig(h)
	ledgered, _ := withLedger(h)
	for name, send := range map[string]func(string) (response, error){
		"without transactions": func(body string) (response, error) { return plain.handler(t.Context(), put(body)) },
		"with transactions":    func(body string) (response, error) { return ledgered.handler(t.Context(), put(body)) },
		"inside a guarded handler": func(body string) (out response, err error) {
			outer := newRig(func(ctx context.Context, _ request) (response, error) {
				out, err = plain.handler(ctx, put(body))
				return response{StatusCode: http.StatusOK}, nil
			})
			outer.send(t, first())
			return out, err
		},
	} {
		if out, err := send("answer"); err != nil || out.StatusCode != http.StatusNoContent {
			t.Errorf("%s: Answer is %+v, %v", name, out, err)
		}
		if out, err := send("reject"); name == "inside a guarded handler" {
			if !errors.Is(err, lambdaidem.Code("no_funds")) { // the outer guard judges the error by its marks
				t.Errorf("%s: Reject is %+v, %v", name, out, err)
			}
		} else if err != nil || out.StatusCode != http.StatusPaymentRequired || !strings.Contains(out.Body, "no_funds") {
			t.Errorf("%s: Reject is %+v, %v", name, out, err)
		}
		if out, err := send("own"); !errors.Is(err, errOwn) {
			t.Errorf("%s: an error is %+v, %v", name, out, err)
		}
	}
}
