package lambdaidem_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// made returns the record that a guard writes for one call.
func made(t *testing.T, call func(*lambdaidem.Guard)) lambdaidem.Record {
	t.Helper()
	s := &lastRecord{Store: memstore.New()}
	call(lambdaidem.New(s, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "my shop", lambdaidem.Discard }))
	return s.last
}

type lastRecord struct {
	lambdaidem.Store
	last lambdaidem.Record
}

func (s *lastRecord) Complete(ctx context.Context, l lambdaidem.Lease, r lambdaidem.Result) (lambdaidem.Record, error) {
	rec, err := s.Store.Complete(ctx, l, r)
	s.last = rec
	return rec, err
}

func answering(t *testing.T, answer events.APIGatewayV2HTTPResponse) func(*lambdaidem.Guard) {
	t.Helper()
	return func(g *lambdaidem.Guard) {
		e := events.APIGatewayV2HTTPRequest{RouteKey: "POST /payments/{id}", RawPath: "/payments/1", Headers: map[string]string{"idempotency-key": `"k 1"`}}
		e.RequestContext.HTTP.Method = http.MethodPost
		if _, err := g.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return answer, nil
		})(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
}

func TestO2_WhatAGuardStoresIsOfItsKind(t *testing.T) {
	for name, c := range map[string]struct {
		call  func(*lambdaidem.Guard)
		kind  lambdaidem.RecordKind
		route string
	}{
		"a request": {answering(t, events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "paid", Headers: map[string]string{"Content-Type": "text/plain"}, Cookies: []string{"a=b"}}), lambdaidem.RecordHTTP, "/payments/{id}"},
		"binary":    {answering(t, events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "\xff\x00"}), lambdaidem.RecordHTTP, "/payments/{id}"},
		"a call": {func(g *lambdaidem.Guard) {
			_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (map[string]string, error) {
				return map[string]string{"a": "<&>"}, nil
			})
		}, lambdaidem.RecordValue, "pay"},
		"a call that failed": {func(g *lambdaidem.Guard) {
			_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (string, error) {
				return "", lambdaidem.Permanent(errors.New("no"))
			})
		}, lambdaidem.RecordValue, "pay"},
		"a handler": {func(g *lambdaidem.Guard) {
			_, _ = lambdaidem.Handler(g, "charge it", func(context.Context, string) (string, error) { return "k", nil },
				func(context.Context, string) (int, error) { return 7, nil })(t.Context(), "in")
		}, lambdaidem.RecordValue, "charge%20it"},
		"a message": {func(g *lambdaidem.Guard) {
			_, _ = g.SQS(func(context.Context, events.SQSMessage) error { return nil })(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
				{MessageId: "1", EventSourceARN: "arn:aws:sqs:eu-west-1:1:q", EventSource: "aws:sqs"},
			}})
		}, lambdaidem.RecordMessage, "arn:aws:sqs:eu-west-1:1:q"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := made(t, c.call)
			scope, err := lambdaidem.ParseScope(rec.Scope)
			if err != nil {
				t.Fatal(err)
			}
			if scope.Kind() != c.kind || scope.Route != c.route || scope.Namespace != lambdaidem.ScopePart("my shop") || scope.Namespace != "my%20shop" {
				t.Errorf("%q is %+v of kind %s; want %s", rec.Scope, scope, scope.Kind(), c.kind)
			}
			if err := lambdaidem.CheckResult(rec.Scope, rec.Result); err != nil {
				t.Errorf("what a guard stored is refused: %v\n%s", err, rec.Result.Value)
			}
			if c.kind != lambdaidem.RecordHTTP {
				return
			}
			answer, err := lambdaidem.DecodeAnswer(rec.Result.Value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(rec.Result.Value), string(lambdaidem.EncodeAnswer(answer))); diff != "" {
				t.Errorf("stored - encoded again +:\n%s", diff)
			}
		})
	}
}

