package lambdaidem_test

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestR1_ALBStatusDescriptionReplays(t *testing.T) {
	g := lambdaidem.New(memstore.New())
	for _, description := range []string{"", "200 Fine", "200 \xff"} {
		h := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
			return events.ALBTargetGroupResponse{StatusCode: 200, StatusDescription: description}, nil
		})
		in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/a", Headers: map[string]string{"idempotency-key": "k" + hex.EncodeToString([]byte(description))}}
		for range 2 {
			out, err := h(t.Context(), in)
			if err != nil || out.StatusDescription != description {
				t.Errorf("the description is %q, want %q; %v", out.StatusDescription, description, err)
			}
		}
	}
}

func TestR1_StatusZeroStoredByOptionReplays(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) { return response{}, nil }, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeSucceeded }
	})
	a := r.send(t, first())
	wantReplay(t, r.send(t, first()), a)
}
