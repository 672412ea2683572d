package lambdaidem_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// After a refused claim, the guard needs no second call: the reply contains everything.
func TestL2_OneCallDecidesReplayConflictAndMismatch(t *testing.T) {
	var r *rig
	calls := func(t *testing.T, what string, in request, want int) {
		t.Helper()
		was := len(r.store.allCalls())
		if out := r.send(t, in); out.StatusCode != want {
			t.Errorf("%s: the answer is %d %s", what, out.StatusCode, out.Body)
		}
		if made := r.store.allCalls()[was:]; len(made) != 1 || made[0] != acquire {
			t.Errorf("%s took the calls %v, want one acquire", what, made)
		}
	}
	r = newRig(func(context.Context, request) (response, error) {
		calls(t, "conflict", first(), http.StatusConflict)
		return response{StatusCode: 201}, nil
	})
	r.send(t, first())
	calls(t, "replay", first(), http.StatusCreated)
	calls(t, "mismatch", post("key-1", "{}"), http.StatusUnprocessableEntity)
}

// An expired record counts as absent, whether or not it was deleted.
func TestL7_AnExpiredRecordIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL })
		r.send(t, first())
		time.Sleep(lambdaidem.MinTTL - time.Second)
		if out := r.send(t, first()); !replayed(out) {
			t.Error("it does not replay within its TTL")
		}
		time.Sleep(2 * time.Second)
		if out := r.send(t, post("key-1", "{}")); replayed(out) || out.StatusCode != http.StatusCreated {
			t.Errorf("after its TTL the key got %+v", out)
		}
		if n := r.record(t).Attempt; n != 1 {
			t.Errorf("the attempt number is %d, want that of a new record", n)
		}
	})
}

// A record that expires between the refused claim and the reply is absent, so the guard tries the
// claim again.
func TestL7_ExpiredBetweenAcquireAndReply(t *testing.T) {
	r := newRig(nil)
	r.store.fail(acquire, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, nil
	})
	if out := r.send(t, first()); out.StatusCode != http.StatusCreated || replayed(out) {
		t.Errorf("the answer is %+v", out)
	}
	r.wantRuns(t, 1)
}

// The call ends even if the store never gives a usable reply.
func TestL6_RetriesOfAClaimAreBounded(t *testing.T) {
	r := newRig(nil)
	r.store.failAlways(acquire, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, nil
	})
	wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
	if n := r.store.count(acquire); n > 10 {
		t.Errorf("it tried %d times", n)
	}
	r.wantRuns(t, 0)
}

func TestL3_TokensAreRandomAndOfOneAttempt(t *testing.T) {
	r := newRig(status(500))
	for range 3 {
		r.send(t, first())
	}
	seen := map[string]bool{}
	for _, c := range r.store.allClaims() {
		if len(c.Token) < 22 {
			t.Errorf("the token %q has less than 128 bits", c.Token)
		}
		seen[c.Token] = true
	}
	if len(seen) != 3 {
		t.Errorf("three attempts had %d tokens", len(seen))
	}
}

// A lease whose end has passed isn't lost as long as nobody takes it over.
func TestL3_ALateCompletionSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			<-ctx.Done() // continues although its context has ended
			time.Sleep(3 * time.Second)
			return response{StatusCode: 201, Body: "late"}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		one := r.sendCtx(ctx, t, first())
		if one.StatusCode != http.StatusCreated {
			t.Fatalf("the late answer is %d %s", one.StatusCode, one.Body)
		}
		if time.Now().Before(r.store.allClaims()[0].LeaseEnd) {
			t.Fatal("the lease has not ended: this test proves nothing")
		}
		wantReplay(t, r.send(t, first()), one)
	})
}

// A claim that is refused because of its own token holds the lease.
func TestL4_OwnTokenInProgressHoldsTheLease(t *testing.T) {
	r := newRig(nil)
	// The first try is stored, its reply is lost, and then the store reports a conflict.
	r.store.fail(acquire, func(_ context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		if _, err := call(); err != nil {
			return lambdaidem.Record{}, err
		}
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: verb, Reason: lambdaidem.ReasonConflict, Err: errWire}
	})
	one := r.send(t, first())
	if one.StatusCode != http.StatusCreated {
		t.Fatalf("the answer is %d %s", one.StatusCode, one.Body)
	}
	wantReplay(t, r.send(t, first()), one)
	r.wantRuns(t, 1)
}

