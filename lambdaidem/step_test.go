package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// outside is a fake of another service. It counts the calls by name.
type outside struct {
	mu    sync.Mutex
	calls map[string]int
	keys  map[string][]string // the downstream keys of the calls, by name
}

func (o *outside) call(ctx context.Context, name string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls, o.keys = map[string]int{}, map[string][]string{}
	}
	o.calls[name]++
	o.keys[name] = append(o.keys[name], lambdaidem.DownstreamKey(ctx, name))
	return fmt.Sprintf("%s %d", name, o.calls[name]), nil
}

func (o *outside) step(ctx context.Context, name string) (string, error) {
	return lambdaidem.Step(ctx, name, func(ctx context.Context) (string, error) { return o.call(ctx, name) })
}

func (o *outside) want(t testing.TB, name string, calls int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls[name] != calls {
		t.Errorf("%s was called %d times, want %d", name, o.calls[name], calls)
	}
}

// endings says how a test's handler ends each of its runs, after the steps. The last function also
// ends all later runs.
type endings []func() (response, error)

func (e *endings) next() (response, error) {
	end := (*e)[0]
	if len(*e) > 1 {
		*e = (*e)[1:]
	}
	return end()
}

func with(code int) func() (response, error) {
	return func() (response, error) { return response{StatusCode: code}, nil }
}

// A handler that runs again gets the stored results of its steps, and runs only the steps that have
// no result. The completion deletes the steps from the record.
func TestE5_AStoredStepNeverRunsAgain(t *testing.T) {
	var psp outside
	ends := endings{with(500), func() (response, error) { return response{}, errWire }, with(201)}
	more := []string{"charge", "mail", "ship"}
	run := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		run++
		for _, name := range more[:run] {
			got, err := psp.step(ctx, name)
			if err != nil || got != name+" 1" {
				t.Errorf("run %d: %s is %q, %v", run, name, got, err)
			}
		}
		return ends.next()
	})
	for i := range ends {
		out, err := r.handler(t.Context(), first())
		if i < 2 && err == nil && out.StatusCode != 500 {
			t.Fatalf("run %d: %+v", i, out)
		}
		rec := r.record(t)
		want := lambdaidem.Steps{}
		for _, name := range more[:i+1] {
			want[name] = []byte(`"` + name + ` 1"`)
		}
		if i == 2 {
			want = nil
		}
		if diff := cmp.Diff(want, rec.Steps); diff != "" {
			t.Errorf("after run %d, %s: %s", i+1, rec.State, diff)
		}
	}
	for _, name := range more {
		psp.want(t, name, 1)
	}
	if out := r.send(t, first()); !replayed(out) || out.StatusCode != 201 {
		t.Errorf("the replay is %+v", out)
	}
	r.wantRuns(t, 3)
}

// An attempt that died leaves its steps to the next attempt, whether the retry comes after the end
// of the lease or waits for it.
func TestE5_StepsSurviveATakeover(t *testing.T) {
	for name, wait := range map[string]time.Duration{"later": 0, "waiting": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var psp outside
				ends := endings{func() (response, error) { return response{}, lambdaidem.Uncertain(errWire) }, with(201)}
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					if got, err := psp.step(ctx, "charge"); err != nil || got != "charge 1" {
						t.Errorf("attempt %d: %q, %v", lambdaidem.Attempt(ctx), got, err)
					}
					return ends.next()
				}, func(o *lambdaidem.Options) { o.Wait = wait })
				if _, err := r.handler(t.Context(), first()); !errors.Is(err, errWire) {
					t.Fatal(err)
				}
				if wait == 0 {
					time.Sleep(leaseWithoutDeadline)
				}
				if out := r.send(t, first()); out.StatusCode != 201 {
					t.Errorf("the answer is %+v", out)
				}
				psp.want(t, "charge", 1)
				r.wantRuns(t, 2)
			})
		})
	}
}

// An attempt gets the stored steps even if the reply to its claim is lost, and its next claim finds
// the record with the attempt's own token.
func TestE5_StepsComeWithALeaseFoundByItsToken(t *testing.T) {
	var psp outside
	ends := endings{with(500), with(201)}
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		if _, err := psp.step(ctx, "charge"); err != nil {
			t.Error(err)
		}
		return ends.next()
	})
	r.send(t, first())
	r.store.fail(acquire, nil, ambiguous)
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("the answer is %+v", out)
	}
	if n := r.store.count(acquire); n != 4 {
		t.Errorf("%d claims: this test proves nothing", n)
	}
	psp.want(t, "charge", 1)
}

