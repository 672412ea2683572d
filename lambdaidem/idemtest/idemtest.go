// Package idemtest helps you to test that your own handlers are safe to retry.
//
// [Twice] and [TwiceHTTP] send one event twice to a guarded handler, as a
// client does that timed out, and fail the test unless both answers are equal
// and the handler ran once.
package idemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Mark is the header that replays have by default. It is left out of the
// comparison.
const Mark = "X-Idempotency-Replayed"

// Twice calls a guarded Lambda handler twice with one event, and returns the
// first answer. It fails t unless both answers are equal as JSON, but for the
// header Mark, both errors have the same text, and the handler ran once.
//
// Use an event whose key no other test uses, or a fresh memstore.
func Twice[In, Out any](t testing.TB, handler func(context.Context, In) (Out, error), event In) Out {
	t.Helper()
	ctx, runs := runcount.With(t.Context())
	first, firstErr := handler(ctx, event)
	second, secondErr := handler(ctx, event)
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times for one event sent twice; it should run once", n)
	}
	if textOf(firstErr) != textOf(secondErr) {
		t.Errorf("the two answers differ:\nfirst error  %s\nsecond error %s", textOf(firstErr), textOf(secondErr))
	}
	a, b := readable(t, first), readable(t, second)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the two answers differ:\nfirst  %v\nsecond %v", a, b)
	}
	return first
}

// TwiceHTTP sends one request twice to a guarded net/http handler, and returns
// the first answer. It fails t unless both answers have the same status, the
// same headers but for Mark, and the same bytes, and the handler ran once.
func TwiceHTTP(t testing.TB, handler http.Handler, r *http.Request) *http.Response {
	t.Helper()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Fatalf("read the request's body: %v", err)
		}
	}
	ctx, runs := runcount.With(r.Context())
	send := func() *httptest.ResponseRecorder {
		again := r.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, again)
		w.Header().Del(Mark)
		return w
	}
	first, second := send(), send()
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times for one request sent twice; it should run once", n)
	}
	if first.Code != second.Code || !reflect.DeepEqual(first.Header(), second.Header()) || !bytes.Equal(first.Body.Bytes(), second.Body.Bytes()) {
		t.Errorf("the two answers differ:\nfirst  %d %v %q\nsecond %d %v %q",
			first.Code, first.Header(), first.Body, second.Code, second.Header(), second.Body)
	}
	return first.Result()
}

func textOf(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// readable is an answer as its JSON reads, without the mark, and without what
// is empty: an absent header map and an empty one are one answer. A header of
// one value is the same in either header map, as gateways take it.
func readable(t testing.TB, answer any) any {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatalf("encode the answer %T as JSON: %v", answer, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("decode the answer's JSON: %v", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	single, isSingle := m["headers"].(map[string]any)
	multi, isMulti := m["multiValueHeaders"].(map[string]any)
	if isSingle || isMulti {
		all := make(map[string]any, len(single)+len(multi))
		for name, value := range single {
			all[name] = []any{value}
		}
		for name, values := range multi {
			all[name] = values
		}
		delete(all, Mark)
		m["headers"] = all
		delete(m, "multiValueHeaders")
	}
	for name, value := range m {
		if empty(value) {
			delete(m, name)
		}
	}
	return m
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