func TestL4_OwnCompletionIsRecognised(t *testing.T) {
	r := newRig(nil)
	r.store.fail(complete, replyLost)
	one := r.send(t, first())
	if one.StatusCode != http.StatusCreated || one.Body != "run 1" {
		t.Fatalf("the answer is %d %s", one.StatusCode, one.Body)
	}
	wantReplay(t, r.send(t, first()), one)
	r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventReplayed)
}

// The lease ends at the deadline plus MaxSkew. The handler's context ends the reserve before the
// deadline.
func TestL5_LeaseAndReserve(t *testing.T) {
	for _, c := range []struct {
		name           string
		left, reserve  time.Duration // input
		lease, handler time.Duration // expected
	}{
		{"a tenth", 3 * time.Second, 0, 5 * time.Second, 2700 * time.Millisecond},
		{"half a second", 29 * time.Second, 0, 31 * time.Second, 28500 * time.Millisecond},
		{"by option", 29 * time.Second, 2 * time.Second, 31 * time.Second, 27 * time.Second},
		{"no deadline", 0, 0, 62 * time.Second, 59500 * time.Millisecond},
		{"no deadline, by option", 0, 2 * time.Second, 62 * time.Second, 58 * time.Second},
		{"fifteen minutes", 15 * time.Minute, 0, 15*time.Minute + 2*time.Second, 15*time.Minute - 500*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					end, ok := ctx.Deadline()
					if got := end.Sub(began); !ok || got != c.handler {
						t.Errorf("the handler's context ends after %v, want %v", got, c.handler)
					}
					return response{StatusCode: 201}, nil
				}, func(o *lambdaidem.Options) { o.Reserve = c.reserve })
				ctx := t.Context()
				if c.left > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.left)
					defer cancel()
				}
				r.sendCtx(ctx, t, first())
				if got := r.store.allClaims()[0].LeaseEnd.Sub(began); got != c.lease {
					t.Errorf("the lease ends after %v, want %v", got, c.lease)
				}
			})
		})
	}
}

func TestL5_LeaseDurationAndSkewAreOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.LeaseDuration, o.MaxSkew = 10*time.Second, 5*time.Second })
		r.send(t, first())
		if got := time.Until(r.store.allClaims()[0].LeaseEnd); got != 15*time.Second {
			t.Errorf("the lease lasts %v, want 15 s", got)
		}
	})
}

// For every deadline and TTL, the lease lasts until MaxSkew after the deadline, in whole
// milliseconds. The record lasts until MaxSkew and a second after the lease's end, in whole
// seconds.
func TestL7_RecordsOutliveLeases(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		left := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(15*time.Minute)).Draw(rt, "left"))
		ttl := time.Duration(rapid.Int64Range(int64(lambdaidem.MinTTL), int64(time.Hour)).Draw(rt, "ttl"))
		skew := time.Duration(rapid.Int64Range(1, int64(10*time.Second)).Draw(rt, "skew"))
		offset := time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "offset"))
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(offset)
			r := newRig(nil, func(o *lambdaidem.Options) { o.TTL, o.MaxSkew = ttl, skew })
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			deadline, _ := ctx.Deadline()
			r.sendCtx(ctx, t, first())
			c := r.store.allClaims()[0]
			if c.LeaseEnd.Before(deadline.Add(skew)) || c.LeaseEnd.Sub(deadline) > skew+time.Millisecond || c.LeaseEnd.Nanosecond()%1e6 != 0 {
				t.Errorf("the lease ends %v after the deadline with a skew of %v", c.LeaseEnd.Sub(deadline), skew)
			}
			least := c.LeaseEnd.Add(skew + time.Second)
			if want := time.Now().Add(ttl); want.After(least) {
				least = want
			}
			if c.Expires.Before(least) || c.Expires.Sub(least) >= time.Second || c.Expires.Nanosecond() != 0 {
				t.Errorf("the record expires %v after the least", c.Expires.Sub(least))
			}
		})
	})
}

