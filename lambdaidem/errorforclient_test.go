package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The handler charges in a step, fails afterwards, and marks the error as Retryable. A client that
// is told that nothing was carried out may send the request with a new key, and pay twice.
func TestX2_AClientIsNeverToldThatARetryableFailureHadNoEffect(t *testing.T) {
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
		if err != nil {
			t.Error(err)
		}
		return response{}, lambdaidem.Retryable(errWire)
	})
	out := r.send(t, first())
	wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrRetryable)
	if strings.Contains(out.Body, "not carried out") || !strings.Contains(out.Body, "with the same key") {
		t.Errorf("the client is told %s", out.Body)
	}
}

// The guarded handler has charged. Then it calls a guarded HTTP handler, whose store can't be reached,
// and passes on the response.
func TestX2_TheResponseOfAnInnerRequestDoesNotSpeakOfTheOuterOne(t *testing.T) {
	for name, call := range map[string]func(context.Context, *rig) (response, error){
		"APIGatewayV2": func(ctx context.Context, in *rig) (response, error) { return in.handler(ctx, post("inner", "{}")) },
		"Middleware": func(ctx context.Context, in *rig) (response, error) {
			rec := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/ship", strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "inner")
			in.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true }).Middleware(http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {})).ServeHTTP(rec, req)
			return response{StatusCode: rec.Code, Body: rec.Body.String()}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newRig(nil)
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				if _, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil }); err != nil {
					return response{}, err
				}
				return call(ctx, inner)
			})
			inner.store.failAlways(acquire, refused(lambdaidem.ReasonThrottled))
			if out := r.send(t, first()); !strings.Contains(out.Body, "A part of the request") {
				t.Errorf("the request has charged, and the client is told %d %s", out.StatusCode, out.Body)
			}
		})
	}
}

// The answer of an inner request can't be loaded now. The client of the outer request is told that its
// request was carried out.
func TestX2_AnInnerAnswerThatCantBeReadDoesNotSpeakOfTheOuterRequest(t *testing.T) {
	inner := newApartRig(true, nil)
	inner.send(t, post("inner", "{}"))
	shipped := 0
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		out, err := inner.handler(ctx, post("inner", "{}"))
		if err != nil || out.StatusCode != http.StatusCreated {
			return out, err
		}
		shipped++
		return response{StatusCode: http.StatusCreated}, nil
	})
	inner.store.failAlways(load, refused(lambdaidem.ReasonThrottled))
	if out := r.send(t, first()); !strings.Contains(out.Body, "A part of the request") || shipped != 0 {
		t.Errorf("nothing was shipped, and the client is told %d %s", out.StatusCode, out.Body)
	}
}

// An unguarded handler has charged once; a second guarded call is refused. The client is told that the
// request was not carried out.
func TestX2_AnUnguardedHandlerDoesNotSpeakOfItsGuardedCalls(t *testing.T) {
	r, _ := withLedger(nil)
	charged := 0
	h := r.guard.With(func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }).APIGatewayV2(
		func(ctx context.Context, _ request) (response, error) {
			if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
				return response{}, err
			}
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "ship", Key: "order-1"}, func(context.Context) (int, error) { return 1, nil })
			return response{StatusCode: http.StatusCreated}, err
		})
	out, err := h(t.Context(), first())
	if err != nil || !strings.Contains(out.Body, "A part of the request") || charged != 1 {
		t.Errorf("charged %d times, and the client is told %d %s, %v", charged, out.StatusCode, out.Body, err)
	}
}

