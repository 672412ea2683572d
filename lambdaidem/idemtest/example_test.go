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

// A test of your own: that a payment is made once, however often it is sent.
func ExampleTwice() {
	createPayment := func(_ context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		fmt.Println("paying", e.Body)
		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid"}, nil
	}
	var testPayment = func(t *testing.T) {
		guard := lambdaidem.New(memstore.New())
		event := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments", RawPath: "/payments", Body: "100",
			Headers: map[string]string{"idempotency-key": "order-1"}}
		event.RequestContext.HTTP.Method = "POST"

		answer := idemtest.Twice(t, guard.APIGatewayV2(createPayment), event)
		fmt.Println(answer.StatusCode, answer.Body)
	}
	run(testPayment)
	// Output:
	// paying 100
	// 201 paid
}

// run stands for go test, which an example can't have.
func run(test func(*testing.T)) {
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "TestPayment", F: test}})
}
