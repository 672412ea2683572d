package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Clean-up runs even when the request's context has ended.
func TestX3_CleanUpOutlivesTheRequestsContext(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(context.Context) (response, error)
		state lambdaidem.State
	}{
		"completion": {func(context.Context) (response, error) { return response{StatusCode: 201}, nil }, lambdaidem.Completed},
		"release":    {func(ctx context.Context) (response, error) { return response{}, ctx.Err() }, lambdaidem.Released},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				cancel() // the client disconnects
				<-ctx.Done()
				return c.end(ctx)
			})
			_, err := r.handler(ctx, first())
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if rec := r.record(t); rec.State != c.state {
				t.Errorf("the record is %s", rec.State)
			}
		})
	}
}

// Clean-up has its own short limit.
func TestX3_CleanUpIsBounded(t *testing.T) {
	for name, h := range map[string]handler{"completion": status(201), "release": status(500)} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []time.Duration{0, 700 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(ctx context.Context, in request) (response, error) {
						time.Sleep(5 * time.Second) // past its deadline
						return h(ctx, in)
					}, func(o *lambdaidem.Options) { o.CleanupTimeout = limit })
					r.store.failAlways(complete, hangs)
					r.store.failAlways(release, hangs)
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					began := time.Now()
					r.sendCtx(ctx, t, first())
					want := limit
					if want == 0 {
						want = 2 * time.Second
					}
					if took := time.Since(began) - 5*time.Second; took != want {
						t.Errorf("the clean-up took %v, want %v", took, want)
					}
				})
			}
		})
	}
}

// A release has a short limit even if much time is left.
func TestX3_ReleaseIsBoundedWithinTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(status(500))
		r.store.failAlways(release, hangs)
		began := time.Now()
		if out := r.send(t, first()); out.StatusCode != 500 {
			t.Errorf("the answer is %d", out.StatusCode)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		r.wantEvents(t, lambdaidem.EventStoreError)
	})
}

func TestX3_AReleaseIsRetried(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused(lambdaidem.ReasonThrottled), "request lost": requestLost, "reply lost": replyLost} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(status(500))
			r.store.fail(release, f, f)
			r.send(t, first())
			if rec := r.record(t); rec.State != lambdaidem.Released {
				t.Errorf("%s: the record is %s", name, rec.State)
			}
			r.wantEvents(t, lambdaidem.EventReleased)
		})
	}
}

// The answer of a handler that returns after its deadline is still stored.
func TestX3_AnswerAfterTheDeadlineIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(slow(4*time.Second, 201))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		one := r.sendCtx(ctx, t, first())
		if ctx.Err() == nil || one.StatusCode != 201 {
			t.Fatalf("the answer is %+v, the context %v", one, ctx.Err())
		}
		wantReplay(t, r.send(t, first()), one)
	})
}

// A failed completion is retried within the time left. Then the answer is a 503 with a Retry-After
// no shorter than the lease. The record is never released, because effects may have happened.
func TestX4_CompletionLostNeverReleases(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused(lambdaidem.ReasonUnreachable), "throttled": refused(lambdaidem.ReasonThrottled),
		"no permission": refused(lambdaidem.ReasonPermission), "unknown": requestLost, "hangs": hangs, "conflict": refused(lambdaidem.ReasonConflict)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.failAlways(complete, f)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				out := r.sendCtx(ctx, t, first())
				wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				wantNoInternals(t, out)
				if took := time.Since(began); took < 8*time.Second || took >= 10*time.Second {
					t.Errorf("it tried for %v of 10 s", took)
				}
				rec := r.record(t)
				if left := time.Until(rec.LeaseEnd); retryAfter(t, out) < left || retryAfter(t, out) >= left+time.Second {
					t.Errorf("Retry-After is %v, and the lease lasts %v", retryAfter(t, out), left)
				}
				if rec.State != lambdaidem.InProgress || r.store.count(release) > 0 {
					t.Errorf("the record is %s after %d releases", rec.State, r.store.count(release))
				}
				r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventUncertain)
				// The client waits as told, and then L6 decides.
				r.store.failAlways(complete, nil)
				time.Sleep(retryAfter(t, out))
				if out := r.send(t, first()); out.StatusCode != 201 || out.Body != "run 2" {
					t.Errorf("after the lease the client gets %+v", out)
				}
			})
		})
	}
}

