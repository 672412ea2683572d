package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// An innerKind makes a guarded call that runs fn, and returns the call's error. If the guard turned
// the error into a response, it returns errBroken.
type innerKind func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error

// innerKinds are the kinds of guarded calls that a handler can make.
var innerKinds = map[string]innerKind{
	"Do": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		_, err := lambdaidem.Do(ctx, g, charge, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
		return err
	},
	"Handler": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		h := lambdaidem.Handler(g, "ship", func(context.Context, order) (string, error) { return "k", nil },
			func(ctx context.Context, _ order) (int, error) { return 1, fn(ctx) })
		_, err := h(ctx, order{"o-1"})
		return err
	},
	"HTTP": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		out, err := g.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: http.StatusCreated}, fn(ctx)
		})(ctx, post("inner", "{}"))
		if err == nil && out.StatusCode != http.StatusCreated {
			return errBroken
		}
		return err
	},
	"net/http": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		in := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("{}"))
		in.Header.Set("Idempotency-Key", "inner")
		w := httptest.NewRecorder()
		g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
			if fn(in.Context()) != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})).ServeHTTP(w, in)
		if w.Code != http.StatusOK {
			return errBroken
		}
		return nil
	},
	"SQS": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		out, err := g.SQS(func(ctx context.Context, _ events.SQSMessage) error { return fn(ctx) }, silent[events.SQSMessage])(ctx, oneMessage())
		if err == nil && len(out.BatchItemFailures) > 0 {
			return errBroken
		}
		return err
	},
	"SNS": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		return g.SNS(func(ctx context.Context, _ events.SNSEventRecord) error { return fn(ctx) }, silent[events.SNSEventRecord])(ctx, oneNotice())
	},
	"Do in a failing Do": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		_, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (int, error) {
			_, err := lambdaidem.Do(ctx, g, charge, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
			if err != nil {
				err = lambdaidem.Permanent(err)
			}
			return 1, err
		})
		return err
	},
	"Do in a goroutine of a Do": func(ctx context.Context, g *lambdaidem.Guard, fn func(context.Context) error) error {
		var err error
		done := make(chan struct{})
		began := false
		_, outer := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "order", Key: "k"}, func(ctx context.Context) (int, error) {
			began = true
			go func() {
				defer close(done)
				time.Sleep(time.Millisecond) // until the call around it has returned
				_, err = lambdaidem.Do(context.WithoutCancel(ctx), g, charge, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
			}()
			return 1, nil
		})
		if began {
			<-done
		}
		return errors.Join(outer, err)
	},
}

// While an inner call is not settled, no answer that tells the client to stop retrying is sent or
// stored. The test combines all kinds of inner calls, reasons and forms of answers.
func TestX4_NothingFinalWhileAnInnerCallIsNotSettled(t *testing.T) {
	succeeds := func(context.Context) error { return nil }
	reasons := map[string]struct {
		during map[string]fault // the faults while the handler runs, by verb
		fn     func(context.Context) error
	}{
		"the claim is lost":               {map[string]fault{acquire: requestLost}, succeeds},
		"the reply to the claim is lost":  {map[string]fault{acquire: replyLost, release: requestLost}, succeeds},
		"the table throttles":             {map[string]fault{acquire: refused(lambdaidem.ReasonThrottled)}, succeeds},
		"the record is foreign":           {map[string]fault{acquire: refused(lambdaidem.ReasonForeign)}, succeeds},
		"the answer is lost":              {map[string]fault{complete: requestLost}, succeeds},
		"the reply to the answer is lost": {map[string]fault{complete: replyLost}, succeeds},
		"the function does not know":      {nil, func(context.Context) error { return lambdaidem.Uncertain(errWire) }},
		"a step is lost": {map[string]fault{save: requestLost}, func(ctx context.Context) error {
			_, err := lambdaidem.Step(ctx, "s", func(context.Context) (int, error) { return 1, nil })
			return err
		}},
	}
	answers := map[string]func() (response, error){
		"a response":     func() (response, error) { return response{StatusCode: http.StatusPaymentRequired}, nil },
		"one to release": func() (response, error) { return response{StatusCode: http.StatusTeapot}, nil },
		"a rejection":    func() (response, error) { return response{}, noPayment },
		"wrapped":        func() (response, error) { return response{}, fmt.Errorf("pay: %w", noPayment) },
		"joined":         func() (response, error) { return response{}, errors.Join(noPayment, errWire) },
		"permanent":      func() (response, error) { return response{}, lambdaidem.Permanent(errBroken) },
		"retryable":      func() (response, error) { return response{}, lambdaidem.Retryable(noPayment) },
		"the caller's own": func() (response, error) {
			return response{}, &lambdaidem.Error{Code: "declined", Status: http.StatusPaymentRequired}
		},
	}
	releasesTeapots := func(o *lambdaidem.Options) {
		o.Outcome = func(r *lambdaidem.Response) lambdaidem.Outcome {
			if r.Status == http.StatusTeapot {
				return lambdaidem.OutcomeReleased
			}
			return lambdaidem.DefaultOutcome(r)
		}
	}
	for kind, call := range innerKinds {
		for reason, c := range reasons {
			if kind == "net/http" && reason == "the function does not know" {
				continue // a handler of net/http returns no error that it could mark
			}
			for form, answer := range answers {
				for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
					name := fmt.Sprintf("%s, %s, %s, %s", kind, reason, form, policy)
					synctest.Test(t, func(t *testing.T) {
						r := newRig(nil, releasesTeapots, func(o *lambdaidem.Options) { o.Policy = policy })
						inner := r.guard.With(func(o *lambdaidem.Options) {
							o.Namespace, o.Policy, o.AnonymousCallers = "inner", lambdaidem.Rerun, true
						})
						r = r.later(func(ctx context.Context, _ request) (response, error) {
							for verb, f := range c.during {
								r.store.failAlways(verb, f)
							}
							defer func() {
								for verb := range c.during {
									r.store.failAlways(verb, nil)
								}
							}()
							short, cancel := context.WithTimeout(ctx, time.Second)
							defer cancel()
							_ = call(short, inner, c.fn)
							return answer()
						})
						out, err := r.handler(t.Context(), first())
						if final := 400 <= out.StatusCode && out.StatusCode < 500; err == nil && final || r.record(t).State == lambdaidem.Completed {
							t.Errorf("%s: the client is told %d %s; the record is %s", name, out.StatusCode, out.Body, r.record(t).State)
						}
					})
				}
			}
		}
	}
}