// Even with the shortest TTL and the longest deadline, the record outlives its lease by MaxSkew.
func TestL7_TheShortestTTLOutlivesTheLongestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.TTL, o.MaxSkew = lambdaidem.MinTTL, time.Minute })
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		r.sendCtx(ctx, t, first())
		if c := r.store.allClaims()[0]; c.Expires.Sub(c.LeaseEnd) < time.Minute {
			t.Errorf("the record expires %v after its lease has ended; want a minute or more", c.Expires.Sub(c.LeaseEnd))
		}
	})
}

// The TTL counts anew from the completion.
func TestL7_CompletionResetsTheTTL(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) {
				time.Sleep(20 * time.Minute)
				return response{StatusCode: 201}, nil
			}, func(o *lambdaidem.Options) { o.TTL, o.Policy = lambdaidem.MinTTL, policy }) // shorter than the handler's run
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			one := r.sendCtx(ctx, t, first())
			rec := r.record(t)
			if got := rec.Expires.Sub(rec.CompletedAt); got < lambdaidem.MinTTL || got >= lambdaidem.MinTTL+time.Second {
				t.Errorf("%s: the record expires %v after its completion", policy, got)
			}
			wantReplay(t, r.send(t, first()), one)
		})
	}
}

func TestL7_DefaultIsADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r.send(t, first())
		if got := time.Until(r.record(t).Expires); got < 24*time.Hour || got >= 24*time.Hour+time.Second {
			t.Errorf("the record expires in %v", got)
		}
	})
}

func TestL5_NoTimeLeftIsSaidAsSuch(t *testing.T) {
	for _, left := range []time.Duration{0, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.FailOpen = true })
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			out := r.sendCtx(ctx, t, first())
			wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutOfTime)
			if retryAfter(t, out) == 0 {
				t.Error("the answer has no Retry-After")
			}
			r.wantEvents(t, lambdaidem.EventOutOfTime)
			r.wantRuns(t, 0)
		})
	}
}

// The store took so long that the handler's time is over before it begins. The handler does not
// run, and the lease is released.
func TestL5_NoTimeLeftAfterAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, func(o *lambdaidem.Options) { o.Reserve = 200 * time.Millisecond })
		r.store.fail(acquire, after(func() { time.Sleep(850 * time.Millisecond) }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutOfTime)
		r.wantState(t, lambdaidem.Released)
		r.wantRuns(t, 0)
		r.wantEvents(t, lambdaidem.EventReleased, lambdaidem.EventOutOfTime)
	})
}

// dead leaves the record of first() with a dead lease, and returns the record.
func dead(t *testing.T, r *rig) lambdaidem.Record {
	t.Helper()
	_, err := r.guarded(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })(t.Context(), first())
	if !errors.Is(err, errWire) {
		t.Fatalf("the dying attempt returned %v", err)
	}
	rec := r.record(t)
	time.Sleep(time.Until(rec.LeaseEnd))
	r.seen.forget()
	return rec
}

// Under Rerun, the next request takes over, on the condition that the record is unchanged since it
// was read. The handler can read the higher attempt number.
func TestL6_RerunTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		number := 0
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			number = lambdaidem.Attempt(ctx)
			return response{StatusCode: 201}, nil
		})
		was := dead(t, r)
		r.send(t, first())
		if number != 2 {
			t.Errorf("the handler read attempt number %d, want 2", number)
		}
		claims := r.store.allClaims()
		over := claims[len(claims)-1].Over
		if over == nil || !sameRecord(*over, was) {
			t.Errorf("the takeover is conditional on %+v, want %+v", over, was)
		}
		if rec := r.record(t); rec.Token == was.Token || rec.State != lambdaidem.Completed || rec.Attempt != 2 {
			t.Errorf("the record is %+v", rec)
		}
		r.wantEvents(t, lambdaidem.EventTakenOver, lambdaidem.EventNew)
		if e := r.seen.last(t); e.Attempt != 2 {
			t.Errorf("the event has attempt %d", e.Attempt)
		}
	})
}

