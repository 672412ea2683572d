package lambdaidem_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

var noPayment = lambdaidem.Reject(http.StatusPaymentRequired, "payment_failed", "The payment failed.")

// The charge is being made elsewhere, so the order around it rejects, and the handler returns
// the order's error. The record is released, because a retry may succeed. The client must not
// be told 402, because it would not retry.
func TestX4_ARejectionOfAnInnerCallThatIsNotStoredIsNotSent(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		if err := r.order(ctx, r.charged, noPayment); err != nil {
			return response{}, err
		}
		return response{StatusCode: http.StatusCreated}, nil
	})
	end := r.busy(t)
	r.store.forgetClaims()
	out := r.send(t, first())
	state := r.record(t).State
	end()
	if out.StatusCode == http.StatusPaymentRequired && state != lambdaidem.Completed {
		t.Errorf("the client is told %d, which is not stored: the record is %s; a retry gets %d", out.StatusCode, state, r.send(t, first()).StatusCode)
	}
}

// A rejection that tells the client to repeat the request is sent although it is not stored.
func TestX2_ARejectionThatAsksForARetryIsSent(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			return response{}, r.order(ctx, r.charged, lambdaidem.Reject(status, "try_again", "Repeat it later."))
		})
		end := r.busy(t)
		if out := r.send(t, first()); out.StatusCode != status || !strings.Contains(out.Body, "try_again") {
			t.Errorf("the client gets %d %s, want %d", out.StatusCode, out.Body, status)
		}
		end()
	}
}

// If the handler itself marks an error as Uncertain, the client receives that error.
func TestX2_AnUncertainErrorIsSentInItsOwnWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_ = r.unknownCharge(ctx, t, replyLost, nil)
			return response{}, lambdaidem.Uncertain(noPayment)
		})
		r.store.forgetClaims()
		wantProblem(t, r.send(t, first()), http.StatusPaymentRequired, "payment_failed")
		r.wantState(t, lambdaidem.InProgress)
	})
}

// The invoker of a typed handler, such as a state machine, must not receive the order's rejection
// while the charge is being made elsewhere.
func TestX4_ARejectionOfAnInnerCallThatIsNotStoredIsNotReported(t *testing.T) {
	r := newRig(nil)
	h := lambdaidem.Handler(r.guard, "checkout", func(_ context.Context, o order) (string, error) { return o.ID, nil },
		func(ctx context.Context, _ order) (int, error) { return 1, r.order(ctx, r.charged, noPayment) })
	defer r.busy(t)()
	if _, errorType, _ := invoke(t, h, `{"ID":"o-1"}`); errorType == "payment_failed" {
		t.Error("the invoker is told payment_failed, and the charge is being made")
	}
}

// The charge was made, and the reply to its completion was lost. The handler rejects the request,
// with or without the cause in its error. The outcome is uncertain, so the client must not be told
// 402.
func TestX4_ARejectionBesideAnUnknownOutcomeIsNotSent(t *testing.T) {
	for name, wrap := range map[string]func(error) error{
		"alone":     func(error) error { return noPayment },
		"joined":    func(err error) error { return errors.Join(noPayment, err) },
		"wrapped":   func(err error) error { return fmt.Errorf("%w: %w", noPayment, err) },
		"permanent": func(err error) error { return lambdaidem.Permanent(fmt.Errorf("%w: %w", noPayment, err)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					return response{}, wrap(r.unknownCharge(ctx, t, replyLost, nil))
				})
				out, _ := r.handler(t.Context(), first())
				if state := r.record(t).State; out.StatusCode == http.StatusPaymentRequired && state != lambdaidem.Completed {
					t.Errorf("the client is told %d; the record is %s", out.StatusCode, state)
				}
			})
		})
	}
}

