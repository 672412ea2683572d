package lambdaidem_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func quiet(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard }

// decorator is one of the guard's decorators. The function invoke sends an event, given as JSON, to
// a guarded handler, and returns the answer as decoded JSON.
type decorator struct {
	name   string
	events map[string]string // by form of the event
	invoke func(t testing.TB, g *lambdaidem.Guard, runs *int, event string) map[string]any
}

// decorate guards a handler that answers 201 with two cookies, a repeated header, and the request
// that it got.
func decorate[In, Out any](guard func(*lambdaidem.Guard, func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error), answer func(In) Out) func(testing.TB, *lambdaidem.Guard, *int, string) map[string]any {
	return func(t testing.TB, g *lambdaidem.Guard, runs *int, event string) map[string]any {
		t.Helper()
		var in In
		if err := json.Unmarshal([]byte(event), &in); err != nil {
			t.Fatal(err)
		}
		out, err := guard(g, func(_ context.Context, in In) (Out, error) {
			*runs++
			return answer(in), nil
		})(t.Context(), in)
		if err != nil {
			t.Fatalf("the guarded handler returned the error %v", err)
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
}

var decorators = []decorator{
	{
		name: "APIGateway",
		events: map[string]string{
			"REST API": `{"resource":"/orders/{id}","path":"/orders/7","httpMethod":"POST","headers":{"Idempotency-Key":"k"},
				"multiValueHeaders":{"Idempotency-Key":["k"]},"queryStringParameters":{"a":"2"},"multiValueQueryStringParameters":{"a":["1","2"]},"body":"{\"x\":1}"}`,
			"test console": `{"resource":"/orders/{id}","path":"/orders/7","httpMethod":"POST","headers":{"Idempotency-Key":"k"},
				"multiValueHeaders":null,"queryStringParameters":{"a":"2"},"body":"{\"x\":1}"}`,
		},
		invoke: decorate((*lambdaidem.Guard).APIGateway, func(in events.APIGatewayProxyRequest) events.APIGatewayProxyResponse {
			return events.APIGatewayProxyResponse{StatusCode: 201, Headers: map[string]string{"Single": "1"},
				MultiValueHeaders: map[string][]string{"Set-Cookie": {"a=1", "b=2"}, "Link": {"x", "y"}}, Body: in.Body}
		}),
	},
	{
		name: "APIGatewayV2",
		events: map[string]string{
			"HTTP API": `{"version":"2.0","routeKey":"POST /orders/{id}","rawPath":"/orders/7","rawQueryString":"a=1&a=2","headers":{"idempotency-key":"k"},
				"requestContext":{"http":{"method":"POST","path":"/orders/7"}},"body":"{\"x\":1}"}`,
			"base64": `{"version":"2.0","routeKey":"POST /orders/{id}","rawPath":"/orders/7","headers":{"idempotency-key":"k"},
				"requestContext":{"http":{"method":"POST"}},"body":"eyJ4IjoxfQ==","isBase64Encoded":true}`,
		},
		invoke: decorate((*lambdaidem.Guard).APIGatewayV2, func(in events.APIGatewayV2HTTPRequest) events.APIGatewayV2HTTPResponse {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Headers: map[string]string{"Single": "1", "Link": "x, y"}, Cookies: []string{"a=1", "b=2"}, Body: in.Body}
		}),
	},
	{
		name: "FunctionURL",
		events: map[string]string{
			"function URL": `{"version":"2.0","rawPath":"/orders/7","rawQueryString":"a=1","headers":{"idempotency-key":"k"},
				"requestContext":{"http":{"method":"POST"}},"body":"{\"x\":1}"}`,
		},
		invoke: decorate((*lambdaidem.Guard).FunctionURL, func(in events.LambdaFunctionURLRequest) events.LambdaFunctionURLResponse {
			return events.LambdaFunctionURLResponse{StatusCode: 201, Headers: map[string]string{"Single": "1", "Link": "x, y"},
				Cookies: []string{"a=1", "b=2"}, Body: in.Body}
		}),
	},
	{
		name: "ALB",
		events: map[string]string{
			"single-value": `{"httpMethod":"POST","path":"/orders/7","queryStringParameters":{"a":"1"},"headers":{"idempotency-key":"k"},"body":"{\"x\":1}"}`,
			"multi-value": `{"httpMethod":"POST","path":"/orders/7","multiValueQueryStringParameters":{"a":["1","2"]},
				"multiValueHeaders":{"idempotency-key":["k"]},"body":"{\"x\":1}"}`,
		},
		invoke: decorate((*lambdaidem.Guard).ALB, func(in events.ALBTargetGroupRequest) events.ALBTargetGroupResponse {
			out := events.ALBTargetGroupResponse{StatusCode: 201, StatusDescription: "201 Created", Body: in.Body}
			if in.MultiValueHeaders != nil {
				out.MultiValueHeaders = map[string][]string{"Set-Cookie": {"a=1", "b=2"}, "Link": {"x", "y"}}
			} else {
				out.Headers = map[string]string{"Set-Cookie": "a=1", "set-cookie": "b=2", "Link": "x, y"}
			}
			return out
		}),
	},
}

// withoutMark removes the replay mark from an answer, and reports whether it was there.
func withoutMark(out map[string]any) bool {
	marked := false
	for _, field := range []string{"headers", "multiValueHeaders"} {
		h, _ := out[field].(map[string]any)
		if _, ok := h[mark]; ok {
			delete(h, mark)
			marked = true
		}
		if len(h) == 0 {
			delete(out, field)
		}
	}
	return marked
}

// Each event is sent twice. The answers are equal, and the handler runs once.
func TestV1_EachEventReplays(t *testing.T) {
	for _, d := range decorators {
		for form, event := range d.events {
			t.Run(d.name+" "+form, func(t *testing.T) {
				g, runs := lambdaidem.New(memstore.New(), quiet), 0
				one := d.invoke(t, g, &runs, event)
				if withoutMark(one) || one["statusCode"] != 201.0 {
					t.Fatalf("the first answer is %v", one)
				}
				two := d.invoke(t, g, &runs, event)
				if !withoutMark(two) || !reflect.DeepEqual(one, two) {
					t.Errorf("the answers differ:\nfirst  %v\nreplay %v", one, two)
				}
				if runs != 1 {
					t.Errorf("the handler ran %d times", runs)
				}
				other := d.invoke(t, g, &runs, strings.NewReplacer(`{\"x\":1}`, `{\"x\":2}`, "eyJ4IjoxfQ==", "eyJ4IjoyfQ==").Replace(event))
				if other["statusCode"] != 422.0 || !strings.Contains(other["body"].(string), string(lambdaidem.ErrPayloadMismatch)) {
					t.Errorf("another payload got %v", other)
				}
			})
		}
	}
}

// The guard's own answers have the form that the event's source expects.
func TestV1_OwnAnswersHaveTheFormOfTheEvent(t *testing.T) {
	for _, d := range decorators {
		for form, event := range d.events {
			t.Run(d.name+" "+form, func(t *testing.T) {
				runs := 0
				out := d.invoke(t, lambdaidem.New(memstore.New(), quiet), &runs, strings.ReplaceAll(strings.ReplaceAll(event, "Idempotency-Key", "Other"), "idempotency-key", "other"))
				field, want := "headers", any("application/problem+json")
				if form == "multi-value" {
					field, want = "multiValueHeaders", []any{"application/problem+json"}
				}
				h, _ := out[field].(map[string]any)
				if out["statusCode"] != 400.0 || !reflect.DeepEqual(h["Content-Type"], want) || runs != 0 {
					t.Errorf("the answer is %v", out)
				}
				if d.name == "ALB" && out["statusDescription"] != "400 Bad Request" {
					t.Errorf("the status description is %v", out["statusDescription"])
				}
			})
		}
	}
}

// For an ALB without multi-value headers, an answer that the guard encodes has its cookies in
// separate headers, because cookies can't be joined.
func TestR1_CookiesOfASingleValueALB(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, r *lambdaidem.Response) {
			r.Del("Set-Cookie")
			r.Cookies = []string{"a=1", "b=2", "c=3"}
			r.Header["Vary"] = []string{"a", "b"}
		}
	})
	h := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 200, Headers: map[string]string{"Set-Cookie": "x=1"}}, nil
	})
	in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/a", Headers: map[string]string{"idempotency-key": "k"}}
	var out events.ALBTargetGroupResponse
	for range 2 {
		var err error
		if out, err = h(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	var cookies []string
	for name, v := range out.Headers {
		if strings.EqualFold(name, "Set-Cookie") {
			cookies = append(cookies, v)
		}
	}
	slices.Sort(cookies)
	if !slices.Equal(cookies, []string{"a=1", "b=2", "c=3"}) || out.Headers["Vary"] != "a, b" {
		t.Errorf("the headers are %v", out.Headers)
	}
}

// An event that can't be decoded is the client's error.
func TestS2_WrongBase64IsABadRequest(t *testing.T) {
	r := newRig(nil)
	in := first()
	in.Body, in.IsBase64Encoded = "not base64!", true
	wantProblem(t, r.send(t, in), http.StatusBadRequest, lambdaidem.ErrRequestInvalid)
	r.wantRuns(t, 0)
}

func TestS2_BoundsOnBodyAndHeaders(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.MaxBody, o.MaxHeaders = 100, 5 })
	fit, large := post("fit", strings.Repeat("x", 100)), post("large", strings.Repeat("x", 101))
	if out := r.send(t, fit); out.StatusCode != 201 {
		t.Errorf("a body of just the bound got %d", out.StatusCode)
	}
	out := r.send(t, large)
	wantProblem(t, out, http.StatusRequestEntityTooLarge, lambdaidem.ErrBodyTooLarge)
	if !strings.Contains(out.Body, "100 bytes") {
		t.Errorf("the answer does not name the bound: %s", out.Body)
	}
	// The limit of a base64 body counts decoded bytes.
	fit.Headers["idempotency-key"], fit.IsBase64Encoded, fit.Body = "b64", true, base64.StdEncoding.EncodeToString([]byte(fit.Body))
	if out := r.send(t, fit); out.StatusCode != 201 {
		t.Errorf("a base64 body of just the bound got %d", out.StatusCode)
	}
	many := first()
	for _, name := range []string{"a", "b", "c", "d"} {
		many.Headers[name] = "1"
	}
	wantProblem(t, r.send(t, many), http.StatusRequestHeaderFieldsTooLarge, lambdaidem.ErrHeadersTooMany)
	r.wantRuns(t, 2)
}

