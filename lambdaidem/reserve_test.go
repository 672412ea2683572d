package lambdaidem_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func reserve(d time.Duration) func(*lambdaidem.Options) {
	return func(o *lambdaidem.Options) { o.Reserve = d }
}

// A message begins only if at least MinRunTime is left for the handler. The handler's time ends
// when Reserve begins.
func TestV2_AMessageHasItsTimeBeforeTheReserve(t *testing.T) {
	for _, keep := range []time.Duration{time.Second, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, reserve(keep))
			h := r.guard.SQS(func(ctx context.Context, m events.SQSMessage) error {
				if due, _ := ctx.Deadline(); time.Until(due) < time.Second {
					t.Errorf("with a Reserve of %v %s has %v to run", keep, m.MessageId, time.Until(due))
				}
				time.Sleep(990 * time.Millisecond)
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			out, err := h(ctx, queueOf(20))
			if n := len(out.BatchItemFailures); err != nil || n < 10 || n > 15 {
				t.Errorf("with a Reserve of %v %d messages of 20 are left, %v", keep, n, err)
			}
			late := 0
			for _, kind := range r.seen.kinds() {
				if kind == lambdaidem.EventOutOfTime {
					late++
				}
			}
			if late != 1 {
				t.Errorf("with a Reserve of %v the cut batch has %d events: %v", keep, late, r.seen.kinds())
			}
		})
	}
}

// A handler also runs if the function's timeout is not longer than Reserve.
func TestX3_AReserveThatLeavesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(nil, reserve(3*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if out, err := r.handler(ctx, first()); err != nil || out.StatusCode != http.StatusCreated {
			t.Errorf("the request gets %d, %v", out.StatusCode, err)
		}
		out, err := r.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(ctx, queueOf(2))
		if err != nil || len(out.BatchItemFailures) > 0 {
			t.Errorf("the messages get %s, %v", fmt.Sprint(out), err)
		}
	})
}

// A request that has waited begins its own attempt only if at least MinRunTime is left for the
// handler.
func TestX3_AfterAWaitTheReserveIsLeftToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			if due, _ := ctx.Deadline(); time.Until(due) < time.Second {
				t.Errorf("attempt %d has %v to run", lambdaidem.Attempt(ctx), time.Until(due))
			}
			time.Sleep(7900 * time.Millisecond)
			return response{}, lambdaidem.Retryable(errWire)
		}, reserve(1200*time.Millisecond), func(o *lambdaidem.Options) { o.Wait = time.Minute })
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, _ = r.handler(ctx, first())
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 9900*time.Millisecond)
		defer cancel()
		wantProblem(t, r.sendCtx(ctx, t, first()), http.StatusConflict, lambdaidem.ErrInProgress)
	})
}
