package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// A call failed open and enlisted writes, and it is unknown whether they were made. The answer must
// not be the call's success.
func TestX4_FailedOpenTransactionOfUnknownFateIsUnknown(t *testing.T) {
	for name, f := range map[string]fault{"request lost": requestLost, "no permission": refused(lambdaidem.ReasonPermission)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), failOpen)
				r.store.fail(acquire, refused(lambdaidem.ReasonTimeout))
				r.store.failAlways(commit, f)
				wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
				l.wantDone(t)
				r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventFailedOpen, lambdaidem.EventStoreError, lambdaidem.EventUncertain)
			})
		})
	}
}

// The user's function for a failed condition panics. If an earlier request with the transaction may
// still be carried out, the lease is kept. Otherwise nothing was written, and the record is
// released.
func TestX8_PanicOverAnUnsettledTransactionKeepsTheLease(t *testing.T) {
	for unsettled, want := range map[bool]lambdaidem.State{true: lambdaidem.InProgress, false: lambdaidem.Released} {
		r, l := withLedger(enlisting(created))
		r.store.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			return lambdaidem.Record{}, &lambdaidem.Rejected{Err: errors.New("no"), Unsettled: unsettled, Verdict: func() error { panic("own") }}
		})
		func() {
			defer func() {
				if v := recover(); v != "own" {
					t.Errorf("recovered %v", v)
				}
			}()
			r.send(t, first())
		}()
		if rec := r.record(t); rec.State != want {
			t.Errorf("unsettled %t: the record is %s; want %s", unsettled, rec.State, want)
		}
		if released := slices.Contains(r.seen.kinds(), lambdaidem.EventReleased); released == unsettled {
			t.Errorf("unsettled %t: events %v", unsettled, r.seen.kinds())
		}
		l.wantDone(t)
	}
}

// The store's failure took all of the time. The handler does not run, and if the claim certainly
// wasn't made, nothing is released.
func TestX5_FailedOpenWithoutTimeReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := withLedger(enlisting(created), failOpen, func(o *lambdaidem.Options) { o.Reserve = 500 * time.Millisecond })
		r.store.fail(acquire, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			time.Sleep(950 * time.Millisecond)
			return refused(lambdaidem.ReasonTimeout)(ctx, verb, call)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), 503, lambdaidem.ErrOutOfTime)
		r.wantRuns(t, 0)
		r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventOutOfTime)
		if slices.Contains(r.store.calls, release) {
			t.Errorf("calls %v", r.store.calls)
		}
	})
}

// Leases are measured with Options.Clock, and so is the remaining time of a lease.
func TestX4_RetryAfterIsByTheGuardsClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		for name, f := range map[string]func(r *rig, ctx context.Context) (response, error){
			"transaction": func(_ *rig, ctx context.Context) (response, error) {
				enlist(ctx, "write")
				return created(ctx)
			},
			"step": func(_ *rig, ctx context.Context) (response, error) {
				_, err := lambdaidem.Step(ctx, "step", func(context.Context) (int, error) { return 1, nil })
				return response{}, err
			},
		} {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var r *rig
					r, _ = withLedger(func(ctx context.Context, _ request) (response, error) { return f(r, ctx) },
						func(o *lambdaidem.Options) { o.Clock = func() time.Time { return time.Now().Add(ahead) } })
					r.store.failAlways(commit, refused(lambdaidem.ReasonPermission))
					r.store.failAlways(save, refused(lambdaidem.ReasonInvalid))
					out := r.send(t, first())
					wantProblem(t, out, 503, lambdaidem.ErrOutcomeUnknown)
					if got := retryAfter(t, out); got < time.Minute || got > time.Minute+3*time.Second {
						t.Errorf("Retry-After is %v; want the lease's rest, 62 s", got)
					}
				})
			})
		}
	}
}

// stepKeeper is a store that keeps the steps of each save exactly as it got them.
type stepKeeper struct {
	*memstore.Store
	saves []lambdaidem.Steps
}

func (s *stepKeeper) SaveSteps(ctx context.Context, l lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	s.saves = append(s.saves, steps)
	return s.Store.SaveSteps(ctx, l, steps, now)
}

