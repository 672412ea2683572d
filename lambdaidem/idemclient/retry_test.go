package idemclient_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// Exactly the listed statuses are retried.
func TestC1_TheStatusesThatAreRetried(t *testing.T) {
	retried := map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true}
	for status := 200; status < 600; status++ {
		synctest.Test(t, func(t *testing.T) {
			base := &script{steps: []step{answer(status, "first"), answer(201, "second")}}
			resp, err := idemclient.New(base, []string{host}).RoundTrip(post(t.Context(), t, "x"))
			if err != nil {
				t.Fatal(err)
			}
			_, body := read(t, resp)
			if again := body == "second"; again != retried[status] || (len(base.sent) == 2) != again {
				t.Errorf("%d is retried: %v", status, again)
			}
			base.oneKey(t)
			base.closed(t)
		})
	}
}

// Which problem documents make the client retry a 409, and which make a 5xx final.
func TestC1_ProblemDocuments(t *testing.T) {
	const inProgress, final = `{"code":"idempotency_in_progress"}`, `{"code":"idempotency_permanent_failure"}`
	long := `{"detail":"` + strings.Repeat("x", 64<<10) + `","code":`
	for name, c := range map[string]struct {
		status      int
		contentType string
		body        string
		retry       bool
	}{
		"in progress":                     {409, "application/problem+json", inProgress, true},
		"with a charset":                  {409, "Application/Problem+JSON; charset=utf-8", inProgress, true},
		"of the application":              {409, "application/problem+json", `{"code":"already_paid"}`, false},
		"without code":                    {409, "application/problem+json", `{"title":"Conflict"}`, false},
		"code that is no text":            {409, "application/problem+json", `{"code":409}`, false},
		"another media type":              {409, "application/json", inProgress, false},
		"no media type":                   {409, "", inProgress, false},
		"with garbage for a charset":      {409, "application/problem+json; =;", inProgress, true},
		"garbage for a media type":        {409, "application/problem+json garbage", inProgress, false},
		"garbage":                         {409, "application/problem+json", "<html>\xff", false},
		"an array":                        {409, "application/problem+json", "[" + inProgress + "]", false},
		"empty":                           {409, "application/problem+json", "", false},
		"more than one document":          {409, "application/problem+json", inProgress + "{}", false},
		"too long":                        {409, "application/problem+json", long + `"idempotency_in_progress"}`, false},
		"too long by white space":         {409, "application/problem+json", inProgress + strings.Repeat(" ", 64<<10), false},
		"final":                           {500, "application/problem+json", final, false},
		"final with another status":       {503, "application/problem+json", final, false},
		"final code, another media type":  {500, "text/plain", final, true},
		"garbage with a 500":              {500, "application/problem+json", "{", true},
		"too long with a 500":             {500, "application/problem+json", long + `"idempotency_permanent_failure"}`, true},
		"in progress with another status": {400, "application/problem+json", inProgress, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{answer(c.status, c.body, "Content-Type", c.contentType), answer(201, "paid")}}
				resp, err := client(base).Do(post(t.Context(), t, "x"))
				if err != nil {
					t.Fatal(err)
				}
				_, body := read(t, resp)
				if retried := len(base.sent) == 2; retried != c.retry {
					t.Errorf("retried: %v", retried)
				}
				if !c.retry && body != c.body { // the caller can still read the whole body
					t.Errorf("the caller reads %d bytes of %d", len(body), len(c.body))
				}
				base.closed(t)
			})
		})
	}
}

// A problem document with a Content-Encoding is not read. It has one only if the caller has
// asked for it.
func TestC1_AnEncodedProblemIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{problem(409, "idempotency_in_progress", "Content-Encoding", "gzip")}}
		resp, err := client(base).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := read(t, resp); status != 409 || len(base.sent) != 1 {
			t.Errorf("%d after %d attempts", status, len(base.sent))
		}
	})
}

// A problem document that breaks off decides nothing, so the request is sent again. After the
// last attempt, the caller reads the same bytes and the same error.
func TestC1_ACutProblemDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 409, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(io.MultiReader(strings.NewReader(`{"code":"idem`), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
		}
		base := &script{steps: []step{cut}}
		var seen []idemclient.Attempt
		resp, err := client(base, func(o *idemclient.Options) {
			o.MaxAttempts = 2
			o.Observe = func(_ context.Context, a idemclient.Attempt) { seen = append(seen, a) }
		}).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != `{"code":"idem` || !errors.Is(err, io.ErrUnexpectedEOF) || len(base.sent) != 2 {
			t.Errorf("after %d attempts the caller reads %q and %v", len(base.sent), body, err)
		}
		if len(seen) != 2 || !errors.Is(seen[0].Err, io.ErrUnexpectedEOF) || seen[0].Status != 409 {
			t.Errorf("the attempts were told as %+v", seen)
		}
		base.closed(t)
	})
}

