package main

import "sync"

// meeting brings invocations of one process together.
type meeting struct {
	mu   sync.Mutex
	here int
	all  chan struct{}
}

// join returns when so many people have joined.
func (m *meeting) join(people int) {
	m.mu.Lock()
	if m.all == nil {
		m.all = make(chan struct{})
	}
	all := m.all
	m.here++
	if m.here == people {
		close(all)
		m.here, m.all = 0, nil
	}
	m.mu.Unlock()
	<-all
}