// The old attempt saves a step after a retry has read the record, and before the retry takes the
// record over. The retry gets the stored result.
func TestE5_AStepSavedBeforeTheTakeoverIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var psp outside
		ends := endings{func() (response, error) { return response{}, lambdaidem.Uncertain(errWire) }, with(201)}
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			if _, err := psp.step(ctx, "charge"); (err != nil) != (lambdaidem.Attempt(ctx) == 1) {
				t.Error(err)
			}
			return ends.next()
		})
		r.store.fail(save, requestLost) // the save is on its way …
		r.store.failAlways(save, hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
		rec := r.record(t)
		time.Sleep(leaseWithoutDeadline)
		r.store.fail(acquire, after(func() { // … and arrives when the next request has seen the record
			_, err := r.store.Store.(lambdaidem.StepStore).SaveSteps(t.Context(), lambdaidem.Lease{ID: rec.ID, Token: rec.Token},
				lambdaidem.Steps{"charge": []byte(`"charge 1"`)}, time.Now())
			if err != nil {
				t.Error(err)
			}
		}))
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the answer is %+v", out)
		}
		psp.want(t, "charge", 1)
		r.wantRuns(t, 2)
	})
}

// If fn fails, Step stores nothing and returns fn's error unchanged. The mark of the error decides
// the outcome, as it would without the step.
func TestE5_AStepThatFailsIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		state lambdaidem.State
	}{
		"unmarked":  {errWire, lambdaidem.Released},
		"retryable": {lambdaidem.Retryable(errWire), lambdaidem.Released},
		"uncertain": {lambdaidem.Uncertain(errWire), lambdaidem.InProgress},
		"permanent": {lambdaidem.Permanent(errWire), lambdaidem.Completed},
		"rejected":  {lambdaidem.Reject(402, "card_declined", "No."), lambdaidem.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				got, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 7, c.err })
				if got != 7 || err != c.err { //nolint:errorlint // it must be the very error
					t.Errorf("Step: %d, %v", got, err)
				}
				return response{}, err
			})
			_, _ = r.handler(t.Context(), first())
			if rec := r.record(t); rec.State != c.state || rec.Steps != nil {
				t.Errorf("the record is %s with %v", rec.State, rec.Steps)
			}
			if n := r.store.count(save); n != 0 {
				t.Errorf("%d saves", n)
			}
		})
	}
}

// A step that panics stores nothing, and runs again in the next attempt.
func TestE5_AStepThatPanicsRunsAgain(t *testing.T) {
	n := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		got, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) {
			if n++; n == 1 {
				panic("in the step")
			}
			return n, nil
		})
		if err != nil {
			return response{}, err
		}
		return response{StatusCode: 201, Body: fmt.Sprint(got)}, nil
	})
	func() {
		defer func() {
			if p := recover(); p != "in the step" {
				t.Errorf("it panicked with %v", p)
			}
		}()
		r.send(t, first())
	}()
	if out := r.send(t, first()); out.Body != "2" {
		t.Errorf("the answer is %+v", out)
	}
}

// If a stored result does not fit the type of its step any more, Step does not call fn. It returns
// an error that names the step, the JSON type of the result and the Go type.
func TestE5_AChangedTypeIsAClearError(t *testing.T) {
	type before struct{ ID string }
	type now struct{ Number int }
	type narrower struct{}
	fits := func(ctx context.Context) error {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (before, error) { return before{"ch_1"}, nil })
		return err
	}
	for name, c := range map[string]struct {
		step func(context.Context) error
		says []string
	}{
		"another struct": {stepOf[now]("charge"), []string{`step "charge"`, "a JSON object", "lambdaidem_test.now"}},
		"a member less":  {stepOf[narrower]("charge"), []string{`step "charge"`, "a JSON object", "lambdaidem_test.narrower"}},
		"a number":       {stepOf[int]("charge"), []string{`step "charge"`, "a JSON object", "int"}},
		"a list":         {stepOf[[]before]("charge"), []string{`step "charge"`, "a JSON object", "[]lambdaidem_test.before"}},
	} {
		t.Run(name, func(t *testing.T) {
			steps := []func(context.Context) error{fits, c.step, fits}
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				err := steps[0](ctx)
				steps = steps[1:]
				if err == nil {
					return response{StatusCode: 500}, nil
				}
				return response{}, err
			})
			r.send(t, first())
			_, err := r.handler(t.Context(), first())
			if !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
				t.Fatalf("the error is %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error %q does not name %s", err, part)
				}
			}
			if rec := r.record(t); rec.State != lambdaidem.Released || len(rec.Steps) != 1 {
				t.Errorf("the record is %+v", rec)
			}
			r.send(t, first()) // the version that stored the result can still decode it
		})
	}
}

