package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// These tests are about guarded calls in a guarded handler that are not settled when the
// handler returns.

// order calls charge inside another guarded call. That call returns the error own if charge fails.
func (r *rig) order(ctx context.Context, charge func(context.Context) error, own error) error {
	_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (int, error) {
		if charge(ctx) != nil {
			return 0, own
		}
		return 1, nil
	})
	return err
}

func TestX4_AnUnknownOutcomeIsKnownTwoCallsFurtherOut(t *testing.T) {
	declined := lambdaidem.Reject(http.StatusFailedDependency, "payment_failed", "The payment failed.")
	for name, answer := range map[string]func(error) (response, error){
		"the error as it is": func(err error) (response, error) { return response{}, err },
		"a client error":     func(error) (response, error) { return response{StatusCode: 402}, nil },
		"a server error":     func(error) (response, error) { return response{StatusCode: 502}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					return answer(r.order(ctx, func(ctx context.Context) error { return r.unknownCharge(ctx, t, requestLost, nil) }, declined))
				})
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, lambdaidem.InProgress)
			})
		})
	}
}

func TestX1_ACallInProgressIsKnownTwoCallsFurtherOut(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprintf("the call between panics: %t", panics), func(t *testing.T) {
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (out response, err error) {
				defer func() { _ = recover() }()
				out.StatusCode = 402
				err = r.order(ctx, func(ctx context.Context) error {
					err := r.charged(ctx)
					if err != nil && panics {
						panic(err)
					}
					return err
				}, errors.New("not paid"))
				if err == nil {
					out.StatusCode = 201
				}
				return out, nil
			})
			end := r.busy(t)
			r.send(t, first())
			end()
			if out := r.send(t, first()); out.StatusCode != 201 {
				t.Errorf("after the payment was done elsewhere, a retry gets %d", out.StatusCode)
			}
		})
	}
}

func TestX1_AnInnerCallWithoutTimeIsNotStored(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		late, cancel := context.WithDeadline(ctx, time.Now())
		defer cancel()
		if err := r.charged(late); !errors.Is(err, lambdaidem.ErrOutOfTime) {
			t.Errorf("the inner call ended with %v", err)
		}
		return response{StatusCode: 402}, nil
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.Released)
}

// The second try finds the first one's lease, so it is refused with a code that alone
// would let the record be released.
func TestX4_AnotherTryInsideHidesNoUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_ = r.unknownCharge(ctx, t, requestLost, nil)
			if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrInProgress) {
				t.Errorf("the second try ended with %v", err)
			}
			return response{StatusCode: 502}, nil
		})
		r.send(t, first())
		r.wantState(t, lambdaidem.InProgress)
	})
}

// An answer of the inner record settles an outcome that was unknown.
func TestX4_AnotherTryInsideMaySettleAnUnknownOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		first fault // what happens to the completion of the first try
		err   error // the answer of both tries
	}{
		"the second try runs":              {first: requestLost},
		"the second try fails":             {first: requestLost, err: lambdaidem.Permanent(errors.New("declined"))},
		"the second try replays":           {first: replyLost},
		"the second try replays a failure": {first: replyLost, err: lambdaidem.Permanent(errors.New("declined"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					_ = r.unknownCharge(ctx, t, c.first, c.err)
					time.Sleep(10 * time.Second) // until the lease of the first try is over
					_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 1, c.err })
					return response{StatusCode: 402}, nil
				})
				r.send(t, first())
				r.wantState(t, lambdaidem.Completed)
			})
		})
	}
}

// unwritable is a result that can't be encoded.
type unwritable struct{}

func (unwritable) MarshalJSON() ([]byte, error) { panic("it can't be written") }

func TestX4_AnInnerCallThatEndsUncertain(t *testing.T) {
	for name, call := range map[string]func(context.Context, *lambdaidem.Guard) error{
		"marked": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) {
				return 0, lambdaidem.Uncertain(errors.New("timed out"))
			})
			return err
		},
		"a panic": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { panic("after the charge") })
			return err
		},
		"a panic after the handler": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (unwritable, error) { return unwritable{}, nil })
			return err
		},
	} {
		for _, status := range []int{402, 502} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (out response, err error) {
					defer func() { _ = recover() }()
					out.StatusCode = status
					_ = call(ctx, r.guard.With(hold))
					return out, nil
				})
				r.send(t, first())
				r.wantState(t, lambdaidem.InProgress)
			})
		}
	}
}