// Under Hold, a rejection that is joined with an error without a mark is uncertain, so the client
// must not be told 402.
func TestX2_AnUncertainRejectionIsNotSent(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) { return response{}, errors.Join(noPayment, errWire) }, hold)
	out := r.send(t, first())
	if state := r.record(t).State; out.StatusCode == http.StatusPaymentRequired && state != lambdaidem.Completed {
		t.Errorf("the client is told %d; the record is %s", out.StatusCode, state)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A payment was made and not shipped. The next version can't read the answer of the charge, and its
// handler returns the guard's error about that. The record is released, because a rollback may
// restore a version that can read the answer. So the client must not get a code after which it
// stops retrying.
func TestX4_AnUnreadableInnerAnswerDoesNotStopTheClient(t *testing.T) {
	for name, unreadable := range map[string]func(context.Context, *rig) error{
		"another type": func(ctx context.Context, r *rig) error {
			_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (string, error) { return "", nil })
			return err
		},
		"another layout": func(ctx context.Context, r *rig) error {
			r.store.fail(acquire, refused(lambdaidem.ReasonForeign))
			return r.charged(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, shipped, calls := newRig(nil), 0, 0
			version := func(charge func(context.Context) error) *rig {
				return r.later(func(ctx context.Context, _ request) (response, error) {
					if err := charge(ctx); err != nil {
						return response{}, err
					}
					shipped++
					return response{StatusCode: http.StatusCreated}, nil
				})
			}
			broken, rolledBack := version(func(ctx context.Context) error { return unreadable(ctx, r) }), version(r.charged)
			r.later(func(ctx context.Context, _ request) (response, error) { // paid; shipping failed
				return response{StatusCode: http.StatusBadGateway}, r.charged(ctx)
			}).send(t, first())
			client := http.Client{Transport: idemclient.New(roundTrip(func(req *http.Request) (*http.Response, error) {
				now := broken
				if calls++; calls > 1 {
					now = rolledBack
				}
				w := httptest.NewRecorder()
				out, err := now.handler(req.Context(), first())
				if err != nil {
					out = response{StatusCode: http.StatusInternalServerError} // like the gateway
				}
				for name, value := range out.Headers {
					w.Header().Set(name, value)
				}
				w.WriteHeader(out.StatusCode)
				_, _ = io.WriteString(w, out.Body)
				return w.Result(), nil
			}), []string{"api.example.com"})}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/payments", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if shipped != 1 {
				t.Errorf("paid, never shipped: after %d calls the client stops with %s", calls, body)
			}
		})
	}
}

// The guard of an inner HTTP handler refuses another payload for its own key, and the outer handler
// returns that refusal. The client must not receive it: a client that is told to send a new key
// would pay twice.
func TestX2_ARefusedInnerRequestIsNotTheClientsMistake(t *testing.T) {
	inner := newRig(nil)
	paid := 0
	r := newRig(func(ctx context.Context, in request) (response, error) {
		_, err := lambdaidem.Do(ctx, inner.guard, lambdaidem.Call{Operation: "charge", Key: lambdaidem.Key(ctx)}, func(context.Context) (int, error) { paid++; return 1, nil })
		if err != nil {
			return response{}, err
		}
		return inner.handler(ctx, post("order-7", in.Body)) // the order has a key of its own
	})
	inner.send(t, post("order-7", `{"amount":1}`))
	for range 2 {
		out, err := r.handler(t.Context(), post("key-1", `{"amount":2}`))
		if !errors.Is(err, lambdaidem.ErrPayloadMismatch) || out.Body != "" {
			t.Errorf("the server gets %v, the client %s", err, out.Body)
		}
	}
	r.wantState(t, lambdaidem.Released)
	if paid != 1 {
		t.Errorf("paid %d times", paid)
	}
}

// If an inner request is in progress, the client should repeat its own request later, as if that
// request were in progress. The inner handler therefore returns the 409 as a response.
func TestX2_AnInnerRequestInProgressIsAResponse(t *testing.T) {
	began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	inner := newRig(func(context.Context, request) (response, error) {
		close(began)
		<-goOn
		return response{StatusCode: http.StatusCreated}, nil
	})
	go func() {
		defer close(done)
		_, _ = inner.handler(t.Context(), first())
	}()
	<-began
	r := newRig(func(ctx context.Context, in request) (response, error) { return inner.handler(ctx, in) }, func(o *lambdaidem.Options) { o.Namespace = "outer" })
	wantProblem(t, r.send(t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
	close(goOn)
	<-done
}

// The event about the outer request says which inner call was refused.
func TestO1_TheEventNamesTheRefusedCall(t *testing.T) {
	r := newRig(nil)
	var id string
	inner := r.guard
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, inner, charge, func(ctx context.Context) (int, error) {
			id = lambdaidem.RecordID(ctx)
			return 0, lambdaidem.Uncertain(errWire)
		})
		if err == nil {
			t.Error("the charge succeeded")
		}
		return response{}, r.charged(ctx)
	})
	_, _ = r.handler(t.Context(), first())
	if text := fmt.Sprint(r.seen.last(t).Err); id == "" || !strings.Contains(text, charge.Operation) || !strings.Contains(text, id) {
		t.Errorf("the event says %s; want the operation and the record %s", text, id)
	}
}

