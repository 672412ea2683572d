package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// shelf is a store that keeps every answer separately from its record. It isn't a Loader; see
// loading.
type shelf struct{ *faulty }

func (s *shelf) apart(rec lambdaidem.Record, err error) (lambdaidem.Record, error) {
	if rec.Result.Value != nil {
		rec.Result.Apart, rec.Result.Value = string(rec.Result.Value), nil
	}
	return rec, err
}

func (s *shelf) Acquire(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
	return s.apart(s.faulty.Acquire(ctx, c))
}

func (s *shelf) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	return s.apart(s.faulty.Complete(ctx, l, r))
}

func (s *shelf) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	return s.apart(s.faulty.Get(ctx, id, now))
}

// loading is a shelf that is a Loader. The operation load can be made to fail.
type loading struct{ *shelf }

const load = "load"

func (s loading) Load(ctx context.Context, rec lambdaidem.Record) (lambdaidem.Result, error) {
	rec, err := s.do(ctx, load, func() (lambdaidem.Record, error) {
		rec.Result.Value, rec.Result.Apart = []byte(rec.Result.Apart.(string)), nil
		return rec, nil
	})
	return rec.Result, err
}

// newApartRig returns a rig whose store keeps answers separately, and is a Loader if loader is
// true.
func newApartRig(loader bool, h handler, optFns ...func(*lambdaidem.Options)) *rig {
	r := newRig(h, optFns...)
	s := &shelf{r.store}
	var store lambdaidem.Store = s
	if loader {
		store = loading{s}
	}
	r.guard = lambdaidem.New(store, append([]func(*lambdaidem.Options){func(o *lambdaidem.Options) {
		o.Namespace, o.Observer = "test", r.seen
	}}, optFns...)...)
	r.handler = r.guarded(h)
	return r
}

// An answer that is stored separately is read only for a replay.
func TestR3_AnAnswerApartIsReadForReplaysAlone(t *testing.T) {
	r := newApartRig(true, nil)
	one := r.send(t, first())
	wantProblem(t, r.send(t, post("key-1", `{"amount":200}`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	if n := r.store.count(load); n != 0 {
		t.Errorf("a first answer and a mismatch loaded %d times", n)
	}
	wantReplay(t, r.send(t, first()), one)
	if n := r.store.count(load); n != 1 {
		t.Errorf("a replay loaded %d times", n)
	}
	r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventMismatch, lambdaidem.EventReplayed)
	r.wantRuns(t, 1)
}

// An answer is never replayed in part. If it is gone, the failure is final. If it can't be read at
// the moment, the failure is temporary.
func TestR3_AnAnswerApartThatCantBeReadIsNeverReplayed(t *testing.T) {
	for _, c := range []struct {
		name   string
		loader bool
		fault  fault
		status int
		code   lambdaidem.Code
		event  lambdaidem.Kind
		reason lambdaidem.Reason
	}{
		{"it is gone", true, refused(lambdaidem.ReasonForeign), 500, lambdaidem.ErrAnswerUnavailable, lambdaidem.EventUnreadable, lambdaidem.ReasonForeign},
		{"the store is no Loader", false, nil, 500, lambdaidem.ErrAnswerUnavailable, lambdaidem.EventUnreadable, lambdaidem.ReasonForeign},
		{"Load leaves it apart", true, leavesApart, 500, lambdaidem.ErrAnswerUnavailable, lambdaidem.EventUnreadable, lambdaidem.ReasonForeign},
		{"throttled", true, refused(lambdaidem.ReasonThrottled), 503, lambdaidem.ErrStoreUnavailable, lambdaidem.EventStoreError, lambdaidem.ReasonThrottled},
		{"no reply", true, requestLost, 503, lambdaidem.ErrStoreUnavailable, lambdaidem.EventStoreError, lambdaidem.ReasonUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newApartRig(c.loader, nil)
			one := r.send(t, first())
			r.seen.forget()
			r.store.failAlways(load, c.fault)
			out := r.send(t, first())
			wantProblem(t, out, c.status, c.code)
			wantNoInternals(t, out)
			if got := retryAfter(t, out); (got > 0) != (c.status == 503) {
				t.Errorf("Retry-After is %v", got)
			}
			r.wantEvents(t, c.event)
			if e := r.seen.last(t); e.Err == nil || e.Reason != c.reason || e.Attempt != 1 {
				t.Errorf("the event is %+v", e)
			}
			r.wantRuns(t, 1)
			if c.loader { // the failed load changed nothing
				r.store.failAlways(load, nil)
				wantReplay(t, r.send(t, first()), one)
			}
		})
	}
}

// A client whose answer is lost is not told that its request was carried out if it was declined.
func TestR3_ALostRefusalIsNotCalledCarriedOut(t *testing.T) {
	for status, carriedOut := range map[int]bool{http.StatusCreated: true, http.StatusPaymentRequired: false} {
		for reason, lost := range map[string]fault{"gone": refused(lambdaidem.ReasonForeign), "throttled": refused(lambdaidem.ReasonThrottled), "unreadable": unreadableAnswer} {
			r := newApartRig(true, func(context.Context, request) (response, error) { return response{StatusCode: status}, nil })
			r.send(t, first())
			r.store.failAlways(load, lost)
			out := r.send(t, first())
			if says := strings.Contains(out.Body, "was carried out"); says != carriedOut || out.StatusCode < 500 {
				t.Errorf("a %d, %s: the client is told %d %s", status, reason, out.StatusCode, out.Body)
			}
		}
	}
}

func unreadableAnswer(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	rec, err := call()
	rec.Result.Value = []byte("{")
	return rec, err
}

func leavesApart(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	return lambdaidem.Record{Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Apart: "still"}}, nil
}