// No takeover happens before the millisecond of the lease's end.
func TestL6_NoTakeoverBeforeTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := newTicker()
		r := newRig(nil, now.option)
		_, err := r.guarded(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })(t.Context(), first())
		if err == nil {
			t.Fatal("the error got lost")
		}
		now.advance(r.record(t).LeaseEnd.Sub(now.Now()) - time.Millisecond)
		wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		now.advance(time.Millisecond)
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
			t.Errorf("at its end the lease still stands: %d", out.StatusCode)
		}
	})
}

// If the takeover is refused, the guard decides by the record that is stored now.
func TestL6_ARefusedTakeoverIsJudged(t *testing.T) {
	for _, c := range []struct {
		name    string
		winner  handler
		status  int
		replay  bool
		attempt int
	}{
		{"completed by another", status(201), 201, true, 2},
		{"released by another", status(500), 201, false, 3},
		{"in progress under another", func(context.Context, request) (response, error) {
			return response{}, lambdaidem.Uncertain(lambdaidem.Reject(504, "unsure", "Nobody knows."))
		}, 409, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				dead(t, r)
				// The plain claim sees the dead lease. Then another attempt is faster.
				r.store.fail(acquire, after(func() {
					if _, err := r.guarded(c.winner)(t.Context(), first()); err != nil {
						t.Errorf("the winner: %v", err)
					}
				}))
				out := r.send(t, first())
				if out.StatusCode != c.status || replayed(out) != c.replay {
					t.Errorf("the loser got %+v", out)
				}
				if n := r.record(t).Attempt; n != c.attempt {
					t.Errorf("the record is at attempt %d, want %d", n, c.attempt)
				}
			})
		})
	}
}

// Of many requests that meet a dead lease at the same time, one runs.
func TestL6_OneOfManyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) {
			time.Sleep(time.Second)
			return response{StatusCode: 201}, nil
		})
		dead(t, r)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if out := r.send(t, first()); out.StatusCode != http.StatusCreated && out.StatusCode != http.StatusConflict {
					t.Errorf("one got %d %s", out.StatusCode, out.Body)
				}
			})
		}
		wg.Wait()
		r.wantRuns(t, 2) // the dead attempt and the one that took over
	})
}

// Under Hold, no handler runs until an operator decides, and the record doesn't expire.
func TestL6_HoldWaitsForAnOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, hold)
		was := dead(t, r)
		if !was.Expires.IsZero() {
			t.Errorf("a held record expires at %v", was.Expires)
		}
		for _, wait := range []time.Duration{0, 48 * time.Hour, 365 * 24 * time.Hour} {
			time.Sleep(wait)
			out := r.send(t, first())
			wantProblem(t, out, http.StatusConflict, lambdaidem.ErrAttemptAbandoned)
			if retryAfter(t, out) != 0 {
				t.Error("a client is told to come back, and nothing will change by itself")
			}
			if e := r.seen.last(t); e.Kind != lambdaidem.EventAbandoned || e.Attempt != 1 {
				t.Errorf("the event is %+v", e)
			}
		}
		r.wantRuns(t, 1)
	})
}

// A released record is taken over under either policy.
func TestL6_AReleasedRecordIsTakenOver(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			numbers := []int{}
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				numbers = append(numbers, lambdaidem.Attempt(ctx))
				return response{StatusCode: 429}, nil
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			for range 3 {
				r.send(t, first())
			}
			if len(numbers) != 3 || numbers[0] != 1 || numbers[1] != 2 || numbers[2] != 3 {
				t.Errorf("the attempt numbers are %v", numbers)
			}
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Expires.IsZero() || rec.Fingerprint == "" {
				t.Errorf("the released record is %+v", rec)
			}
			r.wantEvents(t, lambdaidem.EventReleased, lambdaidem.EventReleased, lambdaidem.EventReleased)
		})
	}
}

func TestL6_AttemptIsZeroOutsideAGuard(t *testing.T) {
	if n := lambdaidem.Attempt(t.Context()); n != 0 {
		t.Errorf("it is %d", n)
	}
}

