package jmeskey_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/jmeskey"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// The clients send no Idempotency-Key. The key is made of the order's customer and number.
func ExampleKey_Request() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Key = jmeskey.Must("[customer, number]").Request
	})
	handler := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 201}, nil
	})
	for _, body := range []string{`{"customer":"c-1","number":7}`, `{"number":7, "customer":"c-1"}`, `{"customer":"c-1","number":8}`, `{"number":7}`} {
		event := events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders", RawPath: "/orders", Body: body}
		event.RequestContext.HTTP.Method = "POST"
		answer, err := handler(context.Background(), event)
		fmt.Println(answer.StatusCode, answer.Headers["X-Idempotency-Replayed"], err)
	}
	// Output:
	// 201  <nil>
	// 201 true <nil>
	// 201  <nil>
	// 400  <nil>
}

func ExampleEvent() {
	type order struct {
		Number int64 `json:"number"`
		Total  int   `json:"total"`
	}
	guard := lambdaidem.New(memstore.New())
	handler := lambdaidem.Handler(guard, "fulfil", jmeskey.Event[order](jmeskey.Must("number")),
		func(_ context.Context, o order) (string, error) {
			fmt.Println("working on", o.Number)
			return "done", nil
		})
	for range 2 {
		fmt.Println(handler(context.Background(), order{Number: 9007199254740993, Total: 5}))
	}
	// Output:
	// working on 9007199254740993
	// done <nil>
	// done <nil>
}

func ExampleKey_JSON() {
	fee := jmeskey.Must("detail.lines[?kind == 'fee'].id | [0]")
	for _, message := range []string{
		`{"detail":{"lines":[{"kind":"item","id":1},{"kind":"fee","id":2}]}}`,
		`{"detail":{"lines":[]}}`,
		`{"detail":{"lines":[],"lines":[]}}`,
	} {
		key, err := fee.JSON([]byte(message))
		fmt.Printf("%q %v\n", key, err != nil)
	}
	// Output:
	// "2" false
	// "" false
	// "" true
}

// New rejects expressions that can't work with numbers that are kept as text.
func ExampleNew() {
	_, err := jmeskey.New("orders[?total > `100`].id")
	fmt.Println(err)
	// Output:
	// jmeskey: the expression "orders[?total > `100`].id": <, <=, > and >= compare numbers, which are their texts here
}
