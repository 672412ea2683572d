package lambdaidem_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// A replay has the same status, header values in the same order, cookies, body bytes and base64
// flag.
func TestR1_AReplayIsTheFirstAnswer(t *testing.T) {
	for name, answer := range map[string]response{
		"plain":           {StatusCode: 201, Headers: map[string]string{"Content-Type": "application/json", "Location": "/payments/1"}, Body: `{"id":"1"}`},
		"nothing":         {StatusCode: 204},
		"empty maps":      {StatusCode: 200, Headers: map[string]string{}, MultiValueHeaders: map[string][]string{}, Cookies: []string{}},
		"both maps":       {StatusCode: 200, Headers: map[string]string{"A": "1"}, MultiValueHeaders: map[string][]string{"A": {"4"}, "B": {"2", "3"}}},
		"cookies":         {StatusCode: 200, Headers: map[string]string{"Set-Cookie": "c=3"}, Cookies: []string{"a=1; Path=/", "b=2"}},
		"binary":          {StatusCode: 200, Body: "iVBORw0KGgo=", IsBase64Encoded: true},
		"broken base64":   {StatusCode: 200, Body: "!", IsBase64Encoded: true},
		"not UTF-8":       {StatusCode: 200, Body: "\xff\x00\xfe", Headers: map[string]string{"X": "\xe9t\xe9"}, MultiValueHeaders: map[string][]string{"Y": {"\xff", "ok"}}, Cookies: []string{"\xff"}},
		"HTML and lines":  {StatusCode: 200, Body: "<a href='?a&b'>\u2028\u2029\x00\x7f</a>\n"},
		"a failure":       {StatusCode: 404, Body: "no such order"},
		"odd names":       {StatusCode: 200, Headers: map[string]string{"x-LOWER-upper": "1", "": "empty name"}},
		"empty value":     {StatusCode: 200, Headers: map[string]string{"X-Empty": ""}},
		"JSON of our own": {StatusCode: 200, Body: `{"statusCode":500,"bytes":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(context.Context, request) (response, error) { return answer, nil })
			one := r.send(t, first())
			if !sameAnswer(one, answer) {
				t.Errorf("the first answer is %+v, want %+v", one, answer)
			}
			for range 2 {
				wantReplay(t, r.send(t, first()), answer)
			}
		})
	}
}

// The first answer stays the same, whatever the caller and the handler do with their copies
// afterwards.
func TestR1_AReplayIsNobodysToChange(t *testing.T) {
	headers := map[string]string{"A": "1"}
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, Headers: headers, Cookies: []string{"c=1"}}, nil
	})
	one := r.send(t, first())
	one.Cookies[0], headers["A"] = "changed", "changed"
	two := r.send(t, first())
	wantReplay(t, two, response{StatusCode: 200, Headers: map[string]string{"A": "1"}, Cookies: []string{"c=1"}})
	two.Headers["A"], two.Cookies[0] = "changed", "changed"
	wantReplay(t, r.send(t, first()), response{StatusCode: 200, Headers: map[string]string{"A": "1"}, Cookies: []string{"c=1"}})
}

// If the handler changes its input, neither the record nor the fingerprint changes.
func TestR1_AHandlerThatMutatesItsInput(t *testing.T) {
	r := newRig(func(_ context.Context, in request) (response, error) {
		clear(in.Headers)
		in.Headers["idempotency-key"] = "other"
		in.PathParameters["id"] = "other"
		return response{StatusCode: 201}, nil
	})
	in := func() request {
		in := first()
		in.PathParameters = map[string]string{"id": "1"}
		return in
	}
	one := r.send(t, in())
	wantReplay(t, r.send(t, in()), one)
	r.wantRuns(t, 1)
}

func TestR2_Marks(t *testing.T) {
	for name, c := range map[string]struct {
		marks []lambdaidem.Mark
		want  map[string]string
	}{
		"default": {nil, map[string]string{mark: "true"}},
		"none":    {[]lambdaidem.Mark{}, map[string]string{}},
		"others": {[]lambdaidem.Mark{{Name: "X-Cache-Lookup", Value: "HIT"}, {Name: "Idempotent-Replayed", Value: "true"}, {Name: "X-Idempotency-Status", Value: "REPLAY"}},
			map[string]string{"X-Cache-Lookup": "HIT", "Idempotent-Replayed": "true", "X-Idempotency-Status": "REPLAY"}},
	} {
		r := newRig(nil, func(o *lambdaidem.Options) { o.ReplayMarks = c.marks })
		if one := r.send(t, first()); len(one.Headers) > 0 {
			t.Errorf("%s: the first answer has %v", name, one.Headers)
		}
		if two := r.send(t, first()); two.Body != "run 1" || !maps.Equal(two.Headers, c.want) {
			t.Errorf("%s: the replay has %v", name, two.Headers)
		}
	}
}

// A mark is set once, even if the handler set a header of that name.
func TestR2_AMarkReplacesTheHandlersHeader(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, MultiValueHeaders: map[string][]string{"x-idempotency-replayed": {"a", "b"}}}, nil
	})
	r.send(t, first())
	if two := r.send(t, first()); len(allHeaders(two)) != 1 || !replayed(two) {
		t.Errorf("the replay has %v", allHeaders(two))
	}
}

func TestR2_HookChangesAReplay(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: 200, Headers: map[string]string{"Date": "old", "x-drop": "1"}}, nil
	}, func(o *lambdaidem.Options) {
		o.OnReplay = func(_ context.Context, req *lambdaidem.Request, resp *lambdaidem.Response) {
			if len(resp.Header[mark]) != 1 {
				t.Error("the hook sees a replay before its marks")
			}
			resp.Set("date", "new for "+req.Path)
			resp.Del("X-Drop")
			resp.Status = 299
		}
	})
	if one := r.send(t, first()); one.StatusCode != 200 || one.Headers["Date"] != "old" {
		t.Errorf("the first answer is %+v", one)
	}
	for range 2 { // the hook changes the replay, never the record
		two := r.send(t, first())
		if two.StatusCode != 299 || two.Headers["date"] != "new for /payments" || len(two.Headers) != 2 {
			t.Errorf("the replay is %+v", two)
		}
	}
}

func TestR2_UnstoredHeaders(t *testing.T) {
	answer := response{StatusCode: 200, Headers: map[string]string{"set-cookie": "s=1", "A": "1", "X-Trace": "t"},
		MultiValueHeaders: map[string][]string{"X-TRACE": {"u", "v"}}, Cookies: []string{"s=1"}}
	r := newRig(func(context.Context, request) (response, error) { return answer, nil },
		func(o *lambdaidem.Options) { o.UnstoredHeaders = []string{"Set-Cookie", "x-trace"} })
	if one := r.send(t, first()); !sameAnswer(one, answer) {
		t.Errorf("the first answer is %+v", one)
	}
	wantReplay(t, r.send(t, first()), response{StatusCode: 200, Headers: map[string]string{"A": "1"}})
	if kept := string(r.record(t).Result.Value); strings.Contains(kept, "s=1") || strings.Contains(kept, "race") {
		t.Errorf("the record keeps %s", kept)
	}
}

// One hook gets every answer that the guard makes.
func TestR2_HookSeesEveryAnswerOfTheGuard(t *testing.T) {
	type answer = func(t *testing.T, r *rig) response
	ask := func(in request) answer { return func(t *testing.T, r *rig) response { return r.send(t, in) } }
	for name, c := range map[string]struct {
		code lambdaidem.Code
		ask  answer
	}{
		"missing":   {lambdaidem.ErrKeyMissing, ask(post("", "{}"))},
		"invalid":   {lambdaidem.ErrKeyInvalid, ask(keyed(`"`))},
		"too large": {lambdaidem.ErrBodyTooLarge, ask(post("k", strings.Repeat(" ", 1001)))},
		"mismatch": {lambdaidem.ErrPayloadMismatch, func(t *testing.T, r *rig) response {
			r.send(t, first())
			return r.send(t, post("key-1", "{}"))
		}},
		"unavailable": {lambdaidem.ErrStoreUnavailable, func(t *testing.T, r *rig) response {
			r.store.fail(acquire, refused(lambdaidem.ReasonNoTable))
			return r.send(t, first())
		}},
		"in progress": {lambdaidem.ErrInProgress, func(t *testing.T, r *rig) response {
			r.store.failAlways(acquire, refused(lambdaidem.ReasonConflict))
			return r.send(t, first())
		}},
		"lost": {lambdaidem.ErrAnswerUnavailable, func(t *testing.T, r *rig) response {
			r.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
			r.send(t, first())
			return r.send(t, first())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []lambdaidem.Code
			r := newRig(nil, func(o *lambdaidem.Options) {
				o.MaxBody = 1000
				o.OnOwnAnswer = func(_ context.Context, req *lambdaidem.Request, resp *lambdaidem.Response, e *lambdaidem.Error) {
					seen = append(seen, e.Code)
					resp.Set("Access-Control-Allow-Origin", req.Method)
				}
			})
			out := c.ask(t, r)
			if !slices.Equal(seen, []lambdaidem.Code{c.code}) || out.Headers["Access-Control-Allow-Origin"] != "POST" {
				t.Errorf("the hook saw %v and the answer is %+v", seen, out)
			}
		})
	}
}

// An answer with any status, header, cookie and body bytes replays unchanged.
func FuzzAnswerRoundTrip(f *testing.F) {
	f.Add(200, "Content-Type", "text/plain", "a", "c=1", "body", false)
	f.Add(404, "X", "", "\xff", "", "\xff\x00", true)
	f.Add(0, "x-y", "\u2028<&>", "\x7f", "\xfe", "", false)
	f.Add(700, "A", "\ufffd", "é", "\"", `{"bytes":true}`, true)
	f.Add(-1, "", "", "", "", "", false)
	f.Fuzz(func(t *testing.T, status int, name, v1, v2, cookie, body string, base64 bool) {
		name = strings.ToValidUTF8(name, "") // no server sends other names (RFC 9110, 5.1)
		if strings.EqualFold(name, mark) {
			return
		}
		answer := response{StatusCode: status, Headers: map[string]string{name + "-1": v1}, MultiValueHeaders: map[string][]string{name + "-2": {v2, v1, v2}},
			Cookies: []string{cookie, v1}, Body: body, IsBase64Encoded: base64}
		r := newRig(func(context.Context, request) (response, error) { return answer, nil }, func(o *lambdaidem.Options) {
			o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { return lambdaidem.OutcomeSucceeded }
		})
		if one := r.send(t, first()); !sameAnswer(one, answer) {
			t.Fatalf("the first answer is %+v, want %+v", one, answer)
		}
		wantReplay(t, r.send(t, first()), answer)
	})
}

func TestR1_ALBStatusDescriptionReplays(t *testing.T) {
	for _, description := range []string{"", "200 Fine", "200 \xff"} {
		g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
		h := g.ALB(func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
			return events.ALBTargetGroupResponse{StatusCode: 200, StatusDescription: description}, nil
		})
		in := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/a", Headers: map[string]string{"idempotency-key": "k"}}
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

// The stored form is JSON that a person can read in the console.
func TestR1_StoredFormIsReadable(t *testing.T) {
	r := newRig(func(context.Context, request) (response, error) {
		return response{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: `{"a":"<é>"}`}, nil
	})
	r.send(t, first())
	want := `{"statusCode":201,"headers":{"Content-Type":"application/json"},"body":"{\"a\":\"<é>\"}"}`
	if got := string(r.record(t).Result.Value); got != want {
		t.Errorf("the record keeps %s, want %s", got, want)
	}
}

// A hook may write to the header map of a replay that has no header.
func TestR2_HookOnAReplayWithoutHeaders(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.ReplayMarks = []lambdaidem.Mark{}
		o.OnReplay = func(_ context.Context, _ *lambdaidem.Request, resp *lambdaidem.Response) {
			resp.Header["X-A"] = []string{"1"}
		}
	})
	r.send(t, first())
	if out := r.send(t, first()); out.Headers["X-A"] != "1" {
		t.Errorf("the replay has %v", out.Headers)
	}
}

