package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The tests of this file are about handlers that run without a lease, because of
// Options.FailOpen, and whose answer is not stored.

// A deployment rotates the secret of fingerprints in one step. An attempt of the old version is
// still running, or has succeeded. The retry reaches the new version, whose claim is throttled, so
// it runs without a lease, and its handler returns a 402. The guard can't tell whether the record
// has the payload of this request, so the client must not receive the 402. With a lease, the guard
// would answer 422 and tell the client not to use a new key.
func TestX5_AFinalFailureThatFailedOpenBesideARecordThatCantBeCompared(t *testing.T) {
	for name, failure := range map[string]error{"stored": noPayment, "not stored": lambdaidem.Retryable(noPayment)} {
		for _, state := range []string{"running", "completed"} {
			t.Run(name+", "+state, func(t *testing.T) {
				r := newRig(nil, failOpen, secrets(oldSecret))
				finish := r.startAnother(t)
				if state == "completed" {
					finish()
				}
				next := r.later(func(context.Context, request) (response, error) { return response{}, failure }, secrets(newSecret))
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				out := next.send(t, first())
				if state == "running" {
					finish()
				}
				rec := r.record(t)
				if out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("the client is told %d %s, and the record of its request is %s", out.StatusCode, out.Body, rec.State)
				}
			})
		}
	}
}

// An inner call fails open beside a record that can't be compared with the call, and fails. The
// outer 402 must not be stored, as if the inner call had been refused because of its record.
func TestX5_AnInnerCallThatFailedOpenBesideARecordThatCantBeCompared(t *testing.T) {
	for _, inner := range []string{"running", "dead", "completed"} {
		t.Run(inner, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				old := r.guard.With(secrets(oldSecret))
				began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					_, _ = lambdaidem.Do(context.WithoutCancel(t.Context()), old, charge, func(context.Context) (int, error) {
						close(began)
						<-goOn
						if inner == "dead" {
							return 0, lambdaidem.Uncertain(errWire)
						}
						return 1, nil // charged
					})
				}()
				<-began
				if inner != "running" {
					close(goOn)
					<-done
				}
				if inner == "dead" {
					time.Sleep(time.Hour)
				}
				r.store.forgetClaims()
				next := r.guard.With(failOpen, secrets(newSecret))
				r = r.later(payOr402(func(ctx context.Context) error {
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					_, err := lambdaidem.Do(ctx, next, charge, func(context.Context) (int, error) { return 0, noPayment })
					return err
				}))
				out := r.send(t, first())
				if inner == "running" {
					close(goOn)
					<-done
				}
				if rec := r.record(t); rec.State == lambdaidem.Completed {
					t.Errorf("the 402 is stored for good, and the client is told %d %s", out.StatusCode, out.Body)
				}
			})
		})
	}
}

// A handler that fails open can't know that an earlier attempt has stored a step, and repeats the
// step. The service recognizes the second charge by its downstream key.
func TestE6_AStepThatFailOpenRepeatsHasTheSameDownstreamKey(t *testing.T) {
	var keys []string
	status := http.StatusServiceUnavailable
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (int, error) {
			keys = append(keys, lambdaidem.DownstreamKey(ctx, "bank"))
			return 1, nil
		})
		return response{StatusCode: status}, err
	}, failOpen)
	r.send(t, first())
	status = http.StatusCreated
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	r.send(t, first())
	if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
		t.Errorf("the downstream keys are %q; want two that are equal", keys)
	}
}

// twice calls call again if the first call fails, and returns the last error.
func twice(call func(try int) error) error {
	err := call(1)
	if err != nil {
		err = call(2)
	}
	return err
}

// The bank does not reply to the first try: the card may be charged. The handler tries again, and
// the bank declines, because the first charge has used up the limit. Both tries failed open. With
// a lease, the second try would be refused, and the outcome would stay unknown.
func TestX4_ADeclinedSecondTryThatFailedOpenForgetsTheUnknownFirst(t *testing.T) {
	for name, second := range map[string]error{"rejected": noPayment, "permanent": lambdaidem.Permanent(errWire)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			r = r.later(payOr402(func(ctx context.Context) error {
				return twice(func(try int) error {
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) {
						if try == 1 {
							return 0, lambdaidem.Uncertain(context.DeadlineExceeded)
						}
						return 0, second
					})
					return err
				})
			}))
			wantNo402(t, r)
		})
	}
}

// declinedThenCharges is one try of an inner call. The first try is declined. Every other try charges
// in a step, counts that in charged, and fails afterwards.
func declinedThenCharges(ctx context.Context, inner *lambdaidem.Guard, try int, charged *int) error {
	_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
		if try == 1 {
			return 0, noPayment
		}
		if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { *charged++; return 1, nil }); err != nil {
			return 0, err
		}
		return 0, lambdaidem.Retryable(errWire)
	})
	return err
}

