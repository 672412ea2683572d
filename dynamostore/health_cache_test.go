package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestO3_AHealthCheckAsksWhatIsDueAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		c := NewHealthCheck(New(client, "records", quick), quiet)
		began := time.Now()
		for _, step := range []struct {
			at   time.Duration
			want []string
		}{
			{0, []string{"GetItem", "PutItem", "UpdateItem", "DescribeTable", "DescribeTimeToLive"}},
			{5*time.Second - 1, nil},
			{5 * time.Second, []string{"GetItem"}},
			{10 * time.Second, []string{"GetItem"}},
			{59 * time.Second, []string{"GetItem"}},
			{64 * time.Second, []string{"GetItem", "PutItem", "UpdateItem"}},
			{594 * time.Second, []string{"GetItem", "PutItem", "UpdateItem"}},
			{10 * time.Minute, []string{"GetItem", "DescribeTable", "DescribeTimeToLive"}},
		} {
			time.Sleep(time.Until(began.Add(step.at)))
			before := w.trips()
			h := c.Check(t.Context())
			if h.Status != HealthPass || h.Err() != nil || len(h.Checks) != 4 {
				t.Errorf("%+v; want four checks that pass", h)
			}
			if got := w.sentSince(before); !slices.Equal(got, step.want) {
				t.Errorf("after %v it sent %v; want %v", step.at, got, step.want)
			}
		}
		for _, read := range w.bodies("GetItem") {
			if strings.Contains(read, `"ConsistentRead":true`) {
				t.Errorf("a consistent read is twice the price: %s", read)
			}
		}
	})
}

func TestO3_WhatFailsIsAskedAnewUntilItPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		w.after("UpdateItem", refuseAs("AccessDeniedException"), throttle, throttle, throttle, pass)
		c := NewHealthCheck(New(client, "records", quick), quiet)
		for i, want := range []HealthStatus{HealthFail, HealthWarn, HealthPass, HealthPass} {
			before := w.trips()
			if h := c.Check(t.Context()); h.Status != want {
				t.Errorf("check %d is %s; want %s", i, h.Status, want)
			}
			if asked := slices.Contains(w.sentSince(before), "UpdateItem"); asked != (i < 3) {
				t.Errorf("check %d asked: %v", i, asked)
			}
			if slices.Contains(w.sentSince(before), "PutItem") != (i == 0) {
				t.Errorf("check %d asked of what had passed: %v", i, w.sentSince(before))
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// Each call that is not allowed adds an entry to the account's CloudTrail, so it is repeated only
// once an hour.
func TestO3_SettingsThatMayNotBeReadAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{denied: "DescribeTable"})
		c := NewHealthCheck(New(client, "records", quick), quiet)
		var asked []time.Duration
		for began := time.Now(); time.Since(began) < 2*time.Hour; time.Sleep(time.Minute) {
			before := w.trips()
			if h := c.Check(t.Context()); h.Status != HealthPass {
				t.Fatalf("%+v; want pass: the store does not need it", h)
			}
			if slices.Contains(w.sentSince(before), "DescribeTable") {
				asked = append(asked, time.Since(began))
			}
		}
		if !slices.Equal(asked, []time.Duration{0, time.Hour}) {
			t.Errorf("asked at %v; want twice, an hour apart", asked)
		}
	})
}

func TestO3_OneCallerLooksWhileTheOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		slow := func(r *http.Request, next dynamodb.HTTPClient) (*http.Response, error) {
			time.Sleep(time.Second)
			return next.Do(r)
		}
		w.after("GetItem", slow)
		c := NewHealthCheck(New(client, "records", quick), quiet)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if h := c.Check(t.Context()); h.Status != HealthPass || len(h.Checks) != 4 {
					t.Errorf("%+v", h)
				}
			})
		}
		all.Wait()
		if w.trips() != 5 {
			t.Errorf("sent %v; want one look", w.sentSince(0))
		}
		if latency := checkOf(t, c.Check(t.Context()), "GetItem").Latency; latency != time.Second {
			t.Errorf("the latency is %v; want 1s", latency)
		}
	})
}

func TestO3_AHangingStoreDoesNotPileUpChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		w.after("GetItem", hang, hang)
		c := NewHealthCheck(New(client, "records", quick), quiet)
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				h := c.Check(t.Context())
				if check := checkOf(t, h, "GetItem"); h.Status != HealthFail || check.Code != TimedOut || check.Latency != 3*time.Second {
					t.Errorf("%+v; want a timeout", h)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != 3*time.Second || w.trips() != 2 {
			t.Errorf("took %v and %d attempts; want the default Timeout, 3s, and an attempt of 2s and what was left", took, w.trips())
		}
		if h := c.Check(t.Context()); h.Status != HealthFail || w.trips() != 2 {
			t.Errorf("%s after %d attempts; want what was found, for Cache", h.Status, w.trips())
		}
		time.Sleep(5 * time.Second)
		h := c.Check(t.Context())
		for _, check := range h.Checks {
			if h.Status != HealthPass || check.Status != HealthPass {
				t.Errorf("%+v; want every check to be made, and to pass, once it answers again", h)
			}
		}
	})
}

