package emf_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/emf"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// mark is part of every text that must not appear in a document.
const mark = "SeCReT"

// The only texts of an event that a document contains are its template and words from fixed
// lists. The test sets every string field by reflection, so it also covers fields that are added
// later.
func TestO1_NothingElseOfAnEventIsTold(t *testing.T) {
	e := lambdaidem.Event{Err: errors.New(mark)}
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.Kind() == reflect.String && fields.Type().Field(i).Name != "Template" {
			f.SetString(mark)
		}
	}
	o, written := observed()
	o.Observe(t.Context(), e)
	for _, kind := range constants(t, "eventkind.go", "Kind") {
		e.Kind = lambdaidem.Kind(kind)
		for _, reason := range []lambdaidem.Reason{mark, lambdaidem.ReasonThrottled} {
			e.Reason = reason
			o.Observe(t.Context(), e)
		}
	}
	written.documents(t)
	if text := written.String(); strings.Contains(text, mark) {
		t.Errorf("it wrote %s", text)
	}
}

// No document contains a text that a client or a sender chose, whatever happens to the request.
func FuzzO1_NoSecretIsTold(f *testing.F) {
	for _, seed := range []string{"", "a", "\"", "\n", "ü", "\xff", "%", "/a/../b", strings.Repeat("x", 300), " x y "} {
		f.Add(seed, byte(0))
		f.Add(seed, byte(64))
		f.Add(seed, byte(255))
	}
	f.Fuzz(func(t *testing.T, seed string, bits byte) {
		o, written := observed(func(o *emf.Options) { o.Records = bits&64 != 0 }) // Records is safe, because a record's id is a hash
		secret := mark + seed
		store := idemtest.NewStore(memstore.New())
		if bits&1 != 0 {
			store.Next(idemtest.Acquire, idemtest.Refuse(lambdaidem.Reason(secret)))
		}
		guard := lambdaidem.New(store, func(opts *lambdaidem.Options) {
			opts.Observer, opts.ShowKeys, opts.AnonymousCallers = o, true, true
			if bits&2 != 0 {
				opts.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return secret, nil }
			}
			if bits&4 != 0 {
				opts.Principal = func(context.Context, *lambdaidem.Request) (string, error) { return "", errors.New(secret) }
			}
			opts.FailOpen, opts.KeyOptional = bits&8 != 0, bits&16 != 0
			opts.Wait = time.Nanosecond
		})
		failing := func() error {
			if bits&32 != 0 {
				return errors.New(secret)
			}
			return nil
		}
		path := "/" + url.PathEscape(secret)
		r := idemtest.Request{Path: path, Route: "/{id}", Query: "q=" + url.QueryEscape(secret), Key: secret, Body: `"` + secret + `"`, Header: http.Header{"X-Test": {secret}}}
		ctx := t.Context()
		v2 := guard.APIGatewayV2(func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: secret}, failing()
		})
		event := r.APIGatewayV2()
		for _, route := range []string{event.RouteKey, "$default", "POST /{proxy+}"} {
			event.RouteKey, event.Headers["idempotency-key"] = route, secret
			_, _ = v2(ctx, event)
			event.Body += secret
			_, _ = v2(ctx, event) // a payload mismatch
		}
		mux := http.NewServeMux()
		inside := guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(secret)) }))
		mux.Handle("POST /a/{id}", inside)
		mux.Handle("POST /", inside)
		for _, target := range []string{"/a" + path, path, "/a/b" + path} {
			in := httptest.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(secret))
			in.Host = secret + ".example.com"
			in.Header["Idempotency-Key"] = []string{secret}
			mux.ServeHTTP(httptest.NewRecorder(), in)
		}
		m := idemtest.Message{ID: secret, Group: secret, Body: secret, Attributes: map[string]string{"a": secret}, Key: secret}
		quiet := func(o *lambdaidem.BatchOptions[events.SQSMessage]) {
			o.OnFailure = func(context.Context, events.SQSMessage, error) {}
		}
		_, _ = guard.SQS(func(context.Context, events.SQSMessage) error { return failing() }, quiet)(ctx, idemtest.SQS("orders", m))
		_ = guard.EventBridge(func(context.Context, events.EventBridgeEvent) error { return failing() }, func(o *lambdaidem.BatchOptions[events.EventBridgeEvent]) {
			o.OnFailure = func(context.Context, events.EventBridgeEvent, error) {}
		})(ctx, events.EventBridgeEvent{ID: secret, Source: secret, DetailType: secret, AccountID: secret, Region: secret, Resources: []string{secret}, Detail: []byte(`{}`)})
		_, _ = lambdaidem.Do(ctx, guard, lambdaidem.Call{Operation: "charge", Key: secret, Principal: secret, Payload: secret}, func(context.Context) (string, error) { return secret, failing() })

		if docs := written.documents(t); len(docs) < 12 {
			t.Errorf("there are %d documents", len(docs))
		}
		for _, text := range []string{mark, strings.ToLower(mark)} { // the host of a request is converted to lower case
			if strings.Contains(written.String(), text) {
				t.Errorf("it wrote %s", written.String())
			}
		}
	})
}
