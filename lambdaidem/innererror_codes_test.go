package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// placeOrder is that of docs/effects.md, under Hold. pay asks a guarded psp, which is refused because
// the store is throttled for a moment. pay has had no effect, so it marks the refusal by Retryable.
// placeOrder must find that mark (or a code to compare), mark the error again, and be released.
func TestX2_AMarkMadeAgainAroundARefusalIsFound(t *testing.T) {
	for name, psp := range map[string]func(ctx context.Context, r *rig) error{
		"marked": func(ctx context.Context, r *rig) error {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "psp", Key: "k"}, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
			return err
		},
		"refused": func(ctx context.Context, r *rig) error {
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "psp", Key: "k"}, func(context.Context) (int, error) { return 1, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			healthy := false
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			var codes []lambdaidem.Code
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
					if healthy {
						return 1, nil
					}
					if err := psp(ctx, r); err != nil {
						return 0, lambdaidem.Retryable(err) // pay has had no effect of its own yet
					}
					return 1, nil
				})
				for _, c := range []lambdaidem.Code{lambdaidem.ErrRetryable, lambdaidem.ErrStoreUnavailable} {
					if errors.Is(err, c) {
						codes = append(codes, c)
					}
				}
				if errors.Is(err, lambdaidem.ErrRetryable) {
					return response{}, lambdaidem.Retryable(err) // placeOrder has had no effect of its own yet
				}
				if err != nil {
					return response{}, err
				}
				return response{StatusCode: http.StatusCreated}, nil
			}, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			_, _ = r.handler(t.Context(), first())
			healthy = true
			if out, err := r.handler(t.Context(), first()); out.StatusCode != http.StatusCreated {
				t.Errorf("placeOrder found %v; its retry is told %d %s, %v; the record is %s", codes, out.StatusCode, out.Body, err, r.record(t).State)
			}
		})
	}
}

// pay (a Do) authorizes in a step and captures afterwards. After a deployment the step's stored
// result can't be decoded: pay returns Step's error, and nothing was captured. placeOrder reads in
// docs/errors.md that idempotency_answer_unreadable of a Do means "the operation was carried out".
func TestX2_AnUnreadableStepIsNoUnreadableAnswer(t *testing.T) {
	captured, shipped, version := 0, 0, 1
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (string, error) {
			var err error
			if version == 1 {
				_, err = lambdaidem.Step(ctx, "authorize", func(context.Context) (int, error) { return 1, nil })
			} else {
				_, err = lambdaidem.Step(ctx, "authorize", func(context.Context) (string, error) { return "a-1", nil })
			}
			if err != nil {
				return "", err
			}
			if version == 1 {
				return "", errWire // the capture failed
			}
			captured++
			return "p-1", nil
		})
		if errors.Is(err, lambdaidem.ErrAnswerUnreadable) { // paid: "The operation was carried out"
			err = nil
		}
		if err != nil {
			return response{}, err
		}
		shipped++
		return response{StatusCode: 201}, nil
	})
	_, _ = r.handler(t.Context(), first())
	version = 2
	out, err := r.handler(t.Context(), first())
	if shipped > captured {
		t.Errorf("shipped %d, captured %d: %d, %v", shipped, captured, out.StatusCode, err)
	}
}

// A version of the handler knows the type that a step's result had before, and reads the result with
// that type. The step is then settled, so the handler's 402 is stored.
func TestE5_AStepReadInItsOldFormIsSettled(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			version := 1
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				if version == 1 {
					if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
						return response{}, err
					}
					return response{}, lambdaidem.Retryable(errWire)
				}
				_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) { return "p-1", nil })
				if errors.Is(err, lambdaidem.ErrAnswerUnreadable) { // from the version before
					_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
				}
				if err != nil {
					return response{}, err
				}
				return response{StatusCode: http.StatusPaymentRequired}, nil
			}, func(o *lambdaidem.Options) { o.Policy = policy })
			_, _ = r.handler(t.Context(), first())
			version = 2
			for i := range 3 {
				out, err := r.handler(t.Context(), first())
				if i == 2 && out.StatusCode != 402 {
					t.Errorf("told %d %s, %v", out.StatusCode, out.Body, err)
				}
			}
		})
	}
}

