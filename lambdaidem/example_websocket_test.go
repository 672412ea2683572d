package lambdaidem_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// A client that lost its connection sends its message again over another one. The key is
// a member of the message.
func ExampleGuard_APIGatewayWebSocket() {
	guard := lambdaidem.New(memstore.New())
	handle := guard.APIGatewayWebSocket(func(_ context.Context, e events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
		if e.RequestContext.EventType == "MESSAGE" {
			fmt.Println("charged over", e.RequestContext.ConnectionID)
		}
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: `{"paid":30}`}, nil
	})
	for _, connection := range []string{"first", "second"} {
		answer, err := handle(context.Background(), events.APIGatewayWebsocketProxyRequest{
			Body: `{"action":"pay","amount":30,"x-idempotency-key":"7d1cbd70-3a52-4c0a-9f8e-0b5b9d6c2f11"}`,
			RequestContext: events.APIGatewayWebsocketProxyRequestContext{EventType: "MESSAGE", RouteKey: "pay", ConnectionID: connection,
				Authorizer: map[string]any{"principalId": "alice"}},
		})
		fmt.Println(answer.Body, err)
	}
	// Output:
	// charged over first
	// {"paid":30} <nil>
	// {"paid":30} <nil>
}