// Bodies that are expensive to parse, or that try to break a parser, get an answer below 500, and
// the same one on a retry.
func TestS2_AdversarialBodies(t *testing.T) {
	for name, body := range adversarial(1 << 20) {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			one := r.send(t, post("k", body))
			if one.StatusCode != 201 {
				t.Fatalf("the answer is %d %s", one.StatusCode, one.Body)
			}
			wantReplay(t, r.send(t, post("k", body)), one)
		})
	}
}

// adversarial returns bodies of about n bytes that are hard to parse.
func adversarial(n int) map[string]string {
	return map[string]string{
		"deep arrays":       strings.Repeat("[", n),
		"deep and closed":   strings.Repeat("[", n/2) + strings.Repeat("]", n/2),
		"deep objects":      strings.Repeat(`{"a":`, n/5),
		"many members":      "{" + members(n/9) + "}",
		"equal members":     "{" + strings.TrimSuffix(strings.Repeat(`"a":1,`, n/6), ",") + "}",
		"many small arrays": "[" + strings.TrimSuffix(strings.Repeat("[],", n/3), ",") + "]",
		"escapes":           `"` + strings.Repeat(`\u0061`, n/6) + `"`,
		"lone surrogates":   `"` + strings.Repeat(`\ud800`, n/6) + `"`,
		"backslashes":       `"` + strings.Repeat(`\\`, n/2) + `"`,
		"long number":       strings.Repeat("9", n),
		"exponents":         "[" + strings.TrimSuffix(strings.Repeat("1e999999999,", n/12), ",") + "]",
		"white space":       strings.Repeat(" ", n) + "1",
		"unterminated":      `"` + strings.Repeat("a", n),
		"not UTF-8":         strings.Repeat("\xff", n),
		"zeros":             strings.Repeat("\x00", n),
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(base64.RawURLEncoding.EncodeToString([]byte{byte(i >> 16), byte(i >> 8), byte(i)}))
		b.WriteString(`":1`)
	}
	return b.String()
}