// The function of a Do takes the *Error of a refused call out of the error that this call returned, for
// a log line, and returns the *Error. The caller of the Do must not find its code.
func TestX2_ARefusalTakenOutOfItsErrorIsNotFound(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"as": func(err error) error {
			var e *lambdaidem.Error
			if errors.As(err, &e) {
				return fmt.Errorf("receipt: %w", e)
			}
			return err
		},
		"code": func(err error) error {
			var e *lambdaidem.Error
			if errors.As(err, &e) {
				return e.Code
			}
			return err
		},
		"unwrapped": func(err error) error { return err },
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
					charged++
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "order-1"}, func(context.Context) (int, error) { return 1, nil })
					return 1, with(err)
				})
				if errors.Is(err, lambdaidem.ErrStoreUnavailable) {
					charged++
				}
				return response{StatusCode: 503}, nil
			})
			_, _ = r.handler(t.Context(), first())
			if charged > 1 {
				t.Errorf("charged %d times", charged)
			}
		})
	}
}

// The cause of a refusal further inside.
func TestX2_TheCauseOfARefusalFurtherInsideIsNotFound(t *testing.T) {
	r := newRig(nil)
	_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
		r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "receipt", Key: "k"}, func(context.Context) (int, error) { return 1, nil })
		return 0, err
	})
	if s := (*lambdaidem.StoreError)(nil); errors.As(err, &s) {
		t.Errorf("the charge ran, and its caller finds %+v: not applied %t", s, s.NotApplied)
	}
}

// What a caller finds in the first error of a Do and in that of a replay.
func TestX2_TheCodesOfAStoredErrorAreThoseOfItsReplay(t *testing.T) {
	codes := []lambdaidem.Code{lambdaidem.ErrPermanent, lambdaidem.ErrPayloadMismatch, lambdaidem.ErrKeyInvalid, lambdaidem.ErrRetryable}
	other := func(n int) lambdaidem.Call { return lambdaidem.Call{Operation: "psp", Key: "k", Payload: n} }
	for name, fn := range map[string]func(ctx context.Context, g *lambdaidem.Guard) error{
		"permanent mismatch": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, _ = lambdaidem.Do(ctx, g, other(1), func(context.Context) (int, error) { return 1, nil })
			_, err := lambdaidem.Do(ctx, g, other(2), func(context.Context) (int, error) { return 1, nil })
			return lambdaidem.Permanent(err)
		},
		"permanent key": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "psp", Key: "\x00"}, func(context.Context) (int, error) { return 1, nil })
			return lambdaidem.Permanent(fmt.Errorf("psp: %w", err))
		},
		"inner permanent": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, other(1), func(context.Context) (int, error) { return 1, lambdaidem.Permanent(errWire) })
			return err
		},
	} {
		for _, outer := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", outer), func(t *testing.T) {
				r := newRig(nil)
				ran := 0
				var errs []error
				call := func(ctx context.Context) {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) { ran++; return 0, fn(ctx, r.guard) })
					errs = append(errs, err)
				}
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					call(ctx)
					return response{StatusCode: 503}, nil
				})
				for range 2 {
					if outer {
						_, _ = r.handler(t.Context(), first())
					} else {
						call(t.Context())
					}
				}
				if ran != 1 || len(errs) != 2 {
					t.Fatalf("the function ran %d times; %v", ran, errs)
				}
				for _, c := range codes {
					if errors.Is(errs[0], c) != errors.Is(errs[1], c) {
						t.Errorf("%s: first %t, replay %t", c, errors.Is(errs[0], c), errors.Is(errs[1], c))
					}
				}
				var a, b *lambdaidem.Error
				if errors.As(errs[0], &a) && errors.As(errs[1], &b) && (a.Code != b.Code || a.Status != b.Status) {
					t.Errorf("first %s %d, replay %s %d", a.Code, a.Status, b.Code, b.Status)
				}
			})
		}
	}
}

