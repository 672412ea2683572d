package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A mark or a status on the error of an inner call's function is about the inner call. Under Hold,
// the record of a message whose handler only returns such an error is held, because the handler may
// have had an effect of its own. If the handler marks the error itself, that mark decides.
func TestX4_AnInnerFailureDoesNotReleaseAMessageUnderHold(t *testing.T) {
	for name, inner := range map[string]error{
		"permanent": lambdaidem.Permanent(errWire),
		"rejection": noPayment,
		"retryable": lambdaidem.Retryable(errWire),
		"uncertain": lambdaidem.Uncertain(errWire),
	} {
		for own, returns := range map[string]func(error) error{
			"as it is": func(err error) error { return err },
			"wrapped":  func(err error) error { return fmt.Errorf("charge: %w", err) },
			"marked":   lambdaidem.Permanent,
		} {
			t.Run(name+", "+own, func(t *testing.T) {
				r := newRig(nil, hold)
				runs := 0
				h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
					runs++
					_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, inner })
					return returns(err)
				}, silent[events.SQSMessage])
				want := 1
				if own == "marked" && name != "uncertain" {
					want = 3
				}
				for range 3 {
					if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 1 {
						t.Fatalf("the batch returned %+v, %v", out, err)
					}
				}
				if runs != want {
					t.Errorf("the handler ran %d times, want %d", runs, want)
				}
			})
		}
	}
}

// A handler returns the failure of an inner call. The failure is stored in the inner record, so
// every retry gets it again, and the handler's own record stores it too, whatever its status is,
// and whether or not the handler is the first to receive it.
func TestX4_AStoredInnerFailureIsStored(t *testing.T) {
	for _, outcome := range []lambdaidem.Outcome{lambdaidem.OutcomeFailed, lambdaidem.OutcomeSucceeded} {
		t.Run(string(outcome), func(t *testing.T) { storedInnerFailure(t, outcome) })
	}
}

func storedInnerFailure(t *testing.T, outcome lambdaidem.Outcome) {
	r := newRig(nil)
	inner := r.guard.With(func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return outcome }
	})
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) {
			return 0, lambdaidem.Reject(http.StatusTooManyRequests, "daily_limit", "The daily limit is reached.")
		})
		return response{}, err
	}, hold)
	for _, key := range []string{"key-1", "key-1", "key-2", "key-2"} {
		if out := r.send(t, post(key, "{}")); out.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: the answer is %+v", key, out)
		}
	}
	r.wantRuns(t, 2)
}

// If a handler marks the error of an inner call, that mark decides, whether the inner call has just
// failed or replays its failure.
func TestX4_TheHandlersOwnMarkDecides(t *testing.T) {
	r := newRig(nil, hold)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Permanent(errWire) })
		return response{}, lambdaidem.Retryable(err)
	})
	for n := range int64(3) {
		r.send(t, first())
		r.wantRuns(t, n+1)
	}
	both := r.later(func(ctx context.Context, _ request) (response, error) {
		err := r.charged(ctx)
		return response{}, lambdaidem.Retryable(errors.Join(err, fmt.Errorf("give up: %w", lambdaidem.Permanent(errWire))))
	})
	for range 2 {
		both.send(t, post("key-2", "{}"))
	}
	both.wantRuns(t, 1)
}

// A guarded handler of messages, called inside a guarded handler, is an inner call too.
func TestX4_TheMarksOfAnInnerMessageDoNotPassOn(t *testing.T) {
	event := oneNotice()
	two := events.SNSEvent{Records: []events.SNSEventRecord{event.Records[0], {SNS: events.SNSEntity{MessageID: "m-2", TopicArn: "arn:aws:sns:eu-central-1:1:t", Message: "{}"}}}}
	for name, in := range map[string]events.SNSEvent{"one message": event, "two messages": two} {
		for form, err := range map[string]error{
			"marked":  lambdaidem.Retryable(errWire),
			"wrapped": fmt.Errorf("charge: %w", lambdaidem.Retryable(errWire)),
			"joined":  errors.Join(lambdaidem.Retryable(errWire)),
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				r := newRig(nil, hold)
				inner := r.guard.SNS(func(context.Context, events.SNSEventRecord) error { return err }, silent[events.SNSEventRecord])
				r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, inner(ctx, in) })
				for range 3 {
					if out, got := r.handler(t.Context(), first()); got == nil && out.StatusCode < 400 {
						t.Fatalf("the answer is %+v", out)
					}
				}
				r.wantRuns(t, 1)
			})
		}
	}
}

