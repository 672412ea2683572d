package redelivery

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// mailbox is a queue, a topic or a bus. A delivered message is invisible for a while, and is
// delivered again unless it was done. While a message of a FIFO group is invisible, no other
// message of the group is delivered.
type mailbox struct {
	w     *world
	dice  *dice
	batch int // maximum number of messages in a batch
	mu    sync.Mutex
	all   []*letter // in the order of sending
}

// letter is a message in a mailbox.
type letter struct {
	Message

	visible  time.Time // when the message may be delivered next
	receipt  int       // number of the last delivery; a FIFO queue deletes a message only by its last receipt
	reported int
	over     bool // the message was done or given up
}

const (
	// comesBack is how long a message that was not done stays invisible after the answer.
	comesBack = 300 * time.Millisecond
	// tooEarly is the maximum time after which some messages become visible while their handlers
	// may still run.
	tooEarly = 30 * time.Millisecond
	// receives is the number of failures after which a message that always fails is given up.
	receives = 3
)

func newMailbox(w *world, d *dice) *mailbox {
	m := &mailbox{w: w, dice: d, batch: 6}
	if w.source.single {
		m.batch = 1
	}
	for _, message := range w.sent {
		m.all = append(m.all, &letter{Message: message})
	}
	return m
}

// consume delivers messages with three concurrent pollers until all are done or given up.
func (m *mailbox) consume(t *testing.T) {
	var pollers sync.WaitGroup
	for range 3 {
		pollers.Go(func() {
			ticker := time.NewTicker(tooEarly)
			defer ticker.Stop()
			for !m.empty() && t.Context().Err() == nil {
				batch, receipts := m.receive()
				if len(batch) == 0 {
					<-ticker.C
					continue
				}
				m.settle(m.w.deliver(t, batch...), receipts)
			}
		})
	}
	pollers.Wait()
}

func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(m.all, func(l *letter) bool { return !l.over })
}

// receive returns a batch of visible messages, and the receipt of each message.
func (m *mailbox) receive() (batch []string, receipts map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	receipts = map[string]int{}
	now := time.Now()
	for _, l := range m.order(now) {
		if len(batch) >= m.batch {
			break
		}
		l.receipt++
		receipts[l.Name] = l.receipt
		batch = append(batch, l.Name)
		l.visible = now.Add(patience)
		if m.dice.chance(15) {
			l.visible = now.Add(m.dice.duration(tooEarly))
		}
		if !m.w.source.ordered && len(batch) < m.batch && m.dice.chance(10) {
			batch = append(batch, l.Name) // twice in one batch
		}
	}
	return batch, receipts
}

// order returns the messages that may be delivered now, in a random order. In an ordered source,
// the messages of each group keep their order.
func (m *mailbox) order(now time.Time) []*letter {
	blocked := map[string]bool{}
	for _, l := range m.all {
		if m.w.source.ordered && !l.over && l.visible.After(now) {
			blocked[l.Group] = true
		}
	}
	lines := map[string][]*letter{}
	var turns []string // the group of each letter, in the order of delivery
	for _, l := range m.all {
		if !l.over && !l.visible.After(now) && !blocked[l.Group] {
			lines[l.Group] = append(lines[l.Group], l)
			turns = append(turns, l.Group)
		}
	}
	m.dice.shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	var all []*letter
	for _, group := range turns {
		next := 0
		if !m.w.source.ordered {
			next = m.dice.below(len(lines[group]))
		}
		all = append(all, lines[group][next])
		lines[group] = slices.Delete(lines[group], next, next+1)
	}
	return all
}

// settle deletes the messages that were done, and makes the others visible again later.
func (m *mailbox) settle(d Delivery, receipts map[string]int) {
	again := m.w.source.again(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.all {
		receipt, had := receipts[l.Name]
		switch current := receipt == l.receipt; {
		case !had || l.over:
		case !slices.Contains(again, l.Name):
			l.over = current || !m.w.source.ordered
		default:
			if l.reported++; l.Poison() && l.reported >= receives {
				l.over = true
			}
			if current {
				l.visible = time.Now().Add(comesBack)
			}
		}
	}
}
