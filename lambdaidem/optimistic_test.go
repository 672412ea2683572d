package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

func optimistic(o *lambdaidem.Options) { o.Optimistic = true }

// standing stores a record of another attempt with the request's own fingerprint.
func (l *ledger) standing(t *testing.T, lease time.Duration) lambdaidem.Lease {
	t.Helper()
	probe, pl := withLedger(nil, optimistic)
	probe.send(t, first())
	c := *pl.sent[0].Claim
	c.Token, c.Now, c.LeaseEnd, c.Expires = "another", time.Now(), time.Now().Add(lease), time.Now().Add(time.Hour)
	if rec, err := l.Store.Acquire(t.Context(), c); err != nil || rec.Token != "another" {
		t.Fatalf("%+v, %v", rec, err)
	}
	return lambdaidem.Lease{ID: c.ID, Token: c.Token, Expires: c.Expires}
}

func (l *ledger) finish(t *testing.T, lease lambdaidem.Lease) {
	t.Helper()
	value := []byte(`{"statusCode":201,"body":"the other's"}`)
	if _, err := l.Store.Complete(context.WithoutCancel(t.Context()), lease, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: value, At: time.Now(), Expires: lease.Expires}); err != nil {
		t.Error(err)
	}
}

// With Options.Wait, an attempt that finds another one's record waits for it, as elsewhere (L8).
func TestE4_LoserWaits(t *testing.T) {
	ends := map[string]func(context.Context) (response, error){
		"well":  created,
		"error": func(context.Context) (response, error) { return response{}, errors.New("own") },
		"panic": func(context.Context) (response, error) { panic("own") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(end), optimistic, func(o *lambdaidem.Options) { o.Wait = 10 * time.Second })
				lease := l.standing(t, time.Minute)
				go func() {
					time.Sleep(3 * time.Second)
					l.finish(t, lease)
				}()
				if out := r.send(t, first()); !replayed(out) || out.Body != "the other's" {
					t.Errorf("%+v", out)
				}
				l.wantDone(t)
			})
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(end), optimistic, func(o *lambdaidem.Options) { o.Wait = 10 * time.Second })
				l.standing(t, time.Minute)
				wantProblem(t, r.send(t, first()), 409, lambdaidem.ErrInProgress)
				l.wantDone(t)
			})
		})
	}
}

// The record becomes free while the attempt waits. The attempt then claims it, on the condition
// that it is unchanged since it was read.
func TestE4_LoserClaimsWhatBecameFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(enlisting(created), optimistic, func(o *lambdaidem.Options) { o.Wait = 10 * time.Second })
		l.standing(t, 3*time.Second)
		if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
			t.Errorf("%+v", out)
		}
		l.wantDone(t, "write")
		if !slices.Contains(r.seen.kinds(), lambdaidem.EventTakenOver) || r.seen.last(t).Attempt != 2 {
			t.Errorf("events %v, %+v", r.seen.kinds(), r.seen.last(t))
		}
		r.wantRuns(t, 1)
	})
}

// A released record doesn't belong to a dead attempt, so this is not a takeover.
func TestE4_ReleasedRecordIsClaimed(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic)
	lease := l.standing(t, time.Minute)
	if _, err := l.Store.Release(t.Context(), lease, time.Now()); err != nil {
		t.Fatal(err)
	}
	if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
		t.Errorf("%+v", out)
	}
	l.wantDone(t, "write")
	r.wantEvents(t, lambdaidem.EventNew)
}

// If other attempts take the record again and again, the attempt gives up in the end.
func TestE4_LoserGivesWayInTheEnd(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic)
	r.store.failAlways(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost // and the record is gone when the guard reads it
	})
	wantProblem(t, r.send(t, first()), 409, lambdaidem.ErrInProgress)
	if n := r.store.count(commit); n != 8 {
		t.Errorf("tried %d times", n)
	}
	l.wantDone(t)
}

