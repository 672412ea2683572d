package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// runs counts the runs of a process's handler.
type runs struct {
	mu       sync.Mutex
	times    int // since the last call of take
	recordID string
}

// run is the handler. It takes the given time, and every run returns a different body.
func (r *runs) run(ctx context.Context, takes time.Duration) events.APIGatewayV2HTTPResponse {
	requestOf(ctx).ran = true
	r.mu.Lock()
	r.times++
	r.recordID = lambdaidem.RecordID(ctx)
	r.mu.Unlock()
	time.Sleep(takes)
	return events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: `{"id":"pay_` + rand.Text() + `","amount":1299}`,
	}
}

// take returns how often the handler has run since the last call of take, and the id of the
// record, or "" if the handler has never run.
func (r *runs) take() (times int, recordID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	times, r.times = r.times, 0
	return times, r.recordID
}
