package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// handler is a Lambda function behind an HTTP API.
type handler func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// created is the response of the handler, which returns it at once.
var created = events.APIGatewayV2HTTPResponse{
	StatusCode: http.StatusCreated,
	Headers:    map[string]string{"Content-Type": "application/json", "Location": "/payments/pay_5f1c8a2e"},
	Body:       `{"id":"pay_5f1c8a2e","status":"succeeded","amount":129950,"currency":"EUR","created":"2026-01-31T12:00:00Z"}`,
}

func create(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return created, nil
}

// neverEnds is a handler that leaves its lease like one that is still running.
func neverEnds(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return events.APIGatewayV2HTTPResponse{}, lambdaidem.Uncertain(errors.New("still at it"))
}

// request returns an event as API Gateway sends it, with a key and a body.
func request(key, body string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{
		Version:  "2.0",
		RouteKey: "POST /payments",
		RawPath:  "/payments",
		Headers: map[string]string{
			"accept":            "application/json",
			"accept-encoding":   "gzip",
			"authorization":     "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1LTE3In0.c2lnbmF0dXJl",
			"content-length":    fmt.Sprint(len(body)),
			"content-type":      "application/json",
			"host":              "api.example.com",
			"idempotency-key":   key,
			"user-agent":        "payments-client/3.2",
			"x-amzn-trace-id":   "Root=1-67891233-abcdef012345678912345678",
			"x-forwarded-for":   "192.0.2.7",
			"x-forwarded-port":  "443",
			"x-forwarded-proto": "https",
		},
		Body: body,
	}
	e.RequestContext.RouteKey = e.RouteKey
	e.RequestContext.HTTP.Method = http.MethodPost
	e.RequestContext.HTTP.Path = e.RawPath
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
			Claims: map[string]string{"iss": "https://login.example.com/", "sub": "u-17"},
		},
	}
	return e
}

// payment is a typical JSON object.
const payment = `{"amount":129950,"currency":"EUR","capture":true,"description":"Commande n° 48213 – Éditions du Soleil",` +
	`"customer":{"id":"cus_9s6XKzkNRiz8i3","name":"Zoë Müller","email":"zoe.mueller@example.com","vip":false},` +
	`"shipping":{"line1":"12 rue de la Paix","line2":null,"city":"Paris","postalCode":"75002","country":"FR"},` +
	`"items":[{"sku":"BK-1001","qty":2,"price":49.95,"tags":["book","gift"]},{"sku":"BK-2040","qty":1,"price":30.05,"tags":[]}],` +
	`"metadata":{"orderId":"6735","channel":"web","note":"line one\nline \"two\""}}`

// ordinary returns a JSON body of exactly size bytes: payments, and a longer text at the end. size
// must be at least 1,000.
func ordinary(size int) string {
	n := max(1, (size-100)/(len(payment)+1))
	head := `{"payments":[` + strings.Repeat(payment+",", n-1) + payment + `],"comment":"`
	const tail = `"}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// send passes an event to the handler. It returns an error unless the response has the given
// status, and is marked as a replay if and only if replayed is true.
func send(ctx context.Context, h handler, e events.APIGatewayV2HTTPRequest, status int, replayed bool) error {
	resp, err := h(ctx, e)
	if err != nil {
		return err
	}
	if _, marked := resp.Headers["X-Idempotency-Replayed"]; resp.StatusCode != status || marked != replayed {
		return fmt.Errorf("answer %d, replayed %v; want %d, %v: %s", resp.StatusCode, marked, status, replayed, resp.Body)
	}
	return nil
}
