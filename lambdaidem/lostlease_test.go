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

// An inner call loses its lease and then fails, while another attempt makes the same call. So the
// inner call is not settled, and the 402 is not stored.
func TestX6_AnInnerCallThatLostItsLeaseAndFailedIsNotSettled(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		r.store.fail(release, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			return lambdaidem.Record{State: lambdaidem.InProgress, Token: "another's", LeaseEnd: time.Now().Add(time.Hour)}, lambdaidem.ErrLeaseLost
		})
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
		if err == nil {
			t.Error("the call succeeded")
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	r.store.forgetClaims()
	r.send(t, first())
	if state := r.record(t).State; state == lambdaidem.Completed {
		t.Error("a 402 is stored although another attempt is making the charge")
	}
}

// The same happens if the inner call ignores the end of its context. The release of its record is
// refused, or gets no reply.
func TestX6_AnInnerCallThatOutlivesItsLeaseIsNotSettled(t *testing.T) {
	for name, ofRelease := range map[string]fault{"a reply": nil, "no reply": requestLost} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { outliveInnerLease(t, ofRelease) }) })
	}
}

func outliveInnerLease(t *testing.T, ofRelease fault) {
	t.Helper()
	charged, goOn, done := 0, make(chan struct{}), make(chan struct{})
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := lambdaidem.Do(short, r.guard, charge, func(context.Context) (int, error) {
			time.Sleep(10 * time.Second) // past the lease of 3 s
			began := make(chan struct{})
			go func() { // another process, such as the consumer of a queue
				defer close(done)
				_, _ = lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) {
					close(began)
					<-goOn
					charged++
					return 1, nil
				})
			}()
			<-began
			r.store.failAlways(release, ofRelease)
			return 0, lambdaidem.Retryable(errWire)
		})
		r.store.failAlways(release, nil)
		if errors.Is(err, lambdaidem.ErrRetryable) {
			t.Errorf("the outer handler finds ErrRetryable in %v although another attempt is charging", err)
		}
		if err == nil {
			return response{StatusCode: http.StatusCreated}, nil
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	out := r.send(t, first())
	close(goOn)
	<-done
	again := r.send(t, first())
	for _, got := range []response{out, again} {
		if got.StatusCode == http.StatusPaymentRequired && charged == 1 {
			t.Error("the charge is made, and the client is told 402")
		}
	}
}

// An attempt that fails after another has finished its record answers as the record does.
func TestX6_AFailureAfterALostLeaseGetsTheRecordsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		h := r.guarded(func(context.Context, request) (response, error) {
			time.Sleep(2 * time.Minute) // past the lease
			if out, err := r.guarded(status(http.StatusCreated))(t.Context(), first()); err != nil || out.StatusCode != http.StatusCreated {
				t.Errorf("the other attempt gets %+v, %v", out, err)
			}
			return response{}, lambdaidem.Retryable(lambdaidem.Reject(http.StatusPaymentRequired, "no_limit", "Not now."))
		})
		if out, err := h(t.Context(), first()); err != nil || out.StatusCode != http.StatusCreated {
			t.Errorf("the record is %s with 201, and the client is told %d", r.record(t).State, out.StatusCode)
		}
	})
}

// The request failed open, and the handler ran. The record that it then finds has another payload.
// The client gets the handler's answer, because after a 422 it would send the request with a new
// key.
func TestX5_FailedOpenBesideAnotherPayload(t *testing.T) {
	r := newRig(nil, failOpen)
	r.send(t, post("key-1", `{"amount":1}`))
	r.store.fail(acquire, refused(lambdaidem.ReasonUnreachable))
	if out := r.send(t, post("key-1", `{"amount":2}`)); out.StatusCode != http.StatusCreated || out.Body != "run 2" {
		t.Errorf("the answer is %+v", out)
	}
}

// An attempt has lost its lease and fails. A final answer is not sent, because the attempt that
// is running may succeed.
func TestX6_AFinalAnswerIsNotSentWhileAnotherAttemptRuns(t *testing.T) {
	for name, c := range map[string]struct {
		end  func() (response, error)
		want int
	}{
		"an error":            {func() (response, error) { return response{}, lambdaidem.Retryable(noPayment) }, http.StatusConflict},
		"a response":          {func() (response, error) { return response{StatusCode: http.StatusPaymentRequired}, nil }, http.StatusConflict},
		"one to repeat after": {func() (response, error) { return response{StatusCode: http.StatusServiceUnavailable}, nil }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, func(o *lambdaidem.Options) {
					o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
						if r.Status == http.StatusPaymentRequired {
							return lambdaidem.OutcomeReleased
						}
						return lambdaidem.DefaultOutcome(r)
					}
				})
				goOn, done := make(chan struct{}), make(chan struct{})
				other := r.guarded(func(context.Context, request) (response, error) {
					<-goOn
					return response{StatusCode: http.StatusCreated}, nil
				})
				h := r.guarded(func(context.Context, request) (response, error) {
					time.Sleep(time.Hour) // past the lease
					go func() {
						defer close(done)
						_, _ = other(context.WithoutCancel(t.Context()), first())
					}()
					synctest.Wait()
					return c.end()
				})
				out, err := h(t.Context(), first())
				close(goOn)
				<-done
				if err != nil || out.StatusCode != c.want {
					t.Errorf("the client is told %d %s, %v; want %d", out.StatusCode, out.Body, err, c.want)
				}
			})
		})
	}
}

