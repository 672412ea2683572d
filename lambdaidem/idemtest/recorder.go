package idemtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Recorder is a lambdaidem.Observer that records events. Its zero value is ready to use. It
// is safe for concurrent use.
//
//	var seen idemtest.Recorder
//	guard := lambdaidem.New(store, func(o *lambdaidem.Options) { o.Observer = &seen })
type Recorder struct {
	mu     sync.Mutex
	events []lambdaidem.Event
}

// Observe records an event.
func (r *Recorder) Observe(_ context.Context, e lambdaidem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// All returns the events recorded so far, in order.
func (r *Recorder) All() []lambdaidem.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Kinds returns the kinds of the events recorded so far, in order.
func (r *Recorder) Kinds() []lambdaidem.Kind {
	var kinds []lambdaidem.Kind
	for _, e := range r.All() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Last returns the last event. If there is none, it fails and ends the test.
func (r *Recorder) Last(t testing.TB) lambdaidem.Event {
	t.Helper()
	all := r.All()
	if len(all) == 0 {
		t.Fatal("the guard told its observer nothing")
		return lambdaidem.Event{}
	}
	return all[len(all)-1]
}

// Forget deletes the events recorded so far.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}
