package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The database rejects the write of a Do's function. The error that the write specifies for this
// case has a mark that does not decide, and the outcome is uncertain. The caller does not find the
// mark.
func TestX2_AVerdictShowsOnlyTheMarkThatDecided(t *testing.T) {
	for name, c := range map[string]struct {
		verdict error
		policy  lambdaidem.Policy
	}{
		"uncertain":           {errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Uncertain(errBroken)), lambdaidem.Rerun},
		"no mark, hold":       {errors.Join(lambdaidem.Retryable(errWire), errBroken), lambdaidem.Hold},
		"permanent uncertain": {lambdaidem.Permanent(lambdaidem.Uncertain(errBroken)), lambdaidem.Rerun},
		"permanent joined":    {errors.Join(lambdaidem.Permanent(errWire), lambdaidem.Uncertain(errBroken)), lambdaidem.Rerun},
	} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inside %t", name, inside), func(t *testing.T) {
				r, l := withLedger(nil, func(o *lambdaidem.Options) { o.Policy = c.policy })
				body := func(ctx context.Context) {
					l.fail(commit, rejects(c.verdict))
					id := ""
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
						id = lambdaidem.RecordID(ctx)
						enlist(ctx, "stock")
						return 1, nil
					})
					rec, _ := l.Store.Get(t.Context(), id, time.Now())
					for _, code := range []lambdaidem.Code{lambdaidem.ErrRetryable, lambdaidem.ErrPermanent} {
						if errors.Is(err, code) && rec.State == lambdaidem.InProgress {
							t.Errorf("the record is %s, and the caller finds %s in %v", rec.State, code, err)
						}
					}
				}
				if !inside {
					body(t.Context())
					return
				}
				h := r.guarded(func(ctx context.Context, _ request) (response, error) {
					body(ctx)
					return response{StatusCode: 503}, nil
				})
				_, _ = h(t.Context(), first())
			})
		}
	}
}

// The function of a Do makes a call that replays a permanent failure. The outer call is held, so
// its caller must not find by errors.As that it has failed for good.
func TestX2_APermanentFailureOfACallInsideIsNotFoundByAs(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"joined":    func(err error) error { return errors.Join(err, errBroken) },
		"uncertain": lambdaidem.Uncertain,
	} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inside %t", name, inside), func(t *testing.T) {
				r := newRig(nil, hold)
				body := func(ctx context.Context) {
					id := ""
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
						id = lambdaidem.RecordID(ctx)
						var err error
						for range 2 {
							_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "card", Key: "k"}, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) })
						}
						return 0, with(err)
					})
					rec, _ := r.store.Get(t.Context(), id, time.Now())
					if own, ok := errors.AsType[*lambdaidem.Error](err); ok && own.Code == lambdaidem.ErrPermanent && rec.State != lambdaidem.Completed {
						t.Errorf("the record is %s, and errors.As finds %s %d; errors.Is finds ErrPermanent: %t", rec.State, own.Code, own.Status, errors.Is(err, lambdaidem.ErrPermanent))
					}
				}
				if !inside {
					body(t.Context())
					return
				}
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					body(ctx)
					return response{StatusCode: 503}, nil
				}, hold)
				r.send(t, first())
			})
		}
	}
}

// A rejection that only the method As of an error type shows does not decide. The caller does not
// find it.
func TestX2_ARejectionThatOnlyAsShowsIsNotFound(t *testing.T) {
	declined := lambdaidem.Reject(402, "declined", "No.")
	for name, returned := range map[string]error{
		"alone":          hiddenError{declined},
		"with uncertain": hiddenError{errors.Join(lambdaidem.Uncertain(errWire), declined)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				ran := 0
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { ran++; return 0, returned })
				if e, ok := errors.AsType[*lambdaidem.Error](err); ok && e.Status == 402 {
					_, err = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { ran++; return 0, returned })
					t.Errorf("found %v; a second call: ran %d, %v", e, ran, err)
				}
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
		})
	}
}

