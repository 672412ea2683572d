//go:build chaos

package chaos

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// TestChaosCutOff breaks requests between the functions and DynamoDB Local. None of its cases
// waits for a lease to end.
func TestChaosCutOff(t *testing.T) {
	w := newWorld(t, setting{timeout: patience})
	t.Run("attempts", func(t *testing.T) {
		t.Run("once", w.cutOffOnce)
		t.Run("from the start", w.cutOffFromTheStart)
		t.Run("taken over too early", w.takenOverTooEarly)
	})
	w.report(t)
}

// cutOffOnce breaks one request to the database. The store sends the request again within the
// same invocation, so the client gets the same answer as without the fault.
func (w *world) cutOffOnce(t *testing.T) {
	t.Parallel()
	faults := []struct {
		rules string
		name  string
		fault proxy.Fault
	}{
		{"X8", "request lost", proxy.LoseRequest},
		{"L4", "reply lost", proxy.LoseReply},
		{"L4", "reply cut short", proxy.CutReplyShort},
		{"X8", "500 after the write", proxy.FailAfterWrite},
		{"X8", "throttled", proxy.Throttle},
	}
	for _, of := range []struct {
		what string
		key  func(*testing.T) string
		kind kind
	}{
		{"payment", w.newKey, acquire}, {"payment", w.newKey, completion},
		{"transfer", w.newCalmTransfer, reserve}, {"transfer", w.newCalmTransfer, step}, {"transfer", w.newCalmTransfer, completion},
	} {
		for _, f := range faults {
			kind := of.kind
			t.Run(f.rules+" "+of.what+", "+string(kind)+", "+f.name, func(t *testing.T) {
				t.Parallel()
				key := of.key(t)
				w.wires.plan(key, breakage{kind: kind, fault: f.fault})
				a := w.send(t.Context(), key, nil)
				expectStatus(t, a, http.StatusCreated)
				if a.Replayed {
					t.Error("the first answer is marked as a replay")
				}
				w.wires.expectHits(t, key, 1)
				w.expectEnd(t, key, 1)
			})
		}
	}
	for _, f := range faults {
		t.Run(f.rules+" "+string(release)+", "+f.name, func(t *testing.T) {
			t.Parallel()
			key := w.newKey(t)
			w.wires.plan(key, breakage{kind: release, fault: f.fault})
			failing := headers{"X-Demo-Fail-Attempts": "1"}
			expectCode(t, w.send(t.Context(), key, failing), http.StatusInternalServerError, "demo_failure")
			expectStatus(t, w.send(t.Context(), key, failing), http.StatusCreated) // at once: the record is released
			w.wires.expectHits(t, key, 1)
			w.expectEnd(t, key, 2)
		})
	}
	t.Run("L4 "+string(takeover)+", reply lost", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		w.wires.plan(key, breakage{kind: takeover, fault: proxy.LoseReply})
		expectStatus(t, w.send(t.Context(), key, headers{"X-Demo-Fail-Attempts": "1"}), http.StatusInternalServerError)
		expectStatus(t, w.send(t.Context(), key, nil), http.StatusCreated)
		w.wires.expectHits(t, key, 1)
		w.expectEnd(t, key, 2)
	})
}

// cutOffFromTheStart breaks every acquire of a key until the test stops doing so.
func (w *world) cutOffFromTheStart(t *testing.T) {
	t.Parallel()
	acquires := []struct {
		name    string
		fault   proxy.Fault
		attempt int // the attempt that completes: 2 if the first claim was written
	}{
		{"X5 every acquire throttled", proxy.Throttle, 1},
		{"X5 every acquire lost", proxy.LoseRequest, 1},
		{"X5 every acquire's reply lost: what landed is released", proxy.LoseReply, 2},
		{"X5 every acquire answered by 500 after the write: what landed is released", proxy.FailAfterWrite, 2},
	}
	for _, tt := range acquires {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key := w.newKey(t)
			w.wires.plan(key, breakage{acquire, tt.fault, always})
			a := w.send(t.Context(), key, nil)
			expectCode(t, a, http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
			if n := w.paymentsOf(t, key); n != 0 {
				t.Errorf("%d payments, though the handler must not run", n)
			}
			w.wires.mend(key)
			expectStatus(t, w.send(t.Context(), key, nil), http.StatusCreated) // at once: no lease is left
			w.wires.expectHits(t, key, 3)
			w.expectEnd(t, key, tt.attempt)
		})
	}
}

// cutOffAtTheEnd breaks every completion of a key.
func (w *world) cutOffAtTheEnd(t *testing.T) {
	t.Parallel()
	completions := []struct {
		name  string
		fault proxy.Fault
	}{
		{"X4 every completion throttled", proxy.Throttle},
		{"X4 every completion lost", proxy.LoseRequest},
	}
	for _, tt := range completions {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key := w.newKey(t)
			w.wires.plan(key, breakage{completion, tt.fault, always})
			began := time.Now()
			a := w.send(t.Context(), key, nil)
			expectCode(t, a, http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
			left := leaseLength - time.Since(began)
			if seconds, err := strconv.Atoi(a.RetryAfter); err != nil || time.Duration(seconds)*time.Second < left {
				t.Errorf("Retry-After is %q; want no less than the lease, which has %v left", a.RetryAfter, left)
			}
			w.wires.mend(key)
			expectCode(t, w.send(t.Context(), key, nil), http.StatusConflict, lambdaidem.ErrInProgress) // never released
			w.mustSucceed(t, key)
			if took := time.Since(began); took < leaseLength {
				t.Errorf("a retry ran after %v, within the lease of %v", took, leaseLength)
			}
			w.expectEnd(t, key, 2)
			w.awaitEvent(t, key, lambdaidem.EventUncertain)
		})
	}
	t.Run("X4 every completion's reply lost: a retry learns that it was written", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		w.wires.plan(key, breakage{completion, proxy.LoseReply, always})
		expectCode(t, w.send(t.Context(), key, nil), http.StatusServiceUnavailable, lambdaidem.ErrOutcomeUnknown)
		a := w.send(t.Context(), key, nil)
		expectStatus(t, a, http.StatusCreated)
		if !a.Replayed {
			t.Error("the retry ran again; want a replay")
		}
		w.expectEnd(t, key, 1)
	})
}
