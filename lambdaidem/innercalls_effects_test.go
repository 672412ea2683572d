package lambdaidem_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// An inner call that did not succeed may have had an effect all the same. The request around
// it is then bound to its payload: a corrected one is refused, because it would make another
// inner call.
func TestE6_AnEffectOfAnInnerCallBindsTheRequestAroundIt(t *testing.T) {
	declined := lambdaidem.Reject(http.StatusPaymentRequired, "declined", "")
	step := func(ctx context.Context) error {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
		return err
	}
	for name, c := range map[string]struct {
		call  func(context.Context) error
		bound bool
	}{
		"a stored step":         {func(ctx context.Context) error { return errors.Join(errWire, step(ctx)) }, true},
		"writes with a failure": {func(ctx context.Context) error { enlist(ctx, "fee").whenFailed = true; return declined }, true},
		"a plain failure":       {func(context.Context) error { return declined }, false},
		"no effect":             {func(context.Context) error { return lambdaidem.Retryable(errWire) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			r, _ = withLedger(func(ctx context.Context, in request) (response, error) {
				key, err := lambdaidem.HashKey(in.Body)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge", Key: key}, func(ctx context.Context) (int, error) { return 1, c.call(ctx) })
				return response{StatusCode: http.StatusBadGateway}, nil
			})
			r.mustRun(t, post("key-1", paid100))
			r.wantState(t, lambdaidem.Released)
			if c.bound {
				wantProblem(t, r.send(t, post("key-1", paid101)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
			} else {
				r.mustRun(t, post("key-1", paid101))
			}
		})
	}
}

// A version that can't read the record of an inner call answers 402. The answer is not stored,
// because a rollback may restore a version that can read the record. The inner call has been
// carried out, so the request is bound to its payload.
func TestX1_AnAnswerAboutAnInnerRecordThatCantBeReadIsNotStored(t *testing.T) {
	var r *rig
	for name, call := range map[string]func(context.Context) error{
		"another type": func(ctx context.Context) error {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (string, error) { return "p-1", nil })
			return err
		},
		"another layout": func(ctx context.Context) error {
			r.store.fail(acquire, refused(lambdaidem.ReasonForeign))
			return r.charged(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			readable := false
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if readable {
					return response{StatusCode: http.StatusCreated}, r.charged(ctx)
				}
				if err := call(ctx); err == nil {
					t.Error("the inner call can be read")
				}
				return response{StatusCode: http.StatusPaymentRequired}, nil
			})
			if err := r.charged(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.store.forgetClaims()
			r.mustRun(t, first())
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Bound != "inner_call" {
				t.Errorf("the record is %s, bound by %q", rec.State, rec.Bound)
			}
			readable = true
			if out := r.send(t, first()); out.StatusCode != http.StatusCreated || replayed(out) {
				t.Errorf("after the rollback the retry gets %+v", out)
			}
		})
	}
}

