package redelivery

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// mailbox is a queue, a topic or a bus as far as deliveries go. What was delivered
// is invisible for a while, and comes back unless it was done. Of a FIFO group
// nothing more is delivered while one of it is invisible.
type mailbox struct {
	w     *world
	dice  *dice
	batch int // at most
	mu    sync.Mutex
	all   []*letter // in the order of sending
}

// letter is a message in a mailbox.
type letter struct {
	Message

	visible  time.Time // from when on it may be delivered
	receipt  int       // of its last delivery: a FIFO queue takes no older one
	reported int
	over     bool // done, or given up
}

const (
	// comesBack is after how long what was not done is visible again.
	comesBack = 300 * time.Millisecond
	// tooEarly is after how long some are, done or not: while their handlers run.
	tooEarly = 30 * time.Millisecond
	// receives is after how many failures a message that always fails is given up.
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

// consume delivers until everything is over, by some pollers at a time.
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

// receive takes a batch, and says by which receipt it has each of it.
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

// order is what may be delivered now, in an order that may be: any, or that of each
// group.
func (m *mailbox) order(now time.Time) []*letter {
	blocked := map[string]bool{}
	for _, l := range m.all {
		if m.w.source.ordered && !l.over && l.visible.After(now) {
			blocked[l.Group] = true
		}
	}
	lines := map[string][]*letter{}
	var turns []string // a group for each letter
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

// settle deletes what was done, and has the rest come back.
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
