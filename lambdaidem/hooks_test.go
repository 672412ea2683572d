package lambdaidem_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The hook gets every answer that the guard makes, also the rare ones: a browser that may not read
// an answer can't act on it.
func TestR2_HookSeesTheRareAnswersToo(t *testing.T) {
	headers := func(n int) request {
		in := first()
		for i := range n {
			in.Headers["x-"+strings.Repeat("a", i+1)] = "1"
		}
		return in
	}
	for code, c := range map[lambdaidem.Code]struct {
		opt  func(*lambdaidem.Options)
		h    handler
		made func(*testing.T, *rig) // runs before first() is sent
		in   request
	}{
		lambdaidem.ErrOutcomeUnknown:   {made: func(_ *testing.T, r *rig) { r.store.failAlways(complete, requestLost) }},
		lambdaidem.ErrAttemptAbandoned: {opt: hold, made: func(t *testing.T, r *rig) { dead(t, r) }},
		lambdaidem.ErrAnswerUnreadable: {made: func(t *testing.T, r *rig) {
			r.store.Store = damaged{r.store.Store, []byte("{")}
			r.send(t, first())
		}},
		lambdaidem.ErrAnswerUnavailable: {made: func(t *testing.T, r *rig) {
			r.store.fail(complete, refused(lambdaidem.ReasonEncoding))
			r.send(t, first())
		}},
		lambdaidem.ErrRecordForeign: {made: func(_ *testing.T, r *rig) { r.store.failAlways(acquire, refused(lambdaidem.ReasonForeign)) }},
		lambdaidem.ErrOutOfTime: {made: func(_ *testing.T, r *rig) {
			r.store.fail(acquire, after(func() { time.Sleep(time.Minute) }))
		}},
		lambdaidem.ErrInProgress: {made: func(_ *testing.T, r *rig) { r.store.failAlways(complete, leaseLost) }},
		lambdaidem.ErrPrincipalUnknown: {opt: func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", errWire }
		}},
		lambdaidem.ErrHeadersTooMany: {in: headers(501)},
	} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []lambdaidem.Code
				if c.opt == nil {
					c.opt = func(*lambdaidem.Options) {}
				}
				r := newRig(c.h, c.opt, func(o *lambdaidem.Options) {
					o.OnOwnAnswer = func(_ context.Context, req *lambdaidem.Request, resp *lambdaidem.Response, e *lambdaidem.Error) {
						seen = append(seen, e.Code)
						resp.Set("Access-Control-Allow-Origin", req.Method)
					}
				})
				if c.made != nil {
					c.made(t, r)
				}
				if c.in.Headers == nil {
					c.in = first()
				}
				if out := r.send(t, c.in); !slices.Equal(seen, []lambdaidem.Code{code}) || out.Headers["Access-Control-Allow-Origin"] != "POST" {
					t.Errorf("the hook saw %v and the answer is %+v", seen, out)
				}
			})
		})
	}
}

// An answer that stands for the handler's error is the handler's own, so the hook doesn't get it.
func TestR2_HookSeesNoAnswerOfTheHandlers(t *testing.T) {
	for _, own := range []error{lambdaidem.Reject(404, "no_order", "There is no such order."), lambdaidem.Permanent(errWire), lambdaidem.Retryable(errWire)} {
		r := newRig(func(context.Context, request) (response, error) { return response{}, own }, func(o *lambdaidem.Options) {
			o.OnOwnAnswer = func(_ context.Context, _ *lambdaidem.Request, _ *lambdaidem.Response, e *lambdaidem.Error) {
				t.Errorf("%v: the hook saw %v", own, e)
			}
		})
		r.send(t, first())
		r.send(t, first())
	}
}

// "Set-Cookie" in UnstoredHeaders matches without case, also if the event has a field for cookies.
func TestR2_UnstoredCookiesWithoutCase(t *testing.T) {
	for _, name := range []string{"Set-Cookie", "set-cookie", "SET-COOKIE"} {
		answer := response{StatusCode: 200, Headers: map[string]string{"A": "1"}, Cookies: []string{"session=secret"}}
		r := newRig(func(context.Context, request) (response, error) { return answer, nil },
			func(o *lambdaidem.Options) { o.UnstoredHeaders = []string{name} })
		if one := r.send(t, first()); !sameAnswer(one, answer) {
			t.Errorf("%s: the first answer is %+v", name, one)
		}
		wantReplay(t, r.send(t, first()), response{StatusCode: 200, Headers: answer.Headers})
	}
}

// Hooks of a net/http guard may do what those of event guards may: set a base64 body, and set
// cookies separately from the headers.
func TestR2_HooksOfMiddleware(t *testing.T) {
	change := func(resp *lambdaidem.Response) {
		resp.Body, resp.Base64 = "AP8B", true
		resp.Cookies = []string{"a=1", "b=2"}
	}
	g := lambdaidem.New(memstore.New(), anonymous, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) { change(resp) }
		o.OnOwnAnswer = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response, _ *lambdaidem.Error) {
			change(resp)
		}
	})
	h := g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "own=1")
		w.WriteHeader(201)
	}))
	if w := serve(h, posted(t, "/a")); w.Code != 201 || w.Body.Len() > 0 {
		t.Errorf("the first answer is %d %q", w.Code, w.Body)
	}
	replay := serve(h, posted(t, "/a"))
	if got := replay.Header()["Set-Cookie"]; replay.Code != 201 || replay.Body.String() != "\x00\xff\x01" || !slices.Equal(got, []string{"own=1", "a=1", "b=2"}) {
		t.Errorf("the replay is %d %q with the cookies %v", replay.Code, replay.Body, got)
	}
	keyless := posted(t, "/a")
	keyless.Header.Del("Idempotency-Key")
	own := serve(h, keyless)
	if got := own.Header()["Set-Cookie"]; own.Code != 400 || own.Body.String() != "\x00\xff\x01" || !slices.Equal(got, []string{"a=1", "b=2"}) {
		t.Errorf("the guard's own answer is %d %q with the cookies %v", own.Code, own.Body, got)
	}
}
