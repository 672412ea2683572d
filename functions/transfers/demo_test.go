package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// After a crash, the record is held for an operator if and only if the request asked for
// policy Hold.
func TestL6_PolicyAskedForHoldsACrash(t *testing.T) {
	for name, tt := range map[string]struct {
		first, again string // the policy header of the first request and of the retry
		status       int
		runs         int
	}{
		"none":                      {"", "", http.StatusCreated, 2},
		"hold":                      {"hold", "hold", http.StatusConflict, 1},
		"another":                   {"rerun", "rerun", http.StatusCreated, 2},
		"hold, and a retry without": {"hold", "", http.StatusConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clock, runs := idemtest.NewClock(), 0
			store := idemtest.NewStore(memstore.New())
			guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Clock, o.Observer = clock.Now, lambdaidem.Discard })
			h := demonstrated(guard, func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				if runs++; runs == 1 {
					store.Kill(ctx)
				}
				return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated}, nil
			})
			asked := func(policy string) events.APIGatewayV2HTTPRequest {
				e := post("key-1", `{}`)
				if policy != "" {
					e.Headers[policyHeader] = policy
				}
				return e
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = h(ctx, asked(tt.first)) })
			clock.Advance(time.Minute)
			resp, err := h(ctx, asked(tt.again))
			if err != nil || resp.StatusCode != tt.status || runs != tt.runs {
				t.Errorf("%d %s after %d runs, %v; want %d after %d", resp.StatusCode, resp.Body, runs, err, tt.status, tt.runs)
			}
			if tt.status == http.StatusConflict {
				expectProblem(t, resp, tt.status, string(lambdaidem.ErrAttemptAbandoned), "")
			}
		})
	}
}
