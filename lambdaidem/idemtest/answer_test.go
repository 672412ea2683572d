package idemtest_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Twice counts the handlers that each of its two calls runs. The first call may run several,
// because a batch runs one for each message and a guarded handler may make guarded calls itself.
// The second call must run none.
func TestTwice_CountsEachSendingByItself(t *testing.T) {
	guard := newGuard()
	inner := func(ctx context.Context, key string) error {
		_, err := lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "ship", Key: key}, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	batch := func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		var out events.SQSEventResponse
		for _, m := range e.Records {
			if err := inner(ctx, m.MessageId); err != nil {
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
			}
		}
		return out, nil
	}
	idemtest.Twice(t, batch, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1"}, {MessageId: "2"}}})
	idemtest.Twice(t, guard.APIGatewayV2(func(ctx context.Context, _ request) (response, error) {
		return response{StatusCode: 201}, inner(ctx, "3")
	}), post())

	half := guard.With(func(o *lambdaidem.Options) { o.Skip = func(*lambdaidem.Request) bool { return true } }).APIGatewayV2(
		func(ctx context.Context, _ request) (response, error) {
			return response{StatusCode: 201}, inner(ctx, "4")
		})
	if got := failures(t, func(f *fake) { idemtest.Twice(f, half, post()) }); !strings.Contains(got, "2 for the first sending, 1 for the second") {
		t.Errorf("a guarded call in an unguarded handler: it complains %q", got)
	}
}

// differ reports whether Twice considers the answers first and second different, if an unguarded
// handler returns them for the same event. apart names the headers to ignore.
func differ[In, Out any](t *testing.T, event In, first, second Out, apart ...string) bool {
	t.Helper()
	answers := []Out{first, second}
	got := failures(t, func(f *fake) {
		idemtest.Twice(f, func(context.Context, In) (Out, error) {
			out := answers[0]
			answers = answers[1:]
			return out, nil
		}, event, apart...)
	})
	return strings.Contains(got, "the two answers differ")
}

type (
	one     = map[string]string
	several = map[string][]string
)

// Twice ignores a difference that the gateway of the event ignores, and reports every other
// one.
func TestR1_AnswersCompareByWhatTheirGatewayTakes(t *testing.T) {
	v2 := func(h one, m several, cookies ...string) response {
		return response{StatusCode: 200, Headers: h, MultiValueHeaders: m, Cookies: cookies}
	}
	rest := func(h one, m several) events.APIGatewayProxyResponse {
		return events.APIGatewayProxyResponse{StatusCode: 200, Headers: h, MultiValueHeaders: m}
	}
	url := func(h one, cookies ...string) events.LambdaFunctionURLResponse {
		return events.LambdaFunctionURLResponse{StatusCode: 200, Headers: h, Cookies: cookies}
	}
	alb := func(h one, m several) events.ALBTargetGroupResponse {
		return events.ALBTargetGroupResponse{StatusCode: 200, Headers: h, MultiValueHeaders: m}
	}
	r := idemtest.Request{}
	for name, c := range map[string]struct{ differ, want bool }{
		"2.0: multiValueHeaders":          {differ(t, r.APIGatewayV2(), v2(nil, several{"A": {"1"}}), v2(nil, nil)), false},
		"2.0: headers":                    {differ(t, r.APIGatewayV2(), v2(one{"A": "1"}, nil), v2(nil, nil)), true},
		"2.0: a header's case":            {differ(t, r.APIGatewayV2(), v2(one{"A": "1"}, nil), v2(one{"a": "1"}, nil)), false},
		"2.0: an empty map":               {differ(t, r.APIGatewayV2(), v2(one{}, nil), v2(nil, nil)), false},
		"2.0: the mark":                   {differ(t, r.APIGatewayV2(), v2(nil, nil), v2(one{idemtest.Mark: "true"}, nil)), false},
		"2.0: another mark":               {differ(t, r.APIGatewayV2(), v2(nil, nil), v2(one{"X-Cache": "HIT"}, nil)), true},
		"2.0: another mark, apart":        {differ(t, r.APIGatewayV2(), v2(nil, nil), v2(one{"X-Cache": "HIT"}, nil), "x-cache"), false},
		"2.0: order of cookies":           {differ(t, r.APIGatewayV2(), v2(nil, nil, "a", "b"), v2(nil, nil, "b", "a")), true},
		"2.0: a cookie as a header":       {differ(t, r.APIGatewayV2(), v2(one{"Set-Cookie": "a"}, nil), v2(nil, nil, "a")), false},
		"REST: a value in the other map":  {differ(t, r.APIGateway(), rest(one{"A": "1"}, nil), rest(nil, several{"A": {"1"}})), false},
		"REST: a value beside others":     {differ(t, r.APIGateway(), rest(one{"A": "1"}, several{"a": {"2"}}), rest(nil, several{"a": {"2"}})), true},
		"REST: a value in both":           {differ(t, r.APIGateway(), rest(one{"A": "2"}, several{"a": {"2"}}), rest(nil, several{"a": {"2"}})), false},
		"REST: order of values":           {differ(t, r.APIGateway(), rest(nil, several{"A": {"1", "2"}}), rest(nil, several{"A": {"2", "1"}})), true},
		"URL: headers":                    {differ(t, r.FunctionURL(), url(one{"A": "1"}), url(nil)), true},
		"URL: cookies":                    {differ(t, r.FunctionURL(), url(nil, "a"), url(nil)), true},
		"URL: equal":                      {differ(t, r.FunctionURL(), url(one{"A": "1"}, "a"), url(one{"A": "1"}, "a")), false},
		"ALB: multiValueHeaders, single":  {differ(t, r.ALB(), alb(nil, several{"A": {"1"}}), alb(nil, nil)), false},
		"ALB: headers, single":            {differ(t, r.ALB(), alb(one{"A": "1"}, nil), alb(nil, nil)), true},
		"ALB: spellings":                  {differ(t, r.ALB(), alb(one{"set-cookie": "1", "Set-Cookie": "2"}, nil), alb(one{"set-cookie": "1", "Set-Cookie": "3"}, nil)), true},
		"ALB: multiValueHeaders, several": {differ(t, r.ALBMultiValue(), alb(nil, several{"A": {"1"}}), alb(nil, nil)), true},
		"ALB: headers, several":           {differ(t, r.ALBMultiValue(), alb(one{"A": "1"}, nil), alb(nil, nil)), false},
		"ALB: status line":                {differ(t, r.ALB(), events.ALBTargetGroupResponse{StatusDescription: "200 OK"}, events.ALBTargetGroupResponse{}), true},
		"typed: a nil list":               {differ(t, 1, []int(nil), []int{}), true},
		"typed: a large number":           {differ(t, 1, int64(9007199254740992), int64(9007199254740993)), true},
		"typed: equal":                    {differ(t, 1, several{"a": {"1"}, "b": nil}, several{"b": nil, "a": {"1"}}), false},
		"bodies":                          {differ(t, r.APIGatewayV2(), response{Body: "eA=="}, response{Body: "eA==", IsBase64Encoded: true}), true},
	} {
		if c.differ != c.want {
			t.Errorf("%s: they differ: %t, want %t", name, c.differ, c.want)
		}
	}
}

