package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// request is the state of one request of a wave. The request's context carries it.
type request struct {
	mu    sync.Mutex
	calls []call // the requests to DynamoDB
	ran   bool   // the handler ran for this request
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// callsWithin returns how many requests to DynamoDB were sent within d of the first one.
func (r *request) callsWithin(d time.Duration) int {
	n := 0
	for _, c := range r.calls {
		if c.At-r.calls[0].At <= d {
			n++
		}
	}
	return n
}

// newEvent returns a request with the key. If retry is true, the request carries the header of a
// second attempt.
func newEvent(key string, retry bool) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "POST /payments", RawPath: "/payments", Body: `{"amount":1299,"currency":"EUR"}`,
		Headers: map[string]string{"content-type": "application/json", "idempotency-key": key}}
	e.RequestContext.RouteKey, e.RequestContext.HTTP.Method, e.RequestContext.HTTP.Path = e.RouteKey, "POST", e.RawPath
	if retry {
		e.Headers[strings.ToLower(lambdaidem.AttemptHeader)] = "2"
	}
	return e
}

// answers is a response with the number of requests that received it.
type answers struct {
	answer
	Times int
}

// answer has the parts of a response that the audit reads.
type answer struct {
	Status     int
	Replayed   bool
	Body       string // the body, or only the code of a problem document
	RetryAfter string
	Err        string // the error of the handler, if it returned one
}

func answerOf(resp events.APIGatewayV2HTTPResponse, err error) answer {
	a := answer{Status: resp.StatusCode, Body: resp.Body, RetryAfter: resp.Headers["Retry-After"], Replayed: resp.Headers["X-Idempotency-Replayed"] == "true"}
	if err != nil {
		a.Err = err.Error()
	}
	var problem struct{ Code string }
	if resp.Headers["Content-Type"] == "application/problem+json" && json.Unmarshal([]byte(resp.Body), &problem) == nil {
		a.Body = problem.Code
	}
	return a
}