// An error that is marked as permanent is not stored while an inner call is running or has
// an unknown outcome, nor after the refusal of a call that may succeed later.
func TestX4_APermanentErrorIsNotStoredBesideAnUnsettledCall(t *testing.T) {
	for name, c := range map[string]struct {
		policy lambdaidem.Policy
		end    func(context.Context, *rig) error
		want   lambdaidem.State
	}{
		"unknown": {lambdaidem.Rerun, func(ctx context.Context, r *rig) error {
			_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
			return errWire
		}, lambdaidem.InProgress},
		"running": {lambdaidem.Rerun, func(ctx context.Context, r *rig) error {
			began := make(chan struct{})
			go func() {
				_, _ = lambdaidem.Do(context.WithoutCancel(ctx), r.guard, charge, func(context.Context) (int, error) {
					close(began)
					time.Sleep(time.Second)
					return 1, nil
				})
			}()
			<-began
			return errWire
		}, lambdaidem.InProgress},
		"wrapped":            {lambdaidem.Rerun, func(ctx context.Context, r *rig) error { return fmt.Errorf("charge: %w", r.charged(ctx)) }, lambdaidem.Released},
		"wrapped under Hold": {lambdaidem.Hold, func(ctx context.Context, r *rig) error { return fmt.Errorf("charge: %w", r.charged(ctx)) }, lambdaidem.InProgress},
		"ignored":            {lambdaidem.Rerun, func(ctx context.Context, r *rig) error { _ = r.charged(ctx); return errWire }, lambdaidem.Released},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					return response{}, lambdaidem.Permanent(c.end(ctx, r))
				},
					func(o *lambdaidem.Options) { o.Policy = c.policy })
				if c.want == lambdaidem.Released || name == "wrapped under Hold" || name == "ignored" {
					defer r.busy(t)()
				}
				r.store.forgetClaims()
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, c.want)
				synctest.Wait()
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// A request or a Do that runs unguarded inside a guarded handler is part of the handler: the
// marks of its error decide about the handler's record.
func TestX2_MarksReachTheGuardAroundAnUnguardedCall(t *testing.T) {
	for name, c := range map[string]struct {
		policy lambdaidem.Policy
		end    error
		want   lambdaidem.State
	}{
		"uncertain 504":        {lambdaidem.Rerun, lambdaidem.Uncertain(lambdaidem.Reject(504, "no_reply", "")), lambdaidem.InProgress},
		"uncertain 409":        {lambdaidem.Rerun, lambdaidem.Uncertain(lambdaidem.Reject(409, "no_reply", "")), lambdaidem.InProgress},
		"retryable 409":        {lambdaidem.Rerun, lambdaidem.Retryable(lambdaidem.Reject(409, "busy", "")), lambdaidem.Released},
		"retryable, Hold":      {lambdaidem.Hold, lambdaidem.Retryable(errWire), lambdaidem.Released},
		"too many, Hold":       {lambdaidem.Hold, lambdaidem.Reject(429, "slow_down", ""), lambdaidem.Released},
		"without a mark, Hold": {lambdaidem.Hold, errWire, lambdaidem.InProgress},
	} {
		var r *rig
		for way, inner := range map[string]handler{
			"request": func(ctx context.Context, in request) (response, error) {
				skipping := r.guard.With(func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } })
				return skipping.APIGatewayV2(func(context.Context, request) (response, error) { return response{}, c.end })(ctx, in)
			},
			"Do": func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "part", Skip: true}, func(context.Context) (int, error) { return 0, c.end })
				return response{}, err
			},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				r = newRig(inner, func(o *lambdaidem.Options) { o.Policy = c.policy })
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, c.want)
			})
		}
	}
}

// An inner call ran and then lost its lease. It is refused as in progress, but has had its
// effect, so the request around it is uncertain.
func TestX4_AnInnerCallThatLostItsLeaseIsUncertain(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		r.store.fail(complete, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			return lambdaidem.Record{State: lambdaidem.InProgress, Token: "another's", LeaseEnd: time.Now().Add(time.Hour)}, lambdaidem.ErrLeaseLost
		})
		if err := r.charged(ctx); err == nil {
			t.Error("the inner call has succeeded")
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.InProgress)
}

// A handler makes an optimistic call, which makes an uncertain call and then panics. The handler
// recovers and answers. Its record stays in progress because of the uncertain call.
func TestX4_APanicOfAnOptimisticCallKeepsWhatIsInside(t *testing.T) {
	var r *rig
	r, _ = withLedger(func(ctx context.Context, _ request) (out response, err error) {
		defer func() { _ = recover(); out, err = response{StatusCode: http.StatusConflict}, nil }()
		_, _ = lambdaidem.Do(ctx, r.guard.With(optimistic), lambdaidem.Call{Operation: "middle", Key: "k"}, func(ctx context.Context) (int, error) {
			_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
			panic("middle")
		})
		return out, err
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.InProgress)
}

// An inner call whose context is detached and has a timeout of its own ends before the invocation's
// deadline.
func TestL5_ADetachedInnerCallWithATimeoutEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			r.store.failAlways(complete, hangs)
			defer r.store.failAlways(complete, nil)
			return response{StatusCode: http.StatusCreated}, r.charged(ctx)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _ = r.handler(ctx, first())
		if took, claims := time.Since(began), r.store.allClaims(); took > 3*time.Second || claims[1].LeaseEnd.Sub(began) > 5*time.Second {
			t.Errorf("it took %v of 3s; the inner lease ends after %v", took, claims[1].LeaseEnd.Sub(began))
		}
	})
}

