package redelivery

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// plain returns messages that succeed in their first run. The first letter of a name is the
// group.
func plain(names ...string) []Message {
	var all []Message
	for _, name := range names {
		all = append(all, Message{Name: name, Group: name[:1]})
	}
	return all
}

// with sets the deeds of the message with this name.
func with(all []Message, name string, deeds ...Deed) []Message {
	for i := range all {
		if all[i].Name == name {
			all[i].Deeds = deeds
		}
	}
	return all
}

func wantNames(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the source is to deliver %v again, want %v", got, want)
	}
}

func wantFindings(t *testing.T, r Report, want ...string) {
	t.Helper()
	for _, finding := range want {
		if !strings.Contains(strings.Join(r.Findings, "\n"), finding) {
			t.Errorf("the audit does not say %q, but %v", finding, r)
		}
	}
}

// twice delivers a batch to two processes at the same time.
func (w *world) twice(t *testing.T, names ...string) {
	t.Helper()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { w.deliverAll(t, names...) })
	}
	both.Wait()
}

// answered returns the number of deliveries that have ended.
func (w *world) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.deliveries)
}