// Principal returns the caller of the handler, and "" outside of a handler.
func TestF2_PrincipalIsTheCallerOfTheHandler(t *testing.T) {
	got := "unset"
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		got = lambdaidem.Principal(ctx)
		return response{StatusCode: http.StatusCreated}, nil
	}, func(o *lambdaidem.Options) {
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "customer-7", nil }
	})
	r.send(t, first())
	if got != "customer-7" || lambdaidem.Principal(t.Context()) != "" {
		t.Errorf("the principal is %q in the handler, %q outside", got, lambdaidem.Principal(t.Context()))
	}
}

// A net/http handler can't return an error. If its guard refuses an inner request, the response is
// therefore a 500 without the guard's code, which the outer handler may return to its client. A
// request that is not inside a handler gets the refusal itself.
func TestX2_ARefusedInnerRequestOfNetHTTPIsNotTheClientsMistake(t *testing.T) {
	inner := newRig(nil)
	guarded := inner.guard.With(anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	send := func(ctx context.Context, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", strings.NewReader(body))
		req.Header.Set("Idempotency-Key", "order-7")
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, req)
		return w
	}
	send(t.Context(), "1")
	r := newRig(func(ctx context.Context, _ request) (response, error) {
		w := send(ctx, "2")
		return response{StatusCode: w.Code, Body: w.Body.String()}, nil
	})
	if out := r.send(t, first()); out.StatusCode != http.StatusInternalServerError || strings.Contains(out.Body, "idempotency_") || strings.Contains(out.Body, `"code"`) || !strings.Contains(out.Body, "with the same key") {
		t.Errorf("the client gets %d %s", out.StatusCode, out.Body)
	}
	if w := send(t.Context(), "2"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a request of its own gets %d %s", w.Code, w.Body)
	}
}

// A final answer, after which the client would not repeat its request, is not sent while the charge
// may still be made. This holds for every form of answer, and whatever Options.Outcome returns.
func TestX4_AFinalAnswerBesideAnUnsettledCallIsNotSent(t *testing.T) {
	answers := map[string]func() (response, error){
		"a response": func() (response, error) {
			return response{StatusCode: http.StatusPaymentRequired, Body: "declined"}, nil
		},
		"a conflict":  func() (response, error) { return response{StatusCode: http.StatusConflict, Body: "declined"}, nil },
		"a rejection": func() (response, error) { return response{}, noPayment },
		"an error":    func() (response, error) { return response{}, &lambdaidem.Error{Code: "declined", Status: 402} },
		"an error with it": func() (response, error) {
			return response{}, &lambdaidem.Error{Code: "declined", Status: 402, Err: errWire}
		},
	}
	for _, outcome := range []lambdaidem.Outcome{lambdaidem.OutcomeReleased, lambdaidem.OutcomeUncertain, "nonsense"} {
		for _, unknown := range []bool{false, true} {
			for name, answer := range answers {
				t.Run(fmt.Sprint(name, ", ", outcome, ", unknown: ", unknown), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var r *rig
						r = newRig(func(ctx context.Context, _ request) (response, error) {
							if unknown {
								_ = r.unknownCharge(ctx, t, requestLost, nil)
							} else if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrInProgress) {
								t.Errorf("the charge returned %v", err)
							}
							return answer()
						}, func(o *lambdaidem.Options) {
							o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return outcome }
						})
						if !unknown {
							defer r.busy(t)()
						}
						wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
					})
				})
			}
		}
	}
}

// Although Options.Outcome calls them uncertain, some answers are sent as they are: a success, an
// answer that tells the client to repeat its request, and, if no inner call is unsettled, any
// answer.
func TestX4_OtherAnswersThatAreNotStoredAreSent(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		busy   bool
	}{
		{status: http.StatusTooManyRequests, busy: true},
		{status: http.StatusServiceUnavailable, busy: true},
		{status: http.StatusConflict, body: `{"code":"idempotency_in_progress"}`, busy: true},
		{status: http.StatusAccepted, busy: true},
		{status: http.StatusPaymentRequired},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			var r *rig
			r = newRig(func(ctx context.Context, _ request) (response, error) {
				_ = r.charged(ctx)
				return response{StatusCode: c.status, Headers: map[string]string{"Content-Type": "application/problem+json"}, Body: c.body}, nil
			}, func(o *lambdaidem.Options) {
				o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeUncertain }
			})
			if c.busy {
				defer r.busy(t)()
			}
			if out := r.send(t, first()); out.StatusCode != c.status || out.Body != c.body {
				t.Errorf("the answer is %+v", out)
			}
		})
	}
}