// Under Hold, a handler that only returns the error of an inner call runs once, whatever mark or
// status that error has, because the handler may have had an effect of its own.
func TestG2_AHandlerUnderHoldThatReturnsAnInnerErrorRunsOnce(t *testing.T) {
	ends := map[string]error{
		"plain":               errWire,
		"retryable":           lambdaidem.Retryable(errWire),
		"permanent":           lambdaidem.Permanent(errWire),
		"uncertain":           lambdaidem.Uncertain(errWire),
		"a rejection":         noPayment,
		"one for now":         lambdaidem.Reject(http.StatusServiceUnavailable, "closed", "It is night."),
		"retryable rejection": lambdaidem.Retryable(noPayment),
		"joined":              errors.Join(lambdaidem.Retryable(errWire), lambdaidem.Permanent(errWire)),
		"its own":             &lambdaidem.Error{Code: "declined", Status: http.StatusPaymentRequired, Err: lambdaidem.Retryable(errWire)},
	}
	passes := map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"wrapped":  func(err error) error { return fmt.Errorf("pay: %w", err) },
		"joined":   func(err error) error { return errors.Join(err) },
	}
	handlers := map[string]func(ctx context.Context, r *rig, own func(context.Context) error) error{
		"of HTTP": func(ctx context.Context, r *rig, own func(context.Context) error) error {
			_, err := r.guarded(func(ctx context.Context, _ request) (response, error) { return response{}, own(ctx) })(ctx, first())
			return err
		},
		"of messages": func(ctx context.Context, r *rig, own func(context.Context) error) error {
			_, err := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error { return own(ctx) }, silent[events.SQSMessage])(ctx, oneMessage())
			return err
		},
		"with a type": func(ctx context.Context, r *rig, own func(context.Context) error) error {
			_, err := lambdaidem.Handler(r.guard, "order", func(context.Context, order) (string, error) { return "k", nil },
				func(ctx context.Context, _ order) (int, error) { return 1, own(ctx) })(ctx, order{"o-1"})
			return err
		},
	}
	for kind, call := range innerKinds {
		for end, failure := range ends {
			for _, panics := range []bool{false, true} {
				for form, pass := range passes {
					for handler, invoke := range handlers {
						if panics && (kind == "Do in a goroutine of a Do" || kind == "net/http") {
							continue // such a panic ends the process
						}
						name := fmt.Sprintf("%s, %s, panics: %v, %s, a handler %s", kind, end, panics, form, handler)
						synctest.Test(t, func(t *testing.T) {
							r := newRig(nil, hold)
							inner := r.guard.With(func(o *lambdaidem.Options) {
								o.Namespace, o.Policy, o.AnonymousCallers = "inner", lambdaidem.Rerun, true
							})
							runs := 0
							for range 3 {
								func() {
									defer func() { _ = recover() }()
									_ = invoke(t.Context(), r, func(ctx context.Context) error {
										runs++
										err := call(ctx, inner, func(context.Context) error {
											if panics {
												panic(failure)
											}
											return failure
										})
										return pass(err)
									})
								}()
							}
							if runs != 1 {
								t.Errorf("%s: the handler ran %d times", name, runs)
							}
						})
					}
				}
			}
		}
	}
}
