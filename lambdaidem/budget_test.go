package lambdaidem_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An earlier claim turns out to have been stored. The handler's time then ends with the lease of
// that claim: MaxSkew and the reserve before the lease's end.
func TestL5_TheHandlersTimeIsThatOfTheClaimThatLanded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			end, _ := ctx.Deadline()
			if got, want := end.Sub(began), time.Minute-500*time.Millisecond; got != want {
				t.Errorf("the handler's context ends after %v, want %v", got, want)
			}
			return response{StatusCode: 201}, nil
		})
		r.store.fail(acquire, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			rec, err := ambiguous(ctx, verb, call)
			time.Sleep(10 * time.Second) // a slow reply
			return rec, err
		})
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the answer is %+v", out)
		}
		if n := r.store.count(acquire); n != 2 {
			t.Errorf("it claimed %d times, want twice: this test proves nothing", n)
		}
		r.wantRuns(t, 1)
	})
}

// The limit of a wait counts from the wait's begin, however often the record becomes free and other
// requests take it first.
func TestL8_TheBoundOfAWaitCountsFromTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(50*time.Second, 201), waiting(5*time.Second))
		done := meanwhile(t, r.handler)
		began := time.Now()
		seemsFree := 0
		r.store.failAlways(get, func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if time.Since(began) > time.Duration(seemsFree+1)*2*time.Second {
				seemsFree++
				return lambdaidem.Record{}, nil
			}
			return call()
		})
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		if took := time.Since(began); took != 5*time.Second || seemsFree != 2 {
			t.Errorf("it waited for %v, and claimed anew %d times", took, seemsFree)
		}
		<-done
	})
}

// The context that a store gets for a claim ends before the handler runs, and the one for a
// completion ends before the guard returns.
func TestX7_TheContextsOfAClaimAndOfACompletionEndWithThem(t *testing.T) {
	var claim, completion context.Context
	r := newRig(func(context.Context, request) (response, error) {
		if claim.Err() == nil {
			t.Error("the handler runs, and the claim's context has not ended")
		}
		return response{StatusCode: 201}, nil
	})
	keep := func(in *context.Context) func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return func(ctx context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			*in = ctx //nolint:fatcontext // to see that it ends
			return call()
		}
	}
	r.store.fail(acquire, keep(&claim))
	r.store.fail(complete, keep(&completion))
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("the answer is %+v", out)
	}
	if completion.Err() == nil {
		t.Error("the answer is out, and the completion's context has not ended")
	}
}

// Store calls are tried again after 20 ms, then after twice as long each time, up to a second. Each
// pause is shorter by a random part of up to half, so that processes don't retry at the same
// moment.
func TestX3_PausesGrowUpToASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		var tries []time.Time
		r.store.failAlways(complete, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			tries = append(tries, time.Now())
			return lambdaidem.Record{}, errWire
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), 503, lambdaidem.ErrOutcomeUnknown)
		longest := 20 * time.Millisecond
		for i, at := range tries[1:] {
			if gap := at.Sub(tries[i]); gap < longest/2 || gap > longest {
				t.Errorf("pause %d was %v; want %v to %v", i+1, gap, longest/2, longest)
			}
			longest = min(2*longest, time.Second)
		}
		if len(tries) < 20 {
			t.Errorf("there were %d tries in 20 s", len(tries))
		}
	})
}

// On Lambda Managed Instances, a function may run for 90 minutes. An attempt that sent the same
// transaction again for that long would reach the database after TTL has deleted the record, and the
// database would carry out the transaction a second time.
func TestL7_AnAnswerIsStoredWithin15Minutes(t *testing.T) {
	for name, optFn := range map[string]func(*lambdaidem.Options){
		"lease":      func(*lambdaidem.Options) {},
		"optimistic": optimistic,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), optFn)
				began := time.Now()
				var latest time.Duration
				l.failAlways(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					latest = time.Since(began)
					return lambdaidem.Record{}, errWire
				})
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
				defer cancel()
				wantProblem(t, r.sendCtx(ctx, t, first()), 503, lambdaidem.ErrOutcomeUnknown)
				if latest < 14*time.Minute || latest > 15*time.Minute {
					t.Errorf("the last commit was sent after %v; want about 15 minutes", latest)
				}
			})
		})
	}
}