// errors.Is finds ErrRetryable if Retryable has marked an error of Reject, inside a guarded handler
// and outside.
func TestX2_ErrRetryableIsFoundAroundARejection(t *testing.T) {
	r := newRig(nil)
	fails := func(context.Context) (int, error) {
		return 0, lambdaidem.Retryable(lambdaidem.Reject(503, "bank_down", "Later."))
	}
	_, outermost := lambdaidem.Do(t.Context(), r.guard, charge, fails)
	var inside error
	_, _ = r.guarded(func(ctx context.Context, _ request) (response, error) {
		_, inside = lambdaidem.Do(ctx, r.guard, charge, fails)
		return response{StatusCode: 503}, nil
	})(t.Context(), first())
	if a, b := errors.Is(outermost, lambdaidem.ErrRetryable), errors.Is(inside, lambdaidem.ErrRetryable); a != b {
		t.Errorf("outermost: %t, inside a guarded handler: %t", a, b)
	}
}

// The client does not get the 402 of an inner call that is not stored, whatever outcome
// Options.Outcome gives to a 402.
func TestX2_AnUnstored402IsNotSentWithAnOutcomeOfOnesOwn(t *testing.T) {
	for name, outcome := range map[string]lambdaidem.Outcome{"default": lambdaidem.OutcomeFailed, "released": lambdaidem.OutcomeReleased, "uncertain": lambdaidem.OutcomeUncertain} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			optFn := func(o *lambdaidem.Options) {
				o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
					if r.Status == 402 {
						return outcome
					}
					return lambdaidem.DefaultOutcome(r)
				}
			}
			inner := r.guard
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) {
					return 0, lambdaidem.Retryable(lambdaidem.Reject(402, "declined", "No."))
				})
				return response{}, err
			}, optFn)
			if out, err := r.handler(t.Context(), first()); out.StatusCode == 402 {
				t.Errorf("the client is told %d %s, %v", out.StatusCode, out.Body, err)
			}
			r.wantState(t, lambdaidem.Released)
		})
	}
}

// The function of a Do has run, and another attempt has stored an answer that can't be read now.
// The caller does not find ErrStoreUnavailable, which says that the function has not run.
func TestR3_NoErrStoreUnavailableAfterARun(t *testing.T) {
	r := newApartRig(true, nil)
	var err error
	charged := 0
	h := r.guarded(func(ctx context.Context, _ request) (response, error) {
		_, err = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
			charged++
			r.store.fail(complete, func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
				all := r.store.allClaims()
				c := all[len(all)-1]
				return lambdaidem.Record{ID: c.ID, State: lambdaidem.Completed, Token: "another's", Attempt: 2, Fingerprint: c.Fingerprint,
					Result: lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte("1"), At: time.Now()}}, lambdaidem.ErrLeaseLost
			})
			r.store.fail(load, refused(lambdaidem.ReasonThrottled))
			return 1, nil
		})
		return response{StatusCode: 503}, nil
	})
	_, _ = h(t.Context(), first())
	if charged > 0 && errors.Is(err, lambdaidem.ErrStoreUnavailable) {
		t.Errorf("charged %d times, and the caller finds ErrStoreUnavailable: %v", charged, err)
	}
}

// A call fails open while another attempt runs, and its function fails for good. The caller is not told
// so, because the other attempt may still succeed.
func TestX5_APermanentFailureThatFailedOpenIsNotReturnedBesideAnotherAttempt(t *testing.T) {
	r := newRig(nil, failOpen)
	began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = lambdaidem.Do(context.WithoutCancel(t.Context()), r.guard, charge, func(context.Context) (int, error) { close(began); <-goOn; return 1, nil })
	}()
	<-began
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) })
	close(goOn)
	<-done
	if !errors.Is(err, lambdaidem.ErrInProgress) || errors.Is(err, lambdaidem.ErrPermanent) {
		t.Errorf("Do returned %v; want ErrInProgress", err)
	}
}

