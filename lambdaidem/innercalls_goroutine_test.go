package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// leftBehind makes an order, whose function starts a charge in a goroutine and succeeds.
type leftBehind struct {
	begin chan struct{} // closed: the charge may begin
	began chan struct{} // closed: the charge has begun
	goOn  chan struct{} // closed: the charge may end
	ended chan error    // what the charge returned
}

func newLeftBehind() *leftBehind {
	return &leftBehind{begin: make(chan struct{}), began: make(chan struct{}), goOn: make(chan struct{}), ended: make(chan error, 1)}
}

// order makes the order. end is what the function of the charge returns.
func (l *leftBehind) order(ctx context.Context, t *testing.T, g *lambdaidem.Guard, end error) {
	t.Helper()
	_, err := lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
		go func() {
			<-l.begin
			_, err := lambdaidem.Do(context.WithoutCancel(ctx), g, charge, func(context.Context) (int, error) {
				close(l.began)
				<-l.goOn
				return 1, end
			})
			l.ended <- err
		}()
		return 1, nil
	})
	if err != nil {
		t.Errorf("the order returned %v", err)
	}
}

// An order has succeeded and left a charge in a goroutine. The order's record is completed, so the
// charge can't change it any more, and counts for the outer request instead.
func TestX4_ACallThatAnInnerCallLeftBehindCountsForTheRequestAround(t *testing.T) {
	declined := lambdaidem.Permanent(errors.New("declined"))
	for name, c := range map[string]struct {
		when   func(*leftBehind) // what has happened when the handler answers 402
		charge error
		state  lambdaidem.State
		status int
		runs   bool // the charge runs
	}{
		"it has not begun":    {func(*leftBehind) {}, nil, lambdaidem.Completed, http.StatusPaymentRequired, false},
		"it runs":             {func(l *leftBehind) { close(l.begin); <-l.began }, nil, lambdaidem.InProgress, http.StatusServiceUnavailable, true},
		"it has been made":    {func(l *leftBehind) { close(l.begin); close(l.goOn); l.wait() }, nil, lambdaidem.Completed, http.StatusPaymentRequired, true},
		"it was declined":     {func(l *leftBehind) { close(l.begin); close(l.goOn); l.wait() }, declined, lambdaidem.Completed, http.StatusPaymentRequired, true},
		"its end is unknown":  {func(l *leftBehind) { close(l.begin); close(l.goOn); l.wait() }, lambdaidem.Uncertain(errWire), lambdaidem.InProgress, http.StatusServiceUnavailable, true},
		"it was not made yet": {func(l *leftBehind) { close(l.begin); close(l.goOn); l.wait() }, lambdaidem.Retryable(errWire), lambdaidem.Completed, http.StatusPaymentRequired, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeftBehind()
				var r *rig
				r = newRig(func(ctx context.Context, _ request) (response, error) {
					l.order(ctx, t, r.guard, c.charge)
					c.when(l)
					return response{StatusCode: http.StatusPaymentRequired}, nil
				})
				r.store.forgetClaims()
				if out := r.send(t, first()); out.StatusCode != c.status {
					t.Errorf("the client gets %d %s", out.StatusCode, out.Body)
				}
				r.wantState(t, c.state)
				closeOnce(l.begin)
				closeOnce(l.goOn)
				if err := <-l.ended; !c.runs && !errors.Is(err, lambdaidem.ErrOutOfTime) || c.runs && errors.Is(err, lambdaidem.ErrOutOfTime) {
					t.Errorf("the charge returned %v", err)
				}
			})
		})
	}
}

// wait waits until the charge has returned.
func (l *leftBehind) wait() { l.ended <- <-l.ended }

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// The charge of an order is refused, because the outer request has failed while the order was still
// running. The order's own failure is caused by that refusal, so it is not stored, and the order
// runs again. The refused charge does not count as a running call of the order.
func TestX4_ACallOfAnOrderThatTheRequestLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, answered, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var r *rig
		var orders []error
		order := func(ctx context.Context) error {
			_, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
				if len(orders) == 0 {
					close(began)
					<-answered
				}
				orders = append(orders, r.charged(ctx))
				return 0, lambdaidem.Permanent(errors.Join(errWire, orders[len(orders)-1]))
			})
			return err
		}
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			go func() { ended <- order(context.WithoutCancel(ctx)) }()
			<-began
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		r.send(t, first())
		close(answered)
		if err := <-ended; !errors.Is(err, lambdaidem.ErrOutcomeUnknown) {
			t.Errorf("the order returned %v", err)
		}
		_ = order(t.Context()) // it was released, and runs again
		if len(orders) != 2 || !errors.Is(orders[0], lambdaidem.ErrOutOfTime) || orders[1] != nil {
			t.Errorf("the charges returned %v", orders)
		}
	})
}

// An order that succeeds although its charge was refused is settled, because its function has
// decided to succeed.
func TestX4_AnOrderMaySucceedWithoutItsCharge(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		if _, err := lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
			if err := r.charged(ctx); !errors.Is(err, lambdaidem.ErrInProgress) {
				t.Errorf("the charge returned %v", err)
			}
			return 1, nil
		}); err != nil {
			t.Error(err)
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	defer r.busy(t)()
	r.store.forgetClaims()
	r.send(t, first())
	r.wantState(t, lambdaidem.Completed)
}

