package lambdaidem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A guarded call inside a guarded handler does not fail open. If it did, and failed after a charge,
// no record would know of the charge: the next attempt of the handler would call the bank again, or
// store a 402.
func TestX5_AnInnerCallNeverFailsOpen(t *testing.T) {
	charged := 0
	makers := map[string]func(context.Context, *lambdaidem.Guard) error{
		"Do": func(ctx context.Context, g *lambdaidem.Guard) error {
			_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { charged++; return 1, nil })
			return err
		},
		"typed handler": func(ctx context.Context, g *lambdaidem.Guard) error {
			key := func(context.Context, int) (string, error) { return "order-1", nil }
			_, err := lambdaidem.Handler(g, "charge", key, func(context.Context, int) (int, error) { charged++; return 1, nil })(ctx, 1)
			return err
		},
		"message": func(ctx context.Context, g *lambdaidem.Guard) error {
			h := g.SQS(func(context.Context, events.SQSMessage) error { charged++; return nil })
			out, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", EventSourceARN: "arn:aws:sqs:r:a:q", Body: "{}"}}})
			if err == nil && len(out.BatchItemFailures) > 0 {
				err = errors.New("the message failed")
			}
			return err
		},
		"Do in an unguarded request": func(ctx context.Context, g *lambdaidem.Guard) error {
			skip := func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }
			_, err := g.With(skip).APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
				_, err := lambdaidem.Do(ctx, g, charge, func(context.Context) (int, error) { charged++; return 1, nil })
				return response{}, err
			})(ctx, first())
			return err
		},
	}
	outages := map[string]fault{"throttled": refused(lambdaidem.ReasonThrottled), "request lost": requestLost, "reply lost": replyLost}
	outers := map[string][]func(*lambdaidem.Options){
		"with a lease": nil,
		"failed open":  {failOpen},
		"optimistic":   {func(o *lambdaidem.Options) { o.Optimistic = true }},
		"under Hold":   {hold},
	}
	for maker, inner := range makers {
		for outage, down := range outages {
			for name, outer := range outers {
				t.Run(maker+", "+outage+", "+name, func(t *testing.T) {
					charged = 0
					store := newFaulty() // of the inner calls
					g := lambdaidem.New(store, failOpen, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "inner", lambdaidem.Discard })
					r, _ := withLedger(nil, outer...)
					r = r.later(payOr402(func(ctx context.Context) error { return inner(ctx, g) }))
					if name == "failed open" {
						r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
					}
					store.failAlways(acquire, down)
					if out := r.send(t, first()); charged != 0 || out.StatusCode != http.StatusServiceUnavailable {
						t.Errorf("charged %d times, and the client is told %d %s", charged, out.StatusCode, out.Body)
					}
				})
			}
		}
	}
}

// A guarded call inside a handler that has no record may fail open.
func TestX5_ACallInsideAnUnguardedHandlerFailsOpen(t *testing.T) {
	r, _ := withLedger(nil) // its store has transactions, so the unguarded run has an attempt
	inner := r.guard.With(failOpen)
	r.store.fail(acquire, refused(lambdaidem.ReasonThrottled))
	h := r.guard.With(func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }).APIGatewayV2(
		func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Do(ctx, inner, charge, func(context.Context) (int, error) { return 1, nil })
			return response{StatusCode: http.StatusCreated}, err
		})
	if out, err := h(t.Context(), first()); err != nil || out.StatusCode != http.StatusCreated {
		t.Errorf("%+v, %v", out, err)
	}
}
