package simulator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// history is the life of one record, as the database saw it.
type history struct {
	id    string
	order order // without payload
	lives []*life
	// holder is the actor whose token stands there in progress, if any does.
	holder *actor
	// freed is when operators released or settled it.
	freed []time.Time
}

// life is a record from its lock to its expiry.
type life struct {
	began, ended time.Time // gone is zero while it lasts
	tokens       map[string]*actor
	completed    memdynamo.Item
	completedAt  time.Time
	completedBy  *actor
	released     map[*actor]bool
	settled      bool // completedBy is an operator
	paid         int  // payments that were made with it
	steps        map[string]step
	charged      string            // the payload that was charged for; empty: none
	keyed        map[string]string // the payload that a step had a downstream key for, by the step
	text         string            // of the answer that it stored
	parts        []string          // ids of its parts
	lost         bool              // one of them was
	held         bool              // its expiry was taken away, so that it waits for an operator
}

// change is what a write means to a record's life.
type change struct {
	begins bool // a new life
	over   bool // it takes over what was seen
	claims bool // it completes at once, without a lease
	whole  bool // it replaces the whole item of its own lease
	holds  bool // it takes the expiry of a dead attempt's record away
}

// changeOf tells what a write means.
func changeOf(w memdynamo.Write, tx *transaction) change {
	own := stateOf(w.Before) == inProgress && w.Before["token"].Text == w.After["token"].Text
	switch {
	case w.Op == "PutItem":
		return change{begins: true}
	case w.Op == "UpdateItem":
		_, expired := w.Before["expiration"]
		_, expires := w.After["expiration"]
		return change{over: stateOf(w.After) == inProgress && !own, holds: own && expired && !expires} // else it stores steps
	case tx.record != claims || own:
		return change{whole: tx.record == claims && !tx.over}
	case tx.over && w.Before != nil:
		return change{over: true, claims: true}
	default:
		return change{begins: true, claims: true}
	}
}

// wrote sees each write that the database applied.
func (b *journal) wrote(w memdynamo.Write) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	now := time.Now()
	if b.commit != nil {
		b.commit.writes++
	}
	if w.Table == accounts {
		b.account(w)
		return
	}
	if w.Table == innerTable {
		b.innerWrote(w)
		return
	}
	if b.part(w) {
		return
	}
	id := w.Key["id"].Text
	h := b.records[id]
	if w.Op == "TTL" {
		b.faults[DeletedByTTL]++
		b.addLocked(entry{kind: kindExpiry, write: &w})
		if h != nil && len(h.lives) > 0 {
			h.lives[len(h.lives)-1].ended = now
			h.holder = nil
		}
		return
	}
	b.changed = &w
	sender := b.w.serving.actor
	a := b.author(sender, h, w.After["token"].Text)
	if a.operation != nil {
		b.operated(a, w, h)
		return
	}
	if h == nil {
		h = &history{id: id, order: order{Key: a.order.Key, Owner: a.order.Owner}}
		b.records[id] = h
	}
	as := changeOf(w, b.w.serving.tx)
	if as.holds {
		b.judge.hold(a, w, h)
		h.lives[len(h.lives)-1].held = true
		return
	}
	if as.begins {
		if n := len(h.lives); n > 0 && h.lives[n-1].ended.IsZero() {
			h.lives[n-1].ended = now
		}
		h.lives = append(h.lives, &life{began: now, tokens: map[string]*actor{}, released: map[*actor]bool{}, steps: map[string]step{}})
	}
	b.judge.withdrawal(a, sender, stateOf(w.After))
	b.judge.write(a, b.w.serving, w, as, h)
	if len(h.lives) == 0 {
		return // an update made the record: there is no life to enter it in
	}
	l := h.lives[len(h.lives)-1]
	l.keepSteps(a, w)
	l.held = l.held && !as.over
	if c := b.commit; c != nil {
		c.record, c.life, c.before = h, l, stateOf(w.Before)
	}
	h.holder = nil
	switch token := w.After["token"].Text; stateOf(w.After) {
	case inProgress:
		l.tokens[token], h.holder = a, a
		b.payloadOf[token] = a.order.Payload
	case released:
		l.released[a] = true
	case completed:
		if l.completed == nil {
			l.completed, l.completedAt, l.completedBy = w.After, now, a
			l.keepAnswer(b, a)
			b.judge.completion(b.w.serving)
		}
	}
}

// sorted returns all records, in the order of their ids.
func (b *journal) sorted() []*history {
	var all []*history
	for _, h := range b.records {
		all = append(all, h)
	}
	slices.SortFunc(all, func(x, y *history) int { return strings.Compare(x.id, y.id) })
	return all
}

// historyOf returns the record of an order; nil if it never had one.
func (b *journal) historyOf(o order) *history {
	for _, h := range b.records {
		if h.order.Key == o.Key && h.order.Owner == o.Owner {
			return h
		}
	}
	return nil
}

// completed returns those of a record's lives that were completed; none of a record
// that never was.
func (h *history) completed() []*life {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.lives), func(l *life) bool { return l.completed == nil })
}

// answer returns the text of the answer that a life stored.
func (l *life) answer() string { return l.text }

// storedBy returns the answer that an actor's attempt left in the record.
func (h *history) storedBy(a *actor) string {
	for _, l := range h.lives {
		if l.completedBy == a {
			return l.answer()
		}
	}
	return ""
}

// state is where a record stands, as the item says it.
type state string

// The states.
const (
	inProgress state = "INPROGRESS"
	completed  state = "COMPLETED"
	released   state = "RELEASED"
)

func stateOf(item memdynamo.Item) state { return state(item["status"].Text) }

// deletable reports whether DynamoDB's TTL may delete an item.
func deletable(item memdynamo.Item, now time.Time) bool {
	e, ok := item["expiration"]
	return ok && number(e) <= now.Unix()
}

// expired reports whether a record has expired. Its item stays for a while.
func expired(item memdynamo.Item, now time.Time) bool {
	return deletable(item, now.Add(lambdaidem.KeptAfterExpiry))
}

// expiry is when a record expires that has an expiration.
func expiry(item memdynamo.Item) time.Time {
	return time.Unix(number(item["expiration"]), 0).Add(-lambdaidem.KeptAfterExpiry)
}

func millis(v memdynamo.Value) time.Time { return time.UnixMilli(number(v)) }

func number(v memdynamo.Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
