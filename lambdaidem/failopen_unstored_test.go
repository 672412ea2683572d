package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
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

// A handler that failed open returns a 402 while its step is still charging, or before its step
// begins. With a lease, the client is not told 402 for good while the charge is running, and a step
// that begins after the handler has returned does not run
// (TestE5_AStepThatIsLeftBehindIsNotReleased).
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

// The database granted the lease, but its reply was lost, so the handler fails open. It charges in
// a step, fails, and the record is released. The client corrects its request. With a lease, the
// stored step binds the record to the payload that was charged.
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

// uncertain402 counts a 402 as uncertain.
func uncertain402(o *lambdaidem.Options) {
	o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
		if r.Status == 402 {
			return lambdaidem.OutcomeUncertain
		}
		return lambdaidem.DefaultOutcome(r)
	}
}

// The database rejects the writes of a handler that failed open, and the verdict is a final
// failure. The record must have that failure before the client does, so it is stored by another
// transaction. Without a reply to that transaction, the outcome is unknown.
func TestX5_AFinalVerdictAfterFailOpenIsStored(t *testing.T) {
	for name, rejection := range map[string]fault{"settled": rejects(noPayment), "unsettled": unsettled(noPayment)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := withLedger(enlisting(created), failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				l.fail(commit, rejection, requestLost)
				if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
					t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
				}
				r.wantState(t, lambdaidem.Completed)

				r, l = withLedger(enlisting(created), failOpen)
				l.fail(acquire, refused(lambdaidem.ReasonThrottled))
				l.fail(commit, rejection)
				l.failAlways(commit, requestLost)
				wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
			})
		})
	}
}

// A handler that failed open succeeds and has enlisted no writes. Its completion needs no
// transaction, which costs twice as much.
func TestX5_ASuccessAfterFailOpenNeedsNoTransaction(t *testing.T) {
	r, l := withLedger(status(http.StatusCreated), failOpen)
	l.fail(acquire, replyLost)
	r.send(t, first())
	r.wantState(t, lambdaidem.Completed)
	if want := []string{acquire, complete}; !slices.Equal(l.allCalls(), want) {
		t.Errorf("calls %v; want %v", l.allCalls(), want)
	}
}

// The attempt's claim was applied, and the reply to it was lost. Another transaction conflicts with
// the completion. The guard repeats the completion.
func TestX9_ACompletionThatFailedOpenIsRepeatedAfterAConflict(t *testing.T) {
	r := newRig(status(http.StatusPaymentRequired), failOpen)
	r.store.fail(acquire, replyLost)
	r.store.fail(complete, refused(lambdaidem.ReasonConflict))
	if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
		t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
	}
	if rec := r.record(t); rec.State != lambdaidem.Completed {
		t.Errorf("the record is %s; want %s", rec.State, lambdaidem.Completed)
	}
}

// A duplicate's transaction is in progress when a final failure is to be stored. The failure waits
// for that transaction, and the client gets the duplicate's answer.
func TestX9_AFinalFailureThatFailedOpenWaitsForATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := withLedger(func(context.Context, request) (response, error) { return response{}, noPayment }, failOpen)
		duplicate := r.later(status(http.StatusCreated))
		l.fail(acquire, refused(lambdaidem.ReasonUnreachable))
		l.fail(commit, refused(lambdaidem.ReasonConflict), func(_ context.Context, _ string, call func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
			duplicate.send(t, first())
			return call()
		})
		if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
			t.Errorf("the record is %s, and the client is told %d %s", r.record(t).State, out.StatusCode, out.Body)
		}
	})
}
