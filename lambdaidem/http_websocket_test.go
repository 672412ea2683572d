package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// socketMessage returns the event of a message, in the form in which API Gateway sends it, with the
// given changes.
func socketMessage(t *testing.T, changes ...func(*events.APIGatewayWebsocketProxyRequest)) events.APIGatewayWebsocketProxyRequest {
	t.Helper()
	var e events.APIGatewayWebsocketProxyRequest
	if err := json.Unmarshal(fixture(t, "websocket"), &e); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// socketGuard returns a function that sends an event to a guarded handler, and the number of times
// that the handler has run.
func socketGuard(optFns ...func(*lambdaidem.Options)) (send func(testing.TB, events.APIGatewayWebsocketProxyRequest) events.APIGatewayProxyResponse, runs *int) {
	runs = new(int)
	h := lambdaidem.New(memstore.New(), append([]func(*lambdaidem.Options){quiet}, optFns...)...).APIGatewayWebSocket(func(_ context.Context, e events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
		*runs++
		return events.APIGatewayProxyResponse{StatusCode: 200, Headers: map[string]string{"X-A": "1"}, Body: "paid by " + e.RequestContext.ConnectionID}, nil
	})
	return func(t testing.TB, e events.APIGatewayWebsocketProxyRequest) events.APIGatewayProxyResponse {
		t.Helper()
		out, err := h(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}, runs
}

// reconnected changes an event as if the client had sent the message again over another connection.
func reconnected(e *events.APIGatewayWebsocketProxyRequest) {
	c := &e.RequestContext
	c.ConnectionID, c.MessageID, c.RequestID, c.ExtendedRequestID, c.ConnectedAt, c.RequestTimeEpoch = "other", "m2", "r2", "x2", 1, 2
	c.Authorizer = map[string]any{"principalId": "alice", "integrationLatency": 7.0}
}

// The handler receives the event unchanged. A message that the client sends again over another
// connection gets the stored answer.
func TestV1_MessagesOfAWebSocket(t *testing.T) {
	var got events.APIGatewayWebsocketProxyRequest
	h := lambdaidem.New(memstore.New(), quiet).APIGatewayWebSocket(func(_ context.Context, e events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
		got = e
		return events.APIGatewayProxyResponse{StatusCode: 200}, nil
	})
	if _, err := h(t.Context(), socketMessage(t)); err != nil || !reflect.DeepEqual(got, socketMessage(t)) {
		t.Errorf("handled %+v, %v", got, err)
	}
	send, runs := socketGuard()
	first, second := send(t, socketMessage(t)), send(t, socketMessage(t, reconnected))
	if *runs != 1 || first.Body != "paid by R1kmxc2VNjMCFIA=" || second.Body != first.Body || second.StatusCode != 200 || second.Headers["X-A"] != "1" || second.Headers[mark] != "true" || first.Headers[mark] != "" {
		t.Errorf("%d runs, %+v and then %+v", *runs, first, second)
	}
}

// Events of type CONNECT and DISCONNECT run unguarded, even if they have a key. A client can't avoid
// the guard with the route key $connect, because it does not choose the type.
func TestV1_OnlyMessagesOfAWebSocketAreGuarded(t *testing.T) {
	for eventType, guarded := range map[string]bool{"CONNECT": false, "DISCONNECT": false, "MESSAGE": true, "": true} {
		send, runs := socketGuard(func(o *lambdaidem.Options) { o.Methods = []string{http.MethodPut} })
		e := socketMessage(t, func(e *events.APIGatewayWebsocketProxyRequest) {
			e.RequestContext.EventType, e.RequestContext.RouteKey = eventType, "$connect"
			e.Headers = map[string]string{"Idempotency-Key": "k"}
		})
		send(t, e)
		send(t, e)
		if (*runs == 1) != guarded {
			t.Errorf("%q: the handler ran %d times", eventType, *runs)
		}
	}
}

// The key is a member of the body, or the result of Options.Key. A message without a key, or with an
// invalid one, is refused.
func TestK5_TheKeyOfAMessage(t *testing.T) {
	body := func(text string) func(*events.APIGatewayWebsocketProxyRequest) {
		return func(e *events.APIGatewayWebsocketProxyRequest) { e.Body = text }
	}
	for text, code := range map[string]lambdaidem.Code{
		`{"amount":1}`: lambdaidem.ErrKeyMissing, `{"x-idempotency-key":null}`: lambdaidem.ErrKeyMissing, `pay`: lambdaidem.ErrKeyMissing, ``: lambdaidem.ErrKeyMissing,
		`{"x-idempotency-key":""}`: lambdaidem.ErrKeyInvalid, `{"x-idempotency-key":7}`: lambdaidem.ErrKeyInvalid, `{"x-idempotency-key":"a","X-Idempotency-Key":"a"}`: lambdaidem.ErrKeyInvalid,
		`{"x-idempotency-key":"` + strings.Repeat("k", 256) + `"}`: lambdaidem.ErrKeyInvalid,
	} {
		send, runs := socketGuard()
		if out := send(t, socketMessage(t, body(text))); out.StatusCode != 400 || !strings.Contains(out.Body, string(code)) || *runs > 0 {
			t.Errorf("%s: %+v; want %s", text, out, code)
		}
	}
	send, runs := socketGuard(func(o *lambdaidem.Options) {
		o.Key = func(_ context.Context, r *lambdaidem.Request) (string, error) {
			var in struct{ ID string }
			err := json.Unmarshal(r.Body, &in)
			return in.ID, err
		}
	})
	const own = `{"id":"order-17","amount":1}`
	send(t, socketMessage(t, body(own)))
	send(t, socketMessage(t, body(base64.StdEncoding.EncodeToString([]byte(own))), func(e *events.APIGatewayWebsocketProxyRequest) { e.IsBase64Encoded = true }))
	if out := send(t, socketMessage(t, body(`{"x-idempotency-key":"k"}`))); *runs != 1 || out.StatusCode != 400 {
		t.Errorf("with Options.Key the handler ran %d times, and the last answer is %+v", *runs, out)
	}
	send, runs = socketGuard(func(o *lambdaidem.Options) { o.KeyOptional = true })
	send(t, socketMessage(t, body(`{}`)))
	if send(t, socketMessage(t, body(`{}`))); *runs != 2 {
		t.Errorf("without keys, the handler ran %d times", *runs)
	}
}

// A record belongs to one caller, as named by the authorizer, and to one route. With the same key, a
// different body is another payload, unless it is the same JSON.
func TestF1_RecordsOfMessages(t *testing.T) {
	type change = func(*events.APIGatewayWebsocketProxyRequest)
	authorizer := func(v any) change {
		return func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Authorizer = v }
	}
	for name, c := range map[string]struct {
		change       change
		status, runs int
	}{
		"the same":               {reconnected, 200, 1},
		"spaced otherwise":       {func(e *events.APIGatewayWebsocketProxyRequest) { e.Body = strings.ReplaceAll(e.Body, " ", "") }, 200, 1},
		"another amount":         {func(e *events.APIGatewayWebsocketProxyRequest) { e.Body = strings.Replace(e.Body, "30", "31", 1) }, 422, 1},
		"another caller":         {authorizer(map[string]any{"principalId": "bob"}), 200, 2},
		"no authorizer":          {authorizer(nil), 200, 2},
		"an authorizer's nobody": {authorizer(map[string]any{"integrationLatency": 1.0}), 403, 1},
		"another route":          {func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.RouteKey = "refund" }, 200, 2},
		"the default route":      {func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.RouteKey = "$default" }, 200, 2},
		"by a signature": {func(e *events.APIGatewayWebsocketProxyRequest) {
			e.RequestContext.Authorizer, e.RequestContext.Identity.UserArn = nil, "arn:aws:iam::1:user/a"
		}, 200, 2},
		"with a body in no base64":  {func(e *events.APIGatewayWebsocketProxyRequest) { e.IsBase64Encoded = true }, 400, 1},
		"headers of its own making": {func(e *events.APIGatewayWebsocketProxyRequest) { e.Headers = map[string]string{"Idempotency-Key": "k"} }, 200, 1},
	} {
		send, runs := socketGuard()
		send(t, socketMessage(t))
		if out := send(t, socketMessage(t, c.change)); out.StatusCode != c.status || *runs != c.runs {
			t.Errorf("%s: %d %s after %d runs; want %d after %d", name, out.StatusCode, out.Body, *runs, c.status, c.runs)
		}
	}
	send, runs := socketGuard()
	for i, arn := range []string{"arn:aws:iam::1:user/a", "arn:aws:iam::1:user/a", "arn:aws:iam::1:user/b"} {
		send(t, socketMessage(t, authorizer(nil), func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Identity.UserArn = arn }))
		if want := []int{1, 1, 2}[i]; *runs != want {
			t.Errorf("after a message signed by %s, the handler ran %d times; want %d", arn, *runs, want)
		}
	}
	// A route doesn't share a record with a route of the same name in another API either.
	g := lambdaidem.New(memstore.New(), quiet)
	ran := 0
	socket := g.APIGatewayWebSocket(func(context.Context, events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
		ran++
		return events.APIGatewayProxyResponse{StatusCode: 200}, nil
	})
	rest := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ran++
		return events.APIGatewayProxyResponse{StatusCode: 200}, nil
	})
	e := socketMessage(t, authorizer(nil))
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		if out, err := rest(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: method, Resource: "pay", Path: "pay", Body: e.Body, Headers: map[string]string{"Idempotency-Key": "7d1cbd70-3a52-4c0a-9f8e-0b5b9d6c2f11"}}); err != nil || out.StatusCode != 200 {
			t.Errorf("%s: %+v, %v", method, out, err)
		}
	}
	if out, err := socket(t.Context(), e); err != nil || out.StatusCode != 200 || ran != 3 {
		t.Errorf("%+v, %v after %d runs", out, err, ran)
	}
}

// A body over the limit is refused before the guard looks for its key.
func TestS2_AMessageOverTheLimit(t *testing.T) {
	send, runs := socketGuard(func(o *lambdaidem.Options) { o.MaxBody = 10 })
	if out := send(t, socketMessage(t)); out.StatusCode != http.StatusRequestEntityTooLarge || *runs > 0 {
		t.Errorf("%+v", out)
	}
}