// A handler that gives up on an inner call must not have its record released: the inner
// call may still have its effect, and a corrected request would have another.
func TestX4_AnInnerCallStillRunsWhenTheHandlerReturns(t *testing.T) {
	for name, end := range map[string]struct {
		status int
		err    error
	}{
		"a server error": {status: http.StatusGatewayTimeout},
		"a client error": {status: http.StatusPaymentRequired},
		"a mark":         {err: lambdaidem.Retryable(errors.New("too slow"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					begun := make(chan struct{})
					go func() {
						_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
							close(begun)
							time.Sleep(time.Second)
							return 1, nil
						})
					}()
					<-begun
					return response{StatusCode: end.status}, end.err
				})
				_, _ = r.handler(t.Context(), first())
				r.wantState(t, lambdaidem.InProgress)
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestX1_AnInnerRefusalIsNotStoredBesideAFailure(t *testing.T) {
	fee := lambdaidem.Call{Operation: "fee", Key: "k"}
	for name, failure := range map[string]error{
		"permanent": lambdaidem.Permanent(errors.New("no fee")),
		"rejected":  lambdaidem.Reject(http.StatusPaymentRequired, "no_fee", "No."),
	} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, replayed: %t", name, again), func(t *testing.T) {
				var r *rig
				failed := func(ctx context.Context) error {
					_, err := lambdaidem.Do(ctx, r.guard, fee, func(context.Context) (int, error) { return 0, failure })
					return err
				}
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					return response{}, errors.Join(failed(ctx), r.charged(ctx))
				})
				if again {
					_ = failed(t.Context())
					r.store.forgetClaims()
				}
				end := r.busy(t)
				defer end()
				_, _ = r.handler(t.Context(), first())
				if out, _ := r.handler(t.Context(), first()); replayed(out) {
					t.Errorf("the refusal is replayed: %d %s", out.StatusCode, out.Body)
				}
			})
		}
	}
}

// The handler ignores the refusal of one inner call, and returns the failure that another
// one replays.
func TestX1_AReplayedFailureIsNotStoredBesideAnIgnoredRefusal(t *testing.T) {
	var r *rig
	failed := func(ctx context.Context) error {
		_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "fee", Key: "k"}, func(context.Context) (int, error) {
			return 0, lambdaidem.Permanent(errors.New("no fee"))
		})
		return err
	}
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_ = r.charged(ctx)
		return response{}, failed(ctx)
	})
	_ = failed(t.Context())
	r.store.forgetClaims()
	defer r.busy(t)()
	_, _ = r.handler(t.Context(), first())
	r.wantState(t, lambdaidem.Released)
}

// A deployment that leaves out the old secret can't compare the inner call's payload with
// the one in its record, and refuses the call. When a later deployment has the secret again,
// a retry of the outer request must not get an answer about that refusal.
func TestX1_AnInnerMismatchThatIsNotSureIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		secret, body string
		want         lambdaidem.State
	}{
		"another payload under the same secret": {oldSecret, "q", lambdaidem.Completed},
		"another secret":                        {newSecret, "p", lambdaidem.Released},
	} {
		t.Run(name, func(t *testing.T) {
			var r *rig
			pay := func(ctx context.Context, secret, body string) error {
				_, err := lambdaidem.Do(ctx, r.guard.With(secrets(secret)), lambdaidem.Call{Operation: "charge", Key: "k", Payload: body}, func(context.Context) (int, error) { return 1, nil })
				return err
			}
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if err := pay(ctx, c.secret, c.body); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
					t.Errorf("the inner call ended with %v", err)
				}
				return response{StatusCode: 409}, nil
			})
			if err := pay(t.Context(), oldSecret, "p"); err != nil {
				t.Fatal(err)
			}
			r.store.forgetClaims()
			r.send(t, first())
			r.wantState(t, c.want)
		})
	}
}

func TestX4_NoMarkSettlesAnUnknownOutcome(t *testing.T) {
	for name, mark := range map[string]func(error) error{"retryable": lambdaidem.Retryable, "permanent": lambdaidem.Permanent} {
		for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
			t.Run(fmt.Sprintf("%s under %s", name, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var r *rig
					r = newRig(func(ctx context.Context, _ request) (response, error) {
						return response{}, mark(fmt.Errorf("charge: %w", r.unknownCharge(ctx, t, requestLost, nil)))
					}, func(o *lambdaidem.Options) { o.Policy = policy })
					_, _ = r.handler(t.Context(), first())
					r.wantState(t, lambdaidem.InProgress)
				})
			})
		}
	}
}