// stepOf returns a function that makes a step whose fn must not run.
func stepOf[T any](name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := lambdaidem.Step(ctx, name, func(context.Context) (T, error) { panic("it ran") })
		return err
	}
}

// Every call of a step returns the same value, including the first call, which runs fn.
func TestE5_ResultsAreThoseOfDo(t *testing.T) {
	type charge struct {
		ID   string
		Meta any
	}
	var got []any
	keep := func(v any, err error) {
		if err != nil {
			t.Error(err)
		}
		got = append(got, v)
	}
	ends := endings{with(500), with(500)}
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		for range 2 { // twice in one attempt
			v, err := lambdaidem.Step(ctx, "struct", func(context.Context) (charge, error) {
				return charge{"ch_1", struct{ B, A int }{2, math.MaxInt64}}, nil
			})
			keep(v, err)
		}
		return ends.next()
	})
	r.send(t, first())
	r.send(t, first())
	for i, v := range got[1:] {
		if diff := cmp.Diff(got[0], v); diff != "" {
			t.Errorf("call %d has another value:\n%s", i+2, diff)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d results", len(got))
	}
}

// tooMuch limits the names and results of a record's steps to 10 bytes.
func tooMuch(o *lambdaidem.Options) { o.MaxStepBytes = 10 }

// page is a stream that encoding/json would encode, because it has an exported field.
type page struct{ Text string }

func (page) Read([]byte) (int, error) { return 0, io.EOF }

type bombed struct{}

func (bombed) MarshalJSON() ([]byte, error) { panic("bomb") }

// If a step has run and its result can't be stored, the attempt ends as uncertain, however the
// handler ends. The record is neither released nor completed, and no further step runs.
func TestE5_AResultThatCannotBeStoredIsUncertain(t *testing.T) {
	charge := func(v any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (any, error) { return v, nil })
			return err
		}
	}
	bomb := func(ctx context.Context) (err error) {
		defer func() {
			if recover() != nil {
				err = lambdaidem.ErrOutcomeUnknown // like a handler that recovers and continues
			}
		}()
		_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (bombed, error) { return bombed{}, nil })
		return err
	}
	for name, c := range map[string]struct {
		step    func(context.Context) error
		prepare func(*rig)
		option  func(*lambdaidem.Options)
		kinds   []lambdaidem.Kind
	}{
		"over MaxStepBytes": {charge("0123456789"), nil, tooMuch, nil},
		"no JSON":           {charge(math.NaN()), nil, nil, nil},
		"not UTF-8":         {charge("\xff"), nil, nil, nil},
		"a stream":          {charge(page{"x"}), nil, nil, nil},
		"a panic":           {bomb, nil, nil, nil},
		"too large":         {charge(1), func(r *rig) { r.store.fail(save, refused(lambdaidem.ReasonTooLarge)) }, nil, []lambdaidem.Kind{lambdaidem.EventStoreError}},
		"foreign":           {charge(1), func(r *rig) { r.store.fail(save, refused(lambdaidem.ReasonForeign)) }, nil, []lambdaidem.Kind{lambdaidem.EventStoreError}},
		"never stored":      {charge(1), func(r *rig) { r.store.failAlways(save, refused(lambdaidem.ReasonThrottled)) }, nil, []lambdaidem.Kind{lambdaidem.EventStoreError}},
		"unknown":           {charge(1), func(r *rig) { r.store.failAlways(save, requestLost) }, nil, []lambdaidem.Kind{lambdaidem.EventStoreError}},
		"hanging":           {charge(1), func(r *rig) { r.store.failAlways(save, hangs) }, nil, []lambdaidem.Kind{lambdaidem.EventStoreError}},
	} {
		for end, h := range map[string]func(error) (response, error){
			"returned":  func(err error) (response, error) { return response{}, err },
			"swallowed": func(error) (response, error) { return response{StatusCode: 201}, nil },
			"permanent": func(err error) (response, error) { return response{}, lambdaidem.Permanent(err) },
			"retryable": func(error) (response, error) { return response{}, lambdaidem.Retryable(errWire) },
			"a 500":     func(error) (response, error) { return response{StatusCode: 500}, nil },
		} {
			t.Run(name+" "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(ctx context.Context, _ request) (response, error) {
						err := c.step(ctx)
						if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
							t.Errorf("Step: %v", err)
						}
						if err := stepOf[int]("mail")(ctx); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
							t.Errorf("the next Step: %v", err)
						}
						return h(err)
					}, func(o *lambdaidem.Options) {
						if c.option != nil {
							c.option(o)
						}
					})
					if c.prepare != nil {
						c.prepare(r)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					out := r.sendCtx(ctx, t, first())
					if ctx.Err() != nil {
						t.Error("the answer comes after the deadline")
					}
					wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
					wantNoInternals(t, out)
					rec := r.record(t)
					if rec.State != lambdaidem.InProgress || rec.Steps != nil {
						t.Errorf("the record is %s with %v", rec.State, rec.Steps)
					}
					if after := retryAfter(t, out); time.Now().Add(after).Before(rec.LeaseEnd) {
						t.Errorf("Retry-After %v is before the lease's end, in %v", after, time.Until(rec.LeaseEnd))
					}
					r.wantEvents(t, append(slices.Clone(c.kinds), lambdaidem.EventUncertain)...)
					if n := r.store.count(complete) + r.store.count(release); n != 0 {
						t.Errorf("%d calls to end the attempt", n)
					}
					wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
				})
			})
		}
	}
}

