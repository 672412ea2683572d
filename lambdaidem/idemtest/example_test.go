package idemtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// In a test of your own t is the test's *testing.T. Here it prints.
func ExampleTwice() {
	var t printer
	createPayment := func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		fmt.Println("paying", e.Body)
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, nil
	}
	event := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments", RawPath: "/payments", Body: "100",
		Headers: map[string]string{"idempotency-key": "order-1"}}
	event.RequestContext.HTTP.Method = "POST"

	guard := lambdaidem.New(memstore.New())
	answer := idemtest.Twice(t, guard.APIGatewayV2(createPayment), event)
	fmt.Println(answer.StatusCode, answer.Body)

	fmt.Println("Not guarded:")
	event.RequestContext.HTTP.Method = "PUT"
	idemtest.Twice(t, guard.APIGatewayV2(createPayment), event)
	// Output:
	// paying 100
	// 201 paid
	// Not guarded:
	// paying 100
	// paying 100
	// the handler ran 2 times for one event sent twice; it should run once
}

type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
