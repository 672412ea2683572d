package lambdaidem_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// leaveBehind sends a request during an outage: its claim is stored, the reply is lost, and the
// withdrawals fail.
func leaveBehind(t *testing.T, r *rig, in request) {
	t.Helper()
	r.store.fail(acquire, replyLost)
	r.store.failAlways(release, requestLost)
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "req-of-the-outage"})
	wantProblem(t, r.sendCtx(ctx, t, in), 503, lambdaidem.ErrStoreUnavailable)
	r.store.failAlways(release, nil)
}

func underEachPolicy(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, newRig(nil, func(o *lambdaidem.Options) { o.Policy = policy }))
			})
		})
	}
}

// A request with another key makes the key free.
func TestX10_TheNextAcquireWithdrawsAClaimLeftBehind(t *testing.T) {
	underEachPolicy(t, func(t *testing.T, r *rig) {
		leaveBehind(t, r, first())
		if rec := r.record(t); rec.State != lambdaidem.InProgress {
			t.Fatalf("after the outage the record is %s", rec.State)
		}
		r.seen.forget()
		r.send(t, post("key-2", "{}"))
		if rec := r.record(t); rec.State != lambdaidem.Released {
			t.Errorf("after another request the record is %s", rec.State)
		}
		r.wantEvents(t, lambdaidem.EventNew)
		if out := r.send(t, first()); out.StatusCode != 201 || replayed(out) {
			t.Errorf("the retry got %+v", out)
		}
		r.wantRuns(t, 2)
		before := r.store.count(release)
		r.send(t, post("key-3", "{}"))
		if n := r.store.count(release) - before; n != 0 {
			t.Errorf("%d withdrawals after the claim was withdrawn", n)
		}
	})
}

// A guard made by With, for example for another route, makes the key free as well.
func TestX10_DerivedGuardsShareTheClaimsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		leaveBehind(t, r, first())
		other := r.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Rerun }).APIGatewayV2(status(201))
		if _, err := other(t.Context(), post("key-2", "{}")); err != nil {
			t.Fatal(err)
		}
		r.wantState(t, lambdaidem.Released)
	})
}

// A retry runs although the withdrawal before its claim failed, whatever its payload is, because
// nothing happened with this key.
func TestX10_ARetryThatMeetsAClaimLeftBehindRuns(t *testing.T) {
	for name, retry := range map[string]request{"the same payload": first(), "another payload": post("key-1", `{"amount":7}`)} {
		t.Run(name, func(t *testing.T) {
			underEachPolicy(t, func(t *testing.T, r *rig) {
				leaveBehind(t, r, first())
				r.store.fail(release, requestLost)
				if out := r.send(t, retry); out.StatusCode != 201 {
					t.Errorf("the retry got %+v", out)
				}
				r.wantRuns(t, 1)
			})
		})
	}
}

// An attempt dies, a second one takes its record over under policy Rerun, and the guard
// withdraws that takeover because the second handler never started. The record stays
// bound to the payload of the attempt that died. A retry with the same payload runs the
// handler, also under policy Hold.
func TestX10_AWithdrawnTakeoverLeavesARecordThatRunsWithTheSamePayload(t *testing.T) {
	for name, withdraw := range map[string]func(*testing.T, *rig){
		"at once": func(*testing.T, *rig) {},
		"by a later request": func(t *testing.T, r *rig) {
			t.Helper()
			if rec := r.record(t); rec.State != lambdaidem.InProgress {
				t.Fatalf("the record is %s; want the claim to hold it", rec.State)
			}
			r.store.failAlways(release, nil)
			r.later(nil).send(t, post("key-2", "{}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
				r.mustRun(t, first())
				time.Sleep(leaseWithoutDeadline)
				r.store.fail(acquire, nil, replyLost) // the first acquire finds the record
				if name != "at once" {
					r.store.failAlways(release, requestLost)
				}
				wantProblem(t, r.send(t, first()), 503, lambdaidem.ErrStoreUnavailable)
				withdraw(t, r)
				if rec := r.record(t); rec.State != lambdaidem.Released || rec.Bound != "dead_attempt" {
					t.Fatalf("the record is %s, bound by %q", rec.State, rec.Bound)
				}
				wantProblem(t, r.send(t, post("key-1", `{"amount":7}`)), 422, lambdaidem.ErrPayloadMismatch)
				held := r.later(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
				if out := held.send(t, first()); out.StatusCode != 201 || replayed(out) {
					t.Errorf("a version with policy Hold answers %+v", out)
				}
				if rec := r.record(t); rec.Attempt != 3 {
					t.Errorf("it ran as attempt %d; want 3", rec.Attempt)
				}
			})
		})
	}
}