// Another request is charging when the handler makes the charge, so its first try is refused. The
// second try gets the stored answer, a decline. The handler returns the errors of both tries. That
// answer is final and stored, so it must be the decline.
func TestX2_AStoredAnswerDoesNotAskForARetry(t *testing.T) {
	declined := lambdaidem.Code("card_declined")
	started := func(t *testing.T) (r *rig, finish func()) {
		r = newRig(nil)
		began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_, _ = lambdaidem.Do(context.WithoutCancel(t.Context()), r.guard, charge, func(context.Context) (int, error) {
				close(began)
				<-goOn
				return 0, lambdaidem.Reject(http.StatusPaymentRequired, declined, "The card was declined.")
			})
		}()
		<-began
		return r, sync.OnceFunc(func() { close(goOn); <-done })
	}
	twice := func(ctx context.Context, r *rig, finish func()) error {
		one := r.charged(ctx)
		finish()
		return errors.Join(one, r.charged(ctx))
	}
	t.Run("request", func(t *testing.T) {
		r, finish := started(t)
		r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, twice(ctx, r, finish) })
		r.send(t, first())
		if out := r.send(t, first()); !replayed(out) || out.StatusCode != http.StatusPaymentRequired {
			t.Errorf("the stored answer is %d %s", out.StatusCode, out.Body)
		}
	})
	t.Run("Do", func(t *testing.T) {
		r, finish := started(t)
		var err error
		for range 2 {
			_, err = lambdaidem.Do(t.Context(), r.guard, lambdaidem.Call{Operation: "order", Key: "o"},
				func(ctx context.Context) (int, error) { return 1, twice(ctx, r, finish) })
		}
		if !errors.Is(err, declined) || errors.Is(err, lambdaidem.ErrInProgress) {
			t.Errorf("the stored error is %v", err)
		}
	})
}

// A typed handler has charged, and a later guarded call inside it is refused. The invoker must not
// read that call's text: "Send a new key" would charge again.
func TestX2_TheInvokerReadsNothingOfACallInside(t *testing.T) {
	for name, by := range map[string]func(error) error{
		"as it is": func(err error) error { return err }, "permanent": lambdaidem.Permanent, "retryable": lambdaidem.Retryable, "uncertain": lambdaidem.Uncertain,
		"wrapped": func(err error) error { return fmt.Errorf("order: %w", err) }, "joined": func(err error) error { return errors.Join(err, errWire) },
		"permanent, wrapped": func(err error) error { return lambdaidem.Permanent(fmt.Errorf("order: %w", err)) },
		"wrapped, permanent": func(err error) error { return fmt.Errorf("order: %w", lambdaidem.Permanent(err)) },
		"retryable, wrapped": func(err error) error { return lambdaidem.Retryable(fmt.Errorf("order: %w", err)) },
	} {
		for what, refusal := range map[string]func(ctx context.Context, r *rig) error{
			"another payload": func(ctx context.Context, r *rig) error {
				c := charge
				c.Payload = order{"other"}
				_, err := lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, nil })
				return err
			},
			"answer unavailable": func(ctx context.Context, r *rig) error {
				var err error
				r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
				for range 2 {
					_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "ship", Key: "s"}, func(context.Context) (int, error) { return 1, nil })
				}
				return err
			},
			"two calls inside": func(ctx context.Context, r *rig) error {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "ship", Key: "s"}, func(ctx context.Context) (int, error) {
					c := charge
					c.Payload = order{"other"}
					_, err := lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, nil })
					return 0, err
				})
				return err
			},
			"unavailable, then done": func(ctx context.Context, r *rig) error {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				ship := lambdaidem.Call{Operation: "ship", Key: "s"}
				_, err := lambdaidem.Do(ctx, r.guard, ship, func(context.Context) (int, error) { return 1, nil })
				_, _ = lambdaidem.Do(ctx, r.guard, ship, func(context.Context) (int, error) { return 1, nil })
				return err
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				r := newRig(nil)
				charged := 0
				h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
					func(ctx context.Context, _ order) (int, error) {
						if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
							return 0, err
						}
						return 0, by(refusal(ctx, r))
					})
				_, errorType, message := invoke(t, h, `{"ID":"o-1"}`)
				if charged != 1 || strings.Contains(message, "new key") || strings.Contains(message, "carried out") {
					t.Errorf("charged %d; told %q: %q", charged, errorType, message)
				}
				if _, _, again := invoke(t, h, `{"ID":"o-1"}`); again == message && strings.Contains(name, "permanent") && strings.Contains(message, "Repeat") && what != "answer unavailable" {
					t.Errorf("told %q by the stored failure: %q", errorType, message)
				}
			})
		}
	}
}