// The first try fails open and is declined, and nothing is stored. The second try has a lease,
// charges in a step, whose result is stored, and fails before the next step.
func TestX4_AFailureThatFailedOpenIsNoAnswerOfTheRecord(t *testing.T) {
	r := newRig(nil)
	inner := r.guard.With(failOpen)
	charged := 0
	r = r.later(payOr402(func(ctx context.Context) error {
		return twice(func(try int) error {
			if try == 1 {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			}
			return declinedThenCharges(ctx, inner, try, &charged)
		})
	}))
	wantNo402(t, r)
	if charged != 1 {
		t.Errorf("charged %d times", charged)
	}
}

// The inner call fails open, charges in a step, and fails before the next step. With a lease, the
// step is stored, and the 402 is not (TestX4_AReleasedInnerCallHidesNoStoredStep).
func TestX4_AStepOfAnInnerCallThatFailedOpenCounts(t *testing.T) {
	for name, failure := range map[string]error{"no mark": errors.New("the ledger is down"), "retryable": lambdaidem.Retryable(errWire), "rejected": lambdaidem.Retryable(noPayment)} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			charged := 0
			r = r.later(payOr402(func(ctx context.Context) error {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
					if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
						return 0, err
					}
					return 0, failure
				})
				return err
			}))
			out := r.send(t, first())
			if out.StatusCode == http.StatusPaymentRequired {
				t.Errorf("charged %d times, and the client is told %d for good: the record is %s", charged, out.StatusCode, r.record(t).State)
			}
		})
	}
}

// The claim of the inner call is applied and its reply is lost. The call fails open, charges in a
// step, which is not stored, and fails before the next step. Its release succeeds. The step counts,
// as in a call whose claim is throttled (TestX4_AStepOfAnInnerCallThatFailedOpenCounts).
func TestX4_AStepOfAnInnerCallThatFailedOpenCountsIfItsReleaseSucceeds(t *testing.T) {
	for name, fails := range map[string]func() error{
		"no mark":   func() error { return errors.New("the ledger is down") },
		"retryable": func() error { return lambdaidem.Retryable(errWire) },
		"panic":     func() error { panic("a mistake") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			charged := 0
			r = r.later(payOr402(func(ctx context.Context) error {
				r.store.fail(acquire, replyLost)
				_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
					if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
						return 0, err
					}
					return 0, fails()
				})
				return err
			}))
			out := r.send(t, first())
			if out.StatusCode == http.StatusPaymentRequired {
				t.Errorf("charged %d times, and the client is told %d for good: the record is %s", charged, out.StatusCode, r.record(t).State)
			}
		})
	}
}

// A message fails open beside a completed record that can't be compared with it, charges, and
// fails. It has begun and not finished, so it is not discarded as one that did not run.
func TestV2_AMessageThatFailedOpenAndRanIsNotDiscarded(t *testing.T) {
	r := newRig(nil, failOpen, secrets(oldSecret))
	message := func(body string) events.SQSEvent {
		return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:aws:sqs:r:a:q", Body: body}}}
	}
	if out, err := r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(t.Context(), message(`{"amount":100}`)); err != nil || len(out.BatchItemFailures) > 0 {
		t.Fatal(out, err)
	}
	next := r.guard.With(secrets(newSecret))
	ran, discarded := 0, 0
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	out, err := next.SQS(func(context.Context, events.SQSMessage) error { ran++; return errWire }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
		o.Discard = func(context.Context, events.SQSMessage, error) bool { discarded++; return true }
	})(t.Context(), message(`{"amount":90}`))
	if err != nil || ran != 1 || discarded != 0 || len(out.BatchItemFailures) != 1 {
		t.Errorf("ran %d times, discarded %d times: %+v, %v", ran, discarded, out, err)
	}
}

// The first try of the inner call fails open, charges in a step, which is not stored, and fails.
// The second try has a lease, fails before it reaches the bank, and is released. With a lease, the
// step of the first try is stored and counts (TestX4_AReleasedInnerCallHidesNoStoredStep).
func TestX4_AReleasedSecondTryDoesNotForgetAStepOfTheFirstThatFailedOpen(t *testing.T) {
	for _, first := range []string{"with a lease", "throttled", "request lost"} {
		t.Run(first, func(t *testing.T) {
			r := newRig(nil)
			inner := r.guard.With(failOpen)
			r = r.later(payOr402(func(ctx context.Context) error {
				return twice(func(try int) error {
					switch {
					case try == 1 && first == "throttled":
						r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					case try == 1 && first == "request lost":
						r.store.fail(acquire, requestLost)
					}
					_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
						if try == 1 {
							if _, err := lambdaidem.Step(ctx, "bank", func(context.Context) (int, error) { return 1, nil }); err != nil {
								return 0, err
							}
						}
						return 0, lambdaidem.Retryable(errWire)
					})
					return err
				})
			}))
			wantNo402(t, r)
		})
	}
}

