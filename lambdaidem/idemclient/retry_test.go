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

// C1: of every status, which are sent again.
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

// C1: what a 409 has to say to be sent again, and what a 5xx to stand.
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
				if !c.retry && body != c.body { // given back whole
					t.Errorf("the caller reads %d bytes of %d", len(body), len(c.body))
				}
				base.closed(t)
			})
		})
	}
}

// C1: a document that the caller asked to be compressed by itself is not read.
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

// C1: a problem document that is cut decides nothing, so the request is sent again;
// the caller of the last attempt reads the same bytes and the same error.
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

// C1: an error is retried unless the next attempt would meet it again.
func TestC1_WhichErrorsAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		retry bool
	}{
		"reset":              {errNetwork, true},
		"end of connection":  {io.EOF, true},
		"cut header":         {io.ErrUnexpectedEOF, true},
		"another's deadline": {context.DeadlineExceeded, true}, // of a transport inside this one
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
				_, err := idemclient.New(base, []string{host}).RoundTrip(post(t.Context(), t, "x")) //nolint:bodyclose // an error
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

// C1: waits double, with up to half of each added or taken, and stop growing.
func TestC1_BackoffIsExponentialWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{fails(errNetwork)}}
		c := client(base, func(o *idemclient.Options) {
			o.MaxAttempts, o.InitialWait, o.MaxWait = 6, time.Second, 4*time.Second
		})
		distinct := make(map[time.Duration]bool)
		for range 20 {
			base.sent = nil
			if _, err := c.Do(post(t.Context(), t, "x")); !errors.Is(err, errNetwork) { //nolint:bodyclose // an error
				t.Fatal(err)
			}
			for i, seconds := range []int64{1, 2, 4, 4, 4} {
				want := time.Duration(seconds) * time.Second
				got := base.sent[i+1].at.Sub(base.sent[i].at)
				if got < want/2 || got > want*3/2+time.Nanosecond {
					t.Errorf("wait %d is %v, not about %v", i+1, got, want)
				}
				distinct[got] = true
			}
		}
		if len(distinct) < 50 {
			t.Errorf("100 waits had %d lengths", len(distinct))
		}
	})
}

// C1: the documented defaults.
func TestC1_DefaultsOfTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{answer(503, "")}}
		began := time.Now()
		resp, err := client(base).Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		took := time.Since(began)
		if resp.StatusCode != 503 || len(base.sent) != 6 || took < 3*time.Second || took > 10*time.Second {
			t.Errorf("%d after %d attempts in %v", resp.StatusCode, len(base.sent), took)
		}
		base.closed(t)
	})
}

// C1: the next attempt begins no earlier than Retry-After says, and with jitter.
func TestC1_RetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		header   []string
		from, to time.Duration // of the wait; 0: none follows
	}{
		"seconds":               {[]string{"Retry-After", "7"}, 7100 * time.Millisecond, 7301 * time.Millisecond},
		"the bound":             {[]string{"Retry-After", "60"}, 60 * time.Second, 61 * time.Second},
		"over the bound":        {[]string{"Retry-After", "61"}, 0, 0},
		"beyond any clock":      {[]string{"Retry-After", "99999999999999999999999"}, 0, 0},
		"beyond durations":      {[]string{"Retry-After", "9223372037"}, 0, 0},
		"a date":                {[]string{"Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"}, 9100 * time.Millisecond, 9301 * time.Millisecond},
		"by the server's clock": {[]string{"Retry-After", "Mon, 01 Jan 2024 00:00:05 GMT", "Date", "Mon, 01 Jan 2024 00:00:00 GMT"}, 5100 * time.Millisecond, 5301 * time.Millisecond},
		"a far date":            {[]string{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}, 0, 0},
		"a date that is over":   {[]string{"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}, 100 * time.Millisecond, 301 * time.Millisecond},
		"negative":              {[]string{"Retry-After", "-5"}, 100 * time.Millisecond, 301 * time.Millisecond},
		"nonsense":              {[]string{"Retry-After", "soon"}, 100 * time.Millisecond, 301 * time.Millisecond},
		"empty":                 {[]string{"Retry-After", ""}, 100 * time.Millisecond, 301 * time.Millisecond},
		"none":                  {nil, 100 * time.Millisecond, 301 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{answer(429, "slow", c.header...), answer(201, "paid")}}
				var seen []idemclient.Attempt
				resp, err := client(base, func(o *idemclient.Options) {
					o.Observe = func(_ context.Context, a idemclient.Attempt) { seen = append(seen, a) }
				}).Do(post(t.Context(), t, "x"))
				if err != nil {
					t.Fatal(err)
				}
				status, body := read(t, resp)
				if c.to == 0 {
					if status != 429 || body != "slow" || len(base.sent) != 1 || seen[0].Retry || seen[0].Wait != 0 {
						t.Errorf("%d %q after %d attempts, told as %+v", status, body, len(base.sent), seen)
					}
					return
				}
				wait := base.sent[1].at.Sub(base.sent[0].at)
				if wait < c.from || wait > c.to || seen[0].Wait != wait || !seen[0].Retry {
					t.Errorf("waited %v, told as %+v", wait, seen[0])
				}
			})
		})
	}
}