// Bytes that are not UTF-8 are kept in every part of an answer, even if they are in only one part.
func TestR1_NotUTF8InAnyOnePlace(t *testing.T) {
	const odd = "\xe9t\xe9"
	for name, answer := range map[string]response{
		"body":   {StatusCode: 200, Body: odd},
		"header": {StatusCode: 200, Headers: map[string]string{"X-A": odd, "X-B": "é"}, Body: "é"},
		"cookie": {StatusCode: 200, Cookies: []string{"a=1", odd}, Body: "é"},
	} {
		r := newRig(func(context.Context, request) (response, error) { return answer, nil })
		r.send(t, first())
		if out := r.send(t, first()); !replayed(out) {
			t.Errorf("%s: it was not replayed", name)
		} else {
			wantReplay(t, out, answer)
		}
	}

	type (
		single = map[string]string
		multi  = map[string][]string
		rest   = events.APIGatewayProxyResponse
	)
	for name, answer := range map[string]rest{
		"several values":  {StatusCode: 200, MultiValueHeaders: multi{"X-A": {"1", odd}}},
		"both, the first": {StatusCode: 200, Headers: single{"x-a": odd}, MultiValueHeaders: multi{"X-A": {"1", "2"}}},
		"both, a list":    {StatusCode: 200, Headers: single{"x-a": "1"}, MultiValueHeaders: multi{"X-A": {odd}}},
	} {
		h := lambdaidem.New(memstore.New(), quiet).APIGateway(func(context.Context, events.APIGatewayProxyRequest) (rest, error) { return answer, nil })
		var out rest
		for range 2 {
			var err error
			in := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/a", Path: "/a", Headers: single{"idempotency-key": "k"}}
			if out, err = h(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		if out.Headers[mark] == "" {
			t.Errorf("%s: it was not replayed", name)
		}
		if delete(out.Headers, mark); !maps.Equal(out.Headers, answer.Headers) || !maps.EqualFunc(out.MultiValueHeaders, answer.MultiValueHeaders, slices.Equal) {
			t.Errorf("%s: the replay has %q %q", name, out.Headers, out.MultiValueHeaders)
		}
	}

	h := lambdaidem.New(memstore.New(), anonymous).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.Header().Set(http.TrailerPrefix+"X-A", odd)
	}))
	for i := range 2 {
		if w := serve(h, posted(t, "/a")); w.Header().Get(http.TrailerPrefix+"X-A") != odd || (w.Header().Get(mark) != "") != (i == 1) {
			t.Errorf("trailer: answer %d has %q", i, w.Header())
		}
	}
}