// A handler that failed open returns a 402 while its step is still charging, or before its step
// begins. With a lease, the client is not told 402 for good while the charge is running, and a step
// that begins after the handler has returned does not run (TestE5_AStepThatIsLeftBehindIsNotReleased).
func TestX4_AHandlerThatFailedOpenMustWaitForItsSteps(t *testing.T) {
	for name, c := range map[string]struct {
		delay time.Duration // before the step begins
		ran   int
	}{"running": {0, 1}, "begins late": {time.Minute, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left sync.WaitGroup
				charged := 0
				r := newRig(func(ctx context.Context, _ request) (response, error) {
					left.Go(func() {
						time.Sleep(c.delay)
						_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) {
							time.Sleep(time.Second)
							charged++
							return 1, nil
						})
						if err == nil {
							t.Error("Step returned no error")
						}
					})
					synctest.Wait()
					return response{}, noPayment
				}, failOpen)
				r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
				out := r.send(t, first())
				left.Wait()
				if charged != c.ran || charged > 0 && out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("charged %d times, and the client is told %d", charged, out.StatusCode)
				}
			})
		})
	}
}

// The first call is declined, and its record has that answer. The handler calls again, the call
// fails open, charges in a step, and fails. The answer of the record says nothing about this
// charge, so the client must not be told 402.
func TestX4_AnAnsweredCallHidesNoStepOfALaterOneThatFailedOpen(t *testing.T) {
	r := newRig(nil)
	inner := r.guard.With(failOpen)
	charged := 0
	r = r.later(payOr402(func(ctx context.Context) error {
		return twice(func(try int) error {
			if try == 2 {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				r.store.fail(release, refused(lambdaidem.ReasonThrottled))
			}
			return declinedThenCharges(ctx, inner, try, &charged)
		})
	}))
	if out := r.send(t, first()); out.StatusCode == http.StatusPaymentRequired || charged != 1 {
		t.Errorf("charged %d times, and the client is told %d", charged, out.StatusCode)
	}
}

// The database granted the lease, but its reply was lost, so the handler fails open. It charges in a
// step, fails, and the record is released. The client corrects its request. With a lease, the stored
// step binds the record to the payload that was charged.
func TestF5_AStepThatFailedOpenBindsTheReleasedRecord(t *testing.T) {
	for name, c := range map[string]struct {
		step, call, lease bool
		bound             string
		status            int // of the corrected request
	}{
		"a step":                    {true, false, false, lambdaidem.BoundByDeadAttempt, http.StatusUnprocessableEntity},
		"a step and a guarded call": {true, true, false, lambdaidem.BoundByInnerCall, http.StatusUnprocessableEntity},
		"no step":                   {false, false, false, "", http.StatusCreated},
		"a step with a lease":       {true, false, true, "", http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			charged, status := 0, http.StatusServiceUnavailable
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if c.step {
					if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
						t.Error(err)
					}
				}
				if c.call {
					if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil }); err != nil {
						t.Error(err)
					}
				}
				return response{StatusCode: status}, nil
			}, failOpen)
			if !c.lease {
				r.store.fail(acquire, replyLost)
			}
			r.send(t, first())
			if rec := r.record(t); rec.State != lambdaidem.Released || rec.Bound != c.bound {
				t.Errorf("the record is %s, bound by %q", rec.State, rec.Bound)
			}
			status = http.StatusCreated
			if out := r.send(t, post("key-1", `{"amount":90}`)); out.StatusCode != c.status || charged > 1 {
				t.Errorf("another payload: %d %s, charged %d times", out.StatusCode, out.Body, charged)
			}
			if out := r.send(t, first()); c.step && out.StatusCode != http.StatusCreated {
				t.Errorf("the same payload: %d %s", out.StatusCode, out.Body)
			}
		})
	}
}

// A handler that failed open stores no steps, but learns of a result that no record could store, as
// with a lease.
func TestE5_AHandlerThatFailedOpenLearnsOfAResultThatCannotBeStored(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) { return "0123456789", nil }); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("Step: %v", err)
		}
		return response{StatusCode: http.StatusCreated}, nil
	}, failOpen, tooMuch)
	r.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
}