// An *Error that the handler made without Reject is not stored. Under Hold, the record is held, so
// the client must not receive the error as an answer. Under Rerun, the record is released, and the
// client receives the error.
func TestX2_AnErrorOfTheHandlersOwnIsNotSentIfUncertain(t *testing.T) {
	declined := func(context.Context, request) (response, error) {
		return response{}, &lambdaidem.Error{Code: "declined", Status: http.StatusPaymentRequired}
	}
	r := newRig(declined, hold)
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
	r.wantState(t, lambdaidem.InProgress)
	r = newRig(declined)
	if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
		t.Errorf("under Rerun the answer is %+v", out)
	}
	r.wantState(t, lambdaidem.Released)
}

// The function of an inner call returns an uncertain rejection, and the handler returns that error.
// The client must not receive the rejection, because the charge may have been made.
func TestX4_AnUncertainRejectionOfAnInnerCallIsNotSent(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(noPayment) })
		return response{}, err
	})
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
	r.wantState(t, lambdaidem.InProgress)
}

// The order around a charge of unknown outcome rejects. The handler around the order would
// try another card after a rejection, so it must be told that the outcome is unknown. A caller
// outside a handler must not find the rejection's code in the error either.
func TestX4_ACallAroundAnUnsettledCallTellsItsCaller(t *testing.T) {
	const declined lambdaidem.Code = "payment_failed"
	synctest.Test(t, func(t *testing.T) {
		var r, other *rig
		unknown := func(r **rig) func(context.Context) error {
			return func(ctx context.Context) error { return (*r).unknownCharge(ctx, t, requestLost, nil) }
		}
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			if err := r.order(ctx, unknown(&r), noPayment); errors.Is(err, declined) || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
				t.Errorf("inside a handler, the order returned %v", err)
			}
			return response{StatusCode: http.StatusBadGateway}, nil
		})
		r.send(t, first())
		r.wantState(t, lambdaidem.InProgress)
		other = newRig(nil)
		if err := other.order(t.Context(), unknown(&other), noPayment); errors.Is(err, declined) || !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("outside a handler, the order returned %v", err)
		}
	})
}

// The record of an inner request has no response to replay. The client of the outer handler must
// not receive ErrAnswerUnavailable, because it would not repeat its own request.
func TestX4_AnInnerReplayWithoutAnAnswerIsAnError(t *testing.T) {
	t.Run("an event", func(t *testing.T) {
		r := newRig(nil)
		inner := r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "charges" }).
			APIGatewayV2(func(context.Context, request) (response, error) { return response{StatusCode: http.StatusCreated}, nil })
		r = r.later(func(ctx context.Context, in request) (response, error) {
			out, err := inner(ctx, in)
			if err != nil || out.StatusCode != http.StatusCreated {
				return out, err
			}
			return response{StatusCode: http.StatusServiceUnavailable}, nil // the charge is made, and the order fails
		})
		r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
		r.send(t, first())
		if out, err := r.handler(t.Context(), first()); err == nil || !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
			t.Errorf("the client is told %+v, %v", out, err)
		}
	})
	t.Run("net/http", func(t *testing.T) {
		r := newRig(nil, anonymous)
		inner := r.guard.With(func(o *lambdaidem.Options) { o.Namespace = "charges" }).
			Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
		outer := r.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
			charged := httptest.NewRecorder()
			inner.ServeHTTP(charged, in)
			if charged.Code == http.StatusCreated {
				charged = httptest.NewRecorder()
				charged.Code = http.StatusServiceUnavailable
			}
			w.WriteHeader(charged.Code)
			_, _ = w.Write(charged.Body.Bytes())
		}))
		r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
		serve(outer, posted(t, "/"))
		if got := serve(outer, posted(t, "/")); got.Code != http.StatusInternalServerError || strings.Contains(got.Body.String(), "answer_unavailable") {
			t.Errorf("the client is told %d %s", got.Code, got.Body)
		}
	})
}

