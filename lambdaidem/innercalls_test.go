package lambdaidem_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// If an inner call may have had an effect, so may the outer handler. The outer record is then
// released under neither policy.
func TestX4_AnInnerOutcomeThatIsUnknownReleasesNothing(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		synctest.Test(t, func(t *testing.T) {
			charged := 0
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil })
				return response{StatusCode: 201}, err
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			r.store.failAlways(complete, requestLost)
			_, err := r.handler(ctx, first())
			if charged != 1 || err != nil || r.record(t).State != lambdaidem.InProgress {
				t.Errorf("under %s: charged %d times, %v; the record is %s", policy, charged, err, r.record(t).State)
			}
		})
	}
}

// The verdict on a rejected transaction of an inner call has the mark Retryable, but an earlier
// request of the transaction may still commit. The outer record therefore stays in progress.
func TestX4_AMarkInsideAnUnknownOutcomeSaysNothing(t *testing.T) {
	var r *rig
	var l *ledger
	r, l = withLedger(func(ctx context.Context, in request) (response, error) {
		call := lambdaidem.Call{Operation: "debit", Key: "k", Payload: in.Body}
		_, err := lambdaidem.Do(ctx, r.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Rerun }, optimistic), call, func(ctx context.Context) (int, error) {
			enlist(ctx, "debit "+in.Body)
			return 1, nil
		})
		return response{StatusCode: 201}, err
	}, hold)
	l.fail(commit, unsettled(lambdaidem.Retryable(errors.New("another payment of this account is under way"))))
	if _, err := r.handler(t.Context(), first()); err != nil || r.record(t).State != lambdaidem.InProgress {
		t.Errorf("%v; the record is %s", err, r.record(t).State)
	}
}

// The mark of an error of a typed handler inside a guarded handler decides how the inner call ends,
// and so what happens to the outer record if the outer handler returns the error.
func TestX2_MarksOutOfATypedHandler(t *testing.T) {
	for want, mark := range map[lambdaidem.State]func(error) error{
		lambdaidem.InProgress: lambdaidem.Uncertain, lambdaidem.Released: lambdaidem.Retryable, lambdaidem.Completed: lambdaidem.Permanent,
	} {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Handler(r.guard, "charge", func(context.Context, order) (string, error) { return "k", nil },
				func(context.Context, order) (int, error) { return 0, mark(errWire) })(ctx, order{})
			return response{StatusCode: http.StatusBadGateway}, err
		})
		_, err := r.handler(t.Context(), first())
		if got := r.record(t).State; got != want {
			t.Errorf("the record is %s, want %s; %v", got, want, err)
		}
	}
}

// An unguarded handler that calls a typed handler gets the rejection itself. The form of the error
// that Lambda reports would have no status.
func TestX2_ARejectionOutOfATypedHandlerInAnUnguardedOne(t *testing.T) {
	var r *rig
	r, _ = withLedger(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Handler(r.guard, "charge", func(context.Context, order) (string, error) { return "k", nil },
			func(context.Context, order) (int, error) {
				return 0, lambdaidem.Reject(http.StatusPaymentRequired, "no_funds", "No.")
			})(ctx, order{})
		return response{}, err
	})
	put := first()
	put.RequestContext.HTTP.Method = http.MethodPut
	wantProblem(t, r.send(t, put), http.StatusPaymentRequired, "no_funds")
}

// The innermost function returns late, and its answer can't be stored. The calls around it
// still store theirs, and the client is answered before the invocation's deadline.
func TestX3_CleaningUpAfterAnInnerCallLeavesTimeToAnswer(t *testing.T) {
	for name, end := range map[string]error{"completion": nil, "release": errWire} {
		for depth := 1; depth <= 3; depth++ {
			t.Run(fmt.Sprintf("%s, %d inside", name, depth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { cleanUpInside(t, depth, end) })
			})
		}
	}
}

// cleanUpInside sends a request whose handler makes calls inside each other, as many as
// depth. The function of the innermost call returns 300 ms before the invocation's
// deadline, with the error end. By then the time of all calls inside is over.
func cleanUpInside(t *testing.T, depth int, end error) {
	began := time.Now()
	var r *rig
	late := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		time.Sleep(time.Until(began.Add(2700 * time.Millisecond)))
		r.store.failAlways(complete, hangs)
		r.store.failAlways(release, hangs)
		return 1, end
	}
	var nest func(context.Context, int) (int, error)
	nest = func(ctx context.Context, depth int) (int, error) {
		if depth == 0 {
			return late(ctx)
		}
		call := lambdaidem.Call{Operation: "charge", Key: strconv.Itoa(depth)}
		_, _ = lambdaidem.Do(ctx, r.guard, call, func(ctx context.Context) (int, error) { return nest(ctx, depth-1) })
		r.store.failAlways(complete, nil)
		r.store.failAlways(release, nil)
		return 1, nil
	}
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := nest(ctx, depth)
		if took := time.Since(began); took > 2775*time.Millisecond { // the answer must be stored by 2850 ms
			t.Errorf("the inner call returned after %v", took)
		}
		return response{StatusCode: 201}, err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if out := r.sendCtx(ctx, t, first()); out.StatusCode != 201 || ctx.Err() != nil {
		t.Errorf("the answer is %d; %v", out.StatusCode, ctx.Err())
	}
	r.wantState(t, lambdaidem.Completed)
}