// The handler has charged. The writes of a guarded request inside it are rejected, and it passes the
// response on. The client must not read that its request wrote nothing.
func TestX2_RejectedWritesOfAnInnerRequestAreNotTheClients(t *testing.T) {
	released := func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeReleased }
	}
	ship := func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "ship")
		return response{StatusCode: http.StatusCreated}, nil
	}
	in, _ := withLedger(ship, released)
	conditional, l := withLedger(ship)
	l.fail(commit, rejects(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Detail: "The request wrote nothing."}))
	middleware := in.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true }).Middleware(
		http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			enlist(q.Context(), "ship")
			w.WriteHeader(http.StatusCreated)
		}))
	for name, call := range map[string]func(context.Context) (response, error){
		"APIGatewayV2":       func(ctx context.Context) (response, error) { return in.handler(ctx, post("inner", "{}")) },
		"a failed condition": func(ctx context.Context) (response, error) { return conditional.handler(ctx, post("inner", "{}")) },
		"Middleware": func(ctx context.Context) (response, error) {
			rec := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/ship", strings.NewReader("{}"))
			req.Header.Set("Idempotency-Key", "inner")
			middleware.ServeHTTP(rec, req)
			return response{StatusCode: rec.Code, Body: rec.Body.String()}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { charged++; return 1, nil }); err != nil {
					return response{}, err
				}
				return call(ctx)
			})
			out, err := r.handler(t.Context(), first())
			if charged != 1 || err == nil && (out.StatusCode < 500 || strings.Contains(out.Body, "wrote nothing")) {
				t.Errorf("charged %d times, and the client is told %d %s", charged, out.StatusCode, out.Body)
			}
		})
	}
}

// An observer may keep an event and read it later, so the guard must not change the event's error.
func TestL9_TheErrorOfAnEventDoesNotChange(t *testing.T) {
	var reported, copied []lambdaidem.Error
	var kept []*lambdaidem.Error
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) {
			if own, ok := errors.AsType[*lambdaidem.Error](e.Err); ok {
				reported, kept = append(reported, *own), append(kept, own)
			}
		})
	})
	_, _ = lambdaidem.Do(t.Context(), r.guard, charge, func(ctx context.Context) (int, error) {
		return 1, r.charged(ctx) // refused: the call has the handler's own record
	})
	for _, own := range kept {
		copied = append(copied, *own)
	}
	if len(reported) == 0 || !slices.Equal(reported, copied) {
		t.Errorf("the errors of events were %v, and are %v", reported, copied)
	}
}

// A write is rejected, and its verdict is an error of the guard that is stored. The first response
// must be the stored one, which Options.OnOwnAnswer does not change.
func TestX6_AStoredVerdictIsSentAsItIsStored(t *testing.T) {
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "order")
		return response{StatusCode: http.StatusCreated}, nil
	}, func(o *lambdaidem.Options) {
		o.OnOwnAnswer = func(_ context.Context, _ *lambdaidem.Request, out *lambdaidem.Response, _ *lambdaidem.Error) {
			out.Body = "another text"
		}
	})
	l.fail(commit, rejects(lambdaidem.Permanent(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusConflict})))
	one := r.send(t, first())
	if two := r.send(t, first()); one.StatusCode != two.StatusCode || one.Body != two.Body || !replayed(two) {
		t.Errorf("the first response is %d %s, the replay %d %s", one.StatusCode, one.Body, two.StatusCode, two.Body)
	}
}