// The handler of an unguarded message is a part of the outer handler, so the mark of its error
// counts for the outer handler.
func TestX4_TheMarkOfAnUnguardedInnerMessageCounts(t *testing.T) {
	r := newRig(nil, hold, func(o *lambdaidem.Options) { o.KeyOptional = true })
	inner := r.guard.SNS(func(context.Context, events.SNSEventRecord) error {
		return fmt.Errorf("no route: %w", lambdaidem.Retryable(errWire))
	}, silent[events.SNSEventRecord],
		func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
			o.Key = func(context.Context, events.SNSEventRecord) (string, error) { return "", nil }
		})
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		return response{}, inner(ctx, oneNotice())
	})
	for range 2 {
		r.send(t, first())
	}
	r.wantRuns(t, 2)
}

// A mark on the value of a panic does not count, not even in an unguarded message, which is a part
// of the outer handler.
func TestX7_APanicOfAnUnguardedInnerMessageIsNoMark(t *testing.T) {
	r := newRig(nil, hold, func(o *lambdaidem.Options) { o.KeyOptional = true })
	inner := r.guard.SNS(func(context.Context, events.SNSEventRecord) error { panic(lambdaidem.Retryable(errWire)) }, silent[events.SNSEventRecord],
		func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
			o.Key = func(context.Context, events.SNSEventRecord) (string, error) { return "", nil }
		})
	r = r.later(func(ctx context.Context, _ request) (response, error) { return response{}, inner(ctx, oneNotice()) })
	for range 2 {
		_, _ = r.handler(t.Context(), first())
	}
	r.wantRuns(t, 1)
}

func oneNotice() events.SNSEvent {
	return events.SNSEvent{Records: []events.SNSEventRecord{{SNS: events.SNSEntity{MessageID: "m-1", TopicArn: "arn:aws:sns:eu-central-1:1:t", Message: "{}"}}}}
}

// A mark or a status on the error of the key or principal function of an inner guard is about the
// inner call too.
func TestX4_TheErrorOfAnInnerKeyFunctionIsNoMark(t *testing.T) {
	for name, err := range map[string]error{
		"plain":     errWire,
		"retryable": lambdaidem.Retryable(errWire),
		"permanent": lambdaidem.Permanent(errWire),
		"rejection": lambdaidem.Reject(http.StatusConflict, "no_order", "There is no such order."),
	} {
		ship := func(g *lambdaidem.Guard, key, principal error) func(context.Context) error {
			h := lambdaidem.Handler(g, "ship", func(context.Context, order) (string, error) { return "k", key },
				func(context.Context, order) (int, error) { return 1, nil },
				func(o *lambdaidem.HandlerOptions[order]) {
					o.Principal = func(context.Context, order) (string, error) { return "alice", principal }
				})
			return func(ctx context.Context) error { _, err := h(ctx, order{"o-1"}); return err }
		}
		overHTTP := func(g *lambdaidem.Guard) func(context.Context) error {
			h := g.With(func(o *lambdaidem.Options) {
				o.Key = func(context.Context, *lambdaidem.Request) (string, error) { return "", err }
			}).APIGatewayV2(func(context.Context, request) (response, error) { return response{StatusCode: http.StatusCreated}, nil })
			return func(ctx context.Context) error {
				out, err := h(ctx, first())
				if err == nil && out.StatusCode >= http.StatusBadRequest {
					err = errBroken
				}
				return err
			}
		}
		message := func(g *lambdaidem.Guard) func(context.Context) error {
			h := g.SNS(func(context.Context, events.SNSEventRecord) error { return nil }, silent[events.SNSEventRecord], func(o *lambdaidem.BatchOptions[events.SNSEventRecord]) {
				o.Key = func(context.Context, events.SNSEventRecord) (string, error) { return "", err }
			})
			return func(ctx context.Context) error { return h(ctx, oneNotice()) }
		}
		for source, call := range map[string]func(*lambdaidem.Guard) func(context.Context) error{
			"key":           func(g *lambdaidem.Guard) func(context.Context) error { return ship(g, err, nil) },
			"principal":     func(g *lambdaidem.Guard) func(context.Context) error { return ship(g, nil, err) },
			"key over HTTP": overHTTP,
			"message's key": message,
		} {
			t.Run(name+" "+source, func(t *testing.T) {
				r := newRig(nil, hold)
				inner := call(r.guard)
				runs := 0
				h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
					runs++
					return inner(ctx)
				}, silent[events.SQSMessage])
				for range 3 {
					if out, err := h(t.Context(), oneMessage()); err != nil || len(out.BatchItemFailures) != 1 {
						t.Fatalf("the batch returned %+v, %v", out, err)
					}
				}
				if runs != 1 {
					t.Errorf("the handler ran %d times", runs)
				}
			})
		}
	}
}