// All withdrawals hang. They delay requests by at most 200 ms.
func TestX10_AnOutageCostsLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		for i := range 10 {
			leaveBehind(t, r, post(fmt.Sprintf("key-%d", i), "{}"))
		}
		time.Sleep(time.Minute)
		r.store.failAlways(release, hangs)
		for i, most := range []time.Duration{200 * time.Millisecond, 0} { // the second request comes immediately after the first
			began := time.Now()
			if out := r.send(t, post(fmt.Sprintf("later-%d", i), "{}")); out.StatusCode != 201 {
				t.Errorf("the answer is %+v", out)
			}
			if took := time.Since(began); took != most {
				t.Errorf("request %d took %v, want %v", i, took, most)
			}
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		r.sendCtx(ctx, t, post("hasty", "{}"))
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("a request with a second took %v", took)
		}
	})
}

// Many claims are withdrawn a few at a time.
func TestX10_AHealthyRequestWithdrawsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		r.store.failAlways(acquire, replyLost)
		r.store.failAlways(release, requestLost)
		for i := range 6 {
			r.send(t, post(fmt.Sprintf("key-%d", i), "{}"))
		}
		r.store.failAlways(acquire, nil)
		r.store.failAlways(release, nil)
		time.Sleep(time.Minute)
		for i, want := range []int{4, 2, 0} {
			before := r.store.count(release)
			r.send(t, post(fmt.Sprintf("later-%d", i), "{}"))
			if n := r.store.count(release) - before; n != want {
				t.Errorf("request %d made %d withdrawals, want %d", i, n, want)
			}
		}
	})
}

// If the withdrawal of a claim fails, the guard tries the other claims before that one
// again.
func TestX10_AWithdrawalThatFailsComesLastTheNextTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		leaveBehind(t, r, first())
		time.Sleep(time.Second)
		leaveBehind(t, r, post("key-2", "{}"))
		time.Sleep(time.Minute)
		r.store.fail(release, requestLost) // the release of the first claim
		r.send(t, post("key-3", "{}"))
		time.Sleep(time.Minute)
		r.store.fail(release, nil, requestLost)
		r.send(t, post("key-4", "{}"))
		second, err := r.store.Store.Get(t.Context(), r.guard.RecordID(lambdaidem.Identity{Method: "POST", Route: "/payments", Key: "key-2"}), time.Now())
		if err != nil || second.State != lambdaidem.Released || r.record(t).State != lambdaidem.InProgress {
			t.Errorf("%v; the second claim's record is %s, the first one's %s", err, second.State, r.record(t).State)
		}
	})
}

// panics is an observer that panics at the nth event of a kind.
type panics struct {
	at lambdaidem.Kind
	n  int
}

func (p *panics) Observe(_ context.Context, e lambdaidem.Event) {
	if e.Kind != p.at {
		return
	}
	if p.n--; p.n == 0 {
		panic("the exporter has a bug")
	}
}