// idempotency_permanent_failure tells the client that every retry gets the same answer. That is true
// only if the answer is stored. The error is that of an inner call, which has stored it.
func TestX2_PermanentIsToldOnlyIfItIsStored(t *testing.T) {
	pay := func(ctx context.Context, r *rig) error {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) })
		return err
	}
	for name, c := range map[string]struct {
		policy lambdaidem.Policy
		h      func(context.Context, *rig) (response, error)
	}{
		"retryable": {lambdaidem.Rerun, func(ctx context.Context, r *rig) (response, error) {
			return response{}, lambdaidem.Retryable(pay(ctx, r))
		}},
		"bank 2 hold": {lambdaidem.Hold, func(ctx context.Context, r *rig) (response, error) {
			return response{}, errors.Join(pay(ctx, r), errBroken)
		}}, // bank 2 has got the charge, and its reply is lost
		"bank 2 unknown": {lambdaidem.Rerun, func(ctx context.Context, r *rig) (response, error) {
			err := pay(ctx, r)
			c := charge
			c.Operation = "bank 2"
			_, two := lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, lambdaidem.Uncertain(errBroken) })
			return response{}, errors.Join(err, two)
		}},
		"bank 2 unavailable": {lambdaidem.Rerun, func(ctx context.Context, r *rig) (response, error) {
			err := pay(ctx, r)
			c := charge
			c.Operation = "bank 2"
			r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
			_, two := lambdaidem.Do(ctx, r.guard, c, func(context.Context) (int, error) { return 1, nil })
			return response{}, lambdaidem.Retryable(errors.Join(err, two))
		}},
		"response": {lambdaidem.Hold, func(ctx context.Context, r *rig) (response, error) {
			return r.guarded(func(context.Context, request) (response, error) { return response{}, lambdaidem.Permanent(errWire) })(ctx, post("inner", "{}"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = c.policy })
			_ = pay(t.Context(), r) // the charge has failed before, in an attempt of the order that has died, for example
			r.store.forgetClaims()
			r = r.later(func(ctx context.Context, _ request) (response, error) { return c.h(ctx, r) })
			out, _ := r.handler(t.Context(), first())
			rec := r.record(t)
			if strings.Contains(out.Body, string(lambdaidem.ErrPermanent)) && rec.State != lambdaidem.Completed {
				t.Errorf("the client is told %d %s; the record is %s", out.StatusCode, out.Body, rec.State)
			}
		})
	}
}

// The error that a handler returns is stored, and contains other errors that ask for a retry. The
// answer to the client is the one that is meant to be stored.
func TestX4_AStoredAnswerAsksForNoRetry(t *testing.T) {
	slow := lambdaidem.Retryable(lambdaidem.Reject(http.StatusTooManyRequests, "slow_down", "Slow down."))
	for name, c := range map[string]struct {
		inner error // what the function of an inner call returns
		by    func(error) error
		want  int
		code  lambdaidem.Code
	}{
		"joined":  {slow, func(err error) error { return errors.Join(err, noPayment) }, 402, "payment_failed"},
		"wrapped": {slow, func(err error) error { return fmt.Errorf("%w: %w", err, noPayment) }, 402, "payment_failed"},
		"unmarked": {nil, func(error) error {
			return errors.Join(lambdaidem.Reject(http.StatusServiceUnavailable, "closed", "Closed."), noPayment)
		}, 402, "payment_failed"},
		"of its own": {nil, func(error) error { return errors.Join(slow, noPayment) }, 402, "payment_failed"},
		"final of its own": {nil, func(error) error {
			return errors.Join(lambdaidem.Retryable(lambdaidem.Reject(http.StatusNotFound, "closed", "")), noPayment)
		}, 402, "payment_failed"},
		"permanent":                      {slow, lambdaidem.Permanent, 429, "slow_down"},
		"permanent, marked as retryable": {nil, func(error) error { return lambdaidem.Permanent(slow) }, 429, "slow_down"},
		"retryable around permanent": {nil, func(error) error {
			return lambdaidem.Retryable(lambdaidem.Permanent(lambdaidem.Reject(http.StatusServiceUnavailable, "closed", "Closed.")))
		}, 503, "closed"},
	} {
		for _, stored := range []lambdaidem.Outcome{lambdaidem.OutcomeFailed, lambdaidem.OutcomeSucceeded} {
			if c.inner == nil && stored == lambdaidem.OutcomeSucceeded {
				continue // the error that asks for a retry decides then
			}
			t.Run(name+" "+string(stored), func(t *testing.T) {
				r := newRig(nil, func(o *lambdaidem.Options) {
					o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
						if r.Status == http.StatusPaymentRequired {
							return stored
						}
						return lambdaidem.DefaultOutcome(r)
					}
				})
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, c.inner })
					return response{}, c.by(err)
				})
				one, two := r.send(t, first()), r.send(t, first())
				wantProblem(t, one, c.want, c.code)
				wantReplay(t, two, one)
			})
		}
	}
}