// A record with steps isn't claimed, because its steps would be lost.
func TestE4_RecordWithStepsIsLeftAlone(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic)
	r.store.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{State: lambdaidem.Released, Attempt: 1, Fingerprint: l.sent[0].Claim.Fingerprint,
			Steps: lambdaidem.Steps{"card": []byte("1")}}, lambdaidem.ErrLeaseLost
	})
	wantProblem(t, r.send(t, first()), 409, lambdaidem.ErrAttemptAbandoned)
	l.wantDone(t)
}

// A handler with steps becomes optimistic while a record that was released after a step
// waits for its retry. The optimistic version has no effect and tells its client why. The
// former version continues after the step.
func TestE4_SwitchedOnBeforeARetryThatHasSteps(t *testing.T) {
	fails := true
	steps := func(ctx context.Context, _ request) (response, error) {
		if _, err := lambdaidem.Step(ctx, "reserve", func(context.Context) (int, error) { return 1, nil }); err != nil || fails {
			return response{StatusCode: 503}, err
		}
		return response{StatusCode: 201}, nil
	}
	r, l := withLedger(steps)
	r.send(t, first())
	out, err := r.guard.With(optimistic).APIGatewayV2(enlisting(created))(t.Context(), first())
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, out, 409, lambdaidem.ErrAttemptAbandoned)
	if !strings.Contains(out.Body, "steps") {
		t.Errorf("the client is told %s", out.Body)
	}
	if e := r.seen.last(t); e.Kind != lambdaidem.EventAbandoned || e.Attempt != 1 || e.Err == nil || !strings.Contains(e.Err.Error(), "Optimistic") {
		t.Errorf("the event is %s of attempt %d: %v", e.Kind, e.Attempt, e.Err)
	}
	l.wantDone(t)
	fails = false
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("the former version answered %d", out.StatusCode)
	}
}

// An optimistic attempt sends no answer before it has read the record.
func TestE4_NothingLeavesUnconsulted(t *testing.T) {
	own := errors.New("own")
	for name, end := range map[string]func(context.Context) (response, error){
		"error":        func(context.Context) (response, error) { return response{}, own },
		"server error": func(context.Context) (response, error) { return response{StatusCode: 500, Body: "own"}, nil },
		"uncertain":    func(context.Context) (response, error) { return response{}, lambdaidem.Uncertain(own) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(end), optimistic)
				r.store.failAlways(get, requestLost)
				out := r.send(t, first())
				wantProblem(t, out, 503, lambdaidem.ErrOutcomeUnknown)
				wantNoInternals(t, out)
				r.store.failAlways(get, refused(lambdaidem.ReasonPermission))
				began := time.Now()
				wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
				if time.Since(began) > 0 {
					t.Error("it asked again for what it may not see")
				}
				r.store.failAlways(get, nil)
				r.store.fail(get, requestLost, requestLost) // the read is repeated
				out, err := r.handler(t.Context(), first())
				if said := out.Body; !strings.Contains(said, "own") && !errors.Is(err, own) && !strings.Contains(said, string(lambdaidem.ErrOutcomeUnknown)) {
					t.Errorf("%+v, %v", out, err)
				}
				l.wantDone(t)
			})
		})
	}
}

// A panic continues with its own value and stack, unless the record has an answer. This also holds
// if the record can't be read.
func TestE4_PanicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(enlisting(func(context.Context) (response, error) { panic("own") }), optimistic)
		for _, f := range []fault{nil, requestLost} {
			r.store.failAlways(get, f)
			func() {
				defer func() {
					stack := make([]byte, 1<<16)
					stack = stack[:runtime.Stack(stack, false)]
					if v := recover(); v != "own" || !strings.Contains(string(stack), "TestE4_PanicGoesOn.func1.1") {
						t.Errorf("recovered %v from\n%s", v, stack)
					}
				}()
				r.send(t, first())
			}()
		}
		l.wantDone(t)
	})
}

func TestE4_GoexitGoesOn(t *testing.T) {
	r, l := withLedger(enlisting(func(context.Context) (response, error) { runtime.Goexit(); return response{}, nil }), optimistic)
	done := make(chan bool)
	go func() {
		defer close(done)
		r.send(t, first())
		t.Error("it came back")
	}()
	<-done
	l.wantDone(t)
}

