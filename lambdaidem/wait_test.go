package lambdaidem_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func waiting(d time.Duration) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) { o.Wait = d }
}

// slow returns a handler that answers after d.
func slow(d time.Duration, code int) handler {
	return func(context.Context, request) (response, error) {
		time.Sleep(d)
		return response{StatusCode: code, Body: "slow"}, nil
	}
}

// meanwhile sends first() to h, and returns when its handler runs. The channel gets the answer.
func meanwhile(t *testing.T, h handler) (done chan response) {
	t.Helper()
	done = make(chan response, 1)
	go func() {
		out, err := h(t.Context(), first())
		if err != nil {
			t.Errorf("the first attempt returned %v", err)
		}
		done <- out
	}()
	synctest.Wait() // until the handler sleeps
	return done
}

// By default, a request in progress is refused.
func TestL8_RejectSaysWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(10*time.Second, 201), func(o *lambdaidem.Options) { o.RetryAfter = 2500 * time.Millisecond })
		done := meanwhile(t, r.handler)
		began := time.Now()
		out := r.send(t, first())
		wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
		if got := retryAfter(t, out); got != 3*time.Second { // rounded up
			t.Errorf("Retry-After is %v", got)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited for %v", took)
		}
		r.wantEvents(t, lambdaidem.EventInProgress)
		one := <-done
		wantReplay(t, r.send(t, first()), one)
	})
}

func TestL8_WaitReplaysWhatTheOtherStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(3*time.Second, 201), waiting(10*time.Second))
		done := meanwhile(t, r.handler)
		began := time.Now()
		out := r.send(t, first())
		took := time.Since(began)
		wantReplay(t, out, <-done)
		if took < 3*time.Second || took > 3*time.Second+1500*time.Millisecond {
			t.Errorf("it waited for %v", took)
		}
		r.wantRuns(t, 1)
		if n := r.store.count(get); n < 3 || n > 20 {
			t.Errorf("it polled %d times in %v", n, took)
		}
		if n := r.store.count(acquire); n != 2 {
			t.Errorf("it acquired %d times", n)
		}
	})
}

func TestL8_WaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(30*time.Second, 201), waiting(5*time.Second))
		done := meanwhile(t, r.handler)
		began := time.Now()
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it waited for %v", took)
		}
		<-done
	})
}

// The first read of the record is after 20 to 40 ms. After that, it is read at least once a second.
func TestL8_AWaitEndsSoonAfterTheOtherAttempt(t *testing.T) {
	for _, c := range []struct{ runs, least, most time.Duration }{
		{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond},
		{50 * time.Second, 50 * time.Second, 51 * time.Second},
	} {
		for range 20 { // each pause is random
			synctest.Test(t, func(t *testing.T) {
				r := newRig(slow(c.runs, 201), waiting(time.Hour))
				done := meanwhile(t, r.handler)
				began := time.Now()
				out := r.send(t, first())
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("beside an attempt of %v it waited for %v", c.runs, took)
				}
				wantReplay(t, out, <-done)
			})
		}
	}
}

// The wait always leaves time for an answer before the invocation's deadline.
func TestL8_WaitLeavesTimeToAnswer(t *testing.T) {
	for _, left := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second, 29 * time.Second} {
		t.Run(left.String(), func(t *testing.T) {
			for name, poll := range map[string]fault{"store answers": nil, "store hangs": hangs, "store fails": refused(lambdaidem.ReasonThrottled)} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(slow(59*time.Second, 201), waiting(time.Hour))
					r.store.failAlways(get, poll)
					done := meanwhile(t, r.handler)
					ctx, cancel := context.WithTimeout(t.Context(), left)
					defer cancel()
					began := time.Now()
					wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
					if took := time.Since(began); took >= left || took < left*8/10 {
						t.Errorf("%s: it answered after %v", name, took)
					}
					<-done
				})
			}
		})
	}
}

// If the record became free and there is time to run, the guard makes a new claim.
func TestL8_WaitAcquiresWhatBecameFree(t *testing.T) {
	for name, c := range map[string]struct {
		left time.Duration
		want int
	}{"time is left": {10 * time.Second, 201}, "no time is left": {3500 * time.Millisecond, 409}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, waiting(time.Hour), func(o *lambdaidem.Options) { o.MinRunTime = 2 * time.Second })
				done := meanwhile(t, r.guarded(slow(2*time.Second, 503)))
				ctx, cancel := context.WithTimeout(t.Context(), c.left)
				defer cancel()
				if out := r.sendCtx(ctx, t, first()); out.StatusCode != c.want {
					t.Errorf("the answer is %d %s, want %d", out.StatusCode, out.Body, c.want)
				}
				<-done
			})
		})
	}
}

// If the other attempt dies during the wait, the record is taken over or held.
func TestL8_WaitMeetsADeadLease(t *testing.T) {
	for policy, want := range map[lambdaidem.Policy]int{lambdaidem.Rerun: 201, lambdaidem.Hold: 409} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, waiting(time.Hour), func(o *lambdaidem.Options) { o.Policy = policy })
			if _, err := r.guarded(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })(t.Context(), first()); err == nil {
				t.Fatal("the error got lost")
			}
			out := r.send(t, first())
			if out.StatusCode != want {
				t.Errorf("%s: the answer is %d %s", policy, out.StatusCode, out.Body)
			}
			if now := time.Now(); now.Before(r.store.allClaims()[0].LeaseEnd) {
				t.Errorf("%s: decided before the lease ended", policy)
			}
			if want == 409 {
				wantProblem(t, out, 409, lambdaidem.ErrAttemptAbandoned)
			}
		})
	}
}