// An inner call was in progress and then done, and the handler makes its refusal final. The stored
// answer must not say that the request is in progress.
func TestX4_ARefusalMadePermanentAsksForNoRetry(t *testing.T) {
	for name, by := range map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"taken out": func(err error) error {
			own, _ := errors.AsType[*lambdaidem.Error](err)
			return fmt.Errorf("order: %w", own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil })
				_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil })
				return response{}, lambdaidem.Permanent(by(err))
			})
			one, two := r.send(t, first()), r.send(t, first())
			wantProblem(t, one, http.StatusInternalServerError, lambdaidem.ErrPermanent)
			wantReplay(t, two, one)
		})
	}
}

// A guard runs a typed handler unguarded. The invoker reads nothing of a refusal inside it either.
func TestX2_TheInvokerOfAnUnguardedHandlerReadsNothingOfACallInside(t *testing.T) {
	r := newRig(nil)
	for name, by := range map[string]func(error) error{
		"Error":     lambdaidem.Permanent,
		"wrapError": func(err error) error { return fmt.Errorf("order: %w", err) },
	} {
		h := lambdaidem.Handler(r.guard, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil },
			func(ctx context.Context, _ order) (int, error) {
				r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, nil })
				return 0, by(err)
			}, func(o *lambdaidem.HandlerOptions[order]) { o.Skip = func(context.Context, order) bool { return true } })
		_, errorType, message := invoke(t, h, `{"ID":"o-1"}`)
		if errorType != name || !strings.HasPrefix(message, "A part of the request was refused.") {
			t.Errorf("told %q: %q; want %q", errorType, message, name)
		}
	}
}

// An inner call rejects the request for now, and the handler returns its error without a mark. The
// record is released, so the client must not be told 402, which is final.
func TestX2_ARejectionThatAnInnerCallDoesNotStoreIsNotSent(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		t.Run(string(policy), func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = policy })
			charged, night := 0, true
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
					if night {
						return 0, lambdaidem.Retryable(lambdaidem.Reject(402, "limit_reached", "The daily limit is reached."))
					}
					charged++
					return 1, nil
				})
				return response{StatusCode: 201}, err
			})
			out, err := r.handler(t.Context(), first())
			state := r.record(t).State
			night = false
			_, _ = r.handler(t.Context(), first()) // the duplicate
			if err == nil && out.StatusCode == 402 && charged > 0 {
				t.Errorf("the client was told %d %s; the record was %s; a duplicate has charged %d times", out.StatusCode, out.Body, state, charged)
			}
		})
	}
}

// An inner call has committed a write, and then the handler's answer contradicts its own writes. The
// client must not be told that its request wrote nothing.
func TestX2_AContradictionSaysNothingOfAnInnerCallsWrites(t *testing.T) {
	var r *rig
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		if _, err := lambdaidem.Do(ctx, r.guard.With(func(o *lambdaidem.Options) { o.Outcome = nil }), charge, func(ctx context.Context) (int, error) {
			enlist(ctx, "charge")
			return 1, nil
		}); err != nil {
			return response{}, err
		}
		enlist(ctx, "order")
		return response{StatusCode: http.StatusAccepted}, nil
	}, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeReleased }
	})
	out := r.send(t, first())
	l.wantDone(t, "charge")
	wantProblem(t, out, http.StatusInternalServerError, lambdaidem.ErrWriteInvalid)
	if strings.Contains(out.Body, "wrote nothing") {
		t.Errorf("the client is told %s", out.Body)
	}
}

// A rejected write decides that the failure is final. The client gets the code of that failure.
func TestX4_ARejectedWriteMadePermanentHasItsCode(t *testing.T) {
	r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
		enlist(ctx, "order")
		return response{StatusCode: http.StatusCreated}, nil
	})
	l.fail(commit, rejects(lambdaidem.Permanent(&lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: http.StatusInternalServerError, Detail: "No."})))
	one, two := r.send(t, first()), r.send(t, first())
	wantProblem(t, one, http.StatusInternalServerError, lambdaidem.ErrConditionFailed)
	wantReplay(t, two, one)
}

