package lambdaidem_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestX5_HangingStoreLeavesTimeToAnswer(t *testing.T) {
	for _, left := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second, 29 * time.Second, 15 * time.Minute} {
		t.Run(left.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(nil)
				r.store.failAlways(acquire, hangs)
				r.store.failAlways(release, hangs)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				began := time.Now()
				out := r.sendCtx(ctx, t, first())
				if took := time.Since(began); took >= left {
					t.Errorf("the answer came after %v; the invocation ended at %v", took, left)
				}
				wantProblem(t, out, 503, lambdaidem.ErrStoreUnavailable)
			})
		})
	}
}

func TestX4_PanicOfTheOutcomeRuleNeverReleases(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) {
		o.Outcome = func(*lambdaidem.Response) lambdaidem.Outcome { panic("rule") }
	})
	func() {
		defer func() {
			if got := recover(); got != "rule" {
				t.Errorf("recovered %v", got)
			}
		}()
		r.send(t, first())
	}()
	if rec := r.record(t); rec.State != lambdaidem.InProgress {
		t.Errorf("the record is %s; the handler had its effect, so it must keep the lease", rec.State)
	}
	r.wantEvents(t, lambdaidem.EventUncertain)
}
