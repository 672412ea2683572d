package main

import (
	"context"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// storeErrors is an observer that counts failed calls of the store by their reason.
type storeErrors struct {
	mu    sync.Mutex
	times map[string]int
}

// Observe implements lambdaidem.Observer.
func (s *storeErrors) Observe(_ context.Context, e lambdaidem.Event) {
	if e.Kind != lambdaidem.EventStoreError {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times == nil {
		s.times = map[string]int{}
	}
	s.times[string(e.Reason)]++
}

// take returns the counts since the last call of take.
func (s *storeErrors) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := s.times
	s.times = nil
	return times
}