// An inner call has been carried out, and its answer is not available. The outer request is bound
// to its payload, and its own answer is not stored.
func TestX4_AnInnerCallWhoseAnswerCantBeReturned(t *testing.T) {
	charged := func(ctx context.Context, g *lambdaidem.Guard, v any) error {
		_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (any, error) { return v, nil })
		return err
	}
	for name, c := range map[string]struct {
		answer any // of the first call
		load   fault
		code   lambdaidem.Code // of the second call
	}{
		"it was never stored":     {make(chan int), nil, lambdaidem.ErrAnswerUnavailable},
		"it is gone":              {1, refused(lambdaidem.ReasonForeign), lambdaidem.ErrAnswerUnavailable},
		"it can't be reached now": {1, requestLost, lambdaidem.ErrStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			r = newApartRig(true, func(ctx context.Context, _ request) (response, error) {
				if err := charged(ctx, r.guard, 1); !errors.Is(err, c.code) {
					t.Errorf("the inner call returned %v", err)
				}
				return response{StatusCode: http.StatusPaymentRequired}, nil
			})
			if err := charged(t.Context(), r.guard, c.answer); err != nil {
				t.Fatal(err)
			}
			r.store.failAlways(load, c.load)
			r.store.forgetClaims()
			r.mustRun(t, post("key-1", paid100))
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Bound != "inner_call" {
				t.Errorf("the record is %s, bound by %q", rec.State, rec.Bound)
			}
		})
	}
}

// A handler returns the error that the answer of an inner call is not available. Nobody knows how
// the call ended, so the error is not stored as a failure of the request. The guarded handler
// returns the error as it is, and the record ends as after any other error.
func TestX4_AnInnerCallWithoutAnAnswerIsNoFailureToStore(t *testing.T) {
	for policy, state := range map[lambdaidem.Policy]lambdaidem.State{lambdaidem.Rerun: lambdaidem.Released, lambdaidem.Hold: lambdaidem.InProgress} {
		t.Run(string(policy), func(t *testing.T) {
			r := newRig(nil)
			if _, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (any, error) { return make(chan int), nil }); err != nil {
				t.Fatal(err)
			}
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (any, error) { return 1, nil })
				return response{}, err
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			r.store.forgetClaims()
			if out, err := r.handler(t.Context(), first()); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
				t.Errorf("the server gets %+v, %v; want the handler's error", out, err)
			}
			r.wantState(t, state)
		})
	}
}

// The record of an inner call is bound to its payload, because an attempt has died. So is the
// record of a request that makes the call again.
func TestE6_ABoundInnerRecordBindsTheRequestAroundIt(t *testing.T) {
	for _, died := range []bool{false, true} {
		t.Run(fmt.Sprintf("an attempt has died: %t", died), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := lambdaidem.Retryable(errWire)
				r := newRig(nil)
				call := func(ctx context.Context, end error) {
					_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, end })
				}
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					call(ctx, failing)
					return response{}, failing
				})
				if died {
					call(t.Context(), lambdaidem.Uncertain(errWire))
					time.Sleep(time.Hour) // until its lease has ended
				}
				r.store.forgetClaims()
				_, _ = r.handler(t.Context(), first())
				if rec := r.record(t); rec.State != lambdaidem.Released || (rec.Bound != "") != died {
					t.Errorf("the record is %s, bound by %q", rec.State, rec.Bound)
				}
			})
		})
	}
}

// A handler leaves a call to the background and fails. The call must not begin any more: it
// would have its effect for a client who was told that the request failed, and who may send
// another payload.
func TestX4_NoInnerCallBeginsAfterTheHandlerHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		end  func() (response, error)
		runs bool
	}{
		"a success":      {func() (response, error) { return response{StatusCode: 202}, nil }, true},
		"a client error": {func() (response, error) { return response{StatusCode: 402}, nil }, false},
		"a server error": {func() (response, error) { return response{StatusCode: 502}, nil }, false},
		"an error":       {func() (response, error) { return response{}, errWire }, false},
		"a panic":        {func() (response, error) { panic("after it began") }, false},
	} {
		for _, opt := range []func(*lambdaidem.Options){func(*lambdaidem.Options) {}, optimistic} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, _ := withLedger(nil)
					inner := r
					answered, called := make(chan struct{}), make(chan error, 1)
					r = r.later(func(ctx context.Context, _ request) (response, error) {
						go func() {
							<-answered
							called <- inner.charged(context.WithoutCancel(ctx))
						}()
						return c.end()
					}, opt)
					func() {
						defer func() { _ = recover() }()
						_, _ = r.handler(t.Context(), first())
					}()
					close(answered)
					if err := <-called; c.runs && err != nil || !c.runs && !errors.Is(err, lambdaidem.ErrOutOfTime) {
						t.Errorf("the call returned %v", err)
					}
				})
			})
		}
	}
}