// An inner call that may have had an effect binds the outer records to their payloads too, because
// a corrected request would make another inner call, and have another effect.
func TestE6_AnInnerCallBindsTheRequestsAround(t *testing.T) {
	for name, pay := range map[string]func(context.Context) error{
		"a downstream key": func(ctx context.Context) error {
			_ = lambdaidem.DownstreamKey(ctx, "charge")
			return errors.New("connection reset")
		},
		"a success": func(context.Context) error { return nil },
	} {
		for _, depth := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d calls inside", name, depth), func(t *testing.T) {
				payments := 0
				var r *rig
				var call func(ctx context.Context, body string, depth int) error
				call = func(ctx context.Context, body string, depth int) error {
					if depth == 0 {
						payments++
						return pay(ctx)
					}
					key, err := lambdaidem.HashKey(depth, body)
					if err != nil {
						t.Error(err)
					}
					_, err = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: key}, func(ctx context.Context) (int, error) {
						if err := call(ctx, body, depth-1); err != nil || depth > 1 {
							return 0, errors.Join(err, errors.New("the order failed"))
						}
						return 1, nil
					})
					return err
				}
				r = newRig(func(ctx context.Context, in request) (response, error) {
					_ = call(ctx, in.Body, depth)
					return response{StatusCode: 502}, nil
				})
				r.send(t, post("key-1", `{"amount":100}`))
				wantProblem(t, r.send(t, post("key-1", `{"amount":90}`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
				if payments != 1 {
					t.Errorf("%d payments", payments)
				}
			})
		}
	}
}

// An inner call whose record has a failure had no effect, so it does not bind the outer record.
// Later requests with other payloads replay the failure.
func TestF5_AnInnerCallThatFailedBindsNothing(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, _ = lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) {
			return 0, lambdaidem.Reject(http.StatusPaymentRequired, "declined", "No.")
		})
		return response{StatusCode: 503}, nil
	})
	for _, body := range []string{`{"amount":100}`, `{"amount":90}`, `{"amount":80}`} {
		if out := r.send(t, post("key-1", body)); out.StatusCode != 503 {
			t.Errorf("the request with %s gets %d", body, out.StatusCode)
		}
	}
}

func TestL5_AnInnerCallWithoutCancelEndsWithinTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			r.store.fail(complete, hangs)
			outerEnd, _ := ctx.Deadline()
			_, _ = lambdaidem.Do(context.WithoutCancel(ctx), r.guard, charge, func(ctx context.Context) (int, error) {
				if end, ends := ctx.Deadline(); !ends || !end.Before(outerEnd) {
					t.Errorf("the inner handler may run until %v (it has a deadline: %t), the outer one until %v", end, ends, outerEnd)
				}
				return 1, nil
			})
			return response{StatusCode: 201}, nil
		})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _ = r.handler(ctx, first())
		if took := time.Since(began); took >= 3*time.Second {
			t.Errorf("the request took %v", took)
		}
	})
}

// A handler on a server has no deadline. A call that it leaves in a goroutine has its own time, and
// can begin an hour after the handler has returned.
func TestL5_ACallAfterARequestWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		done := make(chan error, 1)
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			go func() {
				time.Sleep(time.Hour)
				done <- r.charged(context.WithoutCancel(ctx))
			}()
			return response{StatusCode: 202}, nil
		})
		r.send(t, first())
		if err := <-done; err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}

// The application's function for the key or the caller of an inner call fails. An answer about that
// is not stored if the function may succeed later. It is stored if every retry would fail too: the
// function returned no caller, or a final rejection.
func TestX1_AnAnswerAboutAnInnerCallWithoutAKeyOrCallerIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		opt  func(*lambdaidem.Options)
		want lambdaidem.State
	}{
		"the caller": {func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", errWire }
		}, lambdaidem.Released},
		"the key": {func(o *lambdaidem.Options) {
			o.Key = func(context.Context, *lambdaidem.Request) (string, error) { return "", errWire }
		}, lambdaidem.Released},
		"nobody is named": {func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", nil }
		}, lambdaidem.Completed},
		"the application refuses the caller": {func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) {
				return "", lambdaidem.Reject(http.StatusForbidden, "banned", "")
			}
		}, lambdaidem.Completed},
		"the application can't tell who calls": {func(o *lambdaidem.Options) {
			o.Principal = func(context.Context, *lambdaidem.Request) (string, error) {
				return "", lambdaidem.Reject(http.StatusServiceUnavailable, "no_directory", "")
			}
		}, lambdaidem.Released},
		"the application asks for another try": {func(o *lambdaidem.Options) {
			o.Key = func(context.Context, *lambdaidem.Request) (string, error) {
				return "", lambdaidem.Reject(http.StatusTooManyRequests, "slow_down", "")
			}
		}, lambdaidem.Released},
	} {
		t.Run(name, func(t *testing.T) {
			var inner func(context.Context, request) response
			r := newRig(func(ctx context.Context, in request) (response, error) { return inner(ctx, in), nil })
			guarded := r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "inner" }, c.opt).APIGatewayV2(status(201))
			inner = func(ctx context.Context, in request) response {
				_, _ = guarded(ctx, in)
				return response{StatusCode: http.StatusPaymentRequired}
			}
			if out := r.send(t, first()); out.StatusCode < 400 {
				t.Errorf("the answer is %+v", out)
			}
			r.wantState(t, c.want)
		})
	}
}