// An operator releases the record of an attempt that is still at work, and another request takes
// the key. The attempt has charged a card when it finds that out, so its client must not be told to
// use a new key.
func TestX6_AMismatchAfterARunAsksForNoNewKey(t *testing.T) {
	for name, end := range map[string]func() (response, error){
		"succeeded": func() (response, error) { return response{StatusCode: http.StatusCreated}, nil },
		"failed":    func() (response, error) { return response{StatusCode: http.StatusBadGateway}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				rec := r.record(t)
				lease := lambdaidem.Lease{ID: rec.ID, Token: rec.Token, Expires: time.Now().Add(time.Hour)}
				if _, err := r.store.Store.Release(ctx, lease, time.Now()); err != nil {
					t.Error(err)
				}
				r.later(status(http.StatusCreated)).send(t, post("key-1", `{"amount":3}`))
				return end()
			})
			wantNoNewKey(t, r.send(t, post("key-1", `{"amount":2}`)))
		})
	}
}

// The handler fails in time, and its failure is to be released. The process is paused until the
// lease ends, and the release gets no reply. Meanwhile another attempt has taken over and answered
// 201. The client of the first must not be told that the card was declined. After a 502, it asks
// again.
func TestX6_AFailureAfterTheLeaseWithoutAReply(t *testing.T) {
	for name, c := range map[string]struct {
		end  handler
		want int
	}{
		"final":     {func(context.Context, request) (response, error) { return response{}, finalFailures["released"] }, http.StatusServiceUnavailable},
		"not final": {status(http.StatusBadGateway), http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(c.end)
				other := r.later(status(http.StatusCreated))
				r.store.fail(release, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
					time.Sleep(time.Until(r.record(t).LeaseEnd))
					if out := other.send(t, first()); out.StatusCode != http.StatusCreated {
						t.Errorf("the other attempt gets %+v", out)
					}
					return requestLost(ctx, verb, call)
				})
				if out := r.send(t, first()); out.StatusCode != c.want {
					t.Errorf("the record is %s, and the client is told %d %s; want %d", r.record(t).State, out.StatusCode, out.Body, c.want)
				}
			})
		})
	}
}

// Options.Outcome calls a 402 uncertain, or the handler marks it so. The attempt returns it after
// the end of its lease, when another attempt has charged.
func TestX6_AnUncertainFinalAnswerIsNotSentAfterTheLease(t *testing.T) {
	for name, failure := range map[string]error{"by Options.Outcome": nil, "by a mark": lambdaidem.Uncertain(noPayment)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil, uncertain402)
				other := r.later(status(http.StatusCreated))
				r = r.later(func(context.Context, request) (response, error) {
					time.Sleep(2 * time.Minute) // past the lease
					other.send(t, first())
					return response{StatusCode: http.StatusPaymentRequired}, failure
				})
				if out := r.send(t, first()); out.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("the record is %s, and the client is told %d %s; want 503", r.record(t).State, out.StatusCode, out.Body)
				}
			})
		})
	}
}

// The release gets no reply, but the lease is not over, so no other attempt can have carried out
// the call. The client gets the failure.
func TestX2_AFinalFailureWithinTheLeaseIsToldWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(context.Context, request) (response, error) { return response{}, finalFailures["released"] })
		r.store.failAlways(release, requestLost)
		if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
			t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
		}
	})
}

// As before, but the failure is not final. The client gets it, and repeats the request.
func TestX6_AFailureAfterTheLeaseWithoutAReplyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(status(http.StatusBadGateway))
		r.store.fail(release, func(ctx context.Context, verb string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			time.Sleep(2 * time.Minute)
			return requestLost(ctx, verb, call)
		})
		if out := r.send(t, first()); out.StatusCode != http.StatusBadGateway {
			t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
		}
	})
}

// The clock of another machine is ahead by MaxSkew. Its attempt takes over a record whose lease the
// first machine believes to be live. The first attempt ends a little later than its context.
func TestX6_AnUncertainFinalAnswerIsNotSentIfTheLeaseMayHaveEndedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, uncertain402)
		ahead := r.later(status(http.StatusCreated), func(o *lambdaidem.Options) {
			o.Clock = func() time.Time { return time.Now().Add(2 * time.Second) }
		})
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // past the deadline, but not past deadline + MaxSkew
			if out := ahead.send(t, first()); out.StatusCode != http.StatusCreated {
				t.Errorf("the other attempt gets %d %s", out.StatusCode, out.Body)
			}
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if out := r.sendCtx(ctx, t, first()); out.StatusCode == http.StatusPaymentRequired {
			t.Errorf("the record is %s by the other attempt, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}

// The same for an inner call whose release gets no reply.
func TestX6_AnInnerCallWhoseLeaseMayHaveEndedElsewhereIsNotSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged, goOn, done := 0, make(chan struct{}), make(chan struct{})
		r := newRig(nil)
		ahead := r.guard.With(func(o *lambdaidem.Options) {
			o.Clock = func() time.Time { return time.Now().Add(2 * time.Second) }
		})
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			_, err := lambdaidem.Do(short, r.guard, charge, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				time.Sleep(300 * time.Millisecond) // a slow clean-up of the handler, which ends before the deadline
				go func() {                        // another process, such as the consumer of a queue
					defer close(done)
					time.Sleep(500 * time.Millisecond) // past the deadline
					_, err := lambdaidem.Do(t.Context(), ahead, charge, func(context.Context) (int, error) {
						<-goOn
						charged++
						return 1, nil
					})
					if err != nil {
						t.Error(err)
					}
				}()
				r.store.failAlways(release, requestLost)
				return 0, lambdaidem.Retryable(errWire)
			})
			r.store.failAlways(release, nil)
			if errors.Is(err, lambdaidem.ErrRetryable) {
				t.Errorf("the outer handler finds ErrRetryable in %v although another attempt is charging", err)
			}
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		out := r.send(t, first())
		close(goOn)
		<-done
		if out.StatusCode == http.StatusPaymentRequired && charged == 1 {
			t.Error("the charge is made, and the client is told 402")
		}
	})
}