// The handler's enlisted write is rejected, and the application's verdict on that is an Answer with
// an http.Handler. That handler may make guarded calls, like the first one.
func TestX4_TheHandlerOfAnAnswerMayMakeCalls(t *testing.T) {
	var r *rig
	var l *ledger
	r, l = withLedger(nil)
	called := errors.New("not called")
	h := r.guard.With(anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		enlist(req.Context(), "fee").whenFailed = true
		w.WriteHeader(http.StatusPaymentRequired)
	}))
	l.fail(commit, rejects(lambdaidem.Answer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		called = r.charged(req.Context())
		w.WriteHeader(http.StatusConflict)
	}))))
	if out := serve(h, posted(t, "/payments")); out.Code != http.StatusConflict || called != nil {
		t.Errorf("the answer is %d; the call returned %v", out.Code, called)
	}
}

// Whatever Options.Outcome returns, no failure is stored while an inner call is not settled, and
// the record is not released if the outcome of the inner call is unknown. A success is stored if
// Options.Outcome says so, because the handler has decided to succeed.
func TestX1_OptionsOutcomeDoesNotOutweighAnInnerCall(t *testing.T) {
	says := func(o lambdaidem.Outcome) func(*lambdaidem.Options) {
		return func(opts *lambdaidem.Options) {
			opts.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return o }
		}
	}
	for _, c := range []struct {
		name          string
		says          lambdaidem.Outcome
		status        int
		refused, lost lambdaidem.State // after an inner call that was refused, or whose outcome is unknown
	}{
		{"a failure that is a failure", lambdaidem.OutcomeFailed, 404, lambdaidem.Released, lambdaidem.InProgress},
		{"a failure that is a success", lambdaidem.OutcomeSucceeded, 404, lambdaidem.Released, lambdaidem.InProgress},
		{"a failure that is released", lambdaidem.OutcomeReleased, 404, lambdaidem.Released, lambdaidem.InProgress},
		{"a failure that is uncertain", lambdaidem.OutcomeUncertain, 404, lambdaidem.InProgress, lambdaidem.InProgress},
		{"a failure that is nothing", "nothing", 404, lambdaidem.InProgress, lambdaidem.InProgress},
		{"a success that is a success", lambdaidem.OutcomeSucceeded, 201, lambdaidem.Completed, lambdaidem.Completed},
		{"a success that is a failure", lambdaidem.OutcomeFailed, 201, lambdaidem.Completed, lambdaidem.Completed},
		{"a success that is released", lambdaidem.OutcomeReleased, 201, lambdaidem.Released, lambdaidem.InProgress},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unknown: %t", c.name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(nil)
					r = r.later(func(ctx context.Context, _ request) (response, error) {
						if lost {
							_ = r.unknownCharge(ctx, t, requestLost, nil)
						} else {
							_ = r.charged(ctx)
						}
						return response{StatusCode: c.status}, nil
					}, says(c.says))
					want := c.lost
					if !lost {
						defer r.busy(t)()
						want = c.refused
					}
					r.store.forgetClaims()
					r.send(t, first())
					r.wantState(t, want)
				})
			})
		}
	}
}

// The event of an answer that is not stored says why.
func TestX1_TheEventNamesTheInnerCall(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_ = r.charged(ctx)
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	defer r.busy(t)()
	r.send(t, first())
	if e := r.seen.last(t); e.Kind != lambdaidem.EventReleased || e.Err == nil || !strings.Contains(e.Err.Error(), "was refused and may succeed later") || !strings.Contains(e.Err.Error(), "402") {
		t.Errorf("the event is %+v", e)
	}
}

// If a step is still running when the handler answers with a failure, the outcome is unknown, and
// the failure is not stored.
func TestX4_AFailureIsNotStoredWhileAStepRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			began := make(chan struct{})
			go func() {
				_, _ = lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) {
					close(began)
					time.Sleep(time.Second)
					return 1, nil
				})
			}()
			<-began
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		r.send(t, first())
		r.wantState(t, lambdaidem.InProgress)
		time.Sleep(time.Minute)
	})
}