// An inner call with an unknown outcome is settled by the same call through another guard on the
// same store, but not through a guard on another store.
func TestX4_AnInnerCallIsSettledInItsOwnStore(t *testing.T) {
	for name, same := range map[string]bool{"another store": false, "another guard on the store": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				other := newRig(nil)
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					if same {
						other.guard = lambdaidem.New(r.store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "test", lambdaidem.Discard })
					}
					_ = r.unknownCharge(ctx, t, replyLost, nil)
					if err := other.charged(ctx); err != nil {
						t.Error(err)
					}
					return response{StatusCode: 402}, nil
				})
				r.send(t, first())
				if want := map[bool]lambdaidem.State{false: lambdaidem.InProgress, true: lambdaidem.Completed}[same]; true {
					r.wantState(t, want)
				}
			})
		})
	}
}

// A Store may be of a Go type that == can't compare.
func TestX4_AStoreNeedsNotBeComparable(t *testing.T) {
	g := lambdaidem.New(struct {
		lambdaidem.Store
		_ []int
	}{Store: memstore.New()}, quiet)
	_, err := lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (int, error) {
		return lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { return 1, nil })
	})
	if err != nil {
		t.Error(err)
	}
}

// A refusal that every retry meets again says nothing about an earlier call under the same
// key, which stays unsettled.
func TestX1_AnInnerMismatchSettlesNoEarlierCall(t *testing.T) {
	mismatch := func(ctx context.Context, t *testing.T, r *rig) {
		t.Helper()
		other := charge
		other.Payload = order{"o-2"}
		if _, err := lambdaidem.Do(ctx, r.guard, other, func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, lambdaidem.ErrPayloadMismatch) {
			t.Errorf("the second call returned %v", err)
		}
	}
	t.Run("in progress", func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrInProgress) {
				t.Errorf("the first call returned %v", err)
			}
			mismatch(ctx, t, r)
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		defer r.busy(t)()
		r.send(t, first())
		r.wantState(t, lambdaidem.Released)
	})
	t.Run("unknown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				_ = r.unknownCharge(ctx, t, requestLost, nil)
				mismatch(ctx, t, r)
				return response{StatusCode: http.StatusPaymentRequired}, nil
			})
			r.send(t, first())
			r.wantState(t, lambdaidem.InProgress)
		})
	})
}

// An inner call was refused, is made again, runs, and is released. It is then settled. If the
// outcome of the earlier call was unknown instead, it stays unknown, because that call may have had
// an effect.
func TestX4_ARefusedCallThatRunsAgainIsSettled(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				if unknown {
					_ = r.unknownCharge(ctx, t, requestLost, nil)
					time.Sleep(5 * time.Second) // until the lease of the charge has ended
				} else {
					r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrStoreUnavailable) {
						t.Errorf("the charge returned %v", err)
					}
				}
				if _, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) }); !errors.Is(err, errWire) {
					t.Errorf("made again, the charge returned %v", err)
				}
				return response{StatusCode: http.StatusPaymentRequired}, nil
			})
			out := r.send(t, first())
			if want := http.StatusPaymentRequired; !unknown && out.StatusCode != want || unknown && out.StatusCode == want {
				t.Errorf("unknown before: %v; the client is told %d", unknown, out.StatusCode)
			}
			if stored := r.record(t).State == lambdaidem.Completed; stored == unknown {
				t.Errorf("unknown before: %v; the record is %s", unknown, r.record(t).State)
			}
		})
	}
}

// The result of a step was stored as a number, and the next version reads a text. No failure of its
// handler is stored, and none is sent that tells the client to stop: after a rollback, the step's
// result is there.
func TestE5_AFailureBesideAStepThatCantBeReadIsNotStored(t *testing.T) {
	for name, fails := range map[string]func(error) (response, error){
		"response":  func(error) (response, error) { return response{StatusCode: http.StatusPaymentRequired}, nil },
		"permanent": func(err error) (response, error) { return response{}, lambdaidem.Permanent(err) },
		"retryable": func(error) (response, error) { return response{}, lambdaidem.Retryable(noPayment) },
	} {
		t.Run(name, func(t *testing.T) {
			rolledBack := false
			r := newRig(func(ctx context.Context, _ request) (response, error) {
				if lambdaidem.Attempt(ctx) == 1 || rolledBack {
					_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
					if lambdaidem.Attempt(ctx) == 1 {
						return response{StatusCode: http.StatusServiceUnavailable}, err
					}
					return response{StatusCode: http.StatusCreated}, err
				}
				_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) { return "p-1", nil })
				return fails(err)
			})
			r.send(t, first())
			wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
			rolledBack = true
			if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
				t.Errorf("after the rollback the client gets %d", out.StatusCode)
			}
		})
	}
}
