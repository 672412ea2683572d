package simulator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/simulator/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// book is what happened in a world. It only records; at the moments when a
// check has to look at once, it asks its judge.
type book struct {
	w       *world
	lines   []line
	runs    []*run
	records map[string]*history // by record id
	answers []*answer
	faults  map[Fault]int
	kinds   map[lambdaidem.Kind]int
	judge   judge
}

// line is one line of the timeline.
type line struct {
	at    time.Duration
	actor *actor
	text  string
}

// run is one run of the handler.
type run struct {
	actor   *actor
	attempt int
	began   time.Time
	due     time.Time // when its context ends
	ended   time.Time // zero: not yet
	how     Ending
	effects int
}

// answer is the text of the run's answer: it names the order, so that nobody
// can get another's answer unnoticed, and the run.
func (r *run) answer() string {
	o := r.actor.order
	return fmt.Sprintf("%s/%s/%s by attempt %d of process %d", o.Owner, o.Key, o.Payload, r.attempt, r.actor.id)
}

// history is the life of one record, as the database saw it.
type history struct {
	id    string
	order order // without payload
	lives []*life
	// holder is the actor whose token stands there in progress, if any does.
	holder *actor
}

// life is a record from its lock to its expiry.
type life struct {
	began, gone time.Time // gone is zero while it lasts
	tokens      map[string]*actor
	completed   wire.Item
	completedAt time.Time
	completedBy *actor
	released    map[*actor]bool
}

// answer is one request of a client and what came of it.
type answer struct {
	actor    *actor
	from, to time.Time
	got      result
}

func newBook(w *world) *book {
	b := &book{w: w, records: map[string]*history{}, faults: map[Fault]int{}, kinds: map[lambdaidem.Kind]int{}}
	b.judge = judge{b: b}
	return b
}

func (b *book) note(a *actor, format string, args ...any) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.noteLocked(a, format, args...)
}

func (b *book) noteLocked(a *actor, format string, args ...any) {
	b.lines = append(b.lines, line{time.Since(b.w.born), a, fmt.Sprintf(format, args...)})
}

func (b *book) fault(f Fault) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.faults[f]++
}

func (b *book) event(a *actor, e lambdaidem.Event) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if a.dead {
		return
	}
	b.kinds[e.Kind]++
	b.judge.event(a, e)
	b.noteLocked(a, "guard: %s%s", e.Kind, because(e.Err))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return " (" + strings.ReplaceAll(text, "\n", " ") + ")"
}

func (b *book) beginRun(ctx context.Context, a *actor) *run {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	r := &run{actor: a, attempt: lambdaidem.Attempt(ctx), began: time.Now()}
	r.due, _ = ctx.Deadline()
	b.judge.begin(a)
	a.run = r
	if !a.dead {
		b.runs = append(b.runs, r)
		b.noteLocked(a, "handler begins, attempt %d", r.attempt)
	}
	return r
}

// endRun ends a handler's run. What a dead process does counts for nothing.
func (b *book) endRun(a *actor, how Ending) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !a.dead {
		b.endRunLocked(a, how)
	}
}

// endRunLocked ends the run of an actor, if one is under way.
func (b *book) endRunLocked(a *actor, how Ending) {
	if a.run == nil || !a.run.ended.IsZero() {
		return
	}
	a.run.ended, a.run.how = time.Now(), how
	b.noteLocked(a, "handler ends: %s", how)
}

func (b *book) effect(r *run) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	r.effects++
	b.noteLocked(r.actor, "EFFECT %s", r.answer())
}

// answered enters what a client got.
func (b *book) answered(a *actor, from time.Time, got result) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.answers = append(b.answers, &answer{a, from, time.Now(), got})
	text := got.failed
	if got.Status != 0 {
		text = fmt.Sprintf("%d %s", got.Status, got.Body)
		if got.Code != "" {
			text = fmt.Sprintf("%d %s", got.Status, got.Code)
		}
		if got.Replayed {
			text += " (replayed)"
		}
	}
	b.noteLocked(a, "answers %s", text)
	b.judge.answered(a, got)
}

