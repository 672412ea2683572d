//go:build chaos

package chaos

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/chaos/proxy"
	"github.com/lambdaidem/toolkit/localstack/emulator"
)

// TestChaosStopped stops attempts with SIGSTOP, and continues them with SIGCONT after another
// attempt has taken over. Here processes may outlive their Timeout, which Lambda does not allow.
func TestChaosStopped(t *testing.T) {
	w := newWorld(t, setting{timeout: shortTimeout, killDelay: patience})
	w.warmUp(t)
	t.Run("attempts", w.stoppedPastTheLease)
	w.report(t)
}

// stoppedPastTheLease stops an attempt until its lease is over and another attempt has completed
// the record. Nothing that the stopped attempt does afterwards changes the record.
func (w *world) stoppedPastTheLease(t *testing.T) {
	tests := []struct {
		name string
		key  func(*testing.T) string
		at   kind
		wake func(*testing.T, *proxy.Gate) // ends the request that the attempt was stopped in
	}{
		{"L3 in the completion, which is lost", w.newKey, completion, drop},
		{"L3 in the completion, which is late", w.newKey, completion, refusedLate},
		{"G1 in the reservation of a transfer, which is late", w.newCalmTransfer, reserve, refusedLate},
		{"E5 in a transfer's step, which is late", w.newCalmTransfer, step, refusedLate},
		{"L3 in a transfer's completion, which is late", w.newCalmTransfer, completion, refusedLate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, gate := tt.key(t), proxy.HoldRequest()
			w.wires.plan(key, breakage{kind: tt.at, fault: gate.Fault})
			first := w.aside(t, key, nil)
			stopped := reached(t, gate)
			process := w.processOf(t, stopped)
			w.signal(t, stopped, syscall.SIGSTOP)
			w.mustSucceed(t, key) // when the lease is over
			expectStatus(t, <-first, http.StatusInternalServerError)
			before := w.recordOf(t, key)
			if err := process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			tt.wake(t, gate)
			w.awaitGone(t, process.PID)
			expectUnchanged(t, before, w.recordOf(t, key))
			w.expectEnd(t, key, 2)
		})
	}
	t.Run("L3 in a handler that fails: its release changes nothing", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		pass, seen := watch()
		w.wires.plan(key, breakage{kind: acquire, fault: pass})
		first := w.aside(t, key, headers{"X-Demo-Delay-Ms": "60000"})
		acquired := <-seen
		process := w.processOf(t, acquired)
		w.signal(t, acquired, syscall.SIGSTOP)
		w.mustSucceed(t, key)
		expectStatus(t, <-first, http.StatusInternalServerError)
		before := w.recordOf(t, key)
		if err := process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.awaitEvent(t, key, lambdaidem.EventLeaseLost)
		expectUnchanged(t, before, w.recordOf(t, key))
		w.expectEnd(t, key, 2)
	})
}

// drop loses the request that the gate holds.
func drop(_ *testing.T, g *proxy.Gate) { g.Drop() }

// carriedOutLate delivers the request that the gate holds, and expects the database to apply it.
func carriedOutLate(t *testing.T, g *proxy.Gate) {
	t.Helper()
	if reply, err := g.Open(); err != nil || reply.Status != http.StatusOK {
		t.Errorf("the late call got %d %s, %v; want 200", reply.Status, reply.Body, err)
	}
}

// refusedLate delivers the request that the gate holds, and expects the database to refuse it.
func refusedLate(t *testing.T, g *proxy.Gate) {
	t.Helper()
	if reply, err := g.Open(); err != nil || !strings.Contains(string(reply.Body), "ConditionalCheckFailed") {
		t.Errorf("the late call got %d %s, %v; want a refusal by its condition", reply.Status, reply.Body, err)
	}
}

// watch returns a fault that lets a request pass, and a channel that receives the request
// afterwards.
func watch() (proxy.Fault, <-chan proxy.Request) {
	seen := make(chan proxy.Request, 1)
	return func(c *proxy.Call) {
		proxy.Pass(c)
		seen <- c.Request
	}, seen
}

// awaitGone waits until a process that exceeded its Timeout has ended. The emulator ends it when
// it asks for its next invocation.
func (w *world) awaitGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "the late process has done what it had to do", func() bool {
		return !slices.ContainsFunc(w.processes(), func(p emulator.Process) bool { return p.PID == pid })
	})
}

