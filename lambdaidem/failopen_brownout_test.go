package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file have a request that fails open and fails for good, or for now. After its
// run the store replies to some requests only, or with errors that may pass. The client must not be
// told of the failure while another attempt carries out the request, or has carried it out.

// A duplicate's transaction is in progress when the final failure is to be stored. The next try
// gets no reply.
func TestX9_AFinalFailureThatFailedOpenConflictsAndThenGetsNoReply(t *testing.T) {
	for name, failure := range finalFailures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(status(http.StatusCreated), failOpen)
				r.send(t, first())
				r = r.later(func(context.Context, request) (response, error) { return response{}, failure })
				r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
				r.store.fail(complete, refused(lambdaidem.ReasonConflict), requestLost)
				r.store.fail(release, refused(lambdaidem.ReasonConflict), requestLost)
				if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
				}
			})
		})
	}
}

// The same, but with a transaction.
func TestX9_AFinalFailuresTransactionConflictsAndThenGetsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		duplicate := r.later(status(http.StatusCreated))
		l.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		l.fail(commit, refused(lambdaidem.ReasonConflict), func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			duplicate.send(t, first())
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "commit", Reason: lambdaidem.ReasonUnreachable, Err: errWire}
		})
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// A transaction of another attempt is in progress as long as the release has time.
func TestX9_ErrRetryableIsNotFoundAfterFailOpenDuringATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, failOpen)
		r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		r.store.failAlways(release, refused(lambdaidem.ReasonConflict))
		_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
		if errors.Is(err, lambdaidem.ErrRetryable) {
			t.Errorf("the caller gets %v", err)
		}
	})
}

// Everything is throttled for a moment. Another attempt holds the lease and charges. The request
// has a minute left, and the record could be read with the next try.
func TestX5_AFailureAfterFailOpenWaitsForAThrottledRead(t *testing.T) {
	for name, failure := range map[string]error{
		"released":  lambdaidem.Retryable(noPayment),
		"retryable": lambdaidem.Retryable(errWire),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, failOpen)
				charged, began, goOn, done := 0, make(chan struct{}), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					_, err := lambdaidem.Do(context.WithoutCancel(t.Context()), r.guard, charge, func(context.Context) (int, error) {
						close(began)
						<-goOn
						charged++
						return 1, nil
					})
					if err != nil {
						t.Error(err)
					}
				}()
				<-began
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				r.store.fail(release, refused(lambdaidem.ReasonThrottled))
				r.store.fail(get, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, failure })
				close(goOn)
				<-done
				if charged == 1 && (errors.Is(err, lambdaidem.ErrRetryable) || errors.Is(err, lambdaidem.Code("payment_failed"))) {
					t.Errorf("the charge is made, and the caller is told %v", err)
				}
			})
		})
	}
}

// The transaction that stores the 402 fails with an internal error, and so does the read. Another
// attempt has charged already.
func TestX5_AFinalFailureAfterFailOpenIsNotToldAfterOneFailedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		r.later(status(http.StatusCreated)).send(t, first())
		l.fail(acquire, refused(lambdaidem.ReasonThrottled))
		l.fail(commit, refused(lambdaidem.ReasonUnknown))
		l.fail(get, refused(lambdaidem.ReasonThrottled))
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// The table throttles the transaction that stores the 402, and one of the next requests gets no
// reply. Another attempt has charged already.
func TestX5_AFinalFailureAfterFailOpenIsThrottledAndThenGetsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		r.later(status(http.StatusCreated)).send(t, first())
		l.fail(acquire, refused(lambdaidem.ReasonThrottled))
		l.fail(commit, refused(lambdaidem.ReasonThrottled), requestLost)
		if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// The same after FailOpen, while another attempt holds the lease and charges.
func TestX5_AMarked402IsNotSentAfterFailOpenBesideAnotherAttempt(t *testing.T) {
	for name, failure := range map[string]error{"uncertain": lambdaidem.Uncertain(noPayment), "retryable": lambdaidem.Retryable(noPayment)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, failOpen)
				other := r.later(func(context.Context, request) (response, error) {
					time.Sleep(10 * time.Second)
					return response{StatusCode: http.StatusCreated}, nil
				})
				done := make(chan struct{})
				go func() { defer close(done); other.send(t, first()) }()
				time.Sleep(time.Second)
				r = r.later(func(context.Context, request) (response, error) { return response{}, failure })
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
				}
				<-done
			})
		})
	}
}