// served notes what the database answered.
func (b *book) served(r *request, status int, out []byte) {
	text := "done"
	if status != 200 {
		text = "refused"
		if !strings.Contains(string(out), wire.ConditionalCheckFailed) {
			text = string(out)
		}
	}
	b.note(r.actor, "database: %s: %s", describe(r), text)
}

// wrote sees each write that the database applied.
func (b *book) wrote(w wire.Write) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	now := time.Now()
	id := w.Key["id"].Text
	h := b.records[id]
	if w.Op == "TTL" {
		b.faults["deleted by TTL"]++
		b.noteLocked(nil, "TTL deletes the record, which was %s", w.Before["status"].Text)
		if h != nil && len(h.lives) > 0 {
			h.lives[len(h.lives)-1].gone = now
			h.holder = nil
		}
		return
	}
	a := b.w.serving.actor
	if h == nil {
		h = &history{id: id, order: order{Key: a.order.Key, Owner: a.order.Owner}}
		b.records[id] = h
	}
	if w.Op == "PutItem" {
		if n := len(h.lives); n > 0 && h.lives[n-1].gone.IsZero() {
			h.lives[n-1].gone = now
		}
		h.lives = append(h.lives, &life{began: now, tokens: map[string]*actor{}, released: map[*actor]bool{}})
	}
	b.judge.write(a, w, h)
	if len(h.lives) == 0 {
		return // an update made the record: there is no life to enter it in
	}
	l := h.lives[len(h.lives)-1]
	h.holder = nil
	switch token, status := w.After["token"].Text, w.After["status"].Text; status {
	case "INPROGRESS":
		l.tokens[token], h.holder = a, a
	case "RELEASED":
		l.released[a] = true
	case "COMPLETED":
		if l.completed == nil {
			l.completed, l.completedAt, l.completedBy = w.After, now, a
		}
	}
}

// timeline is the book, as text.
func (b *book) timeline() string {
	lines := slices.Clone(b.lines)
	slices.SortStableFunc(lines, func(x, y line) int {
		switch {
		case x.at != y.at:
			return int(min(max(x.at-y.at, -1), 1))
		case x.actor != nil && y.actor != nil:
			return cmp.Compare(x.actor.id, y.actor.id)
		default:
			return 0
		}
	})
	var out strings.Builder
	for _, l := range lines {
		who := "world"
		if l.actor != nil {
			o := l.actor.order
			who = fmt.Sprintf("process %d (%s/%s/%s)", l.actor.id, o.Owner, o.Key, o.Payload)
		}
		fmt.Fprintf(&out, "%12.3f ms  %-22s %s\n", float64(l.at)/1e6, who, l.text)
	}
	return out.String()
}

func (b *book) sorted() []*history {
	var all []*history
	for _, h := range b.records {
		all = append(all, h)
	}
	slices.SortFunc(all, func(x, y *history) int { return strings.Compare(x.id, y.id) })
	return all
}

// historyOf is the record of an order; nil if it never had one.
func (b *book) historyOf(o order) *history {
	for _, h := range b.records {
		if h.order.Key == o.Key && h.order.Owner == o.Owner {
			return h
		}
	}
	return nil
}

// livesOf is the completed ones of a record's lives; none of a record that
// never was.
func (h *history) livesOf() []*life {
	if h == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.lives), func(l *life) bool { return l.completed == nil })
}

// open tells whether an attempt failed open: it ran without the lease.
func (b *book) open(a *actor) bool { return a.run != nil && a.run.attempt == 0 }

// text is what of a result must be equal between a first answer and a replay.
func (r result) text() string { return fmt.Sprintf("%d %s", r.Status, r.Body) }

// answerOf is the text of the answer that a life stored.
func (b *book) answerOf(l *life) string {
	var s struct {
		StatusCode int    `json:"statusCode"`
		Body       string `json:"body"`
	}
	if err := unmarshal(l.completed["data"].Text, &s); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", s.StatusCode, s.Body)
}

func expired(item wire.Item, now time.Time) bool {
	e, ok := item["expiration"]
	return ok && number(e) <= now.Unix()
}

func millis(v wire.Value) time.Time { return time.UnixMilli(number(v)) }

func number(v wire.Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