// pay charges the bank, then a guarded call of its own is refused because of its payload, for good,
// and pay says so by Permanent. The caller of pay asks for a retry at first. In its retry, which
// replays pay's failure, it must not find a mismatch: that would say that pay's key belongs to
// another order, and that nothing was charged for this one.
func TestX2_AStoredFailureHasNoCodeOfACallInside(t *testing.T) {
	charged := 0
	one := func(context.Context) (int, error) { return 1, nil }
	r := newRig(nil)
	receipt := lambdaidem.Call{Operation: "receipt", Key: "r", Payload: 1}
	_, _ = lambdaidem.Do(t.Context(), r.guard, receipt, one)
	receipt.Payload = 2
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		pay := func(c lambdaidem.Call) error {
			_, err := lambdaidem.Do(ctx, r.guard, c, func(ctx context.Context) (int, error) {
				charged++
				_, err := lambdaidem.Do(ctx, r.guard, receipt, one)
				return 0, lambdaidem.Permanent(err)
			})
			return err
		}
		err := pay(charge)
		if errors.Is(err, lambdaidem.ErrPayloadMismatch) { // "A new request needs a new key"
			next := charge
			next.Key = "another"
			err = pay(next)
		}
		if err != nil && lambdaidem.Attempt(ctx) == 1 {
			return response{StatusCode: http.StatusServiceUnavailable}, nil
		}
		return response{}, err
	})
	_, _ = r.handler(t.Context(), first())
	out, err := r.handler(t.Context(), first())
	if charged > 1 {
		t.Errorf("charged %d times: %d %s, %v", charged, out.StatusCode, out.Body, err)
	}
}

// pay's error is marked in part, and the guard holds the outcome of pay for unknown: its record stays
// in progress. The caller must not find a mark that says how pay ended.
func TestX2_AMarkThatDoesNotCountIsNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		policy lambdaidem.Policy
		err    error
		code   lambdaidem.Code
	}{
		"permanent and another":   {lambdaidem.Hold, errors.Join(lambdaidem.Permanent(errBroken), errWire), lambdaidem.ErrPermanent},
		"permanent and uncertain": {lambdaidem.Rerun, errors.Join(lambdaidem.Permanent(errBroken), lambdaidem.Uncertain(errWire)), lambdaidem.ErrPermanent},
		"retryable, uncertain":    {lambdaidem.Rerun, lambdaidem.Retryable(lambdaidem.Uncertain(errWire)), lambdaidem.ErrRetryable},
		"retryable, permanent":    {lambdaidem.Rerun, lambdaidem.Retryable(lambdaidem.Permanent(errWire)), lambdaidem.ErrRetryable},
		"uncertain, retryable":    {lambdaidem.Hold, lambdaidem.Uncertain(lambdaidem.Retryable(errWire)), lambdaidem.ErrRetryable},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = c.policy })
			found, kept := false, lambdaidem.Record{}
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.err })
				found = errors.Is(err, c.code)
				claims := r.store.allClaims()
				kept, _ = r.store.Store.Get(ctx, claims[len(claims)-1].ID, claims[len(claims)-1].Now)
				return response{StatusCode: 503}, nil
			})
			_, _ = r.handler(t.Context(), first())
			if found {
				t.Errorf("the record of the call is %s (%s), and its caller finds %s", kept.State, kept.Result.Outcome, c.code)
			}
		})
	}
}

// pay charges the first bank; then its helper marks an error as Retryable, and pay, which has had an
// effect, marks that as Uncertain. Uncertain decides: the record of pay stays in progress. The caller
// must not find ErrRetryable, which says that nothing happened in pay, or it charges the second bank.
func TestX2_UncertainAroundRetryableIsNotRetryable(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		charged := 0
		r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = policy })
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
				charged++
				helper := lambdaidem.Retryable(errWire)
				return 0, lambdaidem.Uncertain(helper) // the bank has been asked before
			})
			if errors.Is(err, lambdaidem.ErrRetryable) { // nothing happened there
				next := charge
				next.Operation = "second bank"
				_, err = lambdaidem.Do(ctx, r.guard, next, func(context.Context) (int, error) { charged++; return 1, nil })
			}
			if err != nil {
				return response{}, err
			}
			return response{StatusCode: http.StatusCreated}, nil
		})
		out, err := r.handler(t.Context(), first())
		if charged > 1 {
			t.Errorf("%s: charged at %d banks: %d, %v", policy, charged, out.StatusCode, err)
		}
	}
}