// The record of the charge has a 402. The call around it, pay, makes that Retryable, because another card
// may be there next time. So the client must not read 402, whether the charge ran or was replayed.
func TestX2_AReplayedRejectionThatAnInnerCallDoesNotStoreIsNotSent(t *testing.T) {
	for name, with := range map[string]func(error) error{
		"marked": lambdaidem.Retryable,
		"marked, taken out": func(err error) error {
			if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
				return lambdaidem.Retryable(e)
			}
			return lambdaidem.Retryable(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			reserved := 0
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				reserved++ // an effect of the handler's own
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, noPayment })
					return 0, with(err)
				})
				return response{}, err
			})
			for i := range 3 {
				out, err := r.handler(t.Context(), first())
				if rec := r.record(t); rec.State != lambdaidem.Completed && out.StatusCode == http.StatusPaymentRequired {
					t.Errorf("request %d: the record is %s, the client is told %d %s, %v", i+1, rec.State, out.StatusCode, out.Body, err)
				}
			}
		})
	}
}

// The same for an *Error that was not made by Reject. It releases the record of the inner call.
func TestX2_AnErrorMadeWithoutRejectThatAnInnerCallDoesNotStoreIsNotSent(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
			return 0, &lambdaidem.Error{Code: "card_declined", Status: http.StatusPaymentRequired}
		})
		return response{}, err
	})
	out, err := r.handler(t.Context(), first())
	if rec := r.record(t); rec.State != lambdaidem.Completed && out.StatusCode == http.StatusPaymentRequired {
		t.Errorf("the record is %s, the client is told %d %s, %v", rec.State, out.StatusCode, out.Body, err)
	}
}

// The handler of an inner request returns a stored failure that it took out of its wrapper, and the outer
// handler passes on the response, a 500. The outer record is released, so the client may repeat its request.
func TestX2_AnInnerRequestDoesNotSayThatTheOuterOneFailedForGood(t *testing.T) {
	r := newRig(nil)
	reserve := lambdaidem.Call{Operation: "reserve", Key: "k"}
	broken := func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) }
	_, _ = lambdaidem.Do(t.Context(), r.guard, reserve, broken)
	pay := r.guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, reserve, broken)
		if e, ok := errors.AsType[*lambdaidem.Error](err); ok {
			return response{}, e
		}
		return response{}, err
	})
	r.store.forgetClaims()
	r = r.later(func(ctx context.Context, _ request) (response, error) { return pay(ctx, post("inner", "{}")) })
	out := r.send(t, first())
	var doc struct{ Code lambdaidem.Code }
	if err := json.Unmarshal([]byte(out.Body), &doc); err != nil {
		t.Fatal(err)
	}
	if rec := r.record(t); rec.State != lambdaidem.Completed && doc.Code == lambdaidem.ErrPermanent {
		t.Errorf("the record is %s, the client is told %d %s", rec.State, out.StatusCode, out.Body)
	}
}

// A write of an inner net/http request is rejected, and the outer handler passes on the response. The
// condition is not one of the client's request.
func TestX2_TheConditionOfAnInnerNetHTTPRequestIsNotTheClients(t *testing.T) {
	for name, verdict := range map[string]error{
		"plain":        errBroken,
		"from a guard": &lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500, Detail: "The request was not completed, because a condition that it requires is not met."},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := withLedger(nil, func(o *lambdaidem.Options) { o.AnonymousCallers = true })
			pay := r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
				enlist(in.Context(), "pay")
				w.WriteHeader(http.StatusCreated)
			}))
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				l.fail(commit, rejects(verdict))
				in := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://h/pay", strings.NewReader("{}"))
				in.Header.Set("Idempotency-Key", "k")
				rw := httptest.NewRecorder()
				pay.ServeHTTP(rw, in)
				return response{StatusCode: rw.Code, Body: rw.Body.String()}, nil
			})
			out := r.send(t, first())
			var doc struct{ Code lambdaidem.Code }
			if err := json.Unmarshal([]byte(out.Body), &doc); err != nil {
				t.Fatal(err)
			}
			if doc.Code == lambdaidem.ErrConditionFailed {
				t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
			}
		})
	}
}

