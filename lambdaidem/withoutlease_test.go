package lambdaidem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An attempt without a lease is optimistic, or has failed open. The tests in this file use times
// that only Lambda Managed Instances permit: an invocation may last 90 minutes.

// makesRig returns a rig that guards h on a store with transactions.
type makesRig func(h handler, optFns ...func(*lambdaidem.Options)) (*rig, *ledger)

// eachWithoutLease runs test in virtual time for each kind of attempt without a lease. In test,
// withoutLease returns a rig whose next request runs h without a lease.
func eachWithoutLease(t *testing.T, test func(t *testing.T, withoutLease makesRig)) {
	t.Helper()
	for name, kind := range map[string]func(*lambdaidem.Options){"optimistic": optimistic, "failed open": failOpen} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func(h handler, optFns ...func(*lambdaidem.Options)) (*rig, *ledger) {
					r, l := withLedger(h, append(optFns, kind)...)
					l.fail(acquire, requestLost) // an optimistic attempt never acquires
					return r, l
				})
			})
		})
	}
}

func shortTTL(o *lambdaidem.Options) { o.TTL = lambdaidem.MinTTL }

// sendManaged sends the first request in an invocation of 90 minutes.
func (r *rig) sendManaged(t *testing.T) response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
	defer cancel()
	return r.sendCtx(ctx, t, first())
}

// afterwards returns a handler that runs for d, ignores its context, and then enlists "write".
func afterwards(d time.Duration, end func(context.Context) (response, error)) handler {
	return func(ctx context.Context, in request) (response, error) {
		time.Sleep(d)
		return enlisting(end)(ctx, in)
	}
}

// retryIn starts a retry in d that is answered "the retry's" after another d. Its record expires
// when MinTTL has passed.
func (r *rig) retryIn(t *testing.T, d time.Duration) {
	t.Helper()
	retry := r.later(func(ctx context.Context, in request) (response, error) {
		return enlisting(func(context.Context) (response, error) {
			return response{StatusCode: 201, Body: "the retry's"}, nil
		})(ctx, in)
	})
	go func() {
		time.Sleep(d)
		if out := retry.send(t, first()); out.Body != "the retry's" {
			t.Errorf("the retry gets %+v", out)
		}
	}()
}

// A retry commits and is answered while an attempt without a lease is running. When that attempt
// commits, the retry's record has expired. The record still refuses the transaction, and the
// retry's answer is replayed.
func TestE1_AnAttemptWithoutALeaseIsRefusedByARecordThatExpiredMeanwhile(t *testing.T) {
	eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
		r, l := withoutLease(afterwards(20*time.Minute, created), shortTTL)
		r.retryIn(t, 20*time.Second)
		if out := r.sendManaged(t); !replayed(out) || out.Body != "the retry's" {
			t.Errorf("the first request gets %+v", out)
		}
		l.wantDone(t, "write")
	})
}

// The record had expired before the attempt began, so the attempt is a new request.
func TestL7_AnAttemptWithoutALeaseClaimsARecordThatExpiredBefore(t *testing.T) {
	eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
		r, l := withoutLease(afterwards(20*time.Minute, created), shortTTL)
		r.send(t, first())
		time.Sleep(lambdaidem.MinTTL)
		l.fail(acquire, requestLost)
		if out := r.sendManaged(t); replayed(out) || out.StatusCode != 201 {
			t.Errorf("the request gets %+v", out)
		}
		l.wantDone(t, "write", "write")
	})
}

// The handler of an optimistic attempt fails. The record of the retry has expired since, but the
// caller gets the retry's answer all the same.
func TestE4_AFailureIsReplacedByAnAnswerThatExpiredMeanwhile(t *testing.T) {
	ends := map[string]func(context.Context) (response, error){
		"error": func(context.Context) (response, error) { return response{}, errors.New("own") },
		"panic": func(context.Context) (response, error) { panic("own") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(afterwards(20*time.Minute, end), optimistic, shortTTL)
				r.retryIn(t, 20*time.Second)
				if out := r.sendManaged(t); !replayed(out) || out.Body != "the retry's" {
					t.Errorf("the first request gets %+v", out)
				}
				l.wantDone(t, "write")
			})
		})
	}
}

