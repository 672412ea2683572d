package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// In your own tests, t is the *testing.T of the test. Here it prints the failures.
func ExampleTwice() {
	var t printer
	createPayment := func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		fmt.Println("paying", e.Body)
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, nil
	}
	event := idemtest.Request{Path: "/payments", Key: "order-1", Body: `{"amount":100}`}

	guard := lambdaidem.New(memstore.New())
	answer := idemtest.Twice(t, guard.APIGatewayV2(createPayment), event.APIGatewayV2())
	fmt.Println(answer.StatusCode, answer.Body)

	fmt.Println("Not guarded:")
	event.Method = "PUT"
	idemtest.Twice(t, guard.APIGatewayV2(createPayment), event.APIGatewayV2())
	// Output:
	// paying {"amount":100}
	// 201 paid
	// Not guarded:
	// paying {"amount":100}
	// paying {"amount":100}
	// guarded handlers ran again: 1 for the first sending, 1 for the second; the second should run none
}

func ExampleTwiceHTTP() {
	var t printer
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	mux := http.NewServeMux()
	mux.Handle("POST /payments/{id}/refunds", guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("refunding", r.PathValue("id"))
		w.WriteHeader(http.StatusCreated)
	})))

	r := idemtest.Request{Path: "/payments/7/refunds", Key: "refund-1", Body: `{"amount":40}`}
	answer := idemtest.TwiceHTTP(t, mux, r.HTTP(t.Context()))
	fmt.Println(answer.Status)
	_ = answer.Body.Close()
	// Output:
	// refunding 7
	// 201 Created
}

// The reply to Complete is lost, so the guard does not know that the record was completed. It calls
// Complete again. The client still gets its response, then and for each retry, and there is only
// one payment.
func ExampleStore_lostReply() {
	store, payments := idemtest.NewStore(nil), 0
	handler := lambdaidem.New(store).APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		payments++
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, nil
	})
	event := idemtest.Request{Path: "/payments", Key: "order-1"}.APIGatewayV2()

	store.Next(idemtest.Complete, idemtest.LoseReply)
	for range 2 {
		answer, err := handler(context.Background(), event)
		fmt.Println(answer.StatusCode, answer.Body, err)
	}
	fmt.Println("payments:", payments)
	for _, call := range store.Calls() {
		fmt.Printf("%s %q\n", call.Verb, call.Fault)
	}
	// Output:
	// 201 paid <nil>
	// 201 paid <nil>
	// payments: 1
	// acquire ""
	// complete "the reply is lost"
	// complete ""
	// acquire ""
}

// After a crash, the handler runs again once the lease has ended. Under policy Hold it does not run
// again, because an operator must first find out what happened.
func ExampleStore_crash() {
	var t printer
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		store, clock := idemtest.NewStore(nil), idemtest.NewClock()
		guard := lambdaidem.New(store, func(o *lambdaidem.Options) {
			o.Policy, o.Clock, o.Observer = policy, clock.Now, lambdaidem.Discard
		})
		handler := guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			fmt.Println("attempt", lambdaidem.Attempt(ctx))
			if lambdaidem.Attempt(ctx) == 1 {
				store.Kill(ctx) // for example because memory ran out after the card was charged
			}
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, nil
		})
		event := idemtest.Request{Path: "/payments", Key: "order-1"}.APIGatewayV2()

		fmt.Println(policy)
		idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = handler(ctx, event) })
		answer, err := handler(idemtest.Invocation(t, 10*time.Second), event)
		fmt.Println("at once:", answer.StatusCode, err)

		clock.Advance(13 * time.Second) // longer than the function's timeout and MaxSkew
		answer, err = handler(idemtest.Invocation(t, 10*time.Second), event)
		fmt.Println("later:", answer.StatusCode, err)
	}
	// Output:
	// rerun
	// attempt 1
	// at once: 409 <nil>
	// attempt 2
	// later: 201 <nil>
	// hold
	// attempt 1
	// at once: 409 <nil>
	// later: 409 <nil>
}

// One request is converted to events of several sources. A source that can't carry the caller
// panics.
func ExampleRequest() {
	r := idemtest.Request{Path: "/payments/7/refunds", Route: "/payments/{id}/refunds", Key: "refund-1", Body: `{"amount":40}`}
	r.Caller = idemtest.JWT("https://issuer.example.com", "alice")
	rest, http := r.APIGateway(), r.APIGatewayV2()
	fmt.Println(rest.HTTPMethod, rest.Path, rest.PathParameters["id"], rest.RequestContext.Authorizer["claims"])
	fmt.Println(http.RouteKey, http.Headers["idempotency-key"], http.RequestContext.Authorizer.JWT.Claims["sub"])

	// Print the id of the request's record. A test can use it to look up the record or to derive
	// other ids.
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "refunds" })
	fmt.Println(guard.RecordID(r.Identity()))

	r.Caller = idemtest.IAM("arn:aws:iam::123456789012:user/alice")
	fmt.Println(r.FunctionURL().RequestContext.Authorizer.IAM.UserARN)
	defer func() { fmt.Println(recover()) }()
	r.ALB()
	// Output:
	// POST /payments/7/refunds 7 map[iss:https://issuer.example.com sub:alice]
	// POST /payments/{id}/refunds refund-1 alice
	// lambdaidem#fddIA1SrrzCsIjuZ1nqQ4hM0nJVribR3W3d6i2SZIQc
	// arn:aws:iam::123456789012:user/alice
	// idemtest: ALB can't carry a caller made by IAM; it knows nobody: Options.Principal reads one from the request
}

func ExampleRecorder() {
	var seen idemtest.Recorder
	guard := lambdaidem.New(idemtest.NewStore(nil), func(o *lambdaidem.Options) { o.Observer = &seen })
	call := lambdaidem.Call{Operation: "charge", Key: "order-1"}
	for range 2 {
		_, err := lambdaidem.Do(context.Background(), guard, call, func(context.Context) (string, error) {
			return "", lambdaidem.Permanent(errors.New("card declined"))
		})
		fmt.Println(err)
	}
	fmt.Println(seen.Kinds())
	// Output:
	// card declined
	// card declined
	// [new replayed]
}

type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Cleanup(func())                    {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Error(args ...any)                 { fmt.Println(args...) }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
