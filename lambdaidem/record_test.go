package lambdaidem_test

import (
	"context"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// A release is tried only once if trying again can't help: if another attempt has the lease, if
// there may be no lease to release, or if there is no store.
func TestX3_AReleaseThatCannotSucceedIsNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		opt    func(*lambdaidem.Options)
		claims fault
		fault  fault
	}{
		"lease lost":  {func(*lambdaidem.Options) {}, nil, leaseLost},
		"failed open": {failOpen, refused(lambdaidem.ReasonUnreachable), requestLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(status(500), c.opt)
				r.store.fail(acquire, c.claims)
				r.store.failAlways(release, c.fault)
				began := time.Now()
				if out := r.send(t, first()); out.StatusCode != 500 {
					t.Errorf("the answer is %+v", out)
				}
				if n, took := r.store.count(release), time.Since(began); n != 1 || took != 0 {
					t.Errorf("it tried %d times, for %v", n, took)
				}
			})
		})
	}
}

// The TTL of a released record counts from its release, not from the begin of its attempt.
func TestL7_AReleaseResetsTheTTL(t *testing.T) {
	for _, policy := range []lambdaidem.Policy{lambdaidem.Rerun, lambdaidem.Hold} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(slow(30*time.Second, 429), func(o *lambdaidem.Options) { o.Policy = policy })
			r.send(t, first())
			rec := r.record(t)
			if got := time.Until(rec.Expires); rec.State != lambdaidem.Released || got < 24*time.Hour || got >= 24*time.Hour+time.Second {
				t.Errorf("%s: the record is %s and expires in %v", policy, rec.State, got)
			}
		})
	}
}

// A record that could not keep its answer expires like any other.
func TestX4_ARecordWithoutItsAnswerExpires(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *charges) error{
		"too large for the store": func(t *testing.T, c *charges) error {
			c.store.fail(complete, refused(lambdaidem.ReasonTooLarge))
			_, err := c.do(t, charge)
			return err
		},
		"no JSON": func(t *testing.T, c *charges) error {
			_, err := lambdaidem.Do(t.Context(), c.guard, charge, func(context.Context) (float64, error) { return math.NaN(), nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCharges(func(o *lambdaidem.Options) { o.TTL = time.Hour })
				if err := run(t, c); err != nil {
					t.Fatal(err)
				}
				if n, err := c.do(t, charge); err == nil {
					t.Errorf("within its time it returned %d", n)
				}
				time.Sleep(time.Hour + time.Second)
				ran := c.runs
				if n, err := c.do(t, charge); n != ran+1 || err != nil {
					t.Errorf("after its time it returned %d, %v", n, err)
				}
			})
		})
	}
}

// Retry-After is at least the rest of the lease, and at least Options.RetryAfter.
func TestX4_RetryAfterIsTheLongerOfLeaseAndOption(t *testing.T) {
	for option, want := range map[time.Duration]time.Duration{time.Second: 3 * time.Second, time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(nil, func(o *lambdaidem.Options) { o.RetryAfter = option })
			r.store.failAlways(complete, requestLost)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			out := r.sendCtx(ctx, t, first())
			wantProblem(t, out, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
			if got := retryAfter(t, out); got != want { // MaxSkew, and the time that is reserved for the answer
				t.Errorf("with an option of %v Retry-After is %v, want %v", option, got, want)
			}
		})
	}
}

// A record is gone in the second in which it expires, unless its lease is current. A lease is over in
// the millisecond of its end.
func TestL7_WhenARecordIsGone(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 999_999_999, time.UTC)
	past, ahead := now.Add(-time.Second), now.Add(time.Second)
	for name, c := range map[string]struct {
		rec  lambdaidem.Record
		gone bool
	}{
		"none":                      {lambdaidem.Record{}, true},
		"not expired":               {lambdaidem.Record{State: lambdaidem.Completed, Expires: ahead}, false},
		"expired in this second":    {lambdaidem.Record{State: lambdaidem.Completed, Expires: now.Truncate(time.Second)}, true},
		"without an end":            {lambdaidem.Record{State: lambdaidem.InProgress, LeaseEnd: past}, false},
		"expired, a lease live":     {lambdaidem.Record{State: lambdaidem.InProgress, Expires: past, LeaseEnd: ahead}, false},
		"expired, a lease dead":     {lambdaidem.Record{State: lambdaidem.InProgress, Expires: past, LeaseEnd: now.Truncate(time.Millisecond)}, true},
		"expired, a lease of old":   {lambdaidem.Record{State: lambdaidem.Released, Expires: past, LeaseEnd: ahead}, true},
		"not expired, a lease dead": {lambdaidem.Record{State: lambdaidem.InProgress, Expires: ahead, LeaseEnd: past}, false},
	} {
		if got := c.rec.GoneAt(now); got != c.gone {
			t.Errorf("%s: it is gone: %v", name, got)
		}
	}
}