func TestE4_NoTimeIsLeft(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	r, l := withLedger(enlisting(created), optimistic)
	wantProblem(t, r.sendCtx(ctx, t, first()), 503, lambdaidem.ErrOutOfTime)
	l.wantDone(t)
	r.wantRuns(t, 0)
	if len(r.store.calls) > 0 {
		t.Errorf("calls %v", r.store.calls)
	}
}

// An invalid result of the outcome rule doesn't count as success.
func TestE4_OutcomeThatIsNoneIsUncertain(t *testing.T) {
	r, l := withLedger(enlisting(created), optimistic, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return "whatever" }
	})
	wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrOutcomeUnknown)
	l.wantDone(t)
}

// An answer without writes is stored too, with a single call.
func TestE4_AnswerWithoutWrites(t *testing.T) {
	r, _ := withLedger(nil, optimistic)
	out := r.send(t, first())
	wantReplay(t, r.send(t, first()), out)
	if want := []string{commit, commit}; !slices.Equal(r.store.calls, want) {
		t.Errorf("calls %v; want %v", r.store.calls, want)
	}
	r.wantRuns(t, 2)
}

// preparing is a ledger that needs something before it can store a result.
type preparing struct {
	*ledger
	err   error
	asked int
}

func (p *preparing) Prepare(ctx context.Context) error {
	if p.asked++; ctx.Err() != nil {
		return ctx.Err()
	}
	return p.err
}

// An optimistic handler runs only after the store has what it needs to store a result. With a
// claim, the store has it already.
func TestS1_AnOptimisticHandlerRunsOncePreparedFor(t *testing.T) {
	for _, c := range []struct {
		name       string
		optimistic bool
		err        error
		status     int
		runs       int64
		asked      int
	}{
		{"nothing is missing", true, nil, 201, 1, 1},
		{"there is no key", true, &lambdaidem.StoreError{Op: "prepare", Reason: lambdaidem.ReasonKey, NotApplied: true, Err: errors.New("no key")}, 503, 0, 1},
		{"with a lock", false, errors.New("never asked"), 201, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, l := withLedger(nil)
			p := &preparing{ledger: l, err: c.err}
			r.guard = lambdaidem.New(p, func(o *lambdaidem.Options) { o.Namespace, o.Observer, o.Optimistic = "test", r.seen, c.optimistic })
			r.handler = r.guarded(nil)
			out := r.send(t, first())
			if out.StatusCode != c.status || r.runs.Load() != c.runs || p.asked != c.asked {
				t.Errorf("%+v after %d runs; it was asked %d times", out, r.runs.Load(), p.asked)
			}
			if c.status == 503 && len(r.seen.events) != 1 || c.status == 503 && r.seen.events[0].Reason != lambdaidem.ReasonKey {
				t.Errorf("the events are %+v", r.seen.events)
			}
		})
	}
}

// idemtest.Twice works with an optimistic handler: its second run is undone, however it ends.
func TestE4_TwiceTakesAnOptimisticHandler(t *testing.T) {
	for name, again := range map[string]func(context.Context) (response, error){
		"well":  created,
		"error": func(context.Context) (response, error) { return response{}, errors.New("own") },
		"panic": func(context.Context) (response, error) { panic("own") },
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			r, l := withLedger(enlisting(func(ctx context.Context) (response, error) {
				if runs++; runs == 2 {
					return again(ctx)
				}
				return created(ctx)
			}), optimistic)
			if out := idemtest.Twice(t, r.handler, first()); out.StatusCode != 201 || runs != 2 {
				t.Errorf("%+v after %d runs", out, runs)
			}
			l.wantDone(t, "write")
		})
	}
}

// A run that is not undone counts, whether it is optimistic or not.
func TestE4_TwiceCountsAnOptimisticRunThatStands(t *testing.T) {
	r, _ := withLedger(enlisting(func(context.Context) (response, error) { return response{}, errors.New("retry") }), optimistic)
	var got complaints
	idemtest.Twice(&got, r.handler, first())
	if want := "guarded handlers ran again: 1 for the first sending, 1 for the second"; !strings.Contains(strings.Join(got.said, "\n"), want) {
		t.Errorf("it says %q, want %q", got.said, want)
	}
}