// What decided about the record of pay is what its caller finds: the rejection that is stored, and
// the mark of the whole error.
func TestX2_TheCallerFindsWhatDecided(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		found, none lambdaidem.Code
		status      int // of the *Error that errors.As finds; 0 if there is none
	}{
		"rejection beside permanent":    {errors.Join(noPayment, lambdaidem.Permanent(errWire)), "payment_failed", lambdaidem.ErrPermanent, 402},
		"rejection after a retryable":   {errors.Join(lambdaidem.Retryable(lambdaidem.Reject(429, "slow_down", "Slow down.")), noPayment), "payment_failed", lambdaidem.ErrRetryable, 402},
		"a text around retryable":       {fmt.Errorf("pay: %w", lambdaidem.Retryable(errWire)), lambdaidem.ErrRetryable, lambdaidem.ErrPermanent, 0},
		"a text around permanent":       {fmt.Errorf("pay: %w", lambdaidem.Permanent(errWire)), lambdaidem.ErrPermanent, lambdaidem.ErrRetryable, 0},
		"retryable, beside another one": {errors.Join(lambdaidem.Retryable(errWire), errBroken), "", lambdaidem.ErrRetryable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.err })
				own, _ := errors.AsType[*lambdaidem.Error](err)
				if c.found != "" && !errors.Is(err, c.found) || errors.Is(err, c.none) || c.status != 0 && (own == nil || own.Status != c.status) {
					t.Errorf("Do returned %v, with %+v", err, own)
				}
				return response{StatusCode: http.StatusServiceUnavailable}, nil
			})
			r.send(t, first())
		})
	}
}

// The database rejects the writes of pay. The caller of pay finds the code of that error.
func TestX2_TheCallerFindsThatWritesWereRejected(t *testing.T) {
	r, l := withLedger(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		l.fail(commit, rejects(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Detail: "No."}))
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) { enlist(ctx, "charge"); return 1, nil })
		if !errors.Is(err, lambdaidem.ErrConditionFailed) {
			t.Errorf("Do returned %v", err)
		}
		l.fail(commit, rejects(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Detail: "No."}))
		inner := r.guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
			enlist(ctx, "ship")
			return response{StatusCode: http.StatusCreated}, nil
		})
		if _, err := inner(ctx, post("inner", "{}")); !errors.Is(err, lambdaidem.ErrConditionFailed) {
			t.Errorf("the inner handler returned %v", err)
		}
		return response{StatusCode: http.StatusServiceUnavailable}, nil
	})
	r.send(t, first())
}

// The handler of an inner HTTP request charges a card and then returns the refusal of a call of its own.
// If the outer handler found the code of that refusal, it would charge the card again under a new key.
func TestX2_AnInnerRequestShowsNoCodeOfACallInside(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"wrapped":  func(err error) error { return fmt.Errorf("receipt: %w", err) },
	} {
		for outer, event := range map[string]request{"guarded": first(), "unguarded": post("", "{}")} {
			t.Run(name+" in "+outer, func(t *testing.T) {
				var r *rig
				var pay handler
				r, _ = withLedger(func(ctx context.Context, _ request) (response, error) {
					if _, err := pay(ctx, post("inner", "{}")); errors.Is(err, lambdaidem.ErrPayloadMismatch) {
						t.Errorf("the outer handler finds the code of the receipt: %v", err)
					}
					return response{StatusCode: 503}, nil
				}, func(o *lambdaidem.Options) { o.KeyOptional = true })
				receipt := lambdaidem.Call{Operation: "receipt", Key: "r", Payload: 1}
				_, _ = lambdaidem.Do(t.Context(), r.guard, receipt, answersOne)
				receipt.Payload = 2
				charged := false
				pay = r.guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
					charged = true
					_, err := lambdaidem.Do(ctx, r.guard, receipt, answersOne)
					return response{}, with(err)
				})
				if r.send(t, event); !charged {
					t.Error("the inner request did not run")
				}
			})
		}
	}
}

