package lambdaidem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func ExampleGuard_APIGatewayV2() {
	payments := 0
	createPayment := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		payments++
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: fmt.Sprintf("payment %d", payments)}, nil
	}
	guard := lambdaidem.New(memstore.New()) // in production: dynamostore.New(client, "idempotency")
	handler := guard.APIGatewayV2(createPayment)

	// In main: lambda.Start(handler). Here, a client that sends one request twice.
	request := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":100}`,
		Headers: map[string]string{"idempotency-key": "0d1d9c5e-6f0a-4c5e-9d0e-7a2f6f1f7b11"}}
	request.RequestContext.HTTP.Method = "POST"
	for range 2 {
		answer, err := handler(context.Background(), request)
		fmt.Println(answer.StatusCode, answer.Body, answer.Headers["X-Idempotency-Replayed"], err)
	}
	// Output:
	// 201 payment 1  <nil>
	// 201 payment 1 true <nil>
}

func ExampleGuard_Middleware() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Principal = func(context.Context, *lambdaidem.Request) (string, error) {
			// The principal that your own authentication found, never something that a client can
			// choose.
			return "tenant-1", nil
		}
	})
	mux := http.NewServeMux()
	mux.Handle("POST /payments", guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "paid")
	})))

	for _, amount := range []string{"100", "100", "999"} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/payments", strings.NewReader(amount))
		r.Header.Set("Idempotency-Key", "order-1")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("X-Idempotency-Replayed"), w.Header().Get("Content-Type"))
	}
	// Output:
	// 201  text/plain
	// 201 true text/plain
	// 422  application/problem+json
}

func ExampleDo() {
	guard := lambdaidem.New(memstore.New())
	charge := func(ctx context.Context, orderID string, amount int) (string, error) {
		call := lambdaidem.Call{Operation: "charge", Key: orderID, Payload: amount}
		return lambdaidem.Do(ctx, guard, call, func(context.Context) (string, error) {
			fmt.Println("charging", amount)
			return fmt.Sprintf("charged %d", amount), nil
		})
	}
	for _, amount := range []int{100, 100, 999} {
		receipt, err := charge(context.Background(), "order-1", amount)
		fmt.Printf("%q %v\n", receipt, errors.Is(err, lambdaidem.ErrPayloadMismatch))
	}
	// Output:
	// charging 100
	// "charged 100" false
	// "charged 100" false
	// "" true
}

func ExampleHandler() {
	type order struct{ ID string }
	type receipt struct{ Total int }
	guard := lambdaidem.New(memstore.New())
	handler := lambdaidem.Handler(guard, "fulfil",
		func(_ context.Context, o order) (string, error) { return o.ID, nil }, // where the key is
		func(_ context.Context, o order) (receipt, error) {
			fmt.Println("working on", o.ID)
			return receipt{Total: 42}, nil
		})
	for range 2 {
		r, err := handler(context.Background(), order{ID: "order-1"})
		fmt.Println(r.Total, err)
	}
	// Output:
	// working on order-1
	// 42 <nil>
	// 42 <nil>
}

// The application's own answers: a 404 is stored and replayed, and a 503 would be released.
func ExampleReject() {
	guard := lambdaidem.New(memstore.New())
	find := func() error {
		_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "refund", Key: "refund-1"},
			func(context.Context) (string, error) {
				fmt.Println("looking for the payment")
				return "", lambdaidem.Reject(http.StatusNotFound, "payment_unknown", "There is no such payment.")
			})
		return err
	}
	for range 2 {
		err := find()
		fmt.Println(err, errors.Is(err, lambdaidem.Code("payment_unknown")))
	}
	// Output:
	// looking for the payment
	// payment_unknown: There is no such payment. true
	// payment_unknown: There is no such payment. true
}

// An error that would happen again on every retry is stored and replayed.
func ExamplePermanent() {
	guard := lambdaidem.New(memstore.New())
	for range 2 {
		_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "charge", Key: "order-1"},
			func(context.Context) (string, error) {
				fmt.Println("charging")
				return "", lambdaidem.Permanent(errors.New("card stolen"))
			})
		fmt.Println(err)
	}
	// Output:
	// charging
	// card stolen
	// card stolen
}

// After this error, it is unknown whether the money was moved. The lease is kept, so that no retry
// runs before it ends.
func ExampleUncertain() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold // after the lease's end, an operator decides
		o.Observer = lambdaidem.Discard
	})
	for range 2 {
		_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "charge", Key: "order-1"},
			func(context.Context) (string, error) {
				fmt.Println("charging")
				return "", lambdaidem.Uncertain(errors.New("the card network timed out"))
			})
		fmt.Println(err, errors.Is(err, lambdaidem.ErrInProgress))
	}
	// Output:
	// charging
	// the card network timed out false
	// idempotency_in_progress: A request with this idempotency key is in progress. Repeat this request later to get its answer. true
}

// One guard serves most routes, and a stricter one serves some.
func ExampleGuard_With() {
	guard := lambdaidem.New(memstore.New())
	payouts := guard.With(func(o *lambdaidem.Options) {
		o.Policy = lambdaidem.Hold
		o.ValidateKey = lambdaidem.UUIDv4or7Key
	})
	_, err := lambdaidem.Do(context.Background(), payouts, lambdaidem.Call{Operation: "payout", Key: "payout-1"},
		func(context.Context) (string, error) { return "paid out", nil })
	fmt.Println(err)
	// Output:
	// idempotency_key_invalid: The idempotency key is invalid: it is not a UUID of 36 characters.
}

// The handler has several outside effects. When it runs again, completed steps don't run again.
func ExampleStep() {
	guard := lambdaidem.New(memstore.New())
	mailServer := errors.New("the mail server is down")
	order := func(ctx context.Context) (string, error) {
		charge, err := lambdaidem.Step(ctx, "charge", func(context.Context) (string, error) {
			fmt.Println("charging")
			return "ch_1", nil
		})
		if err != nil {
			return "", err
		}
		return lambdaidem.Step(ctx, "mail", func(context.Context) (string, error) {
			fmt.Println("mailing the receipt of", charge)
			if err := mailServer; err != nil {
				mailServer = nil // works again from now on
				return "", err
			}
			return "sent", nil
		})
	}
	for range 3 {
		receipt, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "order", Key: "order-1"}, order)
		fmt.Printf("%q %v\n", receipt, err)
	}
	// Output:
	// charging
	// mailing the receipt of ch_1
	// "" the mail server is down
	// mailing the receipt of ch_1
	// "sent" <nil>
	// "sent" <nil>
}

// A step may run again if its process dies before its result is stored. A service that accepts a
// key then gets the same key again, and does the work once.
func ExampleDownstreamKey() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "shop" })
	for range 2 {
		_, _ = lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "order", Key: "order-1"},
			func(ctx context.Context) (string, error) {
				fmt.Println(lambdaidem.Attempt(ctx), "charge with", lambdaidem.DownstreamKey(ctx, "charge"))
				fmt.Println(lambdaidem.Attempt(ctx), "refund with", lambdaidem.DownstreamKey(ctx, "refund"))
				return "", errors.New("released, so that it runs again")
			})
	}
	// Output:
	// 1 charge with b9785894-b8ad-8e13-bc74-9d6dec5bb7d2
	// 1 refund with 3c87bdae-8e8a-8a4c-b712-f44ac42fc745
	// 2 charge with b9785894-b8ad-8e13-bc74-9d6dec5bb7d2
	// 2 refund with 3c87bdae-8e8a-8a4c-b712-f44ac42fc745
}