// An error is retried unless the next attempt would fail with the same error.
func TestC1_WhichErrorsAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		retry bool
	}{
		"reset":              {errNetwork, true},
		"end of connection":  {io.EOF, true},
		"cut header":         {io.ErrUnexpectedEOF, true},
		"another's deadline": {context.DeadlineExceeded, true}, // from another transport inside base
		"a text":             {errors.New("http2: client connection lost"), true},
		"no TLS":             {tls.RecordHeaderError{Msg: "x", RecordHeader: [5]byte{1, 2, 3, 4, 5}}, true},
		"HTTP for TLS":       {tls.RecordHeaderError{Msg: "x", RecordHeader: [5]byte([]byte("HTTP/"))}, false},
		"plain HTTP":         {fmt.Errorf("x: %w", http.ErrSchemeMismatch), false},
		"certificate":        {fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: errors.New("expired")}), false},
		"unknown authority":  {fmt.Errorf("x: %w", x509.UnknownAuthorityError{}), false},
		"wrong name":         {fmt.Errorf("x: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: host}), false},
		"expired":            {fmt.Errorf("x: %w", x509.CertificateInvalidError{Reason: x509.Expired}), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{fails(c.err)}}
				_, err := idemclient.New(base, []string{host}).RoundTrip(post(t.Context(), t, "x")) //nolint:bodyclose // returns an error
				if !errors.Is(err, c.err) {
					t.Errorf("the caller got %v", err)
				}
				if n := len(base.sent); c.retry && n != 6 || !c.retry && n != 1 {
					t.Errorf("%d attempts", n)
				}
			})
		})
	}
}

// Before a retry, the client reads the body of the last response only up to a limit, in bytes
// and in time, and closes it.
func TestC1_DroppedAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := &endless{}
		stalled, _ := io.Pipe()
		base := &script{steps: []step{
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(endless)}, nil
			},
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{}, Body: stalled}, nil
			},
			answer(201, "paid"),
		}}
		began := time.Now()
		resp, err := client(base).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, body := read(t, resp); body != "paid" || endless.n > 128<<10 || time.Since(began) > 3*time.Second {
			t.Errorf("%q after %d bytes in %v", body, endless.n, time.Since(began))
		}
		base.closed(t)
	})
}

type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// Options.Observe is called for each attempt.
func TestC1_TheObserverIsToldEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return problem(409, "idempotency_in_progress")(r)
		}
		base := &script{steps: []step{fails(errNetwork), slow, answer(201, "")}}
		type mark struct{}
		var seen []idemclient.Attempt
		c := client(base, func(o *idemclient.Options) {
			o.Observe = func(ctx context.Context, a idemclient.Attempt) {
				if ctx.Value(mark{}) != "ours" {
					t.Error("the context is another one")
				}
				seen = append(seen, a)
			}
		})
		resp, err := c.Do(post(context.WithValue(t.Context(), mark{}, "ours"), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		want := []idemclient.Attempt{
			{Number: 1, Method: "POST", Host: host, Err: errNetwork, Retry: true},
			{Number: 2, Method: "POST", Host: host, Status: 409, Code: "idempotency_in_progress", Duration: time.Second, Retry: true},
			{Number: 3, Method: "POST", Host: host, Status: 201},
		}
		for i := range seen {
			if wait := seen[i].Wait; (wait > 0) != seen[i].Retry {
				t.Errorf("attempt %d waits %v", i+1, wait)
			}
			seen[i].Wait = 0
		}
		if len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
			t.Errorf("%+v", seen)
		}
	})
}

// With MaxAttempts 1, a request gets a key but no retries.
func TestC1_WithoutRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{answer(503, "busy")}}
		resp, err := client(base, func(o *idemclient.Options) { o.MaxAttempts = 1 }).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		if status, body := read(t, resp); status != 503 || body != "busy" || len(base.sent) != 1 || base.oneKey(t) == "" {
			t.Errorf("%d %q after %d attempts", status, body, len(base.sent))
		}
	})
}