// A step whose result can't be stored also makes the attempt uncertain if the handler panics after
// it, in a Do and in the middleware.
func TestE5_AnUnstoredStepIsUncertainHoweverItEnds(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		_, _ = lambdaidem.Step(ctx, "charge", func(context.Context) (float64, error) { return math.NaN(), nil })
		panic("after it")
	})
	func() {
		defer func() {
			if p := recover(); p != "after it" {
				t.Errorf("it panicked with %v", p)
			}
		}()
		r.send(t, first())
	}()
	if rec := r.record(t); rec.State != lambdaidem.InProgress {
		t.Errorf("after a panic the record is %s", rec.State)
	}
	r.wantEvents(t, lambdaidem.EventUncertain)

	unstored := func(ctx context.Context) {
		_, _ = lambdaidem.Step(ctx, "charge", func(context.Context) (float64, error) { return math.NaN(), nil })
	}
	got, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
		unstored(ctx)
		return 7, nil
	})
	if got != 0 || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("Do: %d, %v", got, err)
	}
	h := r.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true }).Middleware(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		unstored(in.Context())
		w.WriteHeader(http.StatusCreated)
	}))
	in := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", nil)
	in.Header.Set("Idempotency-Key", "k")
	out := httptest.NewRecorder()
	h.ServeHTTP(out, in)
	if out.Code != http.StatusServiceUnavailable || !strings.Contains(out.Body.String(), string(lambdaidem.ErrOutcomeUnknown)) {
		t.Errorf("the middleware answers %d %s", out.Code, out.Body)
	}
}

// If a step finds that the lease is lost, the handler's context ends. The caller gets what the
// record implies, whatever the handler returns.
func TestE5_ALostLeaseEndsTheHandler(t *testing.T) {
	for name, c := range map[string]struct {
		end  func() (response, error)
		done bool // the other attempt has completed the record before this attempt ends
	}{
		"while the other runs":    {with(201), false},
		"the other has completed": {with(201), true},
		"with an error":           {func() (response, error) { return response{}, errWire }, true},
		"with a 500":              {with(500), true},
	} {
		t.Run(name, func(t *testing.T) {
			var rival lambdaidem.Lease
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				rec := r.record(t)
				claim := r.store.allClaims()[0]
				claim.Token, claim.Over = "rival", &rec
				rival = lambdaidem.Lease{ID: rec.ID, Token: "rival", Expires: claim.Expires}
				if _, err := r.store.Store.Acquire(ctx, claim); err != nil {
					t.Error(err)
				}
				err := lost(ctx, t)
				if ctx.Err() == nil {
					t.Errorf("Step: %v; the context has not ended", err)
				}
				if err := stepOf[int]("mail")(ctx); !errors.Is(err, lambdaidem.ErrLeaseLost) {
					t.Errorf("the next Step: %v", err)
				}
				if c.done {
					_, err := r.store.Store.Complete(context.WithoutCancel(ctx), rival, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded,
						Value: []byte(`{"statusCode":202,"body":"the rival's"}`), At: time.Now(), Expires: claim.Expires})
					if err != nil {
						t.Error(err)
					}
				}
				return c.end()
			})
			out := r.send(t, first())
			if !c.done {
				wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
				r.wantEvents(t, lambdaidem.EventLeaseLost, lambdaidem.EventInProgress)
			} else {
				wantReplay(t, out, response{StatusCode: 202, Body: "the rival's"})
				r.wantEvents(t, lambdaidem.EventLeaseLost, lambdaidem.EventReplayed)
			}
			if n := r.store.count(complete) + r.store.count(release); n != 0 {
				t.Errorf("%d calls to end the attempt", n)
			}
		})
	}
}