func TestO2_CheckResultRefusesWhatNoGuardCanReplay(t *testing.T) {
	const (
		overHTTP = "shop POST /payments jwt:me"
		value    = "shop  pay "
		message  = "shop message q "
	)
	ok := func(value string) lambdaidem.Result {
		return lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(value)}
	}
	failed := func(f lambdaidem.Failure) lambdaidem.Result {
		return lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Failure: &f}
	}
	failedWith := func(value string) lambdaidem.Result {
		return lambdaidem.Result{Outcome: lambdaidem.OutcomeFailed, Value: []byte(value)}
	}
	declined := lambdaidem.Failure{Code: "declined", Message: "no", Status: 402}
	both, succeeded := failed(declined), failed(declined)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write([]byte("paid")); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	gzipped := base64.StdEncoding.EncodeToString(zipped.Bytes())
	cutGzip := base64.StdEncoding.EncodeToString(zipped.Bytes()[:zipped.Len()-3])
	both.Value, succeeded.Outcome = []byte("{}"), lambdaidem.OutcomeSucceeded
	for _, c := range []struct {
		scope string
		r     lambdaidem.Result
		why   string // empty if the value is valid
	}{
		{overHTTP, ok(`{"statusCode":201,"body":"paid"}`), ""},
		{overHTTP, ok(`{"statusCode":201, "body":"paid"}`), "white space"},
		{overHTTP, ok(`{"statusCode":201,"body":"paid","more":1}`), "members"},
		{overHTTP, ok(`{"body":"paid"}`), "no HTTP answer"},
		{overHTTP, ok(`{"statusCode":101,"body":""}`), "status is 101"},
		{overHTTP, ok(`{"statusCode":600,"body":""}`), "status is 600"},
		{overHTTP, ok(`{"statusCode":200,"body":"%","isBase64Encoded":true}`), "base64"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"a b":"c"},"body":""}`), "header"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"":"c"},"body":""}`), "header"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"a":"b\r\nc: d"},"body":""}`), "header"},
		{overHTTP, ok(``), "decode"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"a":"b\u0000"},"body":""}`), "header"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"a":"b` + "\x7f" + `"},"body":""}`), "header"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"a":"b\tc é"},"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":200,"cookies":["a=b\r\nc: d"],"body":""}`), "cookie"},
		{overHTTP, ok(`{"statusCode":200,"cookies":["a=b; Path=/"],"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":200,"statusDescription":"200 OK\r\nc: d","body":""}`), "status description"},
		{overHTTP, ok(`{"statusCode":200,"body":"","beside":{"a":"b\nc"}}`), "header"},
		{overHTTP, ok(`{"statusCode":200,"body":"","trailers":{"a":["b","c\n"]}}`), "header"},
		{overHTTP, ok(`{"statusCode":204,"body":"x"}`), "status 204 has no body"},
		{overHTTP, ok(`{"statusCode":205,"body":"x"}`), "status 205 has no body"},
		{overHTTP, ok(`{"statusCode":304,"body":"x"}`), "status 304 has no body"},
		{overHTTP, ok(`{"statusCode":204,"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-length":"4"},"body":"paid"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-length":"4"},"body":"cGFpZA==","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Length":"5"},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Length":"3"},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Length":"four"},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"multiValueHeaders":{"Content-Length":["4","5"]},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"body":"paid","beside":{"Content-Length":"5"}}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":204,"headers":{"Content-Length":"0"},"body":""}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":304,"headers":{"Content-Length":"9"},"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":304,"headers":{"content-length":"nine"},"body":""}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-length":"04"},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Length":"+4"},"body":"paid"}`), "Content-Length"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"transfer-encoding":"chunked"},"body":"paid"}`), "Transfer-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip"},"body":"paid"}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-encoding":"GZip"},"body":"cGFpZA==","isBase64Encoded":true}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip"},"body":"` + gzipped + `","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip"},"body":"` + cutGzip + `","isBase64Encoded":true}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"deflate"},"body":"` + gzipped + `","isBase64Encoded":true}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"zstd"},"body":"` + gzipped + `","isBase64Encoded":true}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"br"},"body":"paid"}`), "Content-Encoding"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"br"},"body":"/w==","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"br, gzip"},"body":"` + gzipped + `","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip, br"},"body":"/w==","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"identity"},"body":"paid"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip"},"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{}"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{"}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Type":"application/problem+json; charset=utf-8"},"body":""}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":200,"multiValueHeaders":{"Content-Type":["text/plain","application/json"]},"body":"paid"}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":200,"body":"paid","beside":{"Content-Type":"application/json"}}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Type":"application/json"},"body":"e30=","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Type":"application/json"},"body":"e30A","isBase64Encoded":true}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"gzip","Content-Type":"application/json"},"body":"` + gzipped + `","isBase64Encoded":true}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Encoding":"identity","Content-Type":"application/json"},"body":"paid"}`), "no JSON"},
		{overHTTP, ok(`{"statusCode":304,"headers":{"Content-Type":"application/json"},"body":""}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Type":""},"body":"paid"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"headers":{"Content-Type":"text/plain","X":"application/json"},"body":"paid"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"body":"` + strings.Repeat("x", 6<<20) + `"}`), ""},
		{overHTTP, ok(`{"statusCode":200,"body":"` + strings.Repeat("x", 6<<20+1) + `"}`), "6 MB"},
		{value, ok(`"` + strings.Repeat("x", 6<<20-1) + `"`), "6 MB"},
		{overHTTP, failed(declined), "a failure is none"},
		{overHTTP, failed(*lambdaidem.NoAnswer("it is lost")), ""},
		{overHTTP + " tenant", ok(`{"statusCode":201,"body":""}`), ""},
		{value, ok(`{"a":1}`), ""},
		{value, ok(`{"a": 1}`), "white space"},
		{value, ok(`{"a":`), "no JSON"},
		{value, ok(`{"a":1,"a":1}`), "twice"},
		{value, ok(`[{"b":{"a":1,"a":2}}]`), "twice"},
		{value, ok(``), "no JSON"},
		{value, failed(declined), ""},
		{value, failed(lambdaidem.Failure{Code: "declined"}), "a code and a message"},
		{value, failed(lambdaidem.Failure{Message: "no"}), "a code and a message"},
		{value, failed(lambdaidem.Failure{Code: "declined", Message: "no", Status: 200}), "status is 200"},
		{value, both, "both"},
		{value, succeeded, "outcome"},
		{value, lambdaidem.Result{Outcome: lambdaidem.OutcomeReleased, Value: []byte("1")}, "outcome"},
		{message, ok(`{}`), ""},
		{message, ok(`1`), "{}"},
		{message, failed(declined), "a failure is none"},
		{message, failedWith(`{}`), "without an answer"},
		{message, failed(*lambdaidem.NoAnswer("it is lost")), ""},
		{value, failedWith(`{"a":1}`), "give a failure"},
		{overHTTP, failedWith(`{"statusCode":402,"body":""}`), ""},
		{"shop", ok(`{}`), "parts"},
		{"a b c", ok(`{}`), "parts"},
		{"a b c d e f", ok(`{}`), "parts"},
	} {
		err := lambdaidem.CheckResult(c.scope, c.r)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q %.200s: %v; want %q", c.scope, c.r.Value, err, c.why)
		}
	}
}

