package main

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/queue"
)

// sends counts the messages that the queue accepted about each payment.
type sends struct {
	mu   sync.Mutex
	of   map[string]sent // by payment
	more error           // what no send of this demo may be
}

type sent struct {
	messages, duplicates int
	key                  string
}

func newSends() *sends { return &sends{of: map[string]sent{}} }

// watch is for [stack.Options].Queues.
func (s *sends) watch(o *queue.Options) { o.Accepted = s.accepted }

func (s *sends) accepted(to string, m queue.Outgoing, duplicate bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n struct{ Payment string }
	if err := json.Unmarshal([]byte(m.Body), &n); err != nil || n.Payment == "" {
		s.more = fmt.Errorf("the queue %s got %q, which is no notification", to, m.Body)
		return
	}
	now, key := s.of[n.Payment], m.Attributes[lambdaidem.MessageKey].StringValue
	switch {
	case key == "" || key != m.DeduplicationID:
		s.more = fmt.Errorf("a message about payment %s has the key %q, and the deduplication id %q; want the same, and some", n.Payment, key, m.DeduplicationID)
	case now.key != "" && now.key != key:
		s.more = fmt.Errorf("the messages about payment %s have two keys: %q, %q", n.Payment, now.key, key)
	}
	now.key = key
	now.messages++
	if duplicate {
		now.duplicates++
	}
	s.of[n.Payment] = now
}

func (s *sends) about(payment string) sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[payment]
}

func (s *sends) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}
