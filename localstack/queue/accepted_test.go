package queue

import (
	"slices"
	"testing"
)

// A watcher hears of each message that was accepted, of those too that are dropped as
// duplicates, and of none that was refused.
func TestAcceptedIsToldEachMessage(t *testing.T) {
	var heard []string
	s := New(Options{Accepted: func(queue string, o Outgoing, duplicate bool) {
		text := queue + " " + o.Body
		if duplicate {
			text += " again"
		}
		heard = append(heard, text)
	}})
	fifo, err := s.CreateQueue("orders.fifo", map[string]string{"FifoQueue": "true"})
	if err != nil {
		t.Fatal(err)
	}
	standard, err := s.CreateQueue("orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Outgoing{
		{Body: "one", GroupID: "g", DeduplicationID: "1"},
		{Body: "one", GroupID: "g", DeduplicationID: "1"},
		{Body: "refused", GroupID: "g"},
	} {
		_, _ = fifo.Send(o)
	}
	for range 2 {
		if _, err := standard.Send(Outgoing{Body: "two"}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"orders.fifo one", "orders.fifo one again", "orders two", "orders two"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q; want %q", heard, want)
	}
}