// If a typed handler returns the refusal of an inner guard, its invoker gets the code of the
// refusal, and not the error of the store.
func TestX2_ATypedHandlerReportsNoCauseOfAnInnerGuard(t *testing.T) {
	r := newRig(nil)
	h := lambdaidem.Handler(lambdaidem.New(memstore.New(), quiet), "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
		func(ctx context.Context, _ order) (int, error) { return 1, r.charged(ctx) })
	r.store.failAlways(acquire, requestLost)
	_, errorType, message := invoke(t, h, `{"ID":"o-1"}`)
	if errorType != string(lambdaidem.ErrStoreUnavailable) || strings.Contains(message, errWire.Error()) {
		t.Errorf("Lambda reports %q, %q", errorType, message)
	}
}

// A client that receives a 402 does not repeat its request. So it does not receive a 402 that is
// not stored, because another attempt may have carried out the inner call.
func TestX4_AnAnswerThatIsNotFinalIsNotSent(t *testing.T) {
	for _, c := range []struct {
		name    string
		unknown bool // the inner call's outcome is unknown; otherwise another attempt is in progress
		policy  lambdaidem.Policy
		status  int
		err     error
		replace bool
	}{
		{name: "refused, a client error", status: 402, replace: true},
		{name: "refused, a client error, Hold", policy: lambdaidem.Hold, status: 402, replace: true},
		{name: "refused, a permanent error", err: lambdaidem.Permanent(errWire), replace: true},
		{name: "refused, too many requests", status: 429},
		{name: "refused, a server error", status: 502},
		{name: "refused, a server error, Hold", policy: lambdaidem.Hold, status: 502},
		{name: "refused, a success", status: 201},
		{name: "unknown, a client error", unknown: true, status: 402, replace: true},
		{name: "unknown, too many requests", unknown: true, status: 429, replace: true},
		{name: "unknown, nothing happened", unknown: true, err: lambdaidem.Retryable(lambdaidem.Reject(500, "none", "")), replace: true},
		{name: "unknown, and the handler says so", unknown: true, err: lambdaidem.Uncertain(lambdaidem.Reject(500, "none", ""))},
		{name: "unknown, a success", unknown: true, status: 201},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					if c.unknown {
						_ = r.unknownCharge(ctx, t, requestLost, nil)
					} else {
						_ = r.charged(ctx)
					}
					return response{StatusCode: c.status}, c.err
				}, func(o *lambdaidem.Options) { o.Policy = cmp.Or(c.policy, lambdaidem.Rerun) })
				if !c.unknown {
					defer r.busy(t)()
				}
				r.store.forgetClaims()
				out := r.send(t, first())
				if !c.replace {
					if out.StatusCode != cmp.Or(c.status, 500) || strings.Contains(out.Body, string(lambdaidem.ErrOutcomeUnknown)) {
						t.Errorf("the answer is %+v", out)
					}
					return
				}
				wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				released := r.record(t).State == lambdaidem.Released
				if after := retryAfter(t, out); released != (after == time.Second) {
					t.Errorf("the record is %s; the client is to repeat the request after %v", r.record(t).State, after)
				}
			})
		})
	}
}

// The handler around a call is told that the outcome is unknown, like a client. If it
// received the definite error, it might try something else, such as another card.
func TestX4_AnErrorThatIsNotFinalDoesNotReachTheHandlerAround(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		if err := r.order(ctx, r.charged, lambdaidem.Permanent(errWire)); errors.Is(err, errWire) || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("the inner call returned %v", err)
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	defer r.busy(t)()
	r.store.forgetClaims()
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
	r.wantState(t, lambdaidem.Released)
}

// If the outcome of one of several inner calls is unknown, the handler's outcome is uncertain.
func TestX4_OneUnknownCallAmongOthers(t *testing.T) {
	for range 20 { // because the guard keeps the calls in a map, which has a random order
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				for i := range 3 {
					late, cancel := context.WithDeadline(ctx, time.Now())
					_, _ = lambdaidem.Do(late, r.guard, lambdaidem.Call{Operation: "fee", Key: fmt.Sprint(i)}, func(context.Context) (int, error) { return 1, nil })
					cancel()
				}
				_ = r.unknownCharge(ctx, t, requestLost, nil)
				return response{StatusCode: http.StatusPaymentRequired}, nil
			})
			r.send(t, first())
			r.wantState(t, lambdaidem.InProgress)
		})
	}
}