// complaints is a test that records the failures that a helper reports.
type complaints struct {
	testing.TB
	said []string
}

func (c *complaints) Helper()                  {}
func (c *complaints) Context() context.Context { return context.Background() }
func (c *complaints) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

// An attempt of a version without Optimistic has outlived its lease. Then an optimistic attempt
// fails, and its record is to be released. If its caller is told that nothing has happened, the
// first attempt must not write anything afterwards.
func TestE4_AnOptimisticFailureFencesAnAttemptThatOutlivedItsLease(t *testing.T) {
	for name, failure := range map[string]error{"402": lambdaidem.Retryable(noPayment), "retryable": lambdaidem.Retryable(errWire)} {
		for reply, f := range map[string]fault{"none": nil, "refused": refused(lambdaidem.ReasonThrottled), "no request": requestLost, "no reply": lostReply} {
			for _, verb := range []string{acquire, release} {
				t.Run(name+", "+verb+" "+reply, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r, l := withLedger(nil, optimistic)
						done := make(chan struct{})
						go func() {
							defer close(done)
							ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
							defer cancel()
							_, _ = lambdaidem.Do(ctx, r.withLease(), charge, func(ctx context.Context) (int, error) {
								enlist(ctx, "charge")
								time.Sleep(5 * time.Minute)
								return 1, nil
							})
						}()
						time.Sleep(2 * time.Minute)
						l.failAlways(verb, f)
						ctx, hangUp := context.WithCancel(t.Context())
						_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { hangUp(); return 0, failure })
						l.endFaults()
						if verb == acquire && reply != "refused" { // the retry, too, would take over the record
							if _, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, errBroken }); !errors.Is(err, errBroken) {
								t.Errorf("a retry gets %v", err)
							}
						}
						<-done
						isTold := errors.Is(err, lambdaidem.Code("payment_failed")) || errors.Is(err, lambdaidem.ErrRetryable)
						if isTold && len(l.done) > 0 {
							t.Errorf("charged, and the caller is told %v", err)
						}
						if reply == "none" && !isTold {
							t.Errorf("the caller is told %v", err)
						}
					})
				})
			}
		}
	}
}

// An optimistic attempt fails. It takes over and releases the record of an attempt that has died,
// but claims nothing if there is no record.
func TestE4_AnOptimisticFailureTakesOverOnlyADeadAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		died  bool
		calls []string
		kinds []lambdaidem.Kind
	}{
		"no record": {false, []string{get}, []lambdaidem.Kind{lambdaidem.EventReleased}},
		"died":      {true, []string{get, acquire, acquire, release}, []lambdaidem.Kind{lambdaidem.EventTakenOver, lambdaidem.EventReleased}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(afterwards(0, unavailable), optimistic)
				if c.died {
					l.standing(t, time.Second)
					time.Sleep(time.Minute)
				}
				if out := r.send(t, first()); out.StatusCode != 503 || out.Body != "" {
					t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
				}
				if got := l.allCalls(); !slices.Equal(got, c.calls) {
					t.Errorf("calls %v; want %v", got, c.calls)
				}
				r.wantEvents(t, c.kinds...)
			})
		})
	}
}

// An inner optimistic call fails, and may succeed when it is repeated. So the outer handler's 402
// is not stored.
func TestE4_AnOptimisticInnerFailureReleasesTheOuterCall(t *testing.T) {
	for name, died := range map[string]bool{"no record": false, "over the record of an attempt that died": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(nil, optimistic)
				inner := r.guard
				r.guard = r.withLease()
				if died {
					_, _ = lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
					time.Sleep(5 * time.Minute)
				}
				l.forgetClaims()
				h := r.guarded(func(ctx context.Context, _ request) (response, error) {
					_, _ = lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
					return response{}, noPayment
				})
				_, _ = h(t.Context(), first())
				r.wantState(t, lambdaidem.Released)
			})
		})
	}
}