// A failure that asks the client to repeat the request is sent, even if an inner call has not stored it.
func TestX2_AFailureThatAsksForARetryIsSent(t *testing.T) {
	for name, inner := range map[string]func(r *rig) (int, error){
		"of another service": func(*rig) (int, error) {
			return 0, lambdaidem.Reject(http.StatusConflict, lambdaidem.ErrInProgress, "Later.")
		},
		"of a guard": func(r *rig) (int, error) {
			return lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (int, error) {
				_, err := lambdaidem.Do(t.Context(), r.guard, charge, answersOne)
				return 0, err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := func(o *lambdaidem.Options) {
				o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
					if name == "of a guard" && r.Status == http.StatusConflict {
						return lambdaidem.OutcomeFailed
					}
					return lambdaidem.DefaultOutcome(r)
				}
			}
			r := newRig(nil, options)
			r = r.later(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (int, error) { return inner(r) })
				return response{}, err
			}, options)
			wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
		})
	}
}

// An *Error that a handler returns is the client's answer, whatever its code is and wherever it comes
// from, if it decides about the record.
func TestX4_AFinalRejectionIsSent(t *testing.T) {
	declined := func(code lambdaidem.Code) error {
		return lambdaidem.Reject(http.StatusPaymentRequired, code, "The card was declined.")
	}
	for name, answer := range map[string]func(ctx context.Context, g *lambdaidem.Guard) error{
		"with the code of Permanent": func(context.Context, *lambdaidem.Guard) error { return declined(lambdaidem.ErrPermanent) },
		"taken out of the error of an inner call": func(ctx context.Context, g *lambdaidem.Guard) error {
			var e *lambdaidem.Error
			for range 2 { // the second error is a replay
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 0, declined("card_declined") })
				if !errors.As(err, &e) {
					return err
				}
			}
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, answer(ctx, r.guard) })
			if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
				t.Errorf("the client is told %d %s", out.StatusCode, out.Body)
			}
			r.wantState(t, lambdaidem.Completed)
		})
	}
}

// A write is rejected inside an inner HTTP request, which answers with a failure that is stored. The
// first caller gets that answer, as later ones do.
func TestX6_AnInnerRequestsFirstAnswerIsItsReplay(t *testing.T) {
	soldOut := lambdaidem.Reject(http.StatusConflict, "sold_out", "No.")
	condition := &lambdaidem.Error{Code: lambdaidem.ErrConditionFailed, Status: 500} // as dynamostore without Else
	inDo := func(ctx context.Context, g *lambdaidem.Guard) error {
		_, err := lambdaidem.Do(ctx, g, charge, func(ctx context.Context) (int, error) {
			enlist(ctx, "stock")
			return 1, nil
		})
		return err
	}
	for name, c := range map[string]struct {
		verdict error
		answer  func(context.Context, *lambdaidem.Guard) error
	}{
		"of a call, joined": {condition, func(ctx context.Context, g *lambdaidem.Guard) error { return errors.Join(inDo(ctx, g), soldOut) }},
		"of a call, permanent": {condition, func(ctx context.Context, g *lambdaidem.Guard) error {
			return lambdaidem.Permanent(inDo(ctx, g))
		}},
		"its own": {soldOut, func(ctx context.Context, _ *lambdaidem.Guard) error {
			enlist(ctx, "stock")
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var pay handler
			r, l := withLedger(func(ctx context.Context, _ request) (response, error) {
				one, err := pay(ctx, post("inner", "{}"))
				if err != nil {
					t.Errorf("the first caller gets the error %v", err)
				}
				two, err := pay(ctx, post("inner", "{}"))
				if err != nil || one.StatusCode != two.StatusCode || one.Body != two.Body {
					t.Errorf("the first caller gets %d %s, the second one %d %s, %v", one.StatusCode, one.Body, two.StatusCode, two.Body, err)
				}
				return response{StatusCode: 503}, nil
			})
			l.fail(commit, rejects(c.verdict))
			pay = r.guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
				return response{StatusCode: 201}, c.answer(ctx, r.guard)
			})
			r.send(t, first())
		})
	}
}