// The handler of an inner call is paused for longer than its lease, and another attempt takes over the
// record. Then Retryable has not released the record.
func TestX2_ErrRetryableIsNotFoundAfterALostLease(t *testing.T) {
	type work = func(context.Context) error
	for name, call := range map[string]func(context.Context, *lambdaidem.Guard, work) error{
		"Do": func(ctx context.Context, g *lambdaidem.Guard, do work) error {
			_, err := lambdaidem.Do(ctx, g, charge, func(ctx context.Context) (int, error) { return 1, do(ctx) })
			return err
		},
		"a message": func(ctx context.Context, g *lambdaidem.Guard, do work) error {
			return g.SNS(func(ctx context.Context, _ events.SNSEventRecord) error { return do(ctx) })(ctx, snsMessage())
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &ticker{now: time.Now()}
			r := newRig(nil, clock.option)
			taken, goOn, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				err := call(ctx, r.guard, func(context.Context) error {
					clock.advance(2 * time.Minute)
					go func() {
						defer close(finished)
						_ = call(t.Context(), r.guard, func(context.Context) error {
							close(taken)
							<-goOn
							return nil
						})
					}()
					<-taken
					return lambdaidem.Retryable(errWire)
				})
				if err == nil || errors.Is(err, lambdaidem.ErrRetryable) {
					t.Errorf("the error %v says that the record was released; another attempt has it", err)
				}
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
			close(goOn)
			<-finished
		})
	}
}

// snsMessage returns an SNS event with one message.
func snsMessage() events.SNSEvent {
	return events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m-1", TopicArn: "arn:aws:sns:eu-west-1:1:t"}}}}
}

// An Uncertain error inside the argument of Retryable keeps the lease, also for the handler of a message.
func TestX2_ErrRetryableIsNotFoundInAnUncertainMessage(t *testing.T) {
	r := newRig(nil)
	pay := r.guard.SNS(func(context.Context, events.SNSEventRecord) error {
		return lambdaidem.Retryable(fmt.Errorf("bank: %w", lambdaidem.Uncertain(errWire)))
	})
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		err := pay(ctx, snsMessage())
		if errors.Is(err, lambdaidem.ErrRetryable) {
			t.Errorf("the record of the message is uncertain, and its caller finds ErrRetryable: %v", err)
		}
		return response{StatusCode: 503}, nil
	})
	r.send(t, first())
}

// errors.Join(err, conn.Close()) joins err with nothing if the connection could be closed. The caller must
// find the mark that has released the record. Otherwise, under Hold, its own record waits for an operator.
func TestX2_AJoinOfRetryableErrorsIsRetryable(t *testing.T) {
	for name, returned := range map[string]error{
		"joined with nil":          errors.Join(lambdaidem.Retryable(errWire), nil),
		"joined with another mark": errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Retryable(errBroken)),
	} {
		t.Run(name, func(t *testing.T) {
			healthy := false
			hold := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }
			r := newRig(nil, hold)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
					if healthy {
						return 1, nil
					}
					return 0, returned
				})
				if errors.Is(err, lambdaidem.ErrRetryable) {
					return response{}, lambdaidem.Retryable(err) // the handler has had no effect of its own
				}
				if err != nil {
					return response{}, err
				}
				return response{StatusCode: http.StatusCreated}, nil
			}, hold)
			_, _ = r.handler(t.Context(), first())
			healthy = true
			if out, err := r.handler(t.Context(), first()); out.StatusCode != http.StatusCreated {
				t.Errorf("the retry is told %d %s, %v; the record is %s", out.StatusCode, out.Body, err, r.record(t).State)
			}
		})
	}
}