// After an attempt of unknown outcome, nothing runs again under Hold. Under Rerun, the handler runs
// again, so it runs at least once.
func TestG2_OutsideEffectsByPolicy(t *testing.T) {
	for policy, want := range map[lambdaidem.Policy]int64{lambdaidem.Rerun: 4, lambdaidem.Hold: 1} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) {
				return response{}, lambdaidem.Uncertain(lambdaidem.Reject(504, "unsure", "Nobody knows."))
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			for range 4 {
				r.send(t, first())
				time.Sleep(2 * time.Minute)
			}
			r.wantRuns(t, want)
		})
	}
}

// If the clock jumps far ahead during the claim, the guard doesn't run the handler. If it jumps
// back, the handler gets no more time than without the jump.
func TestL5_AClockThatJumps(t *testing.T) {
	for jump, want := range map[time.Duration]int{time.Hour: 503, -time.Hour: 201, time.Second: 201} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := newTicker()
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					if end, ok := ctx.Deadline(); !ok || time.Until(end) > 60*time.Second {
						t.Errorf("the handler may run for %v", time.Until(end))
					}
					return response{StatusCode: 201}, nil
				}, now.option)
				r.store.fail(acquire, after(func() { now.advance(jump) }))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if out := r.sendCtx(ctx, t, first()); out.StatusCode != want {
					t.Errorf("the answer is %d %s, want %d", out.StatusCode, out.Body, want)
				}
			})
		})
	}
}

// However the clock changes while the handler runs, the answer is stored once and replays.
func TestL5_AClockThatJumpsInTheHandler(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, 30 * time.Second} {
		now := newTicker()
		r := newRig(func(context.Context, request) (response, error) {
			now.advance(jump)
			return response{StatusCode: 201}, nil
		}, now.option)
		one := r.send(t, first())
		wantReplay(t, r.send(t, first()), one)
	}
}

// A deadline that is further away than a time.Duration can express still gives a lease in the
// future.
func TestL5_ADeadlineAnAgeAway(t *testing.T) {
	far := func(t *testing.T) context.Context {
		t.Helper()
		ctx, cancel := context.WithDeadline(t.Context(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		t.Cleanup(cancel)
		return ctx
	}
	for name, c := range map[string]struct {
		ctx func(*testing.T) context.Context
		opt func(*lambdaidem.Options)
	}{
		"deadline":      {far, func(*lambdaidem.Options) {}},
		"LeaseDuration": {func(t *testing.T) context.Context { return t.Context() }, func(o *lambdaidem.Options) { o.LeaseDuration = math.MaxInt64 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := c.ctx(t)
				var r *rig
				r = newRig(func(context.Context, request) (response, error) {
					wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
					return response{StatusCode: 201}, nil
				}, c.opt)
				if out := r.sendCtx(ctx, t, first()); out.StatusCode != 201 {
					t.Errorf("the answer is %d %s", out.StatusCode, out.Body)
				}
				r.wantRuns(t, 1)
			})
		})
	}
}

// An attempt under policy Rerun has died, and the policy is Hold when the request is sent
// again. The client is told that an operator must decide. So the record must wait for one,
// instead of expiring and letting the next retry run the handler.
func TestL6_ARecordThatHoldHasRefusedDoesNotExpire(t *testing.T) {
	const ttl = 24 * time.Hour
	now, runs := time.Now(), 0
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.TTL, o.Clock, o.Observer = ttl, func() time.Time { return now }, lambdaidem.Discard
	})
	do := func(g *lambdaidem.Guard) error {
		_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (int, error) {
			runs++
			return 0, lambdaidem.Uncertain(errors.New("no reply from the bank"))
		})
		return err
	}
	if err := do(guard); err == nil {
		t.Fatal("the first attempt succeeded")
	}
	holding := guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
	for _, after := range []time.Duration{ttl - time.Hour, time.Hour + time.Second, 365 * 24 * time.Hour} {
		now = now.Add(after)
		if err := do(holding); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
			t.Errorf("%v later: %v; want %v", after, err, lambdaidem.ErrAttemptAbandoned)
		}
	}
	if err := do(guard); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) { // an instance of the old deployment
		t.Errorf("under Rerun again: %v; want %v", err, lambdaidem.ErrAttemptAbandoned)
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times; want once", runs)
	}
}