func TestX4_CompletionIsRetried(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused(lambdaidem.ReasonUnreachable), "request lost": requestLost, "reply lost": replyLost, "conflict": refused(lambdaidem.ReasonConflict)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.fail(complete, f, f, f)
				one := r.send(t, first())
				if one.StatusCode != 201 || one.Body != "run 1" {
					t.Errorf("the answer is %+v", one)
				}
				wantReplay(t, r.send(t, first()), one)
				r.wantRuns(t, 1)
				r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventReplayed)
			})
		})
	}
}

// If the answer can't be stored, the record completes without it.
func TestX4_AnswerThatCannotBeStored(t *testing.T) {
	for _, reason := range []lambdaidem.Reason{lambdaidem.ReasonTooLarge, lambdaidem.ReasonEncoding} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.fail(complete, refused(reason), requestLost) // the second try fails as well
				one := r.send(t, first())
				if one.StatusCode != 201 || one.Body != "run 1" {
					t.Errorf("the first answer is %+v", one)
				}
				for range 2 {
					wantProblem(t, r.send(t, first()), http.StatusInternalServerError, lambdaidem.ErrAnswerUnavailable)
				}
				r.wantRuns(t, 1)
				if kinds := r.seen.kinds(); kinds[0] != lambdaidem.EventAnswerLost {
					t.Errorf("the observer saw %v", kinds)
				}
				if rec := r.record(t); rec.State != lambdaidem.Completed || rec.Result.Outcome != lambdaidem.OutcomeSucceeded {
					t.Errorf("the record is %+v", rec)
				}
			})
		})
	}
}

// A store that reports everything as too large doesn't cause an endless loop.
func TestX4_EverythingIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.store.failAlways(complete, refused(lambdaidem.ReasonTooLarge))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
		if n := r.store.count(complete); n > 20 {
			t.Errorf("it tried %d times in 5 s", n)
		}
	})
}

// A panic after the handler had its effect never releases the record.
func TestX4_PanicOfTheOutcomeRuleNeverReleases(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { panic("rule") }
	})
	func() {
		defer func() {
			if got := recover(); got != "rule" {
				t.Errorf("recovered %v", got)
			}
		}()
		r.send(t, first())
	}()
	if rec := r.record(t); rec.State != lambdaidem.InProgress {
		t.Errorf("the record is %s; the handler had its effect, so it must keep the lease", rec.State)
	}
	r.wantEvents(t, lambdaidem.EventUncertain)
}

// Failing closed is the default. The reason is in the log, and the client sees nothing of it.
func TestX5_FailClosed(t *testing.T) {
	for _, reason := range []lambdaidem.Reason{lambdaidem.ReasonUnknown, lambdaidem.ReasonTimeout, lambdaidem.ReasonUnreachable, lambdaidem.ReasonThrottled,
		lambdaidem.ReasonNoTable, lambdaidem.ReasonPermission, lambdaidem.ReasonInvalid} {
		t.Run(string(reason), func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.RetryAfter = 7 * time.Second })
			r.store.failAlways(acquire, refused(reason))
			out := r.send(t, first())
			wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
			wantNoInternals(t, out)
			if got := retryAfter(t, out); got != 7*time.Second {
				t.Errorf("Retry-After is %v", got)
			}
			r.wantRuns(t, 0)
			r.wantEvents(t, lambdaidem.EventStoreError)
			if e := r.seen.last(t); e.Reason != reason || !errors.Is(e.Err, errWire) {
				t.Errorf("the event is %+v", e)
			}
			// The claim certainly did not happen, so there is nothing to release (X8).
			if n := r.store.count(release); n > 0 {
				t.Errorf("it released %d times", n)
			}
		})
	}
}

// If the claim may have been stored, it is released with our token before the answer is sent.
func TestX5_AnUnknownAcquireIsGivenBack(t *testing.T) {
	for name, f := range map[string]fault{"request lost": requestLost, "reply lost": replyLost, "reply hangs": replyHangs,
		"an error of no known type": func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if _, err := call(); err != nil {
				return lambdaidem.Record{}, err
			}
			return lambdaidem.Record{}, errWire
		}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.fail(acquire, f)
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				out := r.sendCtx(ctx, t, first())
				wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
				wantNoInternals(t, out)
				r.wantRuns(t, 0)
				if rec := r.record(t); rec.State != lambdaidem.Released && name != "request lost" {
					t.Errorf("the record is %q", rec.State)
				}
				if out := r.send(t, first()); out.StatusCode != 201 {
					t.Errorf("the retry got %d %s", out.StatusCode, out.Body)
				}
			})
		})
	}
}