// An inner call that ends late is stored if the store answers in time.
func TestX3_AnInnerAnswerAfterItsTimeIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var r *rig
		within := func(ctx context.Context, operation string, fn func(context.Context) (int, error)) error {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: operation, Key: "k"}, fn)
			return err
		}
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: 201}, within(ctx, "order", func(ctx context.Context) (int, error) {
				return 1, within(ctx, "charge", func(ctx context.Context) (int, error) {
					<-ctx.Done()
					time.Sleep(time.Until(began.Add(2700 * time.Millisecond)))
					return 1, nil
				})
			})
		})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r.sendCtx(ctx, t, first())
		r.wantEvents(t, lambdaidem.EventNew, lambdaidem.EventNew, lambdaidem.EventNew)
	})
}

// However much time the handler around it has left, an inner call whose own time is over
// cleans up for at most CleanupTimeout.
func TestX3_CleaningUpAfterAnInnerCallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			r.store.fail(complete, hangs)
			_, _ = lambdaidem.Do(short, r.guard, charge, func(context.Context) (int, error) {
				time.Sleep(2 * time.Second)
				return 1, nil
			})
			return response{StatusCode: 201}, nil
		})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r.sendCtx(ctx, t, first())
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// busy lets another process make the call charge, which ends when end is called.
func (r *rig) busy(t *testing.T) (end func()) {
	t.Helper()
	other := lambdaidem.New(r.store.Store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
	began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = lambdaidem.Do(context.WithoutCancel(t.Context()), other, charge, func(context.Context) (int, error) {
			close(began)
			<-goOn
			return 1, nil
		})
	}()
	<-began
	return func() { close(goOn); <-done }
}

// charged makes the call charge.
func (r *rig) charged(ctx context.Context) error {
	_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil })
	return err
}

// unknownCharge makes the call charge, with an outcome that stays unknown because of the fault lost
// in the completion of its record. The call's function returns the error end.
func (r *rig) unknownCharge(ctx context.Context, t testing.TB, lost fault, end error) error {
	t.Helper()
	r.store.failAlways(complete, lost)
	defer r.store.failAlways(complete, nil)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := lambdaidem.Do(short, r.guard, charge, func(context.Context) (int, error) { return 1, end })
	if !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
		t.Errorf("the inner call returned %v", err)
	}
	return err
}

// A handler that can't return errors describes an inner refusal in its own words. The
// description is not stored, because the inner call may be done when the client retries.
func TestX1_AnAnswerAboutAnInnerRefusalIsNotStored(t *testing.T) {
	for name, answer := range map[string]func(error) (response, error){
		"an answer": func(err error) (response, error) {
			return response{StatusCode: http.StatusConflict, Body: "The order is being paid: " + err.Error()}, nil
		},
		"another status": func(error) (response, error) { return response{StatusCode: http.StatusPaymentRequired}, nil },
		"a rejection": func(error) (response, error) {
			return response{}, lambdaidem.Reject(http.StatusConflict, "order_busy", "The order is being paid.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if err := r.charged(ctx); err != nil {
					return answer(err)
				}
				return response{StatusCode: 201}, nil
			})
			end := r.busy(t)
			if out := r.send(t, first()); out.StatusCode < 400 {
				t.Errorf("while the order is being paid, the answer is %d", out.StatusCode)
			}
			r.wantState(t, lambdaidem.Released)
			end()
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Errorf("after the order was paid, the answer is %d", out.StatusCode)
			}
		})
	}
}