// TestR1_EveryDecoratorPassesTwice includes a REST API's response that has one name in both maps of
// headers. The replay must be equal to it.
func TestR1_EveryDecoratorPassesTwice(t *testing.T) {
	r, guard := idemtest.Request{Path: "/payments", Key: "k"}, lambdaidem.New(memstore.New())
	idemtest.Twice(t, guard.APIGateway(func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 201, Headers: one{"A": "1", "B": "1"}, MultiValueHeaders: several{"a": {"2"}, "Set-Cookie": {"x", "y"}}}, nil
	}), r.APIGateway())
	r.Key = "k2"
	idemtest.Twice(t, guard.APIGatewayV2(func(context.Context, request) (response, error) {
		return response{StatusCode: 201, Headers: one{"A": "1"}, MultiValueHeaders: several{"B": {"1", "2"}}, Cookies: []string{"x"}}, nil
	}), r.APIGatewayV2())
	r.Key = "k3"
	idemtest.Twice(t, guard.FunctionURL(func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{StatusCode: 201, Headers: one{"A": "1"}, Cookies: []string{"x"}}, nil
	}), r.FunctionURL())
	both := guard.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 201, StatusDescription: "201 Created", Headers: one{"A": "1", "a": "2"}, MultiValueHeaders: several{"A": {"1", "2"}}}, nil
	})
	r.Key = "k4"
	idemtest.Twice(t, both, r.ALB())
	r.Key = "k5"
	idemtest.Twice(t, both, r.ALBMultiValue())
}

// TwiceHTTP accepts a request as a client builds it, and passes it to the handler as a server
// would.
func TestTwiceHTTP_ServesAClientsRequest(t *testing.T) {
	var saw []*http.Request
	mux := http.NewServeMux()
	mux.Handle("POST /payments", newGuard().Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw = append(saw, r)
		_, _ = io.Copy(w, r.Body)
	})))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/payments?a=1", struct{ io.Reader }{strings.NewReader("body")})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	answer := idemtest.TwiceHTTP(t, mux, r)
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "body" || answer.Body.Close() != nil {
		t.Errorf("the answer is %d %q, %v", answer.StatusCode, body, err)
	}
	if len(saw) != 1 || saw[0].RequestURI != "/payments?a=1" || saw[0].ContentLength != 4 {
		t.Errorf("the handler saw %+v", saw)
	}
}

// TwiceHTTP compares trailers too.
func TestTwiceHTTP_ComparesTrailers(t *testing.T) {
	sums := []string{"1", "1", "1", "2"}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Sum", sums[0])
		sums = sums[1:]
	})
	for _, want := range []bool{false, true} {
		got := failures(t, func(f *fake) {
			if err := idemtest.TwiceHTTP(f, h, httpRequest(t, "")).Body.Close(); err != nil {
				t.Error(err)
			}
		})
		if strings.Contains(got, "the two answers differ") != want {
			t.Errorf("trailers differ: %t; it complains %q", want, got)
		}
	}
	guarded := newGuard().Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		w.Header().Set(http.TrailerPrefix+"Sum", url.PathEscape("a b"))
	}))
	if answer := idemtest.TwiceHTTP(t, guarded, httpRequest(t, "")); answer.Trailer.Get("Sum") != "a%20b" || answer.Body.Close() != nil {
		t.Errorf("the first answer's trailer is %v", answer.Trailer)
	}
}
