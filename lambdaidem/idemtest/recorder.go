package idemtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Recorder is an Observer that remembers what it was told. The zero
// Recorder is ready, and safe for concurrent use:
//
//	var seen idemtest.Recorder
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer = &seen })
type Recorder struct {
	mu     sync.Mutex
	events []lambdaidem.Event
}

// Observe remembers an event.
func (r *Recorder) Observe(_ context.Context, e lambdaidem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// All returns what was observed so far, in order.
func (r *Recorder) All() []lambdaidem.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Kinds returns the kind of each event so far, in order.
func (r *Recorder) Kinds() []lambdaidem.Kind {
	var kinds []lambdaidem.Kind
	for _, e := range r.All() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Last returns the last event. It ends the test if there was none.
func (r *Recorder) Last(t testing.TB) lambdaidem.Event {
	t.Helper()
	all := r.All()
	if len(all) == 0 {
		t.Fatal("the guard told its observer nothing")
		return lambdaidem.Event{}
	}
	return all[len(all)-1]
}

// Forget forgets what was observed so far.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}