// The attempt finds that another one is running, and waits for it. While the store can't be read,
// the other attempt completes the record, and the record expires. It expires early, as after a
// purge.
func TestL8_AWaitEndsWithAnAnswerThatExpiredMeanwhile(t *testing.T) {
	eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
		r, l := withoutLease(afterwards(time.Minute, created), shortTTL, waiting(14*time.Minute))
		go func() {
			time.Sleep(30 * time.Second)
			lease := l.standing(t, 2*time.Minute)
			time.Sleep(time.Minute)
			lease.Expires = time.Now().Add(5 * time.Minute)
			l.finish(t, lease)
		}()
		began := time.Now()
		l.failAlways(get, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			if time.Since(began) < 10*time.Minute {
				return requestLost(ctx, verb, call)
			}
			return call()
		})
		if out := r.sendManaged(t); !replayed(out) || out.Body != "the other's" {
			t.Errorf("the first request gets %+v", out)
		}
		if commits := l.count(commit); commits != 1 {
			t.Errorf("it sent %d transactions; want 1", commits)
		}
		l.wantDone(t)
	})
}

// The record expires a TTL after its completion, not a TTL after the attempt began.
func TestL7_TheAnswerOfAnAttemptWithoutALeaseIsKeptForTheTTL(t *testing.T) {
	eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
		r, l := withoutLease(afterwards(20*time.Minute, created), shortTTL)
		began := time.Now()
		out := r.sendManaged(t)
		claim := l.sent[0].Claim
		if !claim.Now.Equal(began) {
			t.Errorf("the claim judges the record by %v; the attempt began at %v", claim.Now, began)
		}
		if at := l.sent[0].Result.At; !at.Equal(time.Now()) || claim.LeaseEnd.Before(at) || claim.Expires.Before(claim.LeaseEnd) {
			t.Errorf("completed at %v, with a lease until %v that expires at %v; it is %v", at, claim.LeaseEnd, claim.Expires, time.Now())
		}
		time.Sleep(lambdaidem.MinTTL - time.Second)
		wantReplay(t, r.sendManaged(t), out)
		l.wantDone(t, "write")
	})
}

// longest is how long after its beginning an attempt without a lease may send its transaction.
const longest = 30 * time.Minute

// The handler's context ends in time for the transaction.
func TestL5_AHandlerWithoutALeaseHas30Minutes(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration // of the invocation; 0 for none
		opts    func(*lambdaidem.Options)
		want    time.Duration
	}{
		"an invocation of 90 minutes":     {90 * time.Minute, func(*lambdaidem.Options) {}, longest - 500*time.Millisecond},
		"a lease of two hours":            {0, func(o *lambdaidem.Options) { o.LeaseDuration = 2 * time.Hour }, longest - 500*time.Millisecond},
		"a reserve":                       {90 * time.Minute, func(o *lambdaidem.Options) { o.Reserve = time.Minute }, longest - time.Minute},
		"a reserve of more than the time": {90 * time.Minute, func(o *lambdaidem.Options) { o.Reserve = 40 * time.Minute }, longest / 2},
		"an invocation of 15 minutes":     {15 * time.Minute, func(*lambdaidem.Options) {}, 15*time.Minute - 500*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
				began := time.Now()
				r, l := withoutLease(func(ctx context.Context, in request) (response, error) {
					if end, _ := ctx.Deadline(); end.Sub(began) != c.want {
						t.Errorf("the handler's context ends after %v; want %v", end.Sub(began), c.want)
					}
					<-ctx.Done()
					return enlisting(created)(ctx, in)
				}, c.opts)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
				}
				defer cancel()
				if out := r.sendCtx(ctx, t, first()); out.StatusCode != 201 {
					t.Errorf("the answer is %+v", out)
				}
				l.wantDone(t, "write")
			})
		})
	}
}