// A Retryable mark of an inner call is not passed on to the client, although the record is
// released: it would say that nothing happened, and the handler may have had effects of its own.
func TestX4_TheClientIsNotToldTheMarkOfAnInnerCall(t *testing.T) {
	r := newRig(nil)
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		_, err := lambdaidem.Do(ctx, r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Retryable(errWire) })
		return response{}, err
	})
	if out, err := r.handler(t.Context(), first()); err == nil || strings.Contains(out.Body, string(lambdaidem.ErrRetryable)) {
		t.Errorf("the client is told %+v, %v", out, err)
	}
	r.wantState(t, lambdaidem.Released)
	r = r.later(func(context.Context, request) (response, error) {
		return response{}, fmt.Errorf("closed: %w", lambdaidem.Retryable(errWire))
	})
	wantProblem(t, r.send(t, first()), http.StatusServiceUnavailable, lambdaidem.ErrRetryable)
}

// A handler passes a message to an inner guard, and the message does not begin. The message may
// succeed later, so a failure of the handler is not stored.
func TestX4_AnInnerMessageThatDidNotBeginIsRefused(t *testing.T) {
	for name, key := range map[string]func() (string, error){
		"for lack of time":       nil,
		"its key function fails": func() (string, error) { return "", errWire },
		"its key panics":         func() (string, error) { panic(errWire) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down := true
				r := newRig(nil)
				inner := r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil }, silent[events.SQSMessage], func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
					if key != nil {
						o.Key = func(_ context.Context, m events.SQSMessage) (string, error) {
							if down {
								return key()
							}
							return m.MessageId, nil
						}
					}
				})
				r = r.later(func(ctx context.Context, _ request) (response, error) {
					if down && key == nil {
						time.Sleep(5*time.Second - 300*time.Millisecond)
					}
					out, err := inner(ctx, oneMessage())
					if len(out.BatchItemFailures) > 0 {
						return response{StatusCode: http.StatusPaymentRequired}, err
					}
					return response{StatusCode: http.StatusCreated}, err
				})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
				down = false
				if out := r.send(t, first()); out.StatusCode != http.StatusCreated {
					t.Errorf("the retry gets %+v", out)
				}
			})
		})
	}
}

// A message's handler makes a guarded call for another message, whose handler panics. A mark on the
// error of that call counts, as for any other error: the handler itself has not panicked.
func TestX4_AMarkOnAnInnerPanicCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy lambdaidem.Policy
		mark   func(error) error
		want   lambdaidem.State
	}{
		{"retryable under hold", lambdaidem.Hold, lambdaidem.Retryable, lambdaidem.Released},
		{"uncertain under rerun", lambdaidem.Rerun, lambdaidem.Uncertain, lambdaidem.InProgress},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.Policy = c.policy })
			in := r.guard.With(func(o *lambdaidem.Options) { o.Policy = lambdaidem.Rerun; o.Namespace = "inner" })
			sns := in.SNS(func(context.Context, events.SNSEventRecord) error { panic("a bug") }, silent[events.SNSEventRecord])
			h := r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error { return c.mark(sns(ctx, oneNotice())) }, silent[events.SQSMessage])
			out, err := h(t.Context(), oneMessage())
			if rec := r.record(t); rec.State != c.want || err != nil || len(out.BatchItemFailures) != 1 {
				t.Errorf("the record is %s (last failure %q), want %s; %v %v", rec.State, rec.LastFailure, c.want, out, err)
			}
		})
	}
	t.Run("last failure", func(t *testing.T) {
		r := newRig(nil)
		sns := r.guard.SNS(func(context.Context, events.SNSEventRecord) error { panic("a bug") }, silent[events.SNSEventRecord])
		r = r.later(func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: http.StatusCreated}, fmt.Errorf("order: %w", sns(ctx, oneNotice()))
		})
		_, _ = r.handler(t.Context(), first())
		if rec := r.record(t); rec.LastFailure == "panic" {
			t.Errorf("the handler has not panicked; the record is %s, last failure %q", rec.State, rec.LastFailure)
		}
	})
}