func lost(ctx context.Context, t *testing.T) error {
	t.Helper()
	_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
	if !errors.Is(err, lambdaidem.ErrLeaseLost) {
		t.Errorf("Step: %v", err)
	}
	return err
}

// If the record can't be read again after a lost lease, the record that SaveSteps returned decides.
func TestE5_ALostLeaseIsJudgedByTheRefusalWhereNothingElseCanBeRead(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		return response{StatusCode: 201}, lost(ctx, t)
	})
	r.store.fail(save, leaseLost)
	r.store.failAlways(get, refused(lambdaidem.ReasonThrottled))
	wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
}

// A save is retried as long as there is time, even after a save whose reply was lost.
func TestE5_SavesAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var psp outside
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := psp.step(ctx, "charge")
			return response{StatusCode: 201}, err
		})
		r.store.fail(save, refused(lambdaidem.ReasonThrottled), requestLost, replyLost, refused(lambdaidem.ReasonConflict))
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the answer is %+v", out)
		}
		if n := r.store.count(save); n != 5 {
			t.Errorf("%d saves", n)
		}
		psp.want(t, "charge", 1)
	})
}

// If fn returns after the handler's context has ended, its result is still stored, before the
// invocation's deadline. A step that has not begun by then does not begin.
func TestE5_AStepIsStoredAfterTheHandlersContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 1, nil
			})
			if err != nil {
				t.Errorf("Step: %v", err)
			}
			if err := stepOf[int]("mail")(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the next Step: %v", err)
			}
			return response{}, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := r.handler(ctx, first())
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
		if rec := r.record(t); rec.State != lambdaidem.Released || len(rec.Steps) != 1 {
			t.Errorf("the record is %s with %v", rec.State, rec.Steps)
		}
	})
}

// Steps may run at the same time, and the results of all of them are stored.
func TestE5_StepsMayRunAtTheSameTime(t *testing.T) {
	const many = 20
	var psp outside
	ends := endings{with(500), with(201)}
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				name := fmt.Sprintf("step-%d", i%(many/2)) // two calls for each name
				if got, err := psp.step(ctx, name); err != nil || got != name+" 1" {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			})
		}
		all.Wait()
		return ends.next()
	})
	r.send(t, first())
	if rec := r.record(t); len(rec.Steps) != many/2 {
		t.Errorf("the record has %v", rec.Steps)
	}
	r.send(t, first())
	for i := range many / 2 {
		psp.want(t, fmt.Sprintf("step-%d", i), 1)
	}
}

// Each save overwrites all steps, so saves must run one after the other. Otherwise two saves would
// each leave out the step of the other.
func TestE5_StepsAreSavedOneAfterTheOther(t *testing.T) {
	const many = 10
	var saves atomic.Int64
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		var all, ran sync.WaitGroup
		ran.Add(many)
		for i := range many {
			all.Go(func() {
				_, err := lambdaidem.Step(ctx, strconv.Itoa(i), func(context.Context) (int, error) {
					ran.Done()
					ran.Wait() // so that all results are ready to be saved at the same time
					return i, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return response{StatusCode: 500}, nil
	})
	r.store.failAlways(save, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		if saves.Add(1) > 1 {
			t.Error("two saves run at the same time")
		}
		defer saves.Add(-1)
		for range 100 {
			runtime.Gosched()
		}
		return call()
	})
	r.send(t, first())
	if rec := r.record(t); len(rec.Steps) != many {
		t.Errorf("the record has %v", rec.Steps)
	}
}

// A call of Step waits while another call with the same name is running, and runs fn itself only if
// the other call fails. It stops waiting when its context ends.
func TestE5_OneNameRunsOnceAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		first error
		runs  int64
	}{"stored": {nil, 1}, "failed": {errWire, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs, now atomic.Int64
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					step := func(ctx context.Context, err error) error {
						_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (int64, error) {
							if now.Add(1) > 1 {
								t.Error("it runs twice at a time")
							}
							time.Sleep(time.Second)
							now.Add(-1)
							return runs.Add(1), err
						})
						return err
					}
					var all sync.WaitGroup
					all.Go(func() {
						if err := step(ctx, c.first); !errors.Is(err, c.first) {
							t.Errorf("the first: %v", err)
						}
					})
					synctest.Wait()
					all.Go(func() {
						if err := step(ctx, nil); err != nil {
							t.Errorf("the second: %v", err)
						}
					})
					all.Go(func() {
						impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
						defer cancel()
						if err := step(impatient, nil); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("the impatient: %v", err)
						}
					})
					all.Wait()
					return response{StatusCode: 201}, nil
				})
				if out := r.send(t, first()); out.StatusCode != 201 {
					t.Errorf("the answer is %+v", out)
				}
				if n := runs.Load(); n != c.runs {
					t.Errorf("it ran %d times", n)
				}
			})
		})
	}
}