// The verdict of a rejected write is the refusal of another call. It decides, but the guard did not
// make it for this call, so errors.Is does not find its code.
func TestX2_ARefusalAsTheVerdictOfAWriteShowsNoCode(t *testing.T) {
	r, l := withLedger(nil)
	h := r.guarded(func(ctx context.Context, _ request) (response, error) {
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		_, before := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "reserve", Key: "k"}, answersOne)
		refusal, _ := errors.AsType[*lambdaidem.Error](before)
		own := &lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500}
		for key, verdict := range map[string]error{"refusal": refusal, "joined": errors.Join(own, refusal)} {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "charge", Key: key}, func(ctx context.Context) (int, error) {
				enlist(ctx, "w")
				l.fail(commit, rejects(verdict))
				return 1, nil
			})
			if errors.Is(err, lambdaidem.ErrStoreUnavailable) {
				t.Errorf("%s: the function has run, and the caller finds ErrStoreUnavailable in %v", key, err)
			}
		}
		return response{StatusCode: 503}, nil
	})
	_, _ = h(t.Context(), first())
}

// A Do without a record shows what it would show if it had one: the first rejection and the mark that
// decided, and nothing that a guard said of a call inside.
func TestX2_AnUnguardedDoShowsTheErrorThatDecided(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.KeyOptional = true })
	first, second := lambdaidem.Reject(404, "no_account", "No."), lambdaidem.Reject(402, "declined", "No.")
	for name, call := range map[string]lambdaidem.Call{"no key": {Operation: "pay"}, "skip": {Operation: "pay", Key: "k", Skip: true}, "guarded": {Operation: "pay", Key: "k"}} {
		ends := func(fails error) error {
			if call.Key != "" {
				call.Key += "1"
			}
			_, err := lambdaidem.Do(t.Context(), r.guard, call, func(context.Context) (int, error) { return 0, fails })
			return err
		}
		if err := ends(errors.Join(first, second)); !errors.Is(err, lambdaidem.Code("no_account")) || !errors.Is(err, first) || errors.Is(err, lambdaidem.Code("declined")) {
			t.Errorf("%s: errors.Is does not find the first rejection alone in %v", name, err)
		}
		for code, mark := range map[lambdaidem.Code]func(error) error{lambdaidem.ErrRetryable: lambdaidem.Retryable, lambdaidem.ErrPermanent: lambdaidem.Permanent} {
			if err := ends(mark(errWire)); !errors.Is(err, code) {
				t.Errorf("%s: errors.Is does not find %v in %v", name, code, err)
			}
		}
		if err := ends(errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Uncertain(errBroken))); errors.Is(err, lambdaidem.ErrRetryable) {
			t.Errorf("%s: errors.Is finds ErrRetryable in %v", name, err)
		}
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		_, refusal := lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "reserve", Key: "k"}, answersOne)
		if err := ends(refusal); errors.Is(err, lambdaidem.ErrStoreUnavailable) {
			t.Errorf("%s: errors.Is finds the refusal of a call inside in %v", name, err)
		}
	}
}

// The database rejects the write of a message's handler. OnFailure finds the guard's code and the
// store's error, as the caller of Do does.
func TestX2_AMessageShowsItsOwnRejectedWrite(t *testing.T) {
	for name, key := range map[string]string{"guarded": "k", "unguarded": ""} {
		r, l := withLedger(nil, func(o *lambdaidem.Options) { o.KeyOptional = true })
		l.fail(commit, rejects(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500, Err: errWire}))
		var got error
		h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error { enlist(ctx, "w"); return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return key, nil }
			o.OnFailure = func(_ context.Context, _ events.SQSMessage, err error) { got = err }
		})
		if _, err := h(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", EventSourceARN: "arn:q", Body: "{}"}}}); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(got, lambdaidem.ErrConditionFailed) || !errors.Is(got, errWire) {
			t.Errorf("%s: OnFailure gets %v", name, got)
		}
	}
}
