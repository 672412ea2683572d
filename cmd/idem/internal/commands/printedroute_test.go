package commands

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// printedFlags returns the flags that identify a record, with the values of the rows that show prints.
func (g got) printedFlags() (flags []string) {
	names := map[string]string{"namespace": "--namespace", "route": "--route", "caller": "--caller", "tenant": "--tenant"}
	for line := range strings.Lines(g.out) {
		row, value, _ := strings.Cut(line, " ")
		if value = strings.TrimSpace(value); names[row] != "" && value != "(none)" {
			flags = append(flags, names[row], value)
		}
	}
	return flags
}

// An operator finds the record of every decorator by what show prints and the key, and trace follows
// a chain to it by its scope.
func TestO2_WhatShowPrintsIdentifiesTheRecord(t *testing.T) {
	d := openDesk(t)
	id := ""
	d.guard = d.guard.With(func(o *lambdaidem.Options) {
		o.Observer = lambdaidem.ObserverFunc(func(_ context.Context, e lambdaidem.Event) { id = e.RecordID })
	})
	anonymous := d.guard.With(func(o *lambdaidem.Options) { o.AnonymousCallers = true })
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	serve := func(pattern, target string) func(context.Context, string) {
		return func(ctx context.Context, key string) {
			mux := http.NewServeMux()
			mux.Handle(pattern, anonymous.Middleware(created))
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("{}"))
			r.Header.Set("Idempotency-Key", key)
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	message := func(m idemtest.Message) func(context.Context, string) {
		return func(ctx context.Context, _ string) {
			_, _ = d.guard.SQS(func(context.Context, events.SQSMessage) error { return nil })(ctx, idemtest.SQS("queue", m))
		}
	}
	v1 := func(r idemtest.Request) func(context.Context, string) {
		return func(ctx context.Context, key string) {
			r.Key = key
			_, _ = d.guard.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
				return events.APIGatewayProxyResponse{StatusCode: 201}, nil
			})(ctx, r.APIGateway())
		}
	}
	v2 := func(r idemtest.Request) func(context.Context, string) {
		return func(ctx context.Context, key string) {
			r.Key = key
			_, _ = d.guard.APIGatewayV2(func(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				return paid(ctx)
			})(ctx, r.APIGatewayV2())
		}
	}
	socket := func(route string) func(context.Context, string) {
		return func(ctx context.Context, key string) {
			e := events.APIGatewayWebsocketProxyRequest{Body: `{"x-idempotency-key":"` + key + `"}`}
			e.RequestContext.EventType, e.RequestContext.RouteKey = "MESSAGE", route
			e.RequestContext.Authorizer = map[string]any{"principalId": "alice"}
			_, _ = d.guard.APIGatewayWebSocket(func(context.Context, events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
				return events.APIGatewayProxyResponse{StatusCode: 200}, nil
			})(ctx, e)
		}
	}
	do := func(c lambdaidem.Call) func(context.Context, string) {
		return func(ctx context.Context, key string) {
			c.Key = key
			_, _ = lambdaidem.Do(ctx, d.guard, c, func(context.Context) (int, error) { return 1, nil })
		}
	}
	for name, c := range map[string]struct {
		send  func(ctx context.Context, key string)
		route string // as show prints it
		key   string // if it is not the test's name
	}{
		"REST API":                        {v1(idemtest.Request{Path: "/pay/7", Route: "/pay/{id}", Caller: idemtest.APIKey("k1")}), "POST /pay/{id}", ""},
		"REST API with a catch-all":       {v1(idemtest.Request{Path: "/pay/7", Route: "/{proxy+}"}), "POST /pay/7", ""},
		"HTTP API":                        {v2(idemtest.Request{Path: "/pay/7", Route: "/pay/{id}", Caller: idemtest.JWT("https://issuer", "100 % bob")}), "POST /pay/{id}", ""},
		"HTTP API with $default":          {v2(idemtest.Request{Path: "/pay/7 of%209", Route: "$default"}), "POST /pay/7 of%209", ""},
		"WebSocket API":                   {socket("pay"), "MESSAGE pay", ""},
		"WebSocket API with an odd route": {socket("a b/c%20"), "MESSAGE a b/c%20", ""},
		"WebSocket API with $default":     {socket("$default"), "MESSAGE $default", ""},
		"net/http":                        {serve("POST /pay/{id}", "http://api.example.com:8080/pay/7"), "POST api.example.com/pay/{id}", ""},
		"net/http with a host":            {serve("POST api.example.com/pay/{id}/x", "http://api.example.com/pay/7/x"), "POST api.example.com/pay/{id}/x", ""},
		"net/http with a catch-all":       {serve("/", "http://[::1]/a%20b/"), "POST ::1/a%20b/", ""},
		"Function URL": {func(ctx context.Context, key string) {
			_, _ = d.guard.FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
				return events.LambdaFunctionURLResponse{StatusCode: 201}, nil
			})(ctx, idemtest.Request{Path: "/pay/8", Key: key}.FunctionURL())
		}, "POST /pay/8", ""},
		"ALB": {func(ctx context.Context, key string) {
			_, _ = d.guard.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
				return events.ALBTargetGroupResponse{StatusCode: 201}, nil
			})(ctx, idemtest.Request{Path: "/pay/9", Key: key}.ALB())
		}, "POST /pay/9", ""},
		"SQS":                         {message(idemtest.Message{Key: "SQS"}), "message arn:aws:sqs:us-east-1:123456789012:queue", ""},
		"SQS by id":                   {message(idemtest.Message{ID: "m-1"}), "message arn:aws:sqs:us-east-1:123456789012:queue", "m-1"},
		"Do":                          {do(lambdaidem.Call{Operation: "charge"}), "charge", ""},
		"Do with an odd name":         {do(lambdaidem.Call{Operation: "charge it, 100 %", Principal: "bob"}), "charge it, 100 %", ""},
		"Do with the name of a route": {do(lambdaidem.Call{Operation: "POST /pay"}), "POST /pay", ""},
		"Handler": {func(ctx context.Context, key string) {
			_, _ = lambdaidem.Handler(d.guard, "bill", func(context.Context, int) (string, error) { return key, nil },
				func(context.Context, int) (int, error) { return 1, nil })(ctx, 1)
		}, "invoke bill", ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := name
			if c.key != "" {
				key = c.key
			}
			ctx := t.Context()
			if strings.HasPrefix(name, "Do") {
				ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{TenantID: "blue team"})
			}
			id = ""
			c.send(ctx, key)
			shown := d.idem("show", id).want(t, exitDone)
			flags := append(shown.printedFlags(), "--key", key)
			if at := slices.Index(flags, "--route"); flags[at+1] != c.route {
				t.Errorf("show prints the route %q, want %q", flags[at+1], c.route)
			}
			var v recordView
			d.idem(append([]string{"show", "-o", "json"}, flags...)...).want(t, exitDone).into(t, &v)
			if v.ID != id {
				t.Errorf("%q leads to %s, want %s", flags, v.ID, id)
			}
			var hops []hop
			d.idem(append(append([]string{"trace", "-o", "json"}, flags...), "--then", "key => "+v.Scope)...).want(t, exitDone).into(t, &hops)
			if len(hops) != 2 || hops[1].ID != id {
				t.Errorf("the scope %q leads to %+v", v.Scope, hops)
			}
		})
	}
}

