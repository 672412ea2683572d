package idemclient_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/idemclient"
)

// retryAfter accepts a number of seconds or a date (RFC 9110, section 10.2.3), and returns 0 for
// any other text. It never returns a negative duration and never panics.
func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "0", "7", "007", " 7\t", "-1", "+1", "1.5", "1e3", "0x10", "٣", "9223372036", "9223372037", "99999999999999999999",
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Fri, 31 Dec 9999 23:59:59 GMT",
		"Mon, 01 Jan 0000 00:00:00 GMT", "Sun, 06 Nov 1994 08:49:37", "soon", "\x00"} {
		f.Add(v, "")
		f.Add(v, "Sun, 06 Nov 1994 08:49:30 GMT")
		f.Add(v, v)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		got := idemclient.RetryAfter(h, now)
		if got < 0 {
			t.Fatalf("%q is %v", value, got)
		}
		text := strings.Trim(value, " \t")
		if seconds, err := strconv.ParseUint(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
			want := time.Duration(math.MaxInt64)
			if seconds <= math.MaxInt64/uint64(time.Second) {
				want = time.Duration(seconds) * time.Second
			}
			if got != want {
				t.Errorf("%q is %v, want %v", value, got, want)
			}
			return
		}
		if at, err := http.ParseTime(text); err == nil {
			if d, err := http.ParseTime(date); err == nil {
				now = d
			}
			if want := max(0, at.Sub(now)); got != want {
				t.Errorf("%q at %v is %v, want %v", value, now, got, want)
			}
			return
		}
		if got != 0 && got != math.MaxInt64 { // a number that exceeds 64 bits gives MaxInt64
			t.Errorf("%q is %v", value, got)
		}
	})
}

// If the options allow it, the client waits even for a Retry-After of centuries. Adding the backoff
// must not overflow, because the client would then retry without any pause.
func TestC1_TheLongestRetryAfterIsNoShortWait(t *testing.T) {
	for _, value := range []string{"9223372036", "9223372037", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			base := &script{steps: []step{answer(503, "", "Retry-After", value)}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(100*365*24*time.Hour, cancel)
			resp, err := client(base, func(o *idemclient.Options) { o.MaxRetryAfter = math.MaxInt64 }).Do(post(ctx, t, "x"))
			if resp != nil {
				_ = resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) || len(base.sent) != 1 {
				t.Errorf("Retry-After %s: %d attempts in a hundred years, %v", value, len(base.sent), err)
			}
			base.closed(t)
		})
	}
}

// Each wait is twice as long as the one before, up to MaxWait, with up to half of it added or
// subtracted at random.
func TestC1_BackoffIsExponentialWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &script{steps: []step{fails(errNetwork)}}
		c := client(base, func(o *idemclient.Options) {
			o.MaxAttempts, o.InitialWait, o.MaxWait = 6, time.Second, 4*time.Second
		})
		distinct := make(map[time.Duration]bool)
		for range 20 {
			base.sent = nil
			if _, err := c.Do(post(t.Context(), t, "x")); !errors.Is(err, errNetwork) { //nolint:bodyclose // returns an error
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

// Six attempts with the default options take about 6 s, as documented.
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

// The next attempt begins after the Retry-After of the response, plus a wait with jitter.
func TestC1_RetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		header   []string
		from, to time.Duration // bounds of the wait; 0: no retry follows
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

// If a wait would end after the deadline, the caller gets the last response or error at once.
func TestC1_TheDeadlineIsNotSleptThrough(t *testing.T) {
	for name, c := range map[string]struct {
		step     step
		deadline time.Duration
		from, to int // bounds of the number of attempts; jitter makes each wait 15 to 45 s
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

// If the context is canceled during a wait after an error, the returned error contains that
// error.
func TestC1_CancelledAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err := client(&script{steps: []step{fails(errNetwork)}}).Do(post(ctx, t, "x")) //nolint:bodyclose // returns an error
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "before attempt 2, after read tcp: connection reset by peer") {
			t.Error(err)
		}
	})
}

// If a request is canceled during a wait, RoundTrip returns at once, with an error that
// contains the status of the last response.
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
			r.Cancel = cancel //nolint:staticcheck // deprecated, but http.Client still sets it
			return r, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &script{steps: []step{answer(503, "")}}
				r, cause := start(t.Context(), post(t.Context(), t, "x"))
				began := time.Now()
				_, err := idemclient.New(base, []string{host}, func(o *idemclient.Options) { o.InitialWait, o.MaxWait = time.Minute, time.Minute }).RoundTrip(r) //nolint:bodyclose // returns an error
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

// An attempt that fails because the context has ended is not retried. RoundTrip returns its
// error.
func TestC1_AnEndedContextIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		base := &script{steps: []step{func(*http.Request) (*http.Response, error) { cancel(); return nil, ctx.Err() }}}
		if _, err := idemclient.New(base, []string{host}).RoundTrip(post(ctx, t, "x")); err == nil || err.Error() != "context canceled" || len(base.sent) != 1 { //nolint:bodyclose // returns an error
			t.Errorf("%v after %d attempts", err, len(base.sent))
		}
		closed := make(chan struct{})
		close(closed)
		r := post(t.Context(), t, "x")
		r.Cancel = closed //nolint:staticcheck // deprecated, but http.Client still sets it
		base = &script{steps: []step{fails(errNetwork)}}
		if _, err := idemclient.New(base, []string{host}).RoundTrip(r); !errors.Is(err, errNetwork) || len(base.sent) != 1 { //nolint:bodyclose // returns an error
			t.Errorf("%v after %d attempts", err, len(base.sent))
		}
	})
}

// http.Client.Timeout limits the time of all attempts together.
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
