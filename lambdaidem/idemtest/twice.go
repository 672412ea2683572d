package idemtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Mark is the header that a guard adds to replays by default. [Twice] and [TwiceHTTP]
// ignore it when they compare responses.
const Mark = "X-Idempotency-Replayed"

// Twice calls a guarded Lambda handler twice with the same event and returns the first response.
// Use an event whose key no other test uses, or a new store. Twice fails t unless both of these
// hold:
//
//   - The first call ran at least one handler inside a guard, and the second call ran none. An
//     optimistic handler (Options.Optimistic) also runs in the second call. This run doesn't count
//     if its transaction was rejected and the first response was returned instead.
//   - Both calls returned equal responses, and errors with the same text. HTTP responses are
//     compared by the parts that the event's gateway uses, other responses by their JSON.
//
// The comparison skips the header [Mark] and the headers named in ignoreHeaders, such as further
// Options.ReplayMarks or Options.UnstoredHeaders.
func Twice[In, Out any](t testing.TB, handler func(context.Context, In) (Out, error), event In, ignoreHeaders ...string) Out {
	t.Helper()
	send := func() (answer Out, ran int64, err error) {
		ctx, runs := runcount.With(t.Context())
		answer, err = handler(ctx, event)
		return answer, runs.Load(), err
	}
	first, ran, firstErr := send()
	second, ranAgain, secondErr := send()
	checkRuns(t, ran, ranAgain)
	if textOf(firstErr) != textOf(secondErr) {
		t.Errorf("the two answers differ:\nfirst error  %s\nsecond error %s", textOf(firstErr), textOf(secondErr))
	}
	a, b := received(t, event, first, ignoreHeaders), received(t, event, second, ignoreHeaders)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the two answers differ:\nfirst  %+v\nsecond %+v", a, b)
	}
	return first
}

// TwiceHTTP sends the same request twice to a guarded net/http handler and returns the first
// response. It fails t unless the first request ran at least one guarded handler, the second
// request ran none, and both responses have the same status, headers, trailers and body. The
// comparison skips [Mark] and the headers named in ignoreHeaders.
//
// Like a server, TwiceHTTP sets ContentLength, and sets RequestURI if that is empty.
func TwiceHTTP(t testing.TB, handler http.Handler, r *http.Request, ignoreHeaders ...string) *http.Response {
	t.Helper()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Fatalf("read the request's body: %v", err)
		}
	}
	send := func() (httpAnswer, *http.Response, int64) {
		ctx, runs := runcount.With(r.Context())
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, served(ctx, r, body))
		answer := w.Result()
		return answerOf(answer, w.Body.Bytes(), ignoreHeaders), answer, runs.Load()
	}
	first, answer, ran := send()
	second, _, ranAgain := send()
	checkRuns(t, ran, ranAgain)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the two answers differ:\nfirst  %+v\nsecond %+v", first, second)
	}
	return answer
}

// served returns a copy of a request, changed to what a server passes to a handler.
func served(ctx context.Context, r *http.Request, body []byte) *http.Request {
	again := r.Clone(ctx)
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again.TransferEncoding = nil
	if again.RequestURI == "" {
		again.RequestURI = again.URL.RequestURI()
	}
	return again
}

// checkRuns fails t unless the first of two equal requests ran a guarded handler and the second did
// not. firstRuns and secondRuns are the numbers of runs of guarded handlers in each request.
func checkRuns(t testing.TB, firstRuns, secondRuns int64) {
	t.Helper()
	if firstRuns == 0 {
		t.Errorf("the first sending ran no guarded handler: nothing is guarded here, the event was refused, or its key was used before")
	}
	if secondRuns != 0 {
		t.Errorf("guarded handlers ran again: %d for the first sending, %d for the second; the second should run none", firstRuns, secondRuns)
	}
}

func textOf(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}
