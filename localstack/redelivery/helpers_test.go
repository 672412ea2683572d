package redelivery

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// plain are messages that succeed. The first letter of a name is its group.
func plain(names ...string) []Message {
	var all []Message
	for _, name := range names {
		all = append(all, Message{Name: name, Group: name[:1]})
	}
	return all
}

// with gives one of the messages something to do.
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

// twice delivers a batch to two processes at a time.
func (w *world) twice(t *testing.T, names ...string) {
	t.Helper()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { w.deliverAll(t, names...) })
	}
	both.Wait()
}

// answered is how many deliveries have ended.
func (w *world) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.deliveries)
}