// An observer that panics does not leave a claim behind: the process continues and withdraws it.
func TestX10_AnObserverThatPanicsLeavesNoClaimBehind(t *testing.T) {
	for name, c := range map[string]struct {
		at     panics
		outage func(*faulty)
	}{
		"the claim's reply is lost": {panics{lambdaidem.EventStoreError, 1}, func(s *faulty) { s.fail(acquire, replyLost) }},
		"the withdrawal fails": {panics{lambdaidem.EventStoreError, 2}, func(s *faulty) {
			s.fail(acquire, replyLost)
			s.failAlways(release, requestLost)
		}},
		"the handler never started": {panics{lambdaidem.EventNeverStarted, 1}, func(s *faulty) {
			s.fail(acquire, replyLost)
			s.failAlways(release, requestLost)
		}},
		"the record is unreadable": {panics{lambdaidem.EventUnreadable, 1}, func(s *faulty) { s.fail(acquire, unreadable) }},
		"the store fails while the call waits": {panics{lambdaidem.EventStoreError, 1}, func(s *faulty) {
			s.failAlways(acquire, func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
				_, _ = call()
				return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonConflict, Err: errWire}
			})
			s.failAlways(get, requestLost)
		}},
		"the release fails": {panics{lambdaidem.EventStoreError, 1}, func(s *faulty) { s.failAlways(release, requestLost) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, hold, waiting(3*time.Second), func(o *lambdaidem.Options) { o.Observer = &c.at })
				h := r.guard.SQS(func(context.Context, events.SQSMessage) error { return lambdaidem.Retryable(errWire) }, silent[events.SQSMessage])
				c.outage(r.store)
				if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 1 {
					t.Fatalf("the batch returned %+v, %v", out, err)
				}
				r.store.failAlways(release, nil)
				r.store.failAlways(get, nil)
				r.store.failAlways(acquire, nil)
				time.Sleep(time.Minute)
				r.send(t, post("key-2", "{}"))
				r.wantState(t, lambdaidem.Released)
			})
		})
	}
}

// unreadable makes a claim and then reports that the record is unreadable.
func unreadable(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	rec, _ := call()
	return rec, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonForeign, Err: errWire}
}

// unreleasable is a store that can't release one of its records.
type unreleasable struct {
	lambdaidem.Store
	id string
}

func (s unreleasable) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	if lease.ID == s.id {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "release", Reason: lambdaidem.ReasonForeign, Err: errWire}
	}
	return s.Store.Release(ctx, lease, now)
}

// A record that can never be released, whether its claim is the oldest or the newest,
// does not keep other claims from being withdrawn.
func TestX10_ADamagedRecordDoesNotBlockOtherWithdrawals(t *testing.T) {
	for damaged := range 2 {
		t.Run(fmt.Sprintf("claim %d", damaged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
				leaveBehind(t, r, first())
				time.Sleep(time.Second)
				leaveBehind(t, r, post("key-2", "{}"))
				claims := r.store.allClaims()
				r.store.Store = unreleasable{r.store.Store, claims[damaged].ID}
				for i := range 3 {
					time.Sleep(time.Minute)
					r.send(t, post(fmt.Sprintf("later-%d", i), "{}"))
				}
				other, err := r.store.Store.Get(t.Context(), claims[1-damaged].ID, time.Now())
				if err != nil || other.State != lambdaidem.Released {
					t.Errorf("after three requests the other claim's record is %s, %v; want released", other.State, err)
				}
			})
		})
	}
}

// A claim that arrives after its withdrawal found nothing is withdrawn too.
func TestX10_AClaimThatArrivesLateIsWithdrawn(t *testing.T) {
	for _, late := range []time.Duration{2 * time.Second, lambdaidem.MinTTL - time.Second} {
		underEachPolicy(t, func(t *testing.T, r *rig) {
			r.store.fail(acquire, requestLost)
			r.send(t, first())
			end := time.Now().Add(lambdaidem.MinTTL)
			for i := 0; time.Until(end) > lambdaidem.MinTTL-late; i++ {
				r.send(t, post(fmt.Sprintf("meanwhile-%d", i), "{}"))
				time.Sleep(time.Second)
			}
			if _, err := r.store.Store.Acquire(t.Context(), r.store.allClaims()[0]); err != nil || r.record(t).State != lambdaidem.InProgress {
				t.Fatalf("it did not arrive: %v, %v", r.record(t), err)
			}
			time.Sleep(time.Until(end))
			r.send(t, post("last", "{}"))
			if rec := r.record(t); rec.State == lambdaidem.InProgress {
				t.Errorf("%v late: the record is %s", late, rec.State)
			}
		})
	}
}