// The requests that store the final failure fail, and then one gets through. The failure is stored
// and told.
func TestX5_AFinalFailureAfterFailOpenIsStoredWhenErrorsHavePassed(t *testing.T) {
	for name, faults := range map[string][]fault{
		"an internal error":         {refused(lambdaidem.ReasonUnknown)},
		"throttled, then no reply":  {refused(lambdaidem.ReasonThrottled), requestLost},
		"a conflict, then no reply": {refused(lambdaidem.ReasonConflict), requestLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				l.fail(commit, faults...)
				if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
					t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
				}
				if rec := r.record(t); rec.State != lambdaidem.Completed {
					t.Errorf("the record is %s; want %s", rec.State, lambdaidem.Completed)
				}
			})
		})
	}
}

// The store replies once, and then to no request that writes. The guard reads the record. After a
// conflict, another attempt may complete the record later, although there is none yet.
func TestX5_AFinalFailureAfterFailOpenIsJudgedByTheLastReply(t *testing.T) {
	for name, c := range map[string]struct {
		reply     lambdaidem.Reason
		completed bool // another attempt has completed the record
		want      int
	}{
		"throttled, beside an answer":  {lambdaidem.ReasonThrottled, true, http.StatusCreated},
		"throttled, without a record":  {lambdaidem.ReasonThrottled, false, http.StatusPaymentRequired},
		"a conflict, without a record": {lambdaidem.ReasonConflict, false, http.StatusConflict},
	} {
		for kind, failure := range finalFailures {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(func(context.Context, request) (response, error) { return response{}, failure }, failOpen)
					if c.completed {
						r.later(status(http.StatusCreated)).send(t, first())
					}
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					for _, verb := range []string{complete, release} {
						r.store.fail(verb, refused(c.reply))
						r.store.failAlways(verb, requestLost)
					}
					if out := r.send(t, first()); out.StatusCode != c.want {
						t.Errorf("the client is told %d %s; want %d", out.StatusCode, out.Body, c.want)
					}
				})
			})
		}
	}
}

// The table throttles everything. A success is told after one write and one read. The read of a
// final failure is not repeated if it would fail again.
func TestX5_AnswersAfterFailOpenThatDontWait(t *testing.T) {
	for name, c := range map[string]struct {
		end    handler
		reason lambdaidem.Reason
	}{
		"success, throttled":           {status(http.StatusCreated), lambdaidem.ReasonThrottled},
		"success, conflict":            {status(http.StatusCreated), lambdaidem.ReasonConflict},
		"final failure, no permission": {status(http.StatusPaymentRequired), lambdaidem.ReasonPermission},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(c.end, failOpen)
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				r.store.failAlways(complete, refused(c.reason))
				r.store.failAlways(get, refused(c.reason))
				start := time.Now()
				out := r.send(t, first())
				if took, writes, reads := time.Since(start), r.store.count(complete), r.store.count(get); took > 0 || writes != 1 || reads != 1 {
					t.Errorf("the client is told %d after %v, %d writes and %d reads", out.StatusCode, took, writes, reads)
				}
			})
		})
	}
}

// The store replies to every request with an error that may pass, and then not at all. A final
// failure is told after a few seconds, and before the invocation's deadline if the handler returns
// late.
func TestX5_AFinalFailureAfterFailOpenIsToldInTime(t *testing.T) {
	for name, end := range map[string]func(context.Context){
		"at once": func(context.Context) {},
		"late":    func(ctx context.Context) { <-ctx.Done() },
	} {
		for reason, read := range map[lambdaidem.Reason]fault{
			lambdaidem.ReasonThrottled: refused(lambdaidem.ReasonThrottled),
			lambdaidem.ReasonUnknown:   hangs,
			lambdaidem.ReasonConflict:  refused(lambdaidem.ReasonThrottled),
		} {
			t.Run(name+", "+string(reason), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
						end(ctx)
						return response{}, noPayment
					}, failOpen)
					l.fail(acquire, refused(lambdaidem.ReasonThrottled))
					l.failAlways(commit, refused(reason))
					l.failAlways(get, read)
					start := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					out := r.sendCtx(ctx, t, first())
					if took := time.Since(start); ctx.Err() != nil || name == "at once" && took > 5*time.Second {
						t.Errorf("the client is told %d after %v", out.StatusCode, took)
					}
				})
			})
		}
	}
}