// Steps that were passed to the store once don't change later.
func TestE5_StepsOfASaveAreNotChangedByTheNext(t *testing.T) {
	store := &stepKeeper{Store: memstore.New()}
	guard := lambdaidem.New(store)
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(ctx context.Context) (int, error) {
		for _, name := range []string{"a", "b", "c"} {
			if _, err := lambdaidem.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} {
		if got := slices.Sorted(maps.Keys(store.saves[i])); !slices.Equal(got, want) {
			t.Errorf("save %d has %v; want %v", i, got, want)
		}
	}
}

// Steps may have exactly Options.MaxStepBytes, but no byte more.
func TestE5_StepsMayHaveExactlyTheirLimit(t *testing.T) {
	for bytes, fits := range map[int]bool{64: true, 65: false} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.MaxStepBytes = 64 })
		_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(ctx context.Context) (string, error) {
			text := strings.Repeat("x", bytes-len(`step""`))
			return lambdaidem.Step(ctx, "step", func(context.Context) (string, error) { return text, nil })
		})
		if (err == nil) != fits {
			t.Errorf("%d bytes: %v", bytes, err)
		}
		_, err = lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "name", Key: "k"}, func(ctx context.Context) (string, error) {
			name := strings.Repeat("n", bytes)
			return lambdaidem.Step(ctx, name, func(context.Context) (string, error) { return "", errors.New("it ran") })
		})
		if ran := err != nil && strings.Contains(err.Error(), "it ran"); ran != fits {
			t.Errorf("a name of %d bytes: %v", bytes, err)
		}
	}
}

// A call inside a step has its own steps.
func TestE5_CallWithinAStepHasItsOwnSteps(t *testing.T) {
	r := newRig(nil)
	inner := 0
	for range 2 {
		_, _ = lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "outer", Key: "k"}, func(ctx context.Context) (int, error) {
			return lambdaidem.Step(ctx, "outer", func(ctx context.Context) (int, error) {
				n, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "inner", Key: "k"}, func(ctx context.Context) (int, error) {
					if _, err := lambdaidem.Step(ctx, "inner", func(context.Context) (int, error) { inner++; return inner, nil }); err != nil {
						t.Error(err)
					}
					return 0, errors.New("again")
				})
				return n, err
			})
		})
	}
	if inner != 1 {
		t.Errorf("the inner step ran %d times; want once", inner)
	}
}

// The handler's last change to a header counts, whichever of the two header maps it changed.
func TestE1_UnguardedHeaderThatChangedLastCounts(t *testing.T) {
	server, l, _ := passingServer(t, func(w http.ResponseWriter, req *http.Request) {
		early := w.Header()
		enlist(req.Context(), "write")
		w.Header().Set("X-Other", "1") // from here on there are two maps
		early.Set("X-Last", "1")
		early.Set("X-Gone", "1")
		_ = http.NewResponseController(w).Flush() // refused, but it looks at the header
		w.Header().Set("X-Last", "2")
		early.Del("X-Gone")
		w.WriteHeader(http.StatusCreated)
	})
	resp, _ := fetch(t, server.URL)
	if got := resp.Header.Get("X-Last"); got != "2" || resp.Header.Get("X-Gone") != "" {
		t.Errorf("%+v", resp)
	}
	l.wantDone(t, "write")
}

// statuses is a response writer that records every status.
type statuses struct {
	*httptest.ResponseRecorder
	all []int
}

func (s *statuses) WriteHeader(status int) {
	s.all = append(s.all, status)
	s.ResponseRecorder.WriteHeader(status)
}

// While a response is buffered, informational responses are not sent, because the final response
// may be a refusal.
func TestE1_UnguardedBufferedResponseSendsNoHints(t *testing.T) {
	for _, before := range []bool{true, false} {
		r, l := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
		h := r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if before {
				w.WriteHeader(http.StatusEarlyHints)
			}
			enlist(req.Context(), "write")
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		}))
		w := &statuses{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/payments", nil))
		want := []int{http.StatusCreated}
		if before {
			want = []int{http.StatusEarlyHints, http.StatusCreated}
		}
		if !slices.Equal(w.all, want) {
			t.Errorf("the statuses were %v; want %v", w.all, want)
		}
		l.wantDone(t, "write")
	}
}