// A takeover can still be on its way when the guard tries to withdraw it, and arrive
// later. A later request withdraws the takeover then.
func TestX10_ATakeoverThatArrivesLateIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
		r.mustRun(t, first())
		time.Sleep(leaseWithoutDeadline)
		r.store.fail(acquire, nil, requestLost) // the first acquire finds the record
		r.send(t, first())
		claims := r.store.allClaims()
		if _, err := r.store.Store.Acquire(t.Context(), claims[len(claims)-1]); err != nil || !r.record(t).LeaseLiveAt(time.Now()) {
			t.Fatalf("the takeover did not arrive: %+v, %v", r.record(t), err)
		}
		time.Sleep(10 * time.Second)
		r.later(nil).send(t, post("key-2", "{}"))
		if rec := r.record(t); rec.State != lambdaidem.Released || rec.Attempt != 2 {
			t.Errorf("the record is %s, attempt %d; want released, attempt 2", rec.State, rec.Attempt)
		}
	})
}

// A claim whose withdrawal found nothing is forgotten when it can't arrive any more. Few writes are
// spent on it until then.
func TestX10_AClaimThatCannotArriveIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.store.fail(acquire, requestLost)
		r.send(t, first())
		began := time.Now()
		for i := 0; time.Since(began) <= lambdaidem.MinTTL; i++ {
			r.send(t, post(fmt.Sprintf("meanwhile-%d", i), "{}"))
			time.Sleep(time.Second)
		}
		n := r.store.count(release)
		if n < 5 || n > 20 {
			t.Errorf("%d withdrawals in %v", n, lambdaidem.MinTTL)
		}
		time.Sleep(time.Hour)
		r.send(t, post("last", "{}"))
		if r.store.count(release) != n {
			t.Errorf("it was withdrawn again")
		}
	})
}

// A takeover that was left behind is withdrawn, and the record keeps its steps.
func TestX10_AWithdrawnTakeoverKeepsTheSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			if _, err := lambdaidem.Step(ctx, "pay", func(context.Context) (int, error) { runs++; return runs, nil }); err != nil {
				return response{}, err
			}
			if runs == 1 && lambdaidem.Attempt(ctx) == 1 {
				return response{StatusCode: 500}, nil
			}
			return response{StatusCode: 201}, nil
		})
		r.send(t, first())
		r.store.fail(acquire, nil, replyLost) // the claim is refused, and the takeover is made
		r.store.failAlways(release, requestLost)
		r.send(t, first())
		r.store.failAlways(release, nil)
		if rec := r.record(t); rec.State != lambdaidem.InProgress || rec.Attempt != 2 {
			t.Fatalf("the record is %+v", rec)
		}
		r.send(t, post("key-2", "{}"))
		if rec := r.record(t); rec.State != lambdaidem.Released || len(rec.Steps) != 1 {
			t.Errorf("the record is %+v", rec)
		}
		if out := r.send(t, first()); out.StatusCode != 201 || runs != 2 { // the step ran once for each key
			t.Errorf("the retry got %+v; the step ran %d times", out, runs)
		}
	})
}

// The lease was taken, no time was left to start the handler, and the release failed.
func TestX10_AReleaseBeforeTheHandlerStartsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		ctx, cancel := context.WithCancel(t.Context())
		r.store.fail(acquire, after(cancel))
		r.store.failAlways(release, requestLost)
		wantProblem(t, r.sendCtx(ctx, t, first()), 503, lambdaidem.ErrOutOfTime)
		r.store.failAlways(release, nil)
		r.wantRuns(t, 0)
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the retry got %+v", out)
		}
	})
}