// A refused inner call, or one with an unknown outcome, decides how the outer record ends.
func TestX1_OutcomesAfterAnInnerRefusal(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		name    string
		policy  lambdaidem.Policy
		unknown bool // the inner call's outcome is unknown; otherwise another attempt is in progress
		status  int
		err     error
		want    lambdaidem.State
	}{
		{name: "a success is stored", status: 201, want: lambdaidem.Completed},
		{name: "a redirect is stored", status: 303, want: lambdaidem.Completed},
		{name: "a client error", status: 404, want: lambdaidem.Released},
		{name: "a client error under Hold", policy: lambdaidem.Hold, status: 404, want: lambdaidem.InProgress},
		{name: "too many requests under Hold", policy: lambdaidem.Hold, status: 429, want: lambdaidem.Released},
		{name: "an error", err: own, want: lambdaidem.Released},
		{name: "a permanent error", err: lambdaidem.Permanent(own), want: lambdaidem.Released},
		{name: "a permanent error under Hold", policy: lambdaidem.Hold, err: lambdaidem.Permanent(own), want: lambdaidem.InProgress},
		{name: "an error that says that nothing happened, under Hold", policy: lambdaidem.Hold, err: lambdaidem.Retryable(own), want: lambdaidem.Released},
		{name: "unknown, a success is stored", unknown: true, status: 201, want: lambdaidem.Completed},
		{name: "unknown, a client error", unknown: true, status: 402, want: lambdaidem.InProgress},
		{name: "unknown, a server error", unknown: true, status: 502, want: lambdaidem.InProgress},
		{name: "unknown, too many requests", unknown: true, status: 429, want: lambdaidem.InProgress},
		{name: "unknown, a rejection", unknown: true, err: lambdaidem.Reject(402, "declined", "No."), want: lambdaidem.InProgress},
		{name: "unknown, an error", unknown: true, err: own, want: lambdaidem.InProgress},
		{name: "unknown, an error that says that nothing happened", unknown: true, err: lambdaidem.Retryable(own), want: lambdaidem.InProgress},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					if c.unknown {
						_ = r.unknownCharge(ctx, t, requestLost, nil)
					} else if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrInProgress) {
						t.Errorf("the inner call returned %v", err)
					}
					return response{StatusCode: c.status}, c.err
				}, func(o *lambdaidem.Options) { o.Policy = cmp.Or(c.policy, lambdaidem.Rerun) })
				end := func() {}
				if !c.unknown {
					end = r.busy(t)
				}
				defer end()
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, c.want)
			})
		})
	}
}

// A refusal that was overcome, because the handler made the inner call again, says nothing
// about the answer.
func TestX1_AnAnswerAfterAnInnerRefusalThatWasOvercome(t *testing.T) {
	var r *rig
	var end func()
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		refused := r.charged(ctx)
		end()
		if err := r.charged(ctx); !errors.Is(refused, lambdaidem.ErrInProgress) || err != nil {
			t.Errorf("the inner calls returned %v and %v", refused, err)
		}
		return response{StatusCode: 404}, nil
	})
	end = r.busy(t)
	r.send(t, first())
	r.wantState(t, lambdaidem.Completed)
}

// If Options.Outcome is DefaultOutcome, an inner refusal has the same effect as by default.
func TestX1_DefaultOutcomeKnowsOfInnerRefusals(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_ = r.charged(ctx)
		return response{StatusCode: 404}, nil
	}, func(o *lambdaidem.Options) { o.Outcome = lambdaidem.DefaultOutcome })
	defer r.busy(t)()
	r.send(t, first())
	r.wantState(t, lambdaidem.Released)
}

// A handler that panics after an inner call whose outcome is unknown may have had an
// effect, and so may a message's handler that returns an error of its own.
func TestX4_AnInnerOutcomeThatIsUnknownOutlivesThePanic(t *testing.T) {
	for name, end := range map[string]func() error{
		"panic": func() error { panic("after the call") },
		"error": func() error { return errWire },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				unknown := func(ctx context.Context) error {
					_ = r.unknownCharge(ctx, t, requestLost, nil)
					return end()
				}
				request := r.guarded(func(ctx context.Context, _ request) (response, error) { return response{}, unknown(ctx) })
				func() {
					defer func() { _ = recover() }()
					_, _ = request(t.Context(), first())
				}()
				if rec := r.record(t); rec.State != lambdaidem.InProgress {
					t.Errorf("the record of the request is %s", rec.State)
				}
				r.store.forgetClaims()
				time.Sleep(time.Minute) // the lease of the inner call has ended
				message := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error { return unknown(ctx) })
				_, _ = message(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", EventSourceARN: "arn:q", Body: "{}"}}})
				if rec := r.record(t); rec.State != lambdaidem.InProgress {
					t.Errorf("the record of the message is %s", rec.State)
				}
			})
		})
	}
}

// A Do around an inner call whose outcome is unknown is uncertain too.
func TestX4_ACallAroundAnUnknownOutcomeIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil)
		_, err := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (int, error) {
			_ = r.unknownCharge(ctx, t, hangs, nil)
			return 0, errWire
		})
		if rec := r.record(t); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) || errors.Is(err, errWire) || rec.State != lambdaidem.InProgress {
			t.Errorf("%v; the record is %s", err, rec.State)
		}
	})
}

// If Options.Observer panics when it receives the event of a takeover, the lease is released.
func TestL6_AnObserverThatPanicsAtATakeoverReleases(t *testing.T) {
	synctest.Test(t, observerPanics)
}

func observerPanics(t *testing.T) {
	c := newTicker()
	panics := false
	r := newRig(nil, c.option, func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) {
			if panics && e.Kind == lambdaidem.EventTakenOver {
				panic("observer")
			}
		})
	})
	dies := r.guarded(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
	if _, err := dies(t.Context(), first()); !errors.Is(err, errWire) {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	panics = true
	func() {
		defer func() { _ = recover() }()
		r.send(t, first())
	}()
	if rec := r.record(t); rec.State != lambdaidem.Released || rec.Attempt != 2 {
		t.Errorf("the record is %s by attempt %d", rec.State, rec.Attempt)
	}
}
