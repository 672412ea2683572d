package lambdaidem_test

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A client may spell one header's name in several ways, and gateways pass all of them on. Equal
// requests still count as equal, in whichever order a map is iterated.
func TestF3_HeaderInSeveralSpellingsIsOneHeader(t *testing.T) {
	guard := newRig(nil, func(o *lambdaidem.Options) { o.FingerprintHeaders = []string{"x-tenant"} }).guard
	type values = map[string][]string
	type single = map[string]string
	rest := func(t *testing.T, multi values, one single) int {
		t.Helper()
		h := guard.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 201}, nil
		})
		in := events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/p", Resource: "/" + t.Name(), Body: `{ "a": 1 }`, Headers: one, MultiValueHeaders: multi}
		out, err := h(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out.StatusCode
	}
	for name, c := range map[string]struct {
		multi, other   values
		one, otherOnes single
	}{
		"several values": {
			multi: values{"idempotency-key": {"k"}, "X-Tenant": {"b"}, "x-tenant": {"a"}, "X-TENANT": {"c", "d"}},
			other: values{"idempotency-key": {"k"}, "X-Tenant": {"a"}, "x-tenant": {"b"}, "X-TENANT": {"c", "d"}},
		},
		"one value each": {
			one:       single{"idempotency-key": "k", "X-Tenant": "b", "x-tenant": "a", "X-TENANT": "c"},
			otherOnes: single{"idempotency-key": "k", "X-Tenant": "a", "x-tenant": "b", "X-TENANT": "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				if status := rest(t, c.multi, c.one); status != 201 {
					t.Fatalf("the same request again gets %d", status)
				}
			}
			if status := rest(t, c.other, c.otherOnes); status != 422 {
				t.Errorf("another request gets %d", status)
			}
		})
	}
}

// All spellings of Content-Type together give the body's media type. If there are several values,
// the body has no media type.
func TestF3_ContentTypeInSeveralSpellings(t *testing.T) {
	r := newRig(nil)
	for i := range 50 {
		body := []string{`{"amount":1}`, `{ "amount": 1 }`}[i%2]
		in := post("k", body)
		in.Headers = map[string]string{"idempotency-key": "k", "Content-Type": "application/json", "content-type": "text/plain"}
		want := []int{201, 422}[i%2]
		if out := r.send(t, in); out.StatusCode != want {
			t.Fatalf("request %d: %d; want %d, as the body counts byte by byte", i, out.StatusCode, want)
		}
	}
}

func TestRequestValuesAreInOrder(t *testing.T) {
	var got []string
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Skip = func(r *lambdaidem.Request) bool {
			got = r.Values("X-Many")
			return false
		}
	})
	in := post("k", "{}")
	in.Headers["x-many"], in.Headers["X-MANY"], in.Headers["X-Many"], in.Headers["x-MANY"] = "4", "1", "2", "3"
	for range 20 {
		if r.send(t, in); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
			t.Fatalf("got %v", got)
		}
	}
	if in = post("k2", "{}"); r.send(t, in).StatusCode != 201 || got != nil {
		t.Errorf("absent: %v", got)
	}
}

// The handler wrote its cookie header in two spellings. A hook's cookies come after the handler's.
func TestR1_CookiesInSeveralSpellingsAreKept(t *testing.T) {
	guard := newRig(nil, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) {
			resp.Cookies = append(resp.Cookies, "hook=1")
		}
	}).guard
	h := guard.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 201, MultiValueHeaders: map[string][]string{"set-cookie": {"b=1"}, "Set-Cookie": {"a=1"}, "SET-COOKIE": {"c=1"}}}, nil
	})
	in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/p", Body: "{}", MultiValueHeaders: map[string][]string{"idempotency-key": {"k"}}}
	for i := range 20 {
		out, err := h(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if got := out.MultiValueHeaders["SET-COOKIE"]; i > 0 && !slices.Equal(got, []string{"c=1", "a=1", "b=1", "hook=1"}) {
			t.Fatalf("replay %d has %v", i, out.MultiValueHeaders)
		}
	}
}