// trace says why it can't find a record by a scope, and show why a route can't be meant.
func TestO2_ARouteThatIdentifiesNoRecordIsRefused(t *testing.T) {
	d := openDesk(t)
	d.pay(d.guard, "k", paid)
	long := lambdaidem.ScopePart(strings.Repeat("x", 300))
	for scope, says := range map[string]string{
		"shop POST receipts":     `"POST receipts" is not a method in upper case and a path`,
		"shop post /receipts":    `"post /receipts" is not a method in upper case and a path`,
		"shop POST /pay bob%":    `"bob%" is no part of a scope`,
		"shop message " + long:   "does not identify a record",
		"shop message  bob":      `"message" is not a method`,
		"shop MESSAGE  bob":      `"MESSAGE" is not a method`,
		"shop POST api.x POST b": `"POST api.x" is not a method`,
	} {
		g := d.idem("trace", d.view("k").ID, "--then", "key => "+scope)
		if g.code != exitUsage || !strings.Contains(g.err, says) {
			t.Errorf("%q: exit code %d, %s", scope, g.code, g.err)
		}
	}
	for _, flags := range [][]string{
		{"--route", "/pay"}, {"--route", "post /pay"}, {"--route", "api.example.com/pay", "--host", "api.example.com"}, {"--route", "pay", "--host", "api.example.com"},
		{"--route", "POST api.example.com/pay", "--host", "api.example.com"}, {"--operation", "pay", "--host", "api.example.com"},
	} {
		d.idem(append([]string{"show", "--namespace", "shop", "--key", "k"}, flags...)...).want(t, exitUsage)
	}
}