// If the release fails as well, the record stays until its lease ends. The caller still gets an
// answer.
func TestX5_AnUnknownAcquireThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.store.fail(acquire, replyLost)
		r.store.failAlways(release, requestLost)
		wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		time.Sleep(time.Until(r.record(t).LeaseEnd))
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("after the lease: %d %s", out.StatusCode, out.Body)
		}
	})
}

// A request whose client disconnects during the claim leaves nothing behind.
func TestX5_CancelledWhileAcquiring(t *testing.T) {
	for _, failOpen := range []bool{false, true} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.FailOpen = failOpen })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.store.fail(acquire, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			rec, err := call()
			cancel()
			if err != nil {
				return rec, err
			}
			return hangs(ctx, verb, nil)
		})
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		r.wantRuns(t, 0)
		r.wantState(t, lambdaidem.Released)
	}
}

func failOpen(o *lambdaidem.Options) { o.FailOpen = true }

// The handler runs, the request is counted as failed open, and the guard still tries to complete
// the record with its token.
func TestX5_FailOpen(t *testing.T) {
	for name, f := range map[string]fault{"refused": refused(lambdaidem.ReasonUnreachable), "request lost": requestLost, "reply lost": replyLost} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var number int
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					number = lambdaidem.Attempt(ctx)
					return response{StatusCode: 201, Body: "open"}, nil
				}, failOpen)
				r.store.fail(acquire, f)
				one := r.send(t, first())
				if one.StatusCode != 201 || replayed(one) || number != 0 {
					t.Errorf("the answer is %+v, the attempt %d", one, number)
				}
				if kinds := r.seen.kinds(); !slices.Contains(kinds, lambdaidem.EventFailedOpen) || !slices.Contains(kinds, lambdaidem.EventStoreError) {
					t.Errorf("the observer saw %v", kinds)
				}
				if n := r.store.count(complete); n != 1 {
					t.Errorf("it tried to complete %d times", n)
				}
				if name == "reply lost" { // it held the lease without knowing
					wantReplay(t, r.send(t, first()), one)
				}
			})
		})
	}
}

// If the store can't be reached at all, the client gets a success or a failure that it may retry.
// It does not get a final failure: nobody knows whether another attempt carries out the request.
func TestX5_FailOpenWithoutAnyStore(t *testing.T) {
	for code, want := range map[int]int{201: 201, 404: 503, 500: 500} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(status(code), failOpen)
			for _, verb := range []string{acquire, complete, release, get} {
				r.store.failAlways(verb, requestLost)
			}
			began := time.Now()
			if out := r.send(t, first()); out.StatusCode != want || replayed(out) {
				t.Errorf("the answer is %+v", out)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// An attempt that ran without the store sends the record's answer if the record has one.
func TestX5_FailOpenGivesWayToTheRecord(t *testing.T) {
	var r *rig
	r = newRig(func(context.Context, request) (response, error) {
		out, err := r.guarded(func(context.Context, request) (response, error) {
			return response{StatusCode: 201, Body: "winner"}, nil
		})(t.Context(), first())
		if err != nil || out.Body != "winner" {
			t.Errorf("the winner got %+v, %v", out, err)
		}
		return response{StatusCode: 201, Body: "loser"}, nil
	}, failOpen)
	r.store.fail(acquire, refused(lambdaidem.ReasonTimeout))
	wantReplay(t, r.send(t, first()), response{StatusCode: 201, Body: "winner"})
}

func TestX5_HangingStoreLeavesTimeToAnswer(t *testing.T) {
	for _, left := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second, 29 * time.Second, 15 * time.Minute} {
		t.Run(left.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.failAlways(acquire, hangs)
				r.store.failAlways(release, hangs)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				began := time.Now()
				out := r.sendCtx(ctx, t, first())
				if took := time.Since(began); took >= left {
					t.Errorf("the answer came after %v; the invocation ended at %v", took, left)
				}
				wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
			})
		})
	}
}

// stolen returns a handler that runs past its lease, while another attempt takes the lease over.
func stolen(t *testing.T, r **rig, winner handler) handler {
	return func(context.Context, request) (response, error) {
		time.Sleep(2 * time.Minute) // past its lease, although its context has ended
		if _, err := (*r).guarded(winner)(t.Context(), first()); err != nil && winner != nil {
			t.Logf("the other attempt returned %v", err)
		}
		return response{StatusCode: 201, Body: "loser"}, nil
	}
}