// An order has failed and left a charge in a goroutine. The charge begins after that, so it is
// refused. The refused charge does not affect the outer request, whose 402 is sent.
func TestX4_ACallThatAFailedInnerCallLeftBehindIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, ended := make(chan struct{}), make(chan error, 1)
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			_, _ = lambdaidem.Do(ctx, r.guard, lambdaidem.Call{Operation: "order", Key: "o-1"}, func(ctx context.Context) (int, error) {
				go func() {
					<-begin
					ended <- r.charged(context.WithoutCancel(ctx))
				}()
				return 0, lambdaidem.Permanent(errWire)
			})
			close(begin)
			if err := <-ended; !errors.Is(err, lambdaidem.ErrOutOfTime) {
				t.Errorf("the charge returned %v", err)
			}
			if err := r.charged(ctx); err != nil { // a refused call leaves nothing behind
				t.Errorf("the handler's own charge returned %v", err)
			}
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		r.store.forgetClaims()
		if out := r.send(t, first()); out.StatusCode != http.StatusPaymentRequired {
			t.Errorf("the client gets %d %s", out.StatusCode, out.Body)
		}
	})
}

func oneMessage() events.SQSEvent {
	return events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-1", EventSourceARN: "arn:q", Body: "{}"}}}
}

// A message inside a guarded handler succeeds and leaves a charge in a goroutine. The outcome of
// the charge is unknown when the handler answers.
func TestX4_ACallThatAnInnerMessageLeftBehindCountsForTheRequestAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			begin, ended := make(chan struct{}), make(chan struct{})
			_, _ = r.guard.SQS(func(ctx context.Context, _ events.SQSMessage) error {
				go func() {
					defer close(ended)
					<-begin
					_, _ = lambdaidem.Do(context.WithoutCancel(ctx), r.guard, charge, func(context.Context) (int, error) { return 0, lambdaidem.Uncertain(errWire) })
				}()
				return nil
			})(ctx, oneMessage())
			close(begin)
			<-ended
			return response{StatusCode: http.StatusPaymentRequired}, nil
		})
		r.send(t, first())
		r.wantState(t, lambdaidem.InProgress)
	})
}

// A message whose sender gave an invalid key is refused on every retry, so an answer about the
// refusal is stored.
func TestX1_AnAnswerAboutAnInnerMessageWithAnInvalidKeyIsStored(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		e, invalid := oneMessage(), "\x00"
		e.Records[0].MessageAttributes = map[string]events.SQSMessageAttribute{"x-idempotency-key": {DataType: "String", StringValue: &invalid}}
		if out, err := r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(ctx, e); err != nil || len(out.BatchItemFailures) != 1 {
			t.Errorf("the message ended with %+v, %v", out, err)
		}
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.Completed)
}

// The key function of an inner message fails. The message may succeed later, so an answer about the
// refusal is not stored.
func TestX1_AnAnswerAboutAnInnerMessageWithoutAKeyIsNotStored(t *testing.T) {
	var r *rig
	r = newRig(func(ctx context.Context, _ request) (response, error) {
		_, _ = r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil }, func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.Key = func(context.Context, events.SQSMessage) (string, error) { return "", errWire }
		})(ctx, oneMessage())
		return response{StatusCode: http.StatusPaymentRequired}, nil
	})
	r.send(t, first())
	r.wantState(t, lambdaidem.Released)
}

// The result of a step could not be stored, so the client receives an error. A call that the
// handler left in a goroutine must not begin after that.
func TestX4_NoInnerCallBeginsAfterAStepThatWasNotStored(t *testing.T) {
	taken := func(context.Context, string, func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
		return lambdaidem.Record{State: lambdaidem.InProgress, Token: "another's"}, lambdaidem.ErrLeaseLost
	}
	for name, lost := range map[string]fault{"it is invalid": refused(lambdaidem.ReasonInvalid), "the lease is lost": taken} {
		t.Run(name, func(t *testing.T) { beginsNoCallAfter(t, func(r *rig) { r.store.fail(save, lost) }) })
	}
}

// A call that the handler left in a goroutine must not begin after a panic of Options.Outcome
// either.
func TestX4_NoInnerCallBeginsAfterThePanicOfAnOutcome(t *testing.T) {
	beginsNoCallAfter(t, func(*rig) {}, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { panic("undecided") }
	})
}

// beginsNoCallAfter runs a handler that makes a step, leaves a call in a goroutine and returns. The
// call begins after that, and must be refused.
func beginsNoCallAfter(t *testing.T, prepare func(*rig), optFns ...func(*lambdaidem.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		answered, ended := make(chan struct{}), make(chan error, 1)
		inner := newRig(nil)
		var r *rig
		r = newRig(func(ctx context.Context, _ request) (response, error) {
			prepare(r)
			_, err := lambdaidem.Step(ctx, "pay", func(context.Context) (int, error) { return 1, nil })
			go func() {
				<-answered
				ended <- inner.charged(context.WithoutCancel(ctx))
			}()
			return response{StatusCode: http.StatusCreated}, err
		}, optFns...)
		func() {
			defer func() { _ = recover() }()
			if out := r.send(t, first()); out.StatusCode < 400 {
				t.Errorf("the client gets %d", out.StatusCode)
			}
		}()
		close(answered)
		if err := <-ended; !errors.Is(err, lambdaidem.ErrOutOfTime) {
			t.Errorf("the call was made: %v", err)
		}
	})
}

// A goroutine outlives its handler and calls DownstreamKey. If the handler has failed, the call
// panics, because it is too late to bind the record to its payload. If the handler has succeeded,
// it does not.
func TestE6_NoDownstreamKeyAfterTheHandlerHasFailed(t *testing.T) {
	for status, refused := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusPaymentRequired: true, http.StatusCreated: false} {
		late, asked := make(chan struct{}), make(chan any)
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			go func() {
				defer func() { asked <- recover() }()
				<-late
				_ = lambdaidem.DownstreamKey(ctx, "charge")
			}()
			return response{StatusCode: status}, nil
		})
		r.send(t, first())
		close(late)
		if v := <-asked; (v != nil) != refused {
			t.Errorf("after a %d, it panicked with %v", status, v)
		}
	}
}