// An attempt with a lease has all the time of its invocation, with FailOpen too.
func TestL5_AHandlerWithALeaseHasTheTimeOfItsInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, l := withLedger(func(ctx context.Context, in request) (response, error) {
			if end, _ := ctx.Deadline(); end.Sub(began) != 90*time.Minute-500*time.Millisecond {
				t.Errorf("the handler's context ends after %v", end.Sub(began))
			}
			<-ctx.Done()
			return enlisting(created)(ctx, in)
		}, failOpen)
		if out := r.sendManaged(t); out.StatusCode != 201 {
			t.Errorf("the answer is %+v", out)
		}
		l.wantDone(t, "write")
	})
}

// A handler that ignores its context may return as late as it likes: after 30 minutes its
// transaction is not sent.
func TestE4_AHandlerThatReturnsAfter30MinutesWritesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		in    bool
	}{
		"a moment before": {longest - time.Millisecond, true},
		"at 30 minutes":   {longest, false},
		"much later":      {80 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(afterwards(c.takes, created), optimistic)
				out := r.sendManaged(t)
				if c.in {
					if out.StatusCode != 201 {
						t.Errorf("the answer is %+v", out)
					}
					l.wantDone(t, "write")
					return
				}
				wantProblem(t, out, 503, lambdaidem.ErrOutOfTime)
				if out.Headers["Retry-After"] != "1" {
					t.Errorf("the headers are %v", out.Headers)
				}
				r.wantEvents(t, lambdaidem.EventOutOfTime)
				if e := r.seen.last(t); e.Err == nil {
					t.Error("the event has no reason")
				}
				l.wantDone(t)
				if commits := l.count(commit); commits != 0 {
					t.Errorf("it sent %d transactions", commits)
				}
			})
		})
	}
}

// The handler has run without a lease because of FailOpen, and may have had effects outside.
func TestX5_AHandlerThatReturnsAfter30MinutesIsUncertain(t *testing.T) {
	for name, h := range map[string]handler{
		"at 30 minutes":            afterwards(longest, created),
		"much later":               afterwards(80*time.Minute, created),
		"without writes, with 402": slow(longest, 402),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(h, failOpen)
				l.fail(acquire, requestLost)
				wantProblem(t, r.sendManaged(t), 503, lambdaidem.ErrOutcomeUnknown)
				r.wantEvents(t, lambdaidem.EventStoreError, lambdaidem.EventFailedOpen, lambdaidem.EventUncertain)
				l.wantDone(t)
				if commits := l.count(commit); commits != 0 {
					t.Errorf("it sent %d transactions", commits)
				}
			})
		})
	}
}

// Without enlisted writes, the caller gets a success later, too: it is stored without a
// transaction.
func TestX5_ASuccessWithoutWritesMayTakeLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(slow(80*time.Minute, 201), failOpen)
		l.fail(acquire, requestLost)
		if out := r.sendManaged(t); out.StatusCode != 201 {
			t.Errorf("the answer is %+v", out)
		}
		if n := l.count(complete); n != 1 {
			t.Errorf("it tried %d times to store the answer", n)
		}
	})
}

// A success without enlisted writes is not stored by a transaction, which would cost twice as much:
// its client has nothing to repeat.
func TestX5_ASuccessWithoutWritesNeedsNoTransaction(t *testing.T) {
	r, l := withLedger(status(201), failOpen)
	l.fail(acquire, requestLost)
	if out := r.send(t, first()); out.StatusCode != 201 {
		t.Errorf("the answer is %+v", out)
	}
	if n := l.count(complete); n != 1 {
		t.Errorf("it called Store.Complete %d times", n)
	}
}