// If its handler has started, a claim is not withdrawn, whatever fails.
func TestX10_AClaimWhoseHandlerStartedIsNotWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, optFn := range map[string]func(*lambdaidem.Options){
			"held":        func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold },
			"failed open": func(o *lambdaidem.Options) { o.Policy, o.FailOpen = lambdaidem.Hold, true },
		} {
			r := newRig(nil, optFn)
			if name == "failed open" {
				r.store.fail(acquire, replyLost)
			}
			r.store.failAlways(complete, requestLost)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			r.sendCtx(ctx, t, first())
			cancel()
			r.store.failAlways(complete, nil)
			before := r.store.count(release)
			r.send(t, post("key-2", "{}"))
			if rec := r.record(t); rec.State != lambdaidem.InProgress || r.store.count(release) != before {
				t.Errorf("%s: the record is %s", name, rec.State)
			}
		}
	})
}

// The observer gets the record's id and the invocation, and the log contains them.
func TestX10_ObserversLearnOfAClaimLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(nil)
		both := lambdaidem.Observers(r.seen, lambdaidem.SlogObserver(slog.New(slog.NewJSONHandler(&log, nil))))
		r.guard = r.guard.With(func(o *lambdaidem.Options) { o.Observer = both })
		r.handler = r.guarded(nil)
		leaveBehind(t, r, first())
		r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventStoreError, lambdaidem.EventNeverStarted)
		e := r.seen.last(t)
		if rec := r.record(t); e.RecordID != rec.ID || e.Invocation != "req-of-the-outage" || e.Invocation != rec.Invocation || e.Err == nil || e.TokenHash != lambdaidem.TokenHash(rec.Token) || len(e.TokenHash) != 32 {
			t.Errorf("the event is %+v", e)
		}
		line := log.String()[strings.LastIndex(strings.TrimSpace(log.String()), "\n")+1:]
		for _, want := range []string{`"level":"WARN"`, `"outcome":"never_started"`, `"invocation":"req-of-the-outage"`, `"record":"` + e.RecordID + `"`, `"token_hash":"` + e.TokenHash + `"`} {
			if !strings.Contains(line, want) {
				t.Errorf("the log has no %s: %s", want, line)
			}
		}
	})
}

// The number of remembered claims is limited: a new claim replaces the oldest. An event names the
// replaced claim's record if its handler never started.
func TestX10_TheOldestClaimLeftBehindMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy, o.CleanupTimeout = lambdaidem.Hold, time.Millisecond })
		r.store.failAlways(release, requestLost)
		r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Retryable(errWire) }).mustRun(t, first())
		r.store.failAlways(acquire, replyLost)
		for i := range 1001 {
			r.send(t, post(fmt.Sprintf("key-%d", i), "{}"))
		}
		oldest := r.store.allClaims()[1].ID
		all := r.seen.all()
		n := 0
		for _, e := range all {
			if e.Kind == lambdaidem.EventNeverStarted && strings.Contains(e.Err.Error(), "too many") {
				if n++; e.RecordID != oldest || e.TokenHash != lambdaidem.TokenHash(r.store.allClaims()[1].Token) {
					t.Errorf("%s was dropped, want %s", e.RecordID, oldest)
				}
			}
		}
		if n != 1 {
			t.Errorf("%d claims were dropped, want 1", n)
		}
	})
}

func TestX10_SafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
		for i := range 8 {
			leaveBehind(t, r, post(fmt.Sprintf("key-%d", i), "{}"))
		}
		var all sync.WaitGroup
		for range 3 {
			for i := range 8 {
				all.Go(func() { _, _ = r.handler(t.Context(), post(fmt.Sprintf("key-%d", i), "{}")) })
			}
		}
		all.Wait()
		r.wantRuns(t, 8)
		if kinds := r.seen.kinds(); slices.Contains(kinds, lambdaidem.EventAbandoned) {
			t.Errorf("a key was held: %v", kinds)
		}
	})
}