// The transaction of an inner call was rejected, after another inner call had written. The
// client must not be told that its request wrote nothing.
func TestX4_TheRejectionOfAnInnerTransactionIsNotTheClients(t *testing.T) {
	for _, code := range []lambdaidem.Code{lambdaidem.ErrConditionFailed, lambdaidem.ErrWriteInvalid} {
		r, l := withLedger(nil)
		do := func(ctx context.Context, operation string) error {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: operation, Key: "k"}, func(ctx context.Context) (int, error) { enlist(ctx, operation); return 1, nil })
			return err
		}
		r.handler = r.guarded(func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: http.StatusCreated}, cmp.Or(do(ctx, "charge"), do(ctx, "ship"))
		})
		r.store.fail(commit, nil, rejects(&lambdaidem.Error{Code: code, Status: http.StatusInternalServerError, Detail: "The request wrote nothing."}))
		if out, err := r.handler(t.Context(), first()); err == nil || out.Body != "" {
			t.Errorf("%s: the client is told %+v, %v", code, out, err)
		}
		l.wantDone(t, "charge")
	}
}

// An inner call enlists a write that is committed even if the call fails, and the reply to the
// commit is lost. The write may have been made, so it binds the outer record to its payload, even
// after the call has been made again and its outcome is known.
func TestE6_AnInnerCallThatWasUnknownBindsThePayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := true
		r, l := withLedger(nil)
		r.handler = r.guarded(func(ctx context.Context, in request) (response, error) {
			fee := func(ctx context.Context) (int, error) {
				enlist(ctx, "fee for "+in.Body).whenFailed = true
				return 0, noPayment
			}
			call := lambdaidem.Call{Operation: "charge", Key: in.Body, Payload: in.Body}
			if lost {
				lost = false
				r.store.failAlways(commit, replyLost)
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if _, err := lambdaidem.Do(short, r.guard, call, fee); !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
					t.Errorf("the inner call returned %v", err)
				}
				r.store.failAlways(commit, nil)
			}
			if _, err := lambdaidem.Do(ctx, r.guard, call, fee); !errors.Is(err, lambdaidem.Code("payment_failed")) {
				t.Errorf("made again, the inner call returned %v", err)
			}
			return response{StatusCode: http.StatusServiceUnavailable}, nil // try another card later
		})
		r.send(t, post("key-1", `"a"`))
		wantProblem(t, r.send(t, post("key-1", `"b"`)), http.StatusUnprocessableEntity, lambdaidem.ErrPayloadMismatch)
		l.wantDone(t, `fee for "a"`)
	})
}

// The detail of an inner refusal says that the inner call was not carried out. The client must not
// read that about its request, so it receives another detail.
func TestX4_TheDetailOfAnInnerRefusalIsNotTheClients(t *testing.T) {
	for name, lost := range map[string]func(*rig){
		"the store is out of reach": func(r *rig) { r.store.fail(acquire, nil, refused(lambdaidem.ReasonUnreachable)) },
		"no time is left":           nil,
	} {
		r := newRig(nil)
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			if lost == nil {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				ctx = ended
			}
			return response{}, r.charged(ctx)
		})
		if lost != nil {
			lost(r)
		}
		out, err := r.handler(t.Context(), first())
		if err != nil || out.StatusCode != http.StatusServiceUnavailable || strings.Contains(out.Body, "carried out") || !strings.Contains(out.Body, "A part of the request") {
			t.Errorf("%s: the client is told %d %s, %v", name, out.StatusCode, out.Body, err)
		}
	}
}

// A handler passes on the replayed response of an inner request. To its own client the response is
// no replay.
func TestX2_AReplayPassedOnIsNotMarked(t *testing.T) {
	for name, opt := range map[string]func(*lambdaidem.Options){
		"created": func(*lambdaidem.Options) {},
		"stored 503": func(o *lambdaidem.Options) {
			o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeFailed }
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := 201
			if name != "created" {
				status = 503
			}
			in := newRig(func(context.Context, request) (response, error) { return response{StatusCode: status}, nil }, opt)
			_, _ = in.handler(t.Context(), post("inner", "{}"))
			r := newRig(func(ctx context.Context, _ request) (response, error) { return in.handler(ctx, post("inner", "{}")) })
			out := r.send(t, first())
			if replayed(out) {
				t.Errorf("the first answer to the client, %d, is marked as a replay: %v; the record is %s", out.StatusCode, out.Headers, r.record(t).State)
			}
		})
	}
}