// A load must end within the time of the claim, and leaves time for the answer.
func TestR3_ALoadEndsBeforeTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newApartRig(true, nil)
		r.send(t, first())
		r.store.fail(load, hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		if ctx.Err() != nil {
			t.Error("no time was left to answer")
		}
	})
}

// A request that waited for another attempt's answer loads it.
func TestR3_AnAnswerApartIsLoadedAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newApartRig(true, slow(time.Second, 201), waiting(5*time.Second))
		done := meanwhile(t, r.handler)
		out := r.send(t, first())
		wantReplay(t, out, <-done)
		r.wantRuns(t, 1)
	})
}

// An attempt that lost its lease loads the answer too.
func TestR3_AnAnswerApartIsLoadedByWhoLostItsLease(t *testing.T) {
	for name, f := range map[string]fault{"loaded": nil, "throttled": refused(lambdaidem.ReasonThrottled)} {
		t.Run(name, func(t *testing.T) {
			clock := newTicker()
			var r *rig
			r = newApartRig(true, func(ctx context.Context, _ request) (response, error) {
				if lambdaidem.Attempt(ctx) == 1 {
					clock.advance(leaseWithoutDeadline)
					r.store.fail(load, f)
					second, err := r.handler(t.Context(), first())
					if err != nil || second.Body != "the truth" {
						t.Errorf("the takeover answered %+v, %v", second, err)
					}
					return response{StatusCode: 201, Body: "too late"}, nil
				}
				return response{StatusCode: 201, Body: "the truth"}, nil
			}, clock.option)
			out := r.send(t, first())
			if f != nil {
				wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown) // not a code that says that the handler did not run
				return
			}
			wantReplay(t, out, response{StatusCode: 201, Body: "the truth"})
		})
	}
}

// Every kind of handler loads the answer, also Do, typed handlers and net/http.
func TestR3_AnAnswerApartIsReplayedByEveryEvent(t *testing.T) {
	type paid struct{ Receipt string }
	r := newApartRig(true, nil)
	want := paid{strings.Repeat("receipt ", 1000)}
	runs := 0
	pay := func() paid { runs++; return want }
	handle := lambdaidem.Handler(r.guard, "pay", func(context.Context, string) (string, error) { return "key", nil },
		func(context.Context, string) (paid, error) { return pay(), nil })
	mux := http.NewServeMux()
	mux.Handle("POST /pay", r.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true }).Middleware(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { runs++; _, _ = w.Write([]byte(want.Receipt)) })))
	ways := map[string]func() (paid, error){
		"Do": func() (paid, error) {
			return lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "do", Key: "key"},
				func(context.Context) (paid, error) { return pay(), nil })
		},
		"Handler": func() (paid, error) { return handle(t.Context(), "event") },
		"Middleware": func() (paid, error) {
			in := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pay", http.NoBody)
			in.Header.Set("Idempotency-Key", "key-1")
			out := httptest.NewRecorder()
			mux.ServeHTTP(out, in)
			if out.Code != http.StatusOK {
				return paid{}, lambdaidem.Code(out.Body.String())
			}
			return paid{out.Body.String()}, nil
		},
	}
	for name, call := range ways {
		t.Run(name, func(t *testing.T) {
			runs = 0
			for range 2 {
				if got, err := call(); err != nil || cmp.Diff(want, got) != "" {
					t.Errorf("got %d bytes, %v", len(got.Receipt), err)
				}
			}
			if runs != 1 {
				t.Errorf("it ran %d times", runs)
			}
			r.store.fail(load, refused(lambdaidem.ReasonForeign))
			_, err := call()
			if err == nil || !errors.Is(err, lambdaidem.ErrAnswerUnavailable) && !strings.Contains(err.Error(), string(lambdaidem.ErrAnswerUnavailable)) {
				t.Errorf("of an answer that is gone it says %v", err)
			}
		})
	}
}