// C1: no wait begins that would end after the deadline; what there is, is handed on.
func TestC1_TheDeadlineIsNotSleptThrough(t *testing.T) {
	for name, c := range map[string]struct {
		step     step
		deadline time.Duration
		from, to int // attempts, by jitter: waits are 15 to 45 s
	}{
		"error":                 {fails(errNetwork), time.Minute, 2, 4},
		"answer":                {answer(503, ""), time.Minute, 2, 4},
		"Retry-After":           {answer(503, "", "Retry-After", "59"), time.Minute, 1, 1},
		"Retry-After that fits": {answer(503, "", "Retry-After", "29"), 2 * time.Minute, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				base := &script{steps: []step{c.step}}
				began := time.Now()
				resp, err := client(base, func(o *idemclient.Options) { o.InitialWait, o.MaxWait = 30*time.Second, 30*time.Second }).Do(post(ctx, t, "x"))
				if resp != nil {
					_ = resp.Body.Close()
				}
				if ctx.Err() != nil || time.Since(began) >= c.deadline {
					t.Errorf("it took %v", time.Since(began))
				}
				if n := len(base.sent); n < c.from || n > c.to {
					t.Errorf("%d attempts, then %v %v", n, resp, err)
				}
				base.closed(t)
			})
		})
	}
}

// C1: a request that is cancelled while it waits ends at once, and says after what.
func TestC1_CancelledWhileWaiting(t *testing.T) {
	why := errors.New("the user left")
	for name, start := range map[string]func(context.Context, *http.Request) (*http.Request, error){
		"context": func(ctx context.Context, r *http.Request) (*http.Request, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(why) })
			return r.WithContext(ctx), why
		},
		"Cancel": func(_ context.Context, r *http.Request) (*http.Request, error) {
			cancel := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(cancel) })
			r.Cancel = cancel //nolint:staticcheck // deprecated, and http.Client sets it all the same
			return r, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{answer(503, "")}}
				r, cause := start(t.Context(), post(t.Context(), t, "x"))
				began := time.Now()
				_, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) { o.InitialWait, o.MaxWait = time.Minute, time.Minute }).RoundTrip(r) //nolint:bodyclose // an error
				if err == nil || !strings.Contains(err.Error(), "503 Service Unavailable") || cause != nil && !errors.Is(err, cause) {
					t.Errorf("the caller got %v", err)
				}
				if took := time.Since(began); took != time.Second || len(base.sent) != 1 {
					t.Errorf("after %v and %d attempts", took, len(base.sent))
				}
				base.closed(t)
			})
		})
	}
}

// C1: what ends with the context is not sent again, and its error is handed on.
func TestC1_AnEndedContextIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		base := &script{steps: []step{func(*http.Request) (*http.Response, error) { cancel(); return nil, ctx.Err() }}}
		if _, err := client(base).Do(post(ctx, t, "x")); !errors.Is(err, context.Canceled) || len(base.sent) != 1 { //nolint:bodyclose // an error
			t.Errorf("%v after %d attempts", err, len(base.sent))
		}
		closed := make(chan struct{})
		close(closed)
		r := post(t.Context(), t, "x")
		r.Cancel = closed //nolint:staticcheck // deprecated, and http.Client sets it all the same
		base = &script{steps: []step{fails(errNetwork)}}
		if _, err := idemclient.New(base, []string{host}).RoundTrip(r); !errors.Is(err, errNetwork) || len(base.sent) != 1 { //nolint:bodyclose // an error
			t.Errorf("%v after %d attempts", err, len(base.sent))
		}
	})
}

// C1: http.Client's Timeout spans all attempts.
func TestC1_TheClientsTimeoutSpansAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{answer(503, "")}}
		c := client(base, func(o *idemclient.Options) { o.MaxAttempts = 100 })
		c.Timeout = 10 * time.Second
		began := time.Now()
		resp, err := c.Do(post(t.Context(), t, "x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if took := time.Since(began); took > c.Timeout || len(base.sent) < 4 || len(base.sent) > 10 {
			t.Errorf("%d attempts in %v", len(base.sent), took)
		}
	})
}

// C1: of an answer that is dropped no more than a bound is read, in bytes and in
// time, and it is closed.
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

// C1: the observer is told each attempt.
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

// MaxAttempts: 1 leaves the key and takes the retries away.
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