// An optimistic attempt that is too late consults the record before it answers.
func TestE4_TooLateForATransactionConsultsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(afterwards(80*time.Minute, created), optimistic, shortTTL)
		r.retryIn(t, 79*time.Minute)
		if out := r.sendManaged(t); !replayed(out) || out.Body != "the retry's" {
			t.Errorf("the first request gets %+v", out)
		}
		l.wantDone(t, "write")
	})
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(afterwards(80*time.Minute, created), optimistic)
		l.failAlways(get, requestLost)
		wantProblem(t, r.sendManaged(t), 503, lambdaidem.ErrOutcomeUnknown)
		l.wantDone(t)
	})
}

// A guarded call inside an optimistic handler had an effect, so the answer doesn't say that nothing
// was written.
func TestE4_TooLateForATransactionAfterAnEffectIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := lambdaidem.New(newFaulty(), quiet)
		r, l := withLedger(func(ctx context.Context, in request) (response, error) {
			if _, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
				t.Error(err)
			}
			return afterwards(80*time.Minute, created)(ctx, in)
		}, optimistic)
		wantProblem(t, r.sendManaged(t), 503, lambdaidem.ErrOutcomeUnknown)
		l.wantDone(t)
	})
}

// The database rejected a write, and the verdict is stored by another transaction. That transaction
// is not sent if the verdict takes too long.
func TestE2_AVerdictAfter30MinutesIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		unsettled bool
		want      lambdaidem.Code
	}{"nothing was written": {false, lambdaidem.ErrOutOfTime}, "the transaction may still commit": {true, lambdaidem.ErrOutcomeUnknown}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), optimistic)
				l.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					return lambdaidem.Record{}, &lambdaidem.Rejected{Err: errWire, Unsettled: c.unsettled, Verdict: func() error {
						time.Sleep(longest)
						return lambdaidem.Permanent(errWire)
					}}
				})
				wantProblem(t, r.sendManaged(t), 503, c.want)
				if commits := l.count(commit); commits != 1 {
					t.Errorf("it sent %d transactions", commits)
				}
			})
		})
	}
}

// The transaction is sent again for as long as the attempt may send it, and no longer.
func TestL7_ATransactionWithoutALeaseIsNotSentAgainAfter30Minutes(t *testing.T) {
	for name, takes := range map[string]time.Duration{"in time": 29 * time.Minute, "after the context's end": longest - 100*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			eachWithoutLease(t, func(t *testing.T, withoutLease makesRig) {
				r, l := withoutLease(afterwards(takes, created))
				began := time.Now()
				var latest, end time.Duration
				l.failAlways(commit, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					latest = time.Since(began)
					due, _ := ctx.Deadline()
					end = due.Sub(began)
					return requestLost(ctx, verb, call)
				})
				wantProblem(t, r.sendManaged(t), 503, lambdaidem.ErrOutcomeUnknown)
				if latest >= longest || latest < longest-2*time.Second || end > longest {
					t.Errorf("the last transaction was sent after %v, with %v to reply", latest, end)
				}
			})
		})
	}
}

// The reply to a transaction arrives after 30 minutes, and the attempt would send another
// transaction. The answer says that nothing was written only if the first one was not applied.
func TestE4_TheReplyToATransactionArrivesAfter30Minutes(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want lambdaidem.Code
	}{
		"the record was another one":      {lambdaidem.ErrLeaseLost, lambdaidem.ErrOutOfTime},
		"the answer is too large":         {&lambdaidem.StoreError{Op: commit, Reason: lambdaidem.ReasonTooLarge, NotApplied: true, Err: errWire}, lambdaidem.ErrOutOfTime},
		"an earlier try may have arrived": {&lambdaidem.StoreError{Op: commit, Reason: lambdaidem.ReasonTooLarge, Err: errWire}, lambdaidem.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), optimistic)
				l.fail(commit, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					time.Sleep(longest)
					return lambdaidem.Record{}, c.err
				})
				wantProblem(t, r.sendManaged(t), 503, c.want)
				if commits := l.count(commit); commits != 1 {
					t.Errorf("it sent %d transactions", commits)
				}
			})
		})
	}
}
