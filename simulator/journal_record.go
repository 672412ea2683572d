package simulator

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// history is everything that happened to one record in the database.
type history struct {
	id    string
	order order // without the payload
	lives []*life
	// holder is the actor that holds the record while it is in progress, or nil.
	holder *actor
	// freed has the times when operators released or settled the record.
	freed []time.Time
}

// life is the life of a record, from its first lock until it expires.
type life struct {
	began, ended time.Time         // ended is zero while the life lasts
	tokens       map[string]*actor // the attempts that have held the record, by token
	completed    memdynamo.Item
	completedAt  time.Time
	completedBy  *actor
	released     map[*actor]bool
	settled      bool // completedBy is an operator
	paid         int  // how many payments were committed with the record
	steps        map[string]step
	charged      string            // the payload for which an inner call charged; empty: none
	keyed        map[string]string // the payload for which a step had a downstream key, by step
	text         string            // the text of the stored answer
	parts        []string          // the IDs of the answer's parts
	lost         bool              // the answer, or a part of it, was lost
	held         bool              // its expiration was removed, so it waits for an operator
}

// change is what a write does to a record's life.
type change struct {
	begins bool // it begins a new life
	over   bool // it takes over a record that its sender has seen
	claims bool // it completes the record at once, without a lease
	whole  bool // it replaces the whole item of its own lease
	holds  bool // it removes the expiration of a dead attempt's record
}

// changeOf returns what a write does to a record's life. tx is the transaction that the write
// belongs to, or nil.
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

// wrote records a write that the database has applied, and has it checked.
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
		return // an update created the record; the judge has reported that
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

// sorted returns all records, sorted by ID.
func (b *journal) sorted() []*history {
	var all []*history
	for _, h := range b.records {
		all = append(all, h)
	}
	slices.SortFunc(all, func(x, y *history) int { return strings.Compare(x.id, y.id) })
	return all
}

// historyOf returns the history of an order's record, or nil if there never was one.
func (b *journal) historyOf(o order) *history {
	for _, h := range b.records {
		if h.order.Key == o.Key && h.order.Owner == o.Owner {
			return h
		}
	}
	return nil
}

// completed returns the lives in which the record was completed. A nil history has none.
func (h *history) completed() []*life {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.lives), func(l *life) bool { return l.completed == nil })
}

// answer returns the text of the stored answer.
func (l *life) answer() string { return l.text }

// storedBy returns the answer that an actor's attempt stored in the record, or "" if it stored
// none.
func (h *history) storedBy(a *actor) string {
	for _, l := range h.lives {
		if l.completedBy == a {
			return l.answer()
		}
	}
	return ""
}

// state is the value of an item's attribute status.
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

// expired reports whether a record has expired. Its item stays in the table for longer.
func expired(item memdynamo.Item, now time.Time) bool {
	return deletable(item, now.Add(lambdaidem.KeptAfterExpiry))
}

// expiry returns when a record expires. The item must have an expiration.
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
