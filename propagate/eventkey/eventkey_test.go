package eventkey_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate"
	"github.com/lambdaidem/toolkit/propagate/eventkey"
)

// Entry adds the downstream key of the name to the detail.
func TestV4_TheDetailHasTheDownstreamKey(t *testing.T) {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
		e := types.PutEventsRequestEntry{Detail: aws.String(`{"a":1}`)}
		if err := eventkey.Entry(ctx, "paid", &e); err != nil {
			return 0, err
		}
		if want := `{"x-idempotency-key":"` + lambdaidem.DownstreamKey(ctx, "paid") + `","a":1}`; *e.Detail != want {
			t.Errorf("%s, want %s", *e.Detail, want)
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
	e := types.PutEventsRequestEntry{Detail: aws.String(`{}`)}
	if err := eventkey.Entry(t.Context(), "paid", &e); !errors.Is(err, propagate.ErrUnguarded) || *e.Detail != "{}" {
		t.Errorf("%v, %s", err, *e.Detail)
	}
}

// The rest of the detail is unchanged byte for byte, and another key is never replaced.
func TestV4_Details(t *testing.T) {
	const member = `"x-idempotency-key":"k"`
	for detail, want := range map[string]string{
		`{}`:                             `{` + member + `}`,
		" \r\n{ }\t":                     " \r\n{" + member + " }\t",
		`{"a":9007199254740993,"a":1e9}`: `{` + member + `,"a":9007199254740993,"a":1e9}`,
		"{\n  \"b\" : [ 1.0 , {\"x-idempotency-key\":\"inner\"} ]\n}": "{" + member + ",\n  \"b\" : [ 1.0 , {\"x-idempotency-key\":\"inner\"} ]\n}",
		"{\"é\":\"\xff\\u00e9<>&\\/\"}":                               "{" + member + ",\"é\":\"\xff\\u00e9<>&\\/\"}",
		`{"X-Idempotency-Key":"j"}`:                                   "another key already: the detail's member X-Idempotency-Key; leave it out",
		`{"X-Idempotency-Key":null}`:                                  "another key already",
		`{"X-Idempotency-Key":"k"}`:                                   `{"X-Idempotency-Key":"k"}`,
		`{"X-Idempotency-Key":"k","x-idempotency-key":"k"}`:           "another key already: the detail's member x-idempotency-key is there 2 times",
		`{"a":1, "x-idempotency-key" : "k"}`:                          `{"a":1, "x-idempotency-key" : "k"}`,
		`{"x-idempotency-ke\u0079":"\u006b"}`:                         `{"x-idempotency-ke\u0079":"\u006b"}`,
		`{"x-idempotency-key":"k","x-idempotency-key":"k"}`:           "another key already",
		`{"x-idempotency-key":"j"}`:                                   "another key already: the detail's member x-idempotency-key",
		`{"x-idempotency-ke\u0079":"j"}`:                              "another key already",
		`{"x-idempotency-key":"k","x-idempotency-key":"j"}`:           "another key already",
		`{"x-idempotency-key":"j","x-idempotency-key":"k"}`:           "another key already",
		`{"x-idempotency-key":null}`:                                  "another key already",
		`{"x-idempotency-key":["k"]}`:                                 "another key already",
		``:                                                            "not valid JSON",
		`{`:                                                           "not valid JSON",
		`{"a":1,}`:                                                    "not valid JSON",
		`{}{}`:                                                        "not valid JSON",
		"\ufeff{}":                                                    "not valid JSON",
		`[{}]`:                                                        "no JSON object",
		`"{"`:                                                         "no JSON object",
		`null`:                                                        "no JSON object",
	} {
		e := types.PutEventsRequestEntry{Detail: aws.String(detail)}
		err := eventkey.EntryWithKey("k", &e)
		if strings.Contains(want, "{") {
			if err != nil || *e.Detail != want {
				t.Errorf("%q became %q, %v", detail, *e.Detail, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || *e.Detail != detail {
			t.Errorf("%q became %q, %v", detail, *e.Detail, err)
		}
		if other := strings.Contains(want, "another key"); errors.Is(err, propagate.ErrOtherKey) != other {
			t.Errorf("%q: %v", detail, err)
		}
	}
	var none types.PutEventsRequestEntry
	if err := eventkey.EntryWithKey("k", &none); err == nil || none.Detail != nil {
		t.Errorf("no detail: %v", err)
	}
	one := types.PutEventsRequestEntry{Detail: aws.String("{}")}
	if err := eventkey.EntryWithKey("", &one); err == nil || *one.Detail != "{}" {
		t.Errorf("no key: %v", err)
	}
}

// For every detail and key, the result is valid JSON with that key, and contains the rest of
// the detail byte for byte. A second call changes nothing.
func FuzzEntryWithKey(f *testing.F) {
	for _, detail := range []string{`{}`, `{"a":1}`, ` { "x-idempotency-key":"k" } `, `{"X-Idempotency-Key":"k"}`, `{"X-IDEMPOTENCY-KEY":"j","a":1}`, `{"x-idempotency-key":null}`, `[]`, `{"a":{"b":"{"}}`, `{"a":"\ud800"}`, "{\"\xff\":0}"} {
		for _, key := range []string{"k", `a"\,<`, ""} {
			f.Add(detail, key)
		}
	}
	f.Fuzz(func(t *testing.T, detail, key string) {
		e := types.PutEventsRequestEntry{Detail: &detail}
		if err := eventkey.EntryWithKey(key, &e); err != nil {
			if *e.Detail != detail {
				t.Errorf("%v, and the detail is %q", err, *e.Detail)
			}
			return
		}
		// A guarded consumer finds this key and no other.
		got, read := *e.Detail, ""
		g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
		consume := g.EventBridge(func(ctx context.Context, _ events.EventBridgeEvent) error { read = lambdaidem.Key(ctx); return nil })
		if err := consume(t.Context(), events.EventBridgeEvent{ID: "1", Source: "shop", Detail: json.RawMessage(got)}); err != nil || read != key {
			t.Errorf("of %q a consumer reads the key %q, %v", got, read, err)
		}
		if i := strings.Index(detail, "{") + 1; !strings.HasPrefix(got, detail[:i]) || !strings.HasSuffix(got, detail[i:]) {
			t.Errorf("%q became %q", detail, got)
		}
		if err := eventkey.EntryWithKey(key, &e); err != nil || *e.Detail != got {
			t.Errorf("%q became %q the second time, %v", got, *e.Detail, err)
		}
	})
}