// Whatever an event contains, no decorator panics and the guard never answers with a 5xx of its
// own, because the memory store doesn't fail.
func FuzzEvents(f *testing.F) {
	for _, d := range decorators {
		for _, event := range d.events {
			f.Add([]byte(event))
		}
	}
	for _, seed := range []string{`{}`, `{"requestContext":{"authorizer":{"jwt":null,"lambda":{"principalId":7}},"http":{"method":"POST"}},"headers":{"idempotency-key":"k"}}`,
		`{"httpMethod":"POST","headers":{"IDEMPOTENCY-KEY":"k"},"requestContext":{"authorizer":{"claims":7,"principalId":null}}}`,
		`{"httpMethod":"PATCH","multiValueHeaders":{"idempotency-key":null},"body":"!","isBase64Encoded":true}`,
		`{"httpMethod":"post","path":"\u0000","multiValueHeaders":{"idempotency-key":["k"]},"multiValueQueryStringParameters":{"a":null,"":[""]}}`,
		`{"requestContext":{"eventType":"MESSAGE","routeKey":"pay","authorizer":7},"body":"{\"x-idempotency-key\":\"k\"}"}`,
		`{"routeKey":"$default","rawPath":"","requestContext":{"http":{"method":"POST"},"authorizer":{"iam":{"cognitoIdentity":null}}},"headers":{"idempotency-key":"k"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		fuzzOne(t, event, (*lambdaidem.Guard).APIGateway, events.APIGatewayProxyResponse{StatusCode: 201}, func(r events.APIGatewayProxyResponse) int { return r.StatusCode })
		fuzzOne(t, event, (*lambdaidem.Guard).APIGatewayV2, events.APIGatewayV2HTTPResponse{StatusCode: 201}, func(r events.APIGatewayV2HTTPResponse) int { return r.StatusCode })
		fuzzOne(t, event, (*lambdaidem.Guard).APIGatewayWebSocket, events.APIGatewayProxyResponse{StatusCode: 201}, func(r events.APIGatewayProxyResponse) int { return r.StatusCode })
		fuzzOne(t, event, (*lambdaidem.Guard).FunctionURL, events.LambdaFunctionURLResponse{StatusCode: 201}, func(r events.LambdaFunctionURLResponse) int { return r.StatusCode })
		fuzzOne(t, event, (*lambdaidem.Guard).ALB, events.ALBTargetGroupResponse{StatusCode: 201}, func(r events.ALBTargetGroupResponse) int { return r.StatusCode })
	})
}

func fuzzOne[In, Out any](t *testing.T, event []byte, guard func(*lambdaidem.Guard, func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error), answer Out, status func(Out) int) {
	t.Helper()
	var in In
	if json.Unmarshal(event, &in) != nil {
		return // aws-lambda-go refuses it before it calls a handler
	}
	h := guard(lambdaidem.New(memstore.New(), quiet), func(context.Context, In) (Out, error) { return answer, nil })
	var got [2]int
	for i := range got {
		out, err := h(t.Context(), in)
		if err != nil {
			t.Fatalf("%T: the error is %v", in, err)
		}
		got[i] = status(out)
	}
	if got[0] != got[1] || got[0] >= 500 {
		t.Fatalf("%T: sent twice, the statuses are %v", in, got)
	}
}

// A method in lower case is the same method in every kind of event: the request is guarded, and
// both spellings have the same record.
func TestK4_MethodsOfEventsMatchWithoutCase(t *testing.T) {
	for _, d := range decorators {
		for form, event := range d.events {
			t.Run(d.name+" "+form, func(t *testing.T) {
				g, runs := lambdaidem.New(memstore.New(), quiet), 0
				lower := strings.NewReplacer(`"method":"POST"`, `"method":"post"`, `"httpMethod":"POST"`, `"httpMethod":"post"`).Replace(event)
				if lower == event {
					t.Fatal("the event has no method")
				}
				for i, e := range []string{lower, lower, event} {
					if again := withoutMark(d.invoke(t, g, &runs, e)); again != (i > 0) {
						t.Errorf("answer %d is a replay: %v", i, again)
					}
				}
				if runs != 1 {
					t.Errorf("the handler ran %d times", runs)
				}
			})
		}
	}
}

// As many headers as the limit are allowed, one more is not, whichever map of the event has them.
func TestS2_HeadersAtTheBound(t *testing.T) {
	const bound = 5
	for form, header := range map[string]struct{ d, event, one string }{
		"REST API":              {"APIGateway", `{"httpMethod":"POST","resource":"/a","path":"/a","headers":{"idempotency-key":"k"%s}}`, `:"1"`},
		"REST API, multi-value": {"APIGateway", `{"httpMethod":"POST","resource":"/a","path":"/a","multiValueHeaders":{"idempotency-key":["k"]%s}}`, `:["1"]`},
		"HTTP API":              {"APIGatewayV2", `{"routeKey":"POST /a","rawPath":"/a","requestContext":{"http":{"method":"POST"}},"headers":{"idempotency-key":"k"%s}}`, `:"1"`},
		"function URL":          {"FunctionURL", `{"rawPath":"/a","requestContext":{"http":{"method":"POST"}},"headers":{"idempotency-key":"k"%s}}`, `:"1"`},
		"ALB":                   {"ALB", `{"httpMethod":"POST","path":"/a","headers":{"idempotency-key":"k"%s}}`, `:"1"`},
		"ALB, multi-value":      {"ALB", `{"httpMethod":"POST","path":"/a","multiValueHeaders":{"idempotency-key":["k"]%s}}`, `:["1"]`},
	} {
		t.Run(form, func(t *testing.T) {
			d := decorators[slices.IndexFunc(decorators, func(d decorator) bool { return d.name == header.d })]
			g, runs := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) { o.MaxHeaders = bound }), 0
			for n, want := range map[int]float64{bound: 201, bound + 1: 431} {
				var more strings.Builder
				for i := range n - 1 {
					more.WriteString(`,"x-` + string(rune('a'+i)) + `"` + header.one)
				}
				if out := d.invoke(t, g, &runs, strings.Replace(header.event, "%s", more.String(), 1)); out["statusCode"] != want {
					t.Errorf("%d headers got %v, want %v", n, out["statusCode"], want)
				}
			}
		})
	}
}

// A base64 body replays as a base64 body, in every kind of event.
func TestR1_Base64BodiesReplayAsSuch(t *testing.T) {
	ctx, headers := t.Context(), map[string]string{"idempotency-key": "k"}
	g := lambdaidem.New(memstore.New(), quiet)
	rest := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: "AP8=", IsBase64Encoded: true}, nil
	})
	url := g.FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{StatusCode: 200, Body: "AP8=", IsBase64Encoded: true}, nil
	})
	alb := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 200, Body: "AP8=", IsBase64Encoded: true}, nil
	})
	for i := range 2 {
		a, errA := rest(ctx, events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/rest", Path: "/rest", Headers: headers})
		var in events.LambdaFunctionURLRequest
		in.RequestContext.HTTP.Method, in.RawPath, in.Headers = "POST", "/url", headers
		b, errB := url(ctx, in)
		c, errC := alb(ctx, events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/alb", Headers: headers})
		if err := errors.Join(errA, errB, errC); err != nil {
			t.Fatal(err)
		}
		for name, out := range map[string]struct {
			body   string
			base64 bool
			mark   string
		}{"REST API": {a.Body, a.IsBase64Encoded, a.Headers[mark]}, "function URL": {b.Body, b.IsBase64Encoded, b.Headers[mark]}, "ALB": {c.Body, c.IsBase64Encoded, c.Headers[mark]}} {
			if out.body != "AP8=" || !out.base64 || (out.mark != "") != (i == 1) {
				t.Errorf("%s: answer %d is %+v", name, i, out)
			}
		}
	}
}

// Every value of a parameter counts, in its order. So do the values that the single-value map of a
// REST API event leaves out.
func TestF3_EveryValueOfAParameterCounts(t *testing.T) {
	type multi = map[string][]string
	ctx, headers := t.Context(), map[string]string{"idempotency-key": "k"}
	for _, c := range []struct {
		a, b multi
		same bool
	}{
		{multi{"a": {"1", "2"}}, multi{"a": {"1", "2"}}, true},
		{multi{"a": {"1", "2"}}, multi{"a": {"2", "1"}}, false},
		{multi{"a": {"1", "2"}}, multi{"a": {"3", "2"}}, false},
		{multi{"a": {"1", "2"}}, multi{"a": {"2"}}, false},
		{multi{"a": {"1"}, "b": {"2"}}, multi{"b": {"2"}, "a": {"1"}}, true},
	} {
		g := lambdaidem.New(memstore.New(), quiet)
		rest := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 200}, nil
		})
		alb := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
			return events.ALBTargetGroupResponse{StatusCode: 200}, nil
		})
		var got [2][2]int
		for i, query := range []multi{c.a, c.b} {
			last := make(map[string]string) // as API Gateway does it
			for name, values := range query {
				last[name] = values[len(values)-1]
			}
			a, errA := rest(ctx, events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/rest", Path: "/rest", Headers: headers,
				QueryStringParameters: last, MultiValueQueryStringParameters: query})
			b, errB := alb(ctx, events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/alb", MultiValueHeaders: multi{"idempotency-key": {"k"}},
				MultiValueQueryStringParameters: query})
			if err := errors.Join(errA, errB); err != nil {
				t.Fatal(err)
			}
			got[i] = [2]int{a.StatusCode, b.StatusCode}
		}
		want := [2]int{422, 422}
		if c.same {
			want = [2]int{200, 200}
		}
		if got[0] != [2]int{200, 200} || got[1] != want {
			t.Errorf("%v after %v: a REST API and an ALB got %v, want %v", c.b, c.a, got[1], want)
		}
	}
}

// If the event has no field for cookies, the cookies that a hook adds come after those among the
// handler's headers.
func TestR1_CookiesOfAHookComeAfterTheHandlers(t *testing.T) {
	type multi = map[string][]string
	g := lambdaidem.New(memstore.New(), quiet, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) {
			resp.Cookies = []string{"c=3", "d=4"}
		}
	})
	alb := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 200, MultiValueHeaders: multi{"set-cookie": {"a=1", "b=2"}, "X-A": {"1"}}}, nil
	})
	rest := g.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200, MultiValueHeaders: multi{"set-cookie": {"a=1", "b=2"}}, Headers: map[string]string{"X-A": "1"}}, nil
	})
	key := multi{"idempotency-key": {"k"}}
	for i, want := range [][]string{{"a=1", "b=2"}, {"a=1", "b=2", "c=3", "d=4"}} {
		a, errA := alb(t.Context(), events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/alb", MultiValueHeaders: key})
		b, errB := rest(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/rest", Path: "/rest", MultiValueHeaders: key})
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.MultiValueHeaders["set-cookie"], want) || len(a.MultiValueHeaders["X-A"]) != 1 {
			t.Errorf("answer %d of an ALB has %v", i, a.MultiValueHeaders)
		}
		if !slices.Equal(b.MultiValueHeaders["set-cookie"], want) || b.Headers["X-A"] != "1" {
			t.Errorf("answer %d of a REST API has %v %v", i, b.Headers, b.MultiValueHeaders)
		}
	}
}

// A load balancer gets the answer's headers in the form in which it sent the request's headers.
// This also holds for answers that stand for an error, and for the guard's own.
func TestV1_AnALBsAnswersHaveTheFormOfItsRequests(t *testing.T) {
	link := map[string][]string{"Link": {"x", "y"}}
	h := lambdaidem.New(memstore.New(), quiet).ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{}, lambdaidem.Answer(events.ALBTargetGroupResponse{StatusCode: 201, MultiValueHeaders: link})
	})
	in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/orders", MultiValueHeaders: map[string][]string{"idempotency-key": {"k"}}}
	for i := range 2 {
		out, err := h(t.Context(), in)
		if err != nil || out.StatusCode != 201 || !slices.Equal(out.MultiValueHeaders["Link"], link["Link"]) || len(out.Headers) > 0 {
			t.Errorf("answer %d is %+v, %v", i, out, err)
		}
	}
	for _, none := range []map[string][]string{{}, nil} {
		in.MultiValueHeaders = none
		out, err := h(t.Context(), in)
		if multi := none != nil; err != nil || out.StatusCode != 400 || (len(out.MultiValueHeaders) > 0) != multi || (len(out.Headers) > 0) == multi {
			t.Errorf("without a key, multi-value headers %v: %+v, %v", none, out, err)
		}
	}
}

// An answer to a load balancer has a status description, also the guard's own answers.
func TestV1_AnALBIsToldTheStatusInWords(t *testing.T) {
	h := lambdaidem.New(memstore.New(), quiet).ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{}, lambdaidem.Uncertain(errors.New("still at it"))
	})
	in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/orders", Headers: map[string]string{"idempotency-key": "k"}, Body: "{}"}
	if _, err := h(t.Context(), in); err == nil {
		t.Fatal("the first request got an answer")
	}
	for body, want := range map[string]string{"{}": "409 Conflict", "[]": "422 Unprocessable Entity"} {
		in.Body = body
		if out, err := h(t.Context(), in); err != nil || out.StatusDescription != want {
			t.Errorf("%+v, %v; want %s", out, err, want)
		}
	}
}
