package lambdaidem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// sendAll sends the bodies to a guarded handler and prints each answer.
func sendAll(guard *lambdaidem.Guard, key string, bodies ...string) {
	handler := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
	})
	for _, body := range bodies {
		event := events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders", RawPath: "/orders", Body: body, Headers: map[string]string{}}
		if key != "" {
			event.Headers["idempotency-key"] = key
		}
		event.RequestContext.HTTP.Method = http.MethodPost
		answer, err := handler(context.Background(), event)
		fmt.Println(answer.StatusCode, answer.Headers["X-Idempotency-Replayed"], err)
	}
}

// The key is made from the fields that identify an order, for clients that send no Idempotency-Key.
// With an expression, this is shorter: see the jmeskey package.
func ExampleHashKey() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
			var order struct {
				Customer string
				Number   json.Number
			}
			if err := json.Unmarshal(r.Body, &order); err != nil {
				return "", lambdaidem.Reject(http.StatusBadRequest, "order_unreadable", "The order is no JSON.")
			}
			return lambdaidem.HashKey(order.Customer, order.Number) // "" if one is missing
		}
	})
	sendAll(guard, "", `{"customer":"c","number":1}`, `{"number":1,"customer":"c"}`, `{"customer":"c","number":2}`, `{"customer":"c"}`, `?`)
	// Output:
	// 201  <nil>
	// 201 true <nil>
	// 201  <nil>
	// 400  <nil>
	// 400  <nil>
}

// Each retry of this client has its own time, which must not count as another payload.
func ExampleOptions_fingerprintIgnore() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.FingerprintIgnore = []string{"/meta/sentAt"}
	})
	sendAll(guard, "order-1", `{"amount":100,"meta":{"sentAt":1}}`, `{"amount":100,"meta":{"sentAt":2}}`, `{"amount":999,"meta":{"sentAt":3}}`)
	// Output:
	// 201  <nil>
	// 201 true <nil>
	// 422  <nil>
}

// A secret is rotated. Fingerprints that were made with the old one still match.
func ExampleOptions_fingerprintSecrets() {
	oldSecret, newSecret := []byte("32 random bytes, kept in secret."), []byte("32 others, kept in secret, too!!")
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.FingerprintSecrets = [][]byte{oldSecret}
	})
	sendAll(guard, "order-1", `{"amount":100}`)
	guard = guard.With(func(o *lambdaidem.Options) { // once every instance knows both
		o.FingerprintSecrets = [][]byte{newSecret, oldSecret}
	})
	sendAll(guard, "order-1", `{"amount":100}`, `{"amount":999}`)
	// Output:
	// 201  <nil>
	// 201 true <nil>
	// 422  <nil>
}

// A header with the currency of an amount belongs to the payload.
func ExampleOptions_fingerprintHeaders() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) {
		o.FingerprintHeaders = []string{"X-Currency"}
	})
	handler := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
	})
	for _, currency := range []string{"EUR", "EUR", "USD"} {
		event := events.APIGatewayV2HTTPRequest{RouteKey: "POST /orders", RawPath: "/orders", Body: `{"amount":100}`,
			Headers: map[string]string{"idempotency-key": "order-1", "x-currency": currency}}
		event.RequestContext.HTTP.Method = http.MethodPost
		answer, err := handler(context.Background(), event)
		fmt.Println(answer.StatusCode, answer.Headers["X-Idempotency-Replayed"], err)
	}
	// Output:
	// 201  <nil>
	// 201 true <nil>
	// 422  <nil>
}