// takenOverTooEarly has another attempt take over while the first one still has its lease, as an
// attempt with a clock more than MaxSkew ahead could. Only fencing protects the record then. The
// caller of the first attempt must get the record's answer, or a 409 while there is none.
func (w *world) takenOverTooEarly(t *testing.T) {
	t.Parallel()
	t.Run("X6 the stopped attempt's caller gets the record's answer", func(t *testing.T) {
		t.Parallel()
		key, gate := w.newKey(t), proxy.HoldRequest()
		w.wires.plan(key, breakage{kind: completion, fault: gate.Fault})
		first := w.aside(t, key, nil)
		stopped := reached(t, gate)
		w.signal(t, stopped, syscall.SIGSTOP)
		w.endLease(t, key)
		second := w.send(t.Context(), key, nil)
		expectStatus(t, second, http.StatusCreated)
		before := w.recordOf(t, key)
		w.signal(t, stopped, syscall.SIGCONT)
		refusedLate(t, gate)
		a := <-first
		if a.Status != http.StatusCreated || !a.Replayed || a.Body != second.Body {
			t.Errorf("the first caller got %d %s, replayed %v; want a replay of %s", a.Status, a.Body, a.Replayed, second.Body)
		}
		w.awaitEvent(t, key, lambdaidem.EventLeaseLost)
		expectUnchanged(t, before, w.recordOf(t, key))
		w.expectEnd(t, key, 2)
	})
	t.Run("X6 the stopped attempt's caller gets 409 while the other one runs", func(t *testing.T) {
		t.Parallel()
		key, gate, other := w.newKey(t), proxy.HoldRequest(), proxy.HoldRequest()
		w.wires.plan(key, breakage{kind: completion, fault: gate.Fault}, breakage{kind: completion, fault: other.Fault})
		first := w.aside(t, key, nil)
		stopped := reached(t, gate)
		w.signal(t, stopped, syscall.SIGSTOP)
		w.endLease(t, key)
		second := w.aside(t, key, nil)
		reached(t, other)
		before := w.recordOf(t, key)
		w.signal(t, stopped, syscall.SIGCONT)
		refusedLate(t, gate)
		expectCode(t, <-first, http.StatusConflict, lambdaidem.ErrInProgress)
		expectUnchanged(t, before, w.recordOf(t, key))
		carriedOutLate(t, other)
		a := <-second
		expectStatus(t, a, http.StatusCreated)
		if a.Replayed {
			t.Error("the other attempt's own answer is marked as a replay")
		}
		w.expectEnd(t, key, 2)
	})
	t.Run("L3 the stopped attempt's release changes nothing", func(t *testing.T) {
		t.Parallel()
		key := w.newKey(t)
		pass, seen := watch()
		w.wires.plan(key, breakage{kind: acquire, fault: pass})
		first := w.aside(t, key, headers{"X-Demo-Delay-Ms": "1000", "X-Demo-Fail-Attempts": "1"})
		stopped := <-seen
		w.signal(t, stopped, syscall.SIGSTOP)
		w.endLease(t, key)
		second := w.send(t.Context(), key, nil)
		expectStatus(t, second, http.StatusCreated)
		before := w.recordOf(t, key)
		w.signal(t, stopped, syscall.SIGCONT)
		if a := <-first; a.Status != http.StatusCreated || !a.Replayed || a.Body != second.Body {
			t.Errorf("the caller of the failed handler got %d %s, replayed %v; want a replay of %s", a.Status, a.Body, a.Replayed, second.Body)
		}
		w.awaitEvent(t, key, lambdaidem.EventLeaseLost)
		expectUnchanged(t, before, w.recordOf(t, key))
		w.expectEnd(t, key, 2)
	})
}

// endLease moves the end of a key's lease into the past. So the lease looks over, as it would to a
// clock far ahead.
func (w *world) endLease(t *testing.T, key string) {
	t.Helper()
	id, ok := w.recordOf(t, key)["id"].(string)
	if !ok {
		t.Fatal("the key has no record")
	}
	_, err := w.stack.Database().Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:        aws.String(w.stack.Table("IdempotencyTable")),
		Key:              map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression: aws.String("SET in_progress_expiration = :past"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":past": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(-time.Second).UnixMilli(), 10)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.robbed[key]++
}