// For a record without an answer, a guard reports that the answer is unavailable.
func TestX4_NoAnswerIsAnswerUnavailable(t *testing.T) {
	s := memstore.New()
	g := lambdaidem.New(s, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "shop", lambdaidem.Discard })
	id := g.RecordID(lambdaidem.Identity{Operation: "pay", Key: "k"})
	run := func(context.Context) (string, error) { return "", lambdaidem.Uncertain(errors.New("later")) }
	_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, run)
	rec, err := s.Get(t.Context(), id, time.Now())
	if err != nil || rec.State != lambdaidem.InProgress {
		t.Fatalf("%+v, %v", rec, err)
	}
	if _, err := s.Complete(t.Context(), lambdaidem.Lease{ID: id, Token: rec.Token}, lambdaidem.Result{
		Outcome: lambdaidem.OutcomeSucceeded, Failure: lambdaidem.NoAnswer("it is lost"), At: time.Now(), Expires: time.Now().Add(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	_, err = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k"}, run)
	if !errors.Is(err, lambdaidem.ErrAnswerUnavailable) || !strings.Contains(err.Error(), "it is lost") {
		t.Errorf("a retry got %v", err)
	}
}

// The client of a record that an operator ended without knowing what happened is not told that
// its request was carried out.
func TestX4_NoAnswerOfAFailedRecordPromisesNothing(t *testing.T) {
	for outcome, says := range map[lambdaidem.Outcome]string{
		lambdaidem.OutcomeSucceeded: "The request was carried out, but",
		lambdaidem.OutcomeFailed:    "it is not known here whether it was carried out",
	} {
		r := newRig(func(context.Context, request) (response, error) { return response{}, lambdaidem.Uncertain(errWire) })
		_, _ = r.handler(t.Context(), first())
		rec := r.record(t)
		if _, err := r.store.Store.Complete(t.Context(), lambdaidem.Lease{ID: rec.ID, Token: rec.Token}, lambdaidem.Result{
			Outcome: outcome, Failure: lambdaidem.NoAnswer("it is lost"), At: time.Now(), Expires: time.Now().Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
		out := r.send(t, first())
		wantProblem(t, out, 500, lambdaidem.ErrAnswerUnavailable)
		if !strings.Contains(out.Body, says) {
			t.Errorf("%s: the client is told %s", outcome, out.Body)
		}
	}
}

func TestK1_ParseKeyIsTheGuards(t *testing.T) {
	for value, want := range map[string]string{`abc`: "abc", `"a\"b"`: `a"b`, ` abc `: "abc", ``: "", `""`: "", `a,b`: "", `"a`: ""} {
		if got, err := lambdaidem.ParseKey(value); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseKey(%q) is %q, %v; want %q", value, got, err, want)
		}
	}
}

// From a record, an operator can compute the downstream keys that its handlers used.
func TestE6_RecordHasItsHandlersDownstreamKeys(t *testing.T) {
	key := ""
	rec := made(t, func(g *lambdaidem.Guard) {
		_, _ = lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "pay", Key: "k", Payload: 5}, func(ctx context.Context) (string, error) {
			key = lambdaidem.DownstreamKey(ctx, "charge")
			return "", nil
		})
	})
	if got := rec.DownstreamKey("charge"); got != key || key == "" || rec.DownstreamKey("notify") == key {
		t.Errorf("the record has %q, its handler had %q", got, key)
	}
}

// A guard can replay every HTTP answer that CheckResult accepts, byte for byte.
func FuzzCheckResult(f *testing.F) {
	for _, value := range []string{
		`{"statusCode":201,"body":"paid"}`, `{"statusCode":200,"headers":{"A":"b"},"multiValueHeaders":{"C":["d","e"]},"cookies":["f=g"],"body":"/w==","isBase64Encoded":true}`,
		`{"statusCode":200,"body":"/w==","bytes":true}`, `{"statusCode":200,"body":"","trailers":{"X":["1"]},"added":["A"],"removed":["B"]}`, `{}`, `1`, ``,
	} {
		f.Add("shop POST /payments me", value)
		f.Add("shop  pay ", value)
		f.Add("shop message q ", value)
	}
	f.Fuzz(func(t *testing.T, scope, value string) {
		r := lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: []byte(value)}
		if lambdaidem.CheckResult(scope, r) != nil {
			return
		}
		s, err := lambdaidem.ParseScope(scope)
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind() != lambdaidem.RecordHTTP {
			if !json.Valid(r.Value) {
				t.Errorf("%q was accepted, which is no JSON", value)
			}
			return
		}
		answer, err := lambdaidem.DecodeAnswer(r.Value)
		if err != nil {
			t.Fatalf("%q was accepted: %v", value, err)
		}
		if again := lambdaidem.EncodeAnswer(answer); string(again) != value || answer.Status < 200 || answer.Status > 599 {
			t.Errorf("%q was accepted, and is %q", value, again)
		}
	})
}