// If a handler fails while a step is still running, the record is not released, because the step
// may have an effect. The result of the step is not stored, and a save does not outlive the call.
func TestE5_AStepThatIsLeftBehindIsNotReleased(t *testing.T) {
	for name, end := range map[string]func(){"an error": func() {}, "a panic": func() { panic("left") }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left sync.WaitGroup
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					left.Go(func() {
						_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) {
							time.Sleep(time.Minute)
							return 1, nil
						})
						if err == nil || !strings.Contains(err.Error(), "the handler has returned") {
							t.Errorf("Step: %v", err)
						}
					})
					synctest.Wait()
					end()
					return response{}, errWire
				})
				func() {
					defer func() { _ = recover() }()
					wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				}()
				r.wantState(t, lambdaidem.InProgress)
				r.wantEvents(t, lambdaidem.EventUncertain)
				left.Wait()
				if n := r.store.count(save); n != 0 {
					t.Errorf("%d saves", n)
				}
			})
		})
	}
	t.Run("in its save", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var left sync.WaitGroup
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				left.Go(func() {
					if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err == nil {
						t.Error("Step has no error")
					}
				})
				synctest.Wait()
				return response{StatusCode: 201}, nil
			})
			r.store.failAlways(save, hangs)
			began := time.Now()
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Errorf("the answer is %+v", out)
			}
			left.Wait()
			if took := time.Since(began); took != 0 {
				t.Errorf("the save went on for %v", took)
			}
		})
	})
}

// A step that is not allowed is refused before its fn runs, and leaves nothing in the record.
func TestE5_WhatCannotBeAStepDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		step func(context.Context) error
		says string
	}{
		"no name":       {stepOf[int](""), "1 to 128"},
		"a long name":   {stepOf[int](strings.Repeat("n", 129)), "1 to 128"},
		"not UTF-8":     {stepOf[int]("\xff"), "not UTF-8"},
		"a channel":     {stepOf[struct{ C chan int }]("s"), "JSON can't carry"},
		"functions":     {stepOf[[2]func()]("s"), "JSON can't carry"},
		"a stream":      {stepOf[*strings.Reader]("s"), "stream"},
		"no room":       {stepOf[int]("a name of 16 KiB"), "MaxStepBytes"},
		"within a step": {func(ctx context.Context) error { return within(ctx) }, "within another step"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				err := c.step(ctx)
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("Step: %v", err)
				}
				return response{StatusCode: 500}, nil
			}, tooMuch)
			r.send(t, first())
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Steps != nil {
				t.Errorf("the record is %+v", rec)
			}
		})
	}
}

// ticket is a channel type that can be stored, because it has JSON methods.
type ticket chan int

func (t ticket) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(cap(t)), 10), nil }

func (t *ticket) UnmarshalJSON(text []byte) error {
	n, err := strconv.Atoi(string(text))
	*t = make(ticket, n)
	return err
}

