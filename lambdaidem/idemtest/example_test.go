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

type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