// The function of Do passes on by Reject what the guard of another service has said.
func TestX2_ACodeOfAnotherGuardIsFoundInTheFirstErrorAsInItsReplay(t *testing.T) {
	for _, code := range []lambdaidem.Code{lambdaidem.ErrPayloadMismatch, lambdaidem.ErrPermanent, lambdaidem.ErrInProgress, lambdaidem.ErrAnswerUnavailable, lambdaidem.ErrKeyInvalid} {
		t.Run(string(code), func(t *testing.T) {
			r := newRig(nil)
			ran := 0
			var found, as []bool
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
					ran++
					return 0, lambdaidem.Reject(422, code, "No.")
				})
				found = append(found, errors.Is(err, code))
				e, ok := errors.AsType[*lambdaidem.Error](err)
				as = append(as, ok && e.Code == code)
				return response{StatusCode: 503}, nil
			})
			for range 2 {
				_, _ = r.handler(t.Context(), first())
			}
			if len(found) != 2 || found[0] != found[1] || as[0] != as[1] {
				t.Errorf("ran %d: errors.Is finds it: %v, errors.As: %v", ran, found, as)
			}
		})
	}
}

// A caller may let errors.As find the Code, and not the *Error.
func TestX2_TheCodeThatAsFindsIsThatOfTheReplay(t *testing.T) {
	for name, returned := range map[string]error{
		"permanent":                   lambdaidem.Permanent(errWire),
		"rejection after a retryable": errors.Join(lambdaidem.Retryable(lambdaidem.Reject(429, "slow_down", "Slow down.")), noPayment),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			var found []lambdaidem.Code
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, returned })
				var c lambdaidem.Code
				errors.As(err, &c)
				found = append(found, c)
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
			r.send(t, first())
			if found[0] != found[1] {
				t.Errorf("errors.As finds %q, then %q", found[0], found[1])
			}
		})
	}
}

// The function of Do takes the *Error of a replayed failure out of its wrapper.
func TestX2_APermanentFailureTakenOutIsFoundInTheFirstErrorAsInItsReplay(t *testing.T) {
	r := newRig(nil)
	reserve := lambdaidem.Call{Operation: "reserve", Key: "k"}
	broken := func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) }
	_, _ = lambdaidem.Do(t.Context(), r.guard, reserve, broken)
	var found []bool
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(ctx context.Context) (int, error) {
			_, err := lambdaidem.Do(ctx, r.guard, reserve, broken)
			if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
				return 0, e
			}
			return 0, err
		})
		found = append(found, errors.Is(err, lambdaidem.ErrPermanent))
		return response{StatusCode: http.StatusServiceUnavailable}, nil
	})
	r.send(t, first())
	r.send(t, first())
	if !found[0] || !found[1] {
		t.Errorf("errors.Is finds ErrPermanent: %v", found)
	}
}

// pay takes a part of the price from a wallet and the rest from a card. The wallet's call is refused for
// now, and the card is declined, which the record of the card's call does not store. If the caller of pay
// found card_declined, it would charge the whole price to another card. A failure that asks for a retry
// is found: another card would get it too.
func TestX4_ARejectionOfAnInnerCallBesideARefusedOneIsNotFound(t *testing.T) {
	const declined, closed lambdaidem.Code = "card_declined", "bank_closed"
	rejection := lambdaidem.Reject(402, declined, "No.")
	for name, c := range map[string]struct {
		card error
		with func(wallet, card error) error
		want lambdaidem.Code
	}{
		"joined":         {lambdaidem.Retryable(rejection), func(wallet, card error) error { return errors.Join(wallet, card) }, lambdaidem.ErrOutcomeUnknown},
		"the last error": {lambdaidem.Retryable(rejection), func(_, card error) error { return card }, lambdaidem.ErrOutcomeUnknown},
		"pay's own":      {lambdaidem.Retryable(rejection), func(wallet, _ error) error { return errors.Join(wallet, rejection) }, lambdaidem.ErrOutcomeUnknown},
		"for now":        {lambdaidem.Reject(503, closed, "Later."), func(wallet, card error) error { return errors.Join(wallet, card) }, closed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					_, wallet := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "wallet", Key: "k"}, answersOne)
					_, card := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.card })
					return 0, c.with(wallet, card)
				})
				if errors.Is(err, declined) || !errors.Is(err, c.want) {
					t.Errorf("the caller of pay gets %v; want %s", err, c.want)
				}
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
		})
	}
}