// An optimistic inner call that ran has no effect unless it commits, so a refused call may succeed
// later. If the reply to the commit is missing, the outcome of the call is unknown.
func TestX4_AnOptimisticInnerCall(t *testing.T) {
	for name, c := range map[string]struct {
		fail fault
		code lambdaidem.Code
		want lambdaidem.State
	}{
		"another attempt is in progress": {nil, lambdaidem.ErrInProgress, lambdaidem.Released},
		"no reply to the commit":         {requestLost, lambdaidem.ErrOutcomeUnknown, lambdaidem.InProgress},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
					short, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					_, err := lambdaidem.Do(short, r.guard.With(optimistic), charge, func(ctx context.Context) (int, error) {
						enlist(ctx, "charge")
						return 1, nil
					})
					if !errors.Is(err, c.code) {
						t.Errorf("the inner call returned %v", err)
					}
					return response{StatusCode: http.StatusPaymentRequired}, nil
				})
				if c.fail != nil {
					l.failAlways(commit, c.fail)
				} else {
					defer r.busy(t)()
				}
				r.store.forgetClaims()
				r.send(t, first())
				r.wantState(t, c.want)
			})
		})
	}
}

// An inner call that waits for an operator may succeed later, so an answer about it is not stored.
func TestX1_AnAnswerAboutAnAbandonedInnerCallIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		holding := r.guard.With(hold)
		call := func(ctx context.Context, end error) error {
			_, err := lambdaidem.Do(ctx, holding, charge, func(context.Context) (int, error) { return 0, end })
			return err
		}
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			if err := call(ctx, nil); !errors.Is(err, lambdaidem.ErrAttemptAbandoned) {
				t.Errorf("the inner call returned %v", err)
			}
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		_ = call(t.Context(), lambdaidem.Uncertain(errWire))
		time.Sleep(time.Hour)
		r.store.forgetClaims()
		r.send(t, first())
		r.wantState(t, lambdaidem.Released)
	})
}

// If the answer of an optimistic attempt is not stored because of an unsettled inner call, the
// attempt reads its own record. If another attempt has completed or taken the record, the caller
// gets what the record implies.
func TestX4_TheRecordDecidesBeforeAnInnerCall(t *testing.T) {
	other := func(r *rig, h handler) func() { // another process with the same request
		began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		next := r.later(func(ctx context.Context, in request) (response, error) {
			close(began)
			<-goOn
			return h(ctx, in)
		})
		go func() { defer close(done); _, _ = next.handler(context.WithoutCancel(t.Context()), first()) }()
		<-began
		return func() { close(goOn); <-done }
	}
	for name, completes := range map[string]bool{"completed": true, "in progress": false} {
		t.Run(name, func(t *testing.T) {
			r, _ := withLedger(nil)
			optimist := r.later(func(ctx context.Context, _ request) (response, error) {
				end := other(r, status(http.StatusCreated))
				if completes {
					end()
				} else {
					t.Cleanup(end)
				}
				_ = r.charged(ctx)
				return response{StatusCode: http.StatusPaymentRequired}, nil
			}, optimistic)
			defer r.busy(t)()
			out := optimist.send(t, first())
			if completes && (out.StatusCode != http.StatusCreated || !replayed(out)) {
				t.Errorf("the answer is %+v", out)
			}
			if !completes {
				wantProblem(t, out, http.StatusConflict, lambdaidem.ErrInProgress)
			}
		})
	}
}

// The event says that the handler did not wait for its inner call.
func TestX4_TheEventNamesAnInnerCallThatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			go func() {
				_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { time.Sleep(time.Second); return 1, nil })
			}()
			synctest.Wait()
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		r.send(t, first())
		if e := r.seen.last(t); e.Kind != lambdaidem.EventUncertain || !strings.Contains(e.Err.Error(), "it must wait for the call") {
			t.Errorf("the event is %+v", e)
		}
		time.Sleep(time.Minute)
	})
}

// Under Hold, only the handler itself can say that it has had no effect. To release its record, it
// must mark the error of the inner call again.
func TestX2_TheHandlerMarksTheErrorOfAnInnerCallAgain(t *testing.T) {
	for name, c := range map[string]struct {
		again bool
		want  lambdaidem.State
	}{"returned": {false, lambdaidem.InProgress}, "marked again": {true, lambdaidem.Released}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
				if !errors.Is(err, lambdaidem.ErrRetryable) {
					t.Errorf("the inner call returned %v", err)
				}
				if c.again {
					err = lambdaidem.Retryable(err)
				}
				return response{}, err
			})
			_, _ = r.handler(t.Context(), first())
			r.wantState(t, c.want)
		})
	}
}