// The completion finds that the lease is lost. The attempt's own answer is not sent as if it were
// valid.
func TestX6_LeaseLost(t *testing.T) {
	t.Run("completed by another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(stolen(t, &r, func(context.Context, request) (response, error) {
				return response{StatusCode: 202, Body: "winner"}, nil
			}))
			wantReplay(t, r.send(t, first()), response{StatusCode: 202, Body: "winner"})
			r.wantEvents(t, lambdaidem.EventTakenOver, lambdaidem.EventNew, lambdaidem.EventLeaseLost, lambdaidem.EventReplayed)
		})
	})
	t.Run("released by another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(stolen(t, &r, status(503)))
			out := r.send(t, first())
			wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
			if retryAfter(t, out) == 0 {
				t.Error("the answer has no Retry-After")
			}
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Attempt != 2 {
				t.Errorf("the record is %s at attempt %d", rec.State, rec.Attempt)
			}
		})
	})
	t.Run("in progress under another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(stolen(t, &r, func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) }))
			wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
			if rec := r.record(t); rec.State != lambdaidem.InProgress || rec.Attempt != 2 {
				t.Errorf("the record is %s at attempt %d", rec.State, rec.Attempt)
			}
		})
	})
	t.Run("found at a release", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			steal := stolen(t, &r, func(context.Context, request) (response, error) {
				return response{StatusCode: 202, Body: "winner"}, nil
			})
			r = newRig(func(ctx context.Context, in request) (response, error) {
				if _, err := steal(ctx, in); err != nil {
					return response{}, err
				}
				return response{StatusCode: 500}, nil
			})
			r.send(t, first())
			wantReplay(t, r.send(t, first()), response{StatusCode: 202, Body: "winner"})
			if !slices.Contains(r.seen.kinds(), lambdaidem.EventLeaseLost) {
				t.Errorf("the observer saw %v", r.seen.kinds())
			}
		})
	})
}

// A completed record never changes, whatever late attempts do.
func TestG3_ACompletedRecordNeverChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []handler{status(201), status(404), status(500), func(context.Context, request) (response, error) { return response{}, errWire }} {
			var r *rig
			var was lambdaidem.Record
			r = newRig(func(ctx context.Context, in request) (response, error) {
				time.Sleep(2 * time.Minute)
				if _, err := r.guarded(status(201))(t.Context(), first()); err != nil {
					t.Error(err)
				}
				was = r.record(t)
				return end(ctx, in)
			})
			if _, err := r.handler(t.Context(), first()); err != nil && !errors.Is(err, errWire) {
				t.Error(err)
			}
			if is := r.record(t); !sameRecord(is, was) || is.State != lambdaidem.Completed {
				t.Errorf("the record changed from %+v to %+v", was, is)
			}
		}
	})
}

// Nothing outlives the invocation, not even if all store calls hang. The end of a synctest bubble
// fails if any goroutine is left, and TestMain fails for all others.
func TestX7_NothingOutlivesTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, waiting(10*time.Second))
		for _, verb := range []string{acquire, complete, release, get} {
			r.store.fail(verb, hangs, hangs)
		}
		for range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			r.sendCtx(ctx, t, first())
			cancel()
			synctest.Wait()
		}
	})
}

// The handler's context ends when its handler returns.
func TestX7_TheHandlersContextEndsWithIt(t *testing.T) {
	var kept context.Context
	for _, end := range []handler{status(201), status(500)} {
		r := newRig(func(ctx context.Context, in request) (response, error) {
			kept = ctx //nolint:fatcontext // it is kept to see that it ends
			return end(ctx, in)
		})
		r.send(t, first())
		if kept.Err() == nil {
			t.Error("the handler's context is still alive")
		}
	}
}

// The guard believes the store: after an error with NotApplied there is nothing to release. After
// any other error the claim may have happened, whatever later errors say.
func TestX8_OneAmbiguousTryMakesAClaimUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		ambiguous := func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if _, err := call(); err != nil {
				return lambdaidem.Record{}, err
			}
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonConflict, Err: errWire}
		}
		r.store.fail(acquire, ambiguous, refused(lambdaidem.ReasonThrottled))
		wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		if rec := r.record(t); rec.State != lambdaidem.Released {
			t.Errorf("the lease of the ambiguous try stays: %s", rec.State)
		}
	})
}

