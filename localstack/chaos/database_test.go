//go:build chaos

package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// TestChaosDatabase twice stops DynamoDB Local under load, as a crash would, and starts it again
// with its data.
func TestChaosDatabase(t *testing.T) {
	w := newWorld(t, setting{timeout: shortTimeout, direct: true})
	paid := w.newKey(t)
	first := w.send(t.Context(), paid, nil)
	expectStatus(t, first, http.StatusCreated)

	load := w.startLoad(t, 30)
	for range 2 {
		load.awaitMore(t, 30)
		unpaid := w.newKey(t)
		if err := w.stack.Database().Stop(); err != nil {
			t.Fatal(err)
		}
		w.expectUnavailable(t, paid, unpaid)
		if err := w.stack.Database().Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := w.send(t.Context(), paid, nil)
		if again.Status != http.StatusCreated || !again.Replayed || again.Body != first.Body {
			t.Errorf("afterwards a replay is %d %s; want %s", again.Status, again.Body, first.Body)
		}
		expectStatus(t, w.send(t.Context(), unpaid, nil), http.StatusCreated)
		w.expectEnd(t, unpaid, 1)
	}
	load.awaitMore(t, 30)
	load.finish(t)
	w.report(t)
}

// expectUnavailable checks that, while the database is down, no handler runs and no answer is
// replayed.
func (w *world) expectUnavailable(t *testing.T, paid, unpaid string) {
	t.Helper()
	for range 5 {
		expectCode(t, w.send(t.Context(), paid, nil), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
		expectCode(t, w.send(t.Context(), unpaid, nil), http.StatusServiceUnavailable, lambdaidem.ErrStoreUnavailable)
	}
}

// load is a number of clients, each of which makes one payment or transfer after another.
type load struct {
	paid    chan struct{}
	stop    context.CancelFunc
	clients sync.WaitGroup

	mu     sync.Mutex
	gaveUp []Answer
}

func (w *world) startLoad(t *testing.T, clients int) *load {
	t.Helper()
	running, stop := context.WithCancel(t.Context())
	l := &load{paid: make(chan struct{}), stop: stop}
	t.Cleanup(stop)
	for range clients {
		l.clients.Go(func() {
			for running.Err() == nil {
				l.pay(running, t, w)
			}
		})
	}
	return l
}

// pay makes one payment or transfer. It repeats the request until the answer is 201, or until
// patience ends.
func (l *load) pay(running context.Context, t *testing.T, w *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := w.newKey(t)
	if rand.IntN(2) == 0 {
		key = w.newTransfer(t)
	}
	if a := w.insist(ctx, key, shortDelay); a.Status != http.StatusCreated {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gaveUp = append(l.gaveUp, a)
		return
	}
	select {
	case l.paid <- struct{}{}:
	case <-running.Done():
	}
}

// shortDelay has the handler take up to 100 ms.
func shortDelay() headers { return headers{"X-Demo-Delay-Ms": strconv.Itoa(rand.IntN(100))} }

// awaitMore waits until n more payments or transfers have been answered by 201.
func (l *load) awaitMore(t *testing.T, n int) {
	t.Helper()
	deadline := time.After(patience)
	for i := range n {
		select {
		case <-l.paid:
		case <-deadline:
			t.Fatalf("%d payments within %v; want %d", i, patience, n)
		}
	}
}

// finish lets every client finish its payment or transfer, and starts no others. It fails the
// test for each client that got no 201.
func (l *load) finish(t *testing.T) {
	t.Helper()
	l.stop()
	l.clients.Wait()
	for _, a := range l.gaveUp {
		t.Errorf("no 201 within %v; the last answer is %d %s", patience, a.Status, a.Body)
	}
}
