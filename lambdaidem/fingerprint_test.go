package lambdaidem_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestF3_RepeatedParametersOfARESTAPINeverCollide(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	h := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200}, nil
	})
	send := func(query map[string][]string) int {
		out, err := h(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a",
			Headers: map[string]string{"Idempotency-Key": "k"}, MultiValueQueryStringParameters: query})
		if err != nil {
			t.Fatal(err)
		}
		return out.StatusCode
	}
	if got := send(map[string][]string{"a b": {"1", "2"}}); got != 200 {
		t.Fatalf("the first request got %d", got)
	}
	if got := send(map[string][]string{"a b": {"1"}, "a+b": {"2"}}); got != 422 {
		t.Errorf("another query got %d, want 422", got)
	}
}

func TestF3_TwoContentTypesCountByteByByte(t *testing.T) {
	for i := range 20 {
		r := newRig(nil)
		in := first()
		in.Headers["Content-Type"] = "text/plain"
		r.send(t, in)
		if out := r.send(t, in); !replayed(out) {
			t.Fatalf("round %d: the same request got %d", i, out.StatusCode)
		}
	}
}
