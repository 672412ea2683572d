//go:build chaos

package chaos

import (
	"net/http"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
)

// TestChaosDied ends single attempts: it kills them at known points, lets them exceed the
// timeout, or breaks their completion. In most cases a retry must then wait until the attempt's
// lease ends.
func TestChaosDied(t *testing.T) {
	w := newWorld(t, setting{timeout: shortTimeout})
	w.warmUp(t)
	t.Run("attempts", func(t *testing.T) {
		t.Run("killed", w.killed)
		t.Run("timed out", w.timedOut)
		t.Run("cut off", w.cutOffAtTheEnd)
	})
	w.report(t)
}

// killed kills attempts with SIGKILL while they wait for the database, before their request takes
// effect and after. It checks that a retry gets the right answer, that the payment or transfer is
// made once, and that no retry runs before the lease of the dead attempt ends.
func (w *world) killed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		key     func(*testing.T) string
		at      kind
		gate    func() *proxy.Gate
		attempt int           // the attempt that completes
		wait    time.Duration // the least time from the first request to the 201
	}{
		{"X5 in the acquire, before it is written", w.newKey, acquire, proxy.HoldRequest, 1, 0},
		{"L6 in the acquire, after it is written", w.newKey, acquire, proxy.HoldReply, 2, leaseLength},
		{"E1 in the transaction of the payment and its answer, before it is written", w.newKey, completion, proxy.HoldRequest, 2, leaseLength},
		{"E1 in it, after it is written", w.newKey, completion, proxy.HoldReply, 1, 0},
		{"L6 in a transfer, before it is reserved", w.newCalmTransfer, reserve, proxy.HoldRequest, 2, leaseLength},
		{"G1 in a transfer, after it is reserved", w.newCalmTransfer, reserve, proxy.HoldReply, 2, leaseLength},
		{"E5 in a transfer's first step, before it is saved", w.newCalmTransfer, step, proxy.HoldRequest, 2, leaseLength},
		{"E5 in a transfer's first step, after it is saved", w.newCalmTransfer, step, proxy.HoldReply, 2, leaseLength},
		{"E1 in the transaction that ends a transfer, before it is written", w.newCalmTransfer, completion, proxy.HoldRequest, 2, leaseLength},
		{"E1 in it, after it is written, of a transfer", w.newCalmTransfer, completion, proxy.HoldReply, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, gate := tt.key(t), tt.gate()
			w.wires.plan(key, breakage{kind: tt.at, fault: gate.Fault})
			began := time.Now()
			first := w.aside(t, key, nil)
			w.signal(t, reached(t, gate), syscall.SIGKILL)
			expectStatus(t, <-first, http.StatusInternalServerError)
			gate.Drop()
			w.mustSucceed(t, key)
			if took := time.Since(began); took < tt.wait {
				t.Errorf("a retry ran after %v, while the dead attempt had its lease of %v (L5)", took, tt.wait)
			}
			w.expectEnd(t, key, tt.attempt)
		})
	}
	t.Run("E6 in a transfer, when the clearing house was told", func(t *testing.T) {
		t.Parallel()
		key := w.newCalmTransfer(t)
		expectStatus(t, w.send(t.Context(), key, headers{"X-Demo-Crash": "cleared"}), http.StatusInternalServerError)
		w.mustSucceed(t, key)
		w.expectEnd(t, key, 2)
	})
	t.Run("L6 in the takeover, twice", func(t *testing.T) {
		t.Parallel()
		key, first, second := w.newKey(t), proxy.HoldRequest(), proxy.HoldReply()
		w.wires.plan(key, breakage{kind: completion, fault: first.Fault}, breakage{kind: takeover, fault: second.Fault})
		died := w.aside(t, key, nil)
		w.signal(t, reached(t, first), syscall.SIGKILL)
		expectStatus(t, <-died, http.StatusInternalServerError)
		first.Drop()
		// The first request after the end of the lease takes over, and is killed while it does.
		answered := make(chan Answer, 1)
		go func() { answered <- w.insist(t.Context(), key, noHeaders) }()
		w.signal(t, reached(t, second), syscall.SIGKILL)
		second.Drop()
		expectStatus(t, <-answered, http.StatusCreated)
		w.expectEnd(t, key, 3)
	})
	t.Run("L1 in the release, before it is written", func(t *testing.T) {
		t.Parallel()
		key, gate := w.newKey(t), proxy.HoldRequest()
		w.wires.plan(key, breakage{kind: release, fault: gate.Fault})
		first := w.aside(t, key, headers{"X-Demo-Fail-Attempts": "1"})
		w.signal(t, reached(t, gate), syscall.SIGKILL)
		expectStatus(t, <-first, http.StatusInternalServerError)
		gate.Drop()
		w.mustSucceed(t, key)
		w.expectEnd(t, key, 2)
	})
	t.Run("L3 a completion that arrives after its process was killed and replaced", func(t *testing.T) {
		t.Parallel()
		key, gate := w.newKey(t), proxy.HoldRequest()
		w.wires.plan(key, breakage{kind: completion, fault: gate.Fault})
		first := w.aside(t, key, nil)
		w.signal(t, reached(t, gate), syscall.SIGKILL)
		expectStatus(t, <-first, http.StatusInternalServerError)
		w.mustSucceed(t, key)
		before := w.recordOf(t, key)
		if reply, err := gate.Open(); err != nil || reply.Status != http.StatusBadRequest {
			t.Errorf("the late completion got %d %s, %v; want a refusal", reply.Status, reply.Body, err)
		}
		expectUnchanged(t, before, w.recordOf(t, key))
		w.expectEnd(t, key, 2)
	})
}

// timedOut tests attempts that take too long. The functions' Timeout ends one that ignores its
// deadline. One that heeds its deadline answers in time.
func (w *world) timedOut(t *testing.T) {
	t.Parallel()
	t.Run("L6 by the Timeout, and a retry after the lease is attempt 2", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		began := time.Now()
		expectStatus(t, w.send(t.Context(), key, headers{"X-Demo-Deaf-Ms": "60000"}), http.StatusInternalServerError)
		if took := time.Since(began); took < shortTimeout {
			t.Errorf("the attempt ended after %v; want %v", took, shortTimeout)
		}
		expectCode(t, w.send(t.Context(), key, nil), http.StatusConflict, lambdaidem.ErrInProgress)
		w.mustSucceed(t, key)
		if took := time.Since(began); took < leaseLength {
			t.Errorf("a retry ran after %v, within the lease of %v (L5)", took, leaseLength)
		}
		w.expectEnd(t, key, 2)
		w.awaitEvent(t, key, lambdaidem.EventTakenOver)
	})
	t.Run("L5 a handler that heeds its context answers in time and is released", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		a := w.send(t.Context(), key, headers{"X-Demo-Delay-Ms": "60000"})
		expectCode(t, a, http.StatusServiceUnavailable, "demo_out_of_time")
		expectStatus(t, w.send(t.Context(), key, nil), http.StatusCreated) // at once
		w.expectEnd(t, key, 2)
	})
}

// expectUnchanged checks that no attribute of a completed record has changed.
func expectUnchanged(t *testing.T, before, after map[string]any) {
	t.Helper()
	if len(before) == 0 || !reflect.DeepEqual(before, after) {
		t.Errorf("the record was %v and is %v; a completed record never changes (G3)", before, after)
	}
}