// A record that expires and is deleted during the wait is free.
func TestL8_WaitMeetsAnAbsentRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(30*time.Second, 201), waiting(time.Hour))
		done := meanwhile(t, r.handler)
		r.store.fail(get, nil, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			return lambdaidem.Record{}, nil
		})
		wantReplay(t, r.send(t, first()), response{StatusCode: 201, Body: "slow"})
		<-done
		r.wantRuns(t, 1)
	})
}

func TestL8_OtherPayloadDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(3*time.Second, 201), waiting(time.Hour))
		done := meanwhile(t, r.handler)
		began := time.Now()
		wantProblem(t, r.send(t, post("key-1", "{}")), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited for %v", took)
		}
		<-done
	})
}

// If the client gives up, the wait ends.
func TestL8_WaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(30*time.Second, 201), waiting(time.Hour))
		done := meanwhile(t, r.handler)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it answered after %v", took)
		}
		<-done
	})
}

// Many requests wait for one: there is one run, and all get its answer.
func TestL8_ManyWaitForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(2*time.Second, 201), waiting(time.Minute))
		out := make(chan response)
		const n = 50
		for range n {
			go func() {
				resp, err := r.handler(t.Context(), first())
				if err != nil {
					t.Error(err)
				}
				out <- resp
			}()
		}
		fresh := 0
		for range n {
			resp := <-out
			if resp.StatusCode != 201 || resp.Body != "slow" {
				t.Errorf("one got %+v", resp)
			}
			if !replayed(resp) {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%d answers were first ones", fresh)
		}
		r.wantRuns(t, 1)
	})
}

// pollTimes is a store that records the time of each read since the store was made.
type pollTimes struct {
	*memstore.Store
	began time.Time

	mu     sync.Mutex
	byCall map[any][]time.Duration
}

type callNumber struct{}

func (s *pollTimes) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	s.mu.Lock()
	s.byCall[ctx.Value(callNumber{})] = append(s.byCall[ctx.Value(callNumber{})], time.Since(s.began))
	s.mu.Unlock()
	return s.Store.Get(ctx, id, now)
}

// Duplicates that arrive at the same time do not read the record at the same time. To wait 200 ms,
// each of them needs at most 6 store calls: a claim and 5 reads.
func TestL8_ManyWaitersPollApart(t *testing.T) {
	const waiters, mostReads = 1000, 5
	synctest.Test(t, func(t *testing.T) {
		store := &pollTimes{Store: memstore.New(), began: time.Now(), byCall: map[any][]time.Duration{}}
		guarded := lambdaidem.New(store, waiting(time.Minute)).APIGatewayV2(slow(200*time.Millisecond, 201))
		done := meanwhile(t, guarded)
		var all sync.WaitGroup
		for n := range waiters {
			all.Go(func() {
				out, err := guarded(context.WithValue(t.Context(), callNumber{}, n), first())
				if err != nil || out.StatusCode != 201 || !replayed(out) {
					t.Errorf("waiter %d got %+v, %v", n, out, err)
				}
			})
		}
		all.Wait()
		<-done
		polls, inMillisecond := 0, map[int64]int{}
		for n, times := range store.byCall {
			if len(times) > mostReads {
				t.Errorf("waiter %v read the record %d times: %v", n, len(times), times)
			}
			for _, at := range times {
				polls++
				inMillisecond[at.Milliseconds()]++
			}
		}
		if len(store.byCall) != waiters {
			t.Errorf("%d callers waited, want %d", len(store.byCall), waiters)
		}
		// If the first pauses are spread evenly over 20 ms, 50 of the 1,000 first reads fall
		// into each of these milliseconds, which is 1.3 % of all reads.
		for at, n := range inMillisecond {
			if share := float64(n) / float64(polls); share > 0.025 {
				t.Errorf("%d of %d reads, %.1f %%, fall into the millisecond %d", n, polls, 100*share, at)
			}
		}
	})
}

// If a wait could not read the record, the log says why: the permission to read may be missing, and
// nothing else needs it.
func TestL8_AWaitThatCannotReadSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(context.Context, request) (response, error) {
			wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
			return response{StatusCode: 201}, nil
		}, func(o *lambdaidem.Options) { o.Wait = 2 * time.Second })
		r.store.failAlways(get, refused(lambdaidem.ReasonPermission))
		r.send(t, first())
		r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventInProgress, lambdaidem.EventNew)
		if e := r.seen.all()[0]; e.Reason != lambdaidem.ReasonPermission {
			t.Errorf("the event is %+v", e)
		}
	})
}

// A wait that read the record in the end, or whose context ended during a read, reports no store
// error.
func TestL8_AWaitTellsOnlyWhyItCouldNotRead(t *testing.T) {
	for name, set := range map[string]func(*faulty){
		"a read that failed before": func(s *faulty) { s.fail(get, refused(lambdaidem.ReasonThrottled)) },
		"a read that was cut off":   func(s *faulty) { s.failAlways(get, hangs) },
		"both": func(s *faulty) {
			s.fail(get, refused(lambdaidem.ReasonThrottled), nil)
			s.failAlways(get, hangs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(slow(30*time.Second, 201), waiting(2*time.Second))
				set(r.store)
				done := meanwhile(t, r.handler)
				wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
				r.wantEvents(t, lambdaidem.EventInProgress)
				<-done
			})
		})
	}
}