// An attempt has died, and may have charged. The transaction with the 402 is refused because of its
// record, and the requests after that get no reply. The client is not told 402.
func TestX5_AFinalFailureAfterFailOpenIsNotToldBesideAnAttemptThatHasDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		dies := r.later(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
		_, _ = dies.handler(t.Context(), first())
		time.Sleep(5 * time.Minute) // the lease ends
		l.fail(acquire, refused(lambdaidem.ReasonThrottled))
		l.fail(commit, nil)
		l.failAlways(commit, requestLost)
		l.failAlways(get, requestLost)
		if out := r.send(t, first()); out.StatusCode != http.StatusConflict {
			t.Errorf("the client is told %d %s; want 409", out.StatusCode, out.Body)
		}
	})
}

// The database reports a conflict with another attempt's transaction, and throttles the next claim.
func TestX9_AConflictThatIsFollowedByThrottlingDoesNotFailOpen(t *testing.T) {
	for name, failure := range map[string]error{"402": noPayment, "402 released": lambdaidem.Retryable(noPayment), "201": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				r, l := withLedger(func(context.Context, request) (response, error) {
					ran++
					return response{StatusCode: 201}, failure
				}, failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonConflict))
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				if out := r.send(t, first()); ran > 0 {
					t.Errorf("ran %d times after a conflict, and told the client %d", ran, out.StatusCode)
				}
			})
		})
	}
}

// A request fails open. Another request is changing the same account, so the database reports a
// conflict, and then refuses the condition on the account. No other attempt has the record, and the
// verdict about the refused write is Retryable, so the caller learns that nothing has happened.
func TestX5_AConflictOverTheHandlersOwnItemIsNoOtherAttempt(t *testing.T) {
	t.Run("HTTP", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
				enlist(ctx, "account")
				return response{StatusCode: 201}, nil
			}, failOpen)
			l.fail(acquire, refused(lambdaidem.ReasonThrottled))
			l.fail(commit, refused(lambdaidem.ReasonConflict), rejects(lambdaidem.Retryable(noPayment)))
			out := r.send(t, first())
			if out.StatusCode != http.StatusPaymentRequired {
				t.Errorf("told %d %s, the record is %q", out.StatusCode, out.Body, r.record(t).State)
			}
		})
	})
	t.Run("Do", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, l := withLedger(nil, failOpen)
			l.fail(acquire, refused(lambdaidem.ReasonThrottled))
			l.fail(commit, refused(lambdaidem.ReasonConflict), rejects(lambdaidem.Retryable(errWire)))
			_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "charge", Key: "k"}, func(ctx context.Context) (string, error) {
				enlist(ctx, "account")
				return "charged", nil
			})
			if !errors.Is(err, lambdaidem.ErrRetryable) {
				t.Errorf("nothing was written and nobody else has the record, and ErrRetryable is not found in %v", err)
			}
		})
	})
}

// The claim lands, and its reply is lost, so the request fails open. Its handler charges. While the
// guard stores the answer, a duplicate's transaction is writing the record, and is refused, because
// the record is in progress. So the conflict passes at once, and a second try would store the
// answer.
func TestX5_ASuccessUnderItsOwnClaimIsStoredAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged := 0
		r, l := withLedger(func(context.Context, request) (response, error) {
			charged++
			return response{StatusCode: 201}, nil
		}, failOpen)
		l.fail(acquire, replyLost)
		l.fail(complete, refused(lambdaidem.ReasonConflict))
		r.send(t, first())
		time.Sleep(5 * time.Minute)
		out := r.send(t, first()) // the client has not received the answer
		if charged != 1 {
			t.Errorf("charged %d times, told %d", charged, out.StatusCode)
		}
	})
}