// A step whose result can be stored is not refused: a name of maximum length, a type with fields
// that JSON omits, or a type with JSON methods.
func TestE5_WhatCanBeStoredIsAStep(t *testing.T) {
	type odd struct {
		N       int
		Hidden  chan int `json:"-"`
		private func()
		Absent  func() `json:",omitzero"`
		None    *func()
	}
	for name, step := range map[string]func(context.Context) error{
		"the longest name": func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, strings.Repeat("ü", lambdaidem.MaxStepName/2), func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"odd members": func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "s", func(context.Context) (odd, error) { return odd{N: 1, private: nil}, nil })
			return err
		},
		"a channel with JSON": func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "s", func(context.Context) (ticket, error) { return make(ticket, 7), nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				if err := step(ctx); err != nil {
					t.Error(err)
				}
				return response{StatusCode: 500}, nil
			})
			r.send(t, first())
			if rec := r.record(t); len(rec.Steps) != 1 {
				t.Errorf("the record has %v", rec.Steps)
			}
		})
	}
}

// within makes a step inside the fn of another step, and returns the error of the inner step.
func within(ctx context.Context) error {
	_, err := lambdaidem.Step(ctx, "outer", func(ctx context.Context) (int, error) { return 0, stepOf[int]("inner")(ctx) })
	return err
}

// plainStore is a store that is no StepStore.
type plainStore struct{ lambdaidem.Store }

func TestE5_AStoreThatKeepsNoStepsRefusesThem(t *testing.T) {
	g := lambdaidem.New(plainStore{memstore.New()}, func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
		return 0, stepOf[int]("charge")(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "plainStore keeps no steps") {
		t.Errorf("the error is %v", err)
	}
}

// Without a record, every call of Step runs fn, and nothing is stored. If the handler runs without
// a lease, because of Options.FailOpen, nothing is stored either, but a second call in the same run
// returns the first result, so it does not charge again.
func TestE5_UnguardedStepsRunEveryTime(t *testing.T) {
	for name, c := range map[string]struct {
		in      request
		option  func(*lambdaidem.Options)
		prepare func(*rig)
		calls   int
	}{
		"bypassed": {post("", "{}"), func(o *lambdaidem.Options) { o.KeyOptional = true }, nil, 2},
		"failed open": {first(), func(o *lambdaidem.Options) { o.FailOpen = true }, func(r *rig) {
			r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
			r.store.failAlways(complete, refused(lambdaidem.ReasonThrottled))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var psp outside
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				for i := range 2 {
					if got, err := psp.step(ctx, "charge"); err != nil || got != fmt.Sprintf("charge %d", min(i+1, c.calls)) {
						t.Errorf("step %d: %q, %v", i+1, got, err)
					}
				}
				return response{StatusCode: 201}, nil
			}, c.option)
			if c.prepare != nil {
				c.prepare(r)
			}
			if out := r.send(t, c.in); out.StatusCode != 201 {
				t.Errorf("the answer is %+v", out)
			}
			psp.want(t, "charge", c.calls)
			if n := r.store.count(save); n != 0 {
				t.Errorf("%d saves", n)
			}
			for _, key := range psp.keys["charge"] {
				if (key == "") != (name == "bypassed") {
					t.Errorf("the downstream key is %q", key)
				}
			}
		})
	}
	var psp outside
	for i := range 2 {
		if got, err := psp.step(t.Context(), "charge"); err != nil || got != fmt.Sprintf("charge %d", i+1) {
			t.Errorf("without a guard: %q, %v", got, err)
		}
	}
}

// A released record with steps refuses another payload. A released record without steps accepts it.
func TestF5_AReleasedRecordWithStepsKeepsItsPayload(t *testing.T) {
	for name, c := range map[string]struct {
		steps  bool
		status int
	}{"with steps": {true, http.StatusUnprocessableEntity}, "without": {false, http.StatusCreated}} {
		t.Run(name, func(t *testing.T) {
			var psp outside
			ends := endings{with(500), with(201)}
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				if c.steps {
					if _, err := psp.step(ctx, "charge"); err != nil {
						t.Error(err)
					}
				}
				return ends.next()
			})
			r.send(t, first())
			before := r.record(t)
			if out := r.send(t, post("key-1", `{"amount":999}`)); out.StatusCode != c.status {
				t.Errorf("another payload got %d %s", out.StatusCode, out.Body)
			}
			if !c.steps {
				return
			}
			if now := r.record(t); !sameRecord(before, now) {
				t.Errorf("the record has changed: %+v", now)
			}
			if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
				t.Errorf("the first payload got %d %s", out.StatusCode, out.Body)
			}
			psp.want(t, "charge", 1)
		})
	}
}