// A handler says that nothing happened, and the release gets no reply. A later call of the
// process sends the release again, so that the key is not held.
func TestX10_AReleaseWithoutAReplyIsSentAgain(t *testing.T) {
	for name, open := range map[string]bool{"with a lease": false, "failed open": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(func(context.Context, request) (response, error) {
					return response{}, lambdaidem.Retryable(lambdaidem.Reject(503, "bank_closed", ""))
				}, hold, func(o *lambdaidem.Options) { o.FailOpen = open })
				if open {
					r.store.fail(acquire, replyLost)
				}
				r.store.failAlways(release, requestLost)
				r.mustRun(t, first())
				r.store.failAlways(release, nil)
				if slices.Contains(r.seen.kinds(), lambdaidem.EventNeverStarted) {
					t.Error("an event says that the handler never started")
				}
				r.later(nil).send(t, post("key-2", "{}"))
				if rec := r.record(t); rec.State != lambdaidem.Released || rec.LastFailure != "bank_closed" {
					t.Errorf("after another request the record is %s, its last failure %q", rec.State, rec.LastFailure)
				}
				if out := r.later(nil).send(t, first()); out.StatusCode != 201 || replayed(out) {
					t.Errorf("the retry gets %+v", out)
				}
			})
		})
	}
}

// The claim of a call that fails open arrives after its release found nothing.
func TestX10_AClaimThatArrivesAfterFailingOpenIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) {
			return response{}, lambdaidem.Retryable(errWire)
		}, hold, failOpen)
		r.store.fail(acquire, requestLost)
		r.mustRun(t, first())
		if _, err := r.store.Store.Acquire(t.Context(), r.store.allClaims()[0]); err != nil {
			t.Fatal(err)
		}
		r.wantState(t, lambdaidem.InProgress)
		if out := r.later(nil).send(t, first()); out.StatusCode != 201 || replayed(out) {
			t.Errorf("the retry gets %+v", out)
		}
	})
}

// A call that fails open although its claim certainly was not made leaves nothing behind.
func TestX10_FailingOpenWithoutAClaimLeavesNothingBehind(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Retryable(errWire) }, failOpen)
	r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
	r.store.fail(release, requestLost)
	r.mustRun(t, first())
	before := r.store.count(release)
	r.later(nil).send(t, post("key-2", "{}"))
	if n := r.store.count(release) - before; n != 0 {
		t.Errorf("the next request sends %d releases", n)
	}
}

// The takeover certainly was not made, and the guard knows of no stored steps that the handler
// might repeat, so the call fails open.
func TestX10_ARefusedTakeoverFailsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }, failOpen)
		r.mustRun(t, first())
		time.Sleep(leaseWithoutDeadline)
		r.store.fail(acquire, nil, refused(lambdaidem.ReasonUnreachable))
		r.mustRun(t, first())
	})
}

// An optimistic guard also releases the records of claims that the process left behind.
func TestX10_AnOptimisticGuardMeetsAClaimLeftBehind(t *testing.T) {
	for name, answer := range map[string]int{"and completes": 201, "and releases": 503} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := withLedger(func(context.Context, request) (response, error) { return response{StatusCode: 201}, nil }, hold)
				leaveBehind(t, r, first())
				next := r.later(func(context.Context, request) (response, error) { return response{StatusCode: answer}, nil },
					func(o *lambdaidem.Options) { o.Policy = lambdaidem.Rerun }, optimistic)
				if out := next.send(t, first()); out.StatusCode != answer {
					t.Errorf("the retry gets %+v", out)
				}
			})
		})
	}
}

// The store took over a dead attempt's record and found its steps unreadable.
func TestX10_ATakeoverOfAForeignRecordIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
		r.mustRun(t, first())
		time.Sleep(leaseWithoutDeadline)
		r.store.fail(acquire, nil, func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if _, err := call(); err != nil {
				t.Error(err)
			}
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonForeign, Err: errWire}
		})
		wantProblem(t, r.send(t, first()), 500, lambdaidem.ErrRecordForeign)
		r.wantState(t, lambdaidem.Released)
	})
}