// A conflict means busy, never unavailable: the call is retried for up to 200 ms, and then answered
// as in progress. It never fails open.
func TestX9_ConflictIsBusy(t *testing.T) {
	for _, opt := range []func(*lambdaidem.Options){func(*lambdaidem.Options) {}, failOpen} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, opt)
			r.store.failAlways(acquire, refused(lambdaidem.ReasonConflict))
			began := time.Now()
			out := r.send(t, first())
			took := time.Since(began)
			wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
			if retryAfter(t, out) == 0 {
				t.Error("the answer has no Retry-After")
			}
			if took > 200*time.Millisecond || took < 50*time.Millisecond {
				t.Errorf("it tried for %v", took)
			}
			if n := r.store.count(acquire); n < 3 || n > 40 {
				t.Errorf("it tried %d times in %v", n, took)
			}
			r.wantRuns(t, 0)
			r.wantEvents(t, lambdaidem.EventInProgress)
		})
	}
}

func TestX9_ConflictThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.store.fail(acquire, refused(lambdaidem.ReasonConflict), refused(lambdaidem.ReasonConflict))
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
		}
	})
}

// In wait mode, the guard waits on a conflict as it waits for an attempt in progress.
func TestX9_ConflictIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, waiting(10*time.Second))
		over := time.Now().Add(5 * time.Second)
		conflict := refused(lambdaidem.ReasonConflict)
		r.store.failAlways(acquire, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if time.Now().Before(over) {
				return conflict(ctx, verb, call)
			}
			return call()
		})
		if out := r.send(t, first()); out.StatusCode != 201 {
			t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
		}
	})
}

// Whatever fails in whatever order, the guard answers. Once a first answer was sent, every replay
// equals it, as long as no attempt died.
func TestG3_EveryReplayEqualsTheFirstAnswer(t *testing.T) {
	faults := map[string]fault{"none": nil, "refused": refused(lambdaidem.ReasonThrottled), "request lost": requestLost, "reply lost": replyLost, "conflict": refused(lambdaidem.ReasonConflict), "hangs": hangs, "reply hangs": replyHangs}
	for a, onAcquire := range faults {
		for c, onComplete := range faults {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.Store = memstore.New()
				r.store.fail(acquire, onAcquire)
				r.store.fail(complete, onComplete)
				answers := []string{}
				for range 4 {
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					out := r.sendCtx(ctx, t, first())
					cancel()
					if out.StatusCode == 201 {
						answers = append(answers, out.Body)
					} else if out.StatusCode != 409 && out.StatusCode != 503 {
						t.Errorf("acquire %s, complete %s: the answer is %d %s", a, c, out.StatusCode, out.Body)
					}
					time.Sleep(10 * time.Second) // past any lease
				}
				if len(slices.Compact(slices.Clone(answers))) != 1 || len(answers) < 2 {
					t.Errorf("acquire %s, complete %s: the answers are %v", a, c, answers)
				}
				if n := r.runs.Load(); n > 2 {
					t.Errorf("acquire %s, complete %s: it ran %d times", a, c, n)
				}
			})
		}
	}
}

// The text of a StoreError says what was tried, why it failed, and whether it may have happened.
func TestX8_StoreErrorsSayWhatMayHaveHappened(t *testing.T) {
	for _, c := range []struct {
		err  lambdaidem.StoreError
		want []string
	}{
		{lambdaidem.StoreError{Op: "acquire", Err: errWire}, []string{"acquire", "may have been applied", errWire.Error()}},
		{lambdaidem.StoreError{Op: "complete", Reason: lambdaidem.ReasonThrottled, NotApplied: true, Err: errWire}, []string{"complete", "throttled", "not applied"}},
	} {
		for _, want := range c.want {
			if text := c.err.Error(); !strings.Contains(text, want) {
				t.Errorf("%q does not say %q", text, want)
			}
		}
		if !errors.Is(fmt.Errorf("wrapped: %w", &c.err), errWire) {
			t.Error("the cause is lost")
		}
	}
}

// A request that failed open and then has no time left to run releases the lease that its claim may
// have taken.
func TestX5_FailOpenWithoutTimeGivesBackTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, failOpen, func(o *lambdaidem.Options) { o.Reserve = time.Second })
		r.store.fail(acquire, replyHangs)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutOfTime)
		r.wantRuns(t, 0)
		r.wantState(t, lambdaidem.Released)
	})
}
