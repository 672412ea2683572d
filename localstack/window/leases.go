package window

import (
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/sequence"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// lease is the lease of a record in progress, whose end the window waits for.
type lease struct {
	end   time.Time
	timer *time.Timer
	title string
	store *dynamostore.Store
	seen  dynamostore.Inspected // the record when the lease was noticed
}

func (l *lease) stop() { l.timer.Stop() }

// expect waits for the end of a record's lease, to show it, and forgets an earlier lease of
// the same record.
func (w *Window) expect(store *dynamostore.Store, seen dynamostore.Inspected, title string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := seen.Record.ID
	if l := w.leases[id]; l != nil {
		l.stop()
		delete(w.leases, id)
	}
	if w.closed || seen.Record.State != lambdaidem.InProgress {
		return
	}
	l := &lease{end: seen.Record.LeaseEnd, title: title, store: store, seen: seen}
	l.timer = time.AfterFunc(time.Until(l.end), func() { _ = w.run(func() { w.leaseOver(id, l) }) })
	w.leases[id] = l
}

// leaseOver shows that a lease has ended before its attempt has.
func (w *Window) leaseOver(id string, l *lease) {
	w.mu.Lock()
	current := w.leases[id] == l
	if current {
		delete(w.leases, id)
	}
	w.mu.Unlock()
	if !current {
		return
	}
	seen, err := l.store.Inspect(w.ctx, id)
	if err == nil && seen.Record.Token != l.seen.Record.Token { // the next attempt was faster than this read
		seen = l.seen
	}
	if err != nil || seen.Record.State != lambdaidem.InProgress {
		return
	}
	text := "the lease of " + l.title + " is over: the record is dead, and the next request takes it over. It has not changed"
	if seen.Record.Held() {
		text = "the lease of " + l.title + " is over: the record is held, and waits for an operator, because of policy hold. It has not changed"
	}
	w.history.addAt(l.end, sequence.Event{From: world.ID, Kind: sequence.Note, Text: text})
}

// leaseEnd returns when the lease of a record ends, if the record is in progress.
func (w *Window) leaseEnd(id string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.leases[id]
	if l == nil {
		return time.Time{}, false
	}
	return l.end, true
}
