package main

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestPayment_IsMadeOnce(t *testing.T) {
	order := idemtest.Request{
		Path: "/payments", Key: "order-1", Body: `{"amount":100}`,
		Caller: idemtest.JWT("https://issuer.example.com", "alice"),
	}
	answer := idemtest.Twice(t, newHandler(memstore.New()), order.APIGatewayV2())
	if answer.StatusCode != http.StatusCreated {
		t.Errorf("the answer is %+v", answer)
	}
}

func TestPayment_SurvivesALostReply(t *testing.T) {
	store := idemtest.NewStore(nil)
	store.Next(idemtest.Complete, idemtest.LoseReply)
	order := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`}
	idemtest.Twice(t, newHandler(store), order.APIGatewayV2())
}

func TestPayment_IsMadeAgainAfterACrash(t *testing.T) {
	store, clock := idemtest.NewStore(nil), idemtest.NewClock()
	handler := newHandler(store, func(o *lambdaidem.Options) { o.Clock = clock.Now })
	event := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`}.APIGatewayV2()

	store.Next(idemtest.Complete, idemtest.KillBefore) // the handler has run, its answer is not stored
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, event) })

	answer, err := handler(idemtest.Invocation(t, 10*time.Second), event)
	if err != nil || answer.StatusCode != http.StatusConflict {
		t.Errorf("while the lease lives: %+v, %v", answer, err)
	}
	clock.Advance(13 * time.Second) // the function's timeout and MaxSkew are over
	answer, err = handler(idemtest.Invocation(t, 10*time.Second), event)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Errorf("afterwards: %+v, %v", answer, err)
	}
}

func TestPayment_IsHeldAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen idemtest.Recorder
		store := idemtest.NewStore(nil)
		handler := newHandler(store, func(o *lambdaidem.Options) { o.Policy, o.Observer = lambdaidem.Hold, &seen })
		event := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`}.APIGatewayV2()

		store.Next(idemtest.Complete, idemtest.KillBefore)
		idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, event) })
		time.Sleep(13 * time.Second) // of virtual time: no second is waited
		answer, err := handler(idemtest.Invocation(t, 10*time.Second), event)
		if err != nil || answer.StatusCode != http.StatusConflict || !slices.Contains(seen.Kinds(), lambdaidem.EventAbandoned) {
			t.Errorf("the answer is %+v, %v; the guard saw %v", answer, err, seen.Kinds())
		}
	})
}

func TestOrders_AreShippedOnceAfterACrash(t *testing.T) {
	store, clock := idemtest.NewStore(nil), idemtest.NewClock()
	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Clock = clock.Now })
	crashing, shipped := true, []string{}
	handler := guard.SQS(func(ctx context.Context, order events.SQSMessage) error {
		if order.Body == "order 18" && crashing {
			store.Kill(ctx)
		}
		shipped = append(shipped, order.Body)
		return nil
	})
	orders := idemtest.SQS("orders.fifo", idemtest.Message{Body: "order 17"}, idemtest.Message{Body: "order 18"}, idemtest.Message{Body: "order 19"})

	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, orders) })
	crashing = false
	clock.Advance(13 * time.Second) // the function's timeout and MaxSkew are over
	idemtest.Twice(t, handler, orders)
	if !slices.Equal(shipped, []string{"order 17", "order 18", "order 19"}) {
		t.Errorf("shipped %q", shipped)
	}
}