// A Do inside a handler does not run again when the handler runs again, whether or not the Do is
// inside a step.
func TestE5_ADoInsideStaysDone(t *testing.T) {
	var psp outside
	ends := endings{with(500), with(201)}
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		charge := func(ctx context.Context) (string, error) {
			call := lambdaidem.Call{Operation: "charge", Key: "order-1"}
			return lambdaidem.Do(ctx, r.guard, call, func(ctx context.Context) (string, error) {
				return psp.step(ctx, "call") // a step of the inner record
			})
		}
		plain, err := charge(ctx)
		if err != nil || plain != "call 1" {
			t.Errorf("Do: %q, %v", plain, err)
		}
		inStep, err := lambdaidem.Step(ctx, fmt.Sprint("attempt ", lambdaidem.Attempt(ctx)), charge)
		if err != nil || inStep != "call 1" {
			t.Errorf("Do in a step: %q, %v", inStep, err)
		}
		return ends.next()
	})
	r.send(t, first())
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("the answer is %+v", out)
	}
	psp.want(t, "call", 1)
	r.wantRuns(t, 2)
}

// The downstream key is the same in every attempt, after a release and after a takeover.
func TestE6_OneDownstreamKeyForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var psp outside
		ends := endings{with(500), func() (response, error) { return response{}, lambdaidem.Uncertain(errWire) }, with(201)}
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			if _, err := psp.call(ctx, "charge"); err != nil {
				t.Error(err)
			}
			return ends.next()
		})
		for range 3 {
			_, _ = r.handler(t.Context(), first())
			time.Sleep(leaseWithoutDeadline)
		}
		keys := psp.keys["charge"]
		if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] || lambdaidem.UUIDKey(keys[0]) != nil {
			t.Errorf("the keys are %q", keys)
		}
		if want := "2cf1cfb0-34a2-86fa-8ee8-6eebe12aabd3"; keys[0] != want { // the key of this request must never change
			t.Errorf("the key is %s, want %s", keys[0], want)
		}
	})
}

// After a call of DownstreamKey, the record refuses another payload, because the service may have
// carried out the request with the key.
func TestE6_ADownstreamKeyBindsThePayload(t *testing.T) {
	var psp outside
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := psp.call(ctx, "charge")
		return response{StatusCode: 500}, err
	})
	r.send(t, first())
	wantProblem(t, r.send(t, post("key-1", `{"amount":999}`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
	r.send(t, first())
	r.send(t, post("key-2", `{"amount":100}`))
	if keys := psp.keys["charge"]; len(keys) != 3 || keys[0] != keys[1] || keys[1] == keys[2] {
		t.Errorf("the keys are %q", keys)
	}
}

// Under Hold too, a retry acquires a released record, together with its steps.
func TestE5_AReleasedRecordWithStepsRunsAgainUnderHold(t *testing.T) {
	var psp outside
	ends := endings{func() (response, error) { return response{}, lambdaidem.Retryable(errWire) }, with(201)}
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		if _, err := psp.step(ctx, "charge"); err != nil {
			t.Error(err)
		}
		return ends.next()
	}, hold)
	r.send(t, first())
	if rec := r.record(t); rec.State != lambdaidem.Released || len(rec.Steps) != 1 {
		t.Fatalf("the record is %s with %v", rec.State, rec.Steps)
	}
	if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
		t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
	}
	psp.want(t, "charge", 1)
}

// A dead attempt may store a step after a retry has looked at the record and before the
// retry's claim takes it over. If the reply to that claim is missing, the retry does not
// fail open, because it would repeat the step.
func TestE5_FailingOpenDoesNotRepeatAStepOfADeadAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged := 0
		goOn, stored, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) {
				if charged++; charged == 1 {
					<-goOn // past the end of the lease
				}
				return 1, nil
			})
			if lambdaidem.Attempt(ctx) == 1 && charged == 1 {
				close(stored)
				<-end
				return response{}, errWire
			}
			return response{StatusCode: 201}, err
		}, failOpen)
		done := make(chan struct{})
		go func() { defer close(done); _, _ = r.handler(t.Context(), first()) }()
		synctest.Wait()
		time.Sleep(leaseWithoutDeadline)
		r.store.fail(acquire, nil, func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			close(goOn)
			<-stored
			if rec, err := call(); err != nil || len(rec.Steps) == 0 {
				t.Errorf("the takeover: %+v, %v", rec, err)
			}
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonKey, Err: errWire}
		})
		wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrStoreUnavailable)
		close(end)
		<-done
		if out := r.send(t, first()); out.StatusCode != 201 || charged != 1 {
			t.Errorf("the retry gets %+v; the step ran %d times", out, charged)
		}
	})
}