// If a caller's context ends during a check, that caller gets a failure, which is not cached. A
// waiting caller then checks the store itself.
func TestO3_ACallerThatLeavesTakesNobodyWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		w.after("GetItem", hang)
		c := NewHealthCheck(New(client, "records", quick), quiet)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		shorter, cancelShorter := context.WithTimeout(t.Context(), time.Second/2)
		defer cancelShorter()

		began := time.Now()
		var all sync.WaitGroup
		left := func(ctx context.Context, after time.Duration) {
			h := c.Check(ctx)
			check := checkOf(t, h, "context")
			if h.Status != HealthFail || !h.Until.IsZero() || !errors.Is(h.Err(), context.DeadlineExceeded) || time.Since(began) != after || check.Detail == "" {
				t.Errorf("after %v: %+v; want fail, of the caller's context", time.Since(began), h)
			}
		}
		all.Go(func() { left(short, time.Second) }) // it makes the check
		synctest.Wait()
		all.Go(func() { left(shorter, time.Second/2) }) // it waits for the check
		all.Go(func() {
			if h := c.Check(t.Context()); h.Status != HealthPass || time.Since(began) != time.Second {
				t.Errorf("after %v: %+v; want pass, once it may look itself", time.Since(began), h)
			}
		})
		all.Wait()
	})
}

// Failed checks don't use up the retry quota of requests.
func TestO3_AHealthCheckHasARetryQuotaOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		w.next = unreachable{}
		s := New(client, "records", quick)
		c := NewHealthCheck(s, quiet)
		for range 200 {
			c.Check(t.Context())
			time.Sleep(5 * time.Second)
		}
		before := w.trips()
		c.Check(t.Context())
		if n := w.trips() - before; n != 1 {
			t.Fatalf("%d attempts; the quota is not used up, and this test shows nothing", n)
		}
		_, err := s.Get(t.Context(), claim.ID, now)
		if n := w.trips() - before - 1; err == nil || n != 3 {
			t.Errorf("%d attempts of a request (%v); want 3", n, err)
		}
	})
}

func TestO3_AChangeOfHealthIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := wireTo(described{})
		gone := refuseAs("ResourceNotFoundException")
		w.after("GetItem", pass, gone, gone, throttle, throttle, throttle, pass, pass)
		var log bytes.Buffer
		c := NewHealthCheck(New(client, "records", quick), func(o *HealthOptions) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		var lines []int
		for range 6 {
			c.Check(t.Context())
			c.Check(t.Context())
			lines = append(lines, strings.Count(log.String(), "\n"))
			time.Sleep(5 * time.Second)
		}
		if want := []int{0, 1, 1, 2, 3, 3}; !slices.Equal(lines, want) {
			t.Errorf("lines so far: %v; want %v\n%s", lines, want, &log)
		}
		for i, want := range [][]string{
			{"level=ERROR", "health=fail", "found no such table"}, {"level=WARN", "health=warn", "is throttled"}, {"level=INFO", "health=pass", `detail=""`},
		} {
			for _, part := range want {
				if line := strings.Split(log.String(), "\n")[i]; !strings.Contains(line, part) {
					t.Errorf("line %d is %s; want %s in it", i, line, part)
				}
			}
		}
	})
}

// Each caller gets a result of its own, and may change it.
func TestO3_WhatACallerDoesToItsAnswerIsNobodyElses(t *testing.T) {
	client, _ := wireTo(described{})
	c := NewHealthCheck(New(client, "records", quick), quiet)
	for range 3 { // the first one checks the store, the others get the cached result
		h := c.Check(t.Context())
		if got := h.Checks[0]; got.Status != HealthPass {
			t.Fatalf("%+v; want pass", got)
		}
		h.Checks[0] = Check{Status: HealthFail}
	}
}

// If the clock was set back, an old result must not be used until the clock has caught up.
func TestO3_AHealthCheckLooksAnewWhenTheClockWasSetBack(t *testing.T) {
	client, w := wireTo(described{})
	c := NewHealthCheck(New(client, "records", quick), quiet)
	c.Check(t.Context())
	const back = time.Hour // the cached result is then an hour in the future
	later := *c.last.Load()
	later.Until = later.Until.Add(back)
	c.last.Store(&later)
	for _, p := range c.probes {
		p.expires, p.last.Time = p.expires.Add(back), p.last.Time.Add(back)
	}
	before := w.trips()
	h := c.Check(t.Context())
	if sent := w.sentSince(before); len(sent) != 5 || h.Until.After(time.Now().Add(time.Minute)) {
		t.Errorf("it sent %v and says so until %v; want a new look at everything", sent, h.Until)
	}
}