// Under Hold, pay is held because it does not mark the error of its Do again. Then neither the caller of
// pay nor the invoker of a typed handler finds card_declined.
func TestX4_ARejectionOfAnInnerCallIsNotFoundIfTheOutcomeIsUncertain(t *testing.T) {
	const declined lambdaidem.Code = "card_declined"
	for name, mark := range map[string]func(error) error{"retryable": lambdaidem.Retryable, "uncertain": lambdaidem.Uncertain} {
		t.Run(name, func(t *testing.T) {
			hold := func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold }
			r := newRig(nil, hold)
			pay := func(ctx context.Context) error {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, mark(lambdaidem.Reject(402, declined, "No.")) })
				return err
			}
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) { return 0, pay(ctx) })
				if errors.Is(err, declined) || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("the caller of pay gets %v; want ErrOutcomeUnknown", err)
				}
				return response{StatusCode: 503}, nil
			}, hold)
			r.send(t, first())
			r.store.forgetClaims()
			h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
				func(ctx context.Context, _ order) (int, error) { return 0, pay(ctx) })
			if _, errorType, text := invoke(t, h, `{"ID":"o-1"}`); errorType == string(declined) {
				t.Errorf("the invoker is told %q: %s", errorType, text)
			}
		})
	}
}

// A handler of messages that returns the stored failure of an inner call is held under Hold, also if it
// takes the failure out of its error, and whether the failure is a replay or not.
func TestX2_AFailureTakenOutIsHeldLikeItsReplay(t *testing.T) {
	for _, replayed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { // the second delivery waits for the end of the lease
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = lambdaidem.Hold })
			pay := func(ctx context.Context) error {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Reject(402, "card_declined", "No.") })
				return err
			}
			if replayed {
				_ = pay(t.Context())
			}
			runs := 0
			h := r.guard.SNS(func(ctx context.Context, _ events.SNSEventRecord) error {
				runs++
				if e, ok := errors.AsType[*lambdaidem.Error](pay(ctx)); ok {
					return e
				}
				return nil
			})
			for range 2 {
				_ = h(t.Context(), snsMessage())
			}
			if runs != 1 {
				t.Errorf("replayed %t: the message ran %d times", replayed, runs)
			}
		})
	}
}

// A 402 is not found while the outcome is uncertain, also if another failure, which asks for a retry, comes
// first.
func TestX4_ARejectionAfterAFailureForNowIsNotFoundIfTheOutcomeIsUncertain(t *testing.T) {
	const declined lambdaidem.Code = "card_declined"
	down := lambdaidem.Reject(503, "bank_down", "Later.")
	for name, err := range map[string]error{
		"joined":  errors.Join(lambdaidem.Uncertain(down), lambdaidem.Reject(402, declined, "No.")),
		"in list": listedErrors{lambdaidem.Uncertain(down), lambdaidem.Reject(402, declined, "No.")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, found := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, err })
				if errors.Is(found, declined) || !errors.Is(found, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("the caller gets %v; want ErrOutcomeUnknown", found)
				}
				return response{StatusCode: 503}, nil
			})
			r.send(t, first())
		})
	}
}

// A failure is stored under the code of ErrPermanent, and another one beside it has decided nothing. The
// first caller finds what later ones find.
func TestX2_AnErrorBesideAPermanentOneIsNotFound(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
			return 0, errors.Join(lambdaidem.Permanent(errBroken), lambdaidem.Reject(503, "bank_down", "Later."))
		})
		if e, ok := errors.AsType[*lambdaidem.Error](err); ok || !errors.Is(err, lambdaidem.ErrPermanent) {
			t.Errorf("the first caller finds %v in %v", e, err)
		}
		return response{StatusCode: 503}, nil
	})
	r.send(t, first())
}
