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

// Mark is the header that replays have by default. It is left out of the
// comparison of answers.
const Mark = "X-Idempotency-Replayed"

// Twice calls a guarded Lambda handler twice with one event, and returns the
// first answer. It fails t unless
//
//   - the first sending ran at least one guarded handler, the second none: a
//     batch may run one for each of its messages, and a guarded handler may
//     call lambdaidem.Do inside. An optimistic handler (Options.Optimistic) runs
//     both times; its second run must be undone, its writes rejected in favor of
//     the first answer;
//   - both answers are equal: those of HTTP events by what their gateway takes
//     of them (payload format 2.0 has no multiValueHeaders, say), any other by
//     its JSON; and the errors have the same text.
//
// The header [Mark] is left out, and so are the headers named in apart: further
// Options.ReplayMarks, or Options.UnstoredHeaders.
//
// Use an event whose key no other test uses, or a fresh store.
func Twice[In, Out any](t testing.TB, handler func(context.Context, In) (Out, error), event In, apart ...string) Out {
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
	a, b := taken(t, event, first, apart), taken(t, event, second, apart)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the two answers differ:\nfirst  %+v\nsecond %+v", a, b)
	}
	return first
}

// TwiceHTTP sends one request twice to a guarded net/http handler, and returns
// the first answer. It fails t unless the first sending ran at least one guarded
// handler and the second none, and both answers have the same status, headers,
// trailers and bytes. [Mark] and the headers named in apart are left out, as in
// [Twice].
//
// It takes the place of the server: a request in the form that clients send,
// without a RequestURI, gets one, and the Content-Length is that of the body.
func TwiceHTTP(t testing.TB, handler http.Handler, r *http.Request, apart ...string) *http.Response {
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
		return answerOf(answer, w.Body.Bytes(), apart), answer, runs.Load()
	}
	first, answer, ran := send()
	second, _, ranAgain := send()
	checkRuns(t, ran, ranAgain)
	if !reflect.DeepEqual(first, second) {
		t.Errorf("the two answers differ:\nfirst  %+v\nsecond %+v", first, second)
	}
	return answer
}

// served returns a request as a server hands it to a handler.
func served(ctx context.Context, r *http.Request, body []byte) *http.Request {
	again := r.Clone(ctx)
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	again.TransferEncoding = nil
	if again.RequestURI == "" {
		again.RequestURI = again.URL.RequestURI()
	}
	return again
}

// checkRuns judges how many guarded handlers each sending ran.
func checkRuns(t testing.TB, first, second int64) {
	t.Helper()
	if first == 0 {
		t.Errorf("the first sending ran no guarded handler: nothing is guarded here, the event was refused, or its key was used before")
	}
	if second != 0 {
		t.Errorf("guarded handlers ran again: %d for the first sending, %d for the second; the second should run none", first, second)
	}
}

func textOf(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}
