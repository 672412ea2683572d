package simulator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// book is what happened in a world. It only records; at the moments when a
// check has to look at once, it asks its judge.
type journal struct {
	w         *world
	entries   []entry // the timeline
	runs      []*run
	records   map[string]*history // by record id
	answers   []*answer
	faults    map[Fault]int
	kinds     map[lambdaidem.Kind]int
	judge     judge
	runBy     map[uint64]*run           // by process
	parts     map[string]memdynamo.Item // of large answers, by id
	changed   *memdynamo.Write          // to a record, by the request that is served now; nil: there was none
	callOf    map[string]call           // by downstream key
	keyOf     map[call]string           // the downstream key of each
	chargedAt map[charge]time.Time      // when an inner call had succeeded
	deadInner map[string]bool           // by inner record: an attempt of it has died

	// Of transactions: see transactions.go.
	paths        map[Path]int
	tokens       map[string]*tokenUse // by ClientRequestToken
	commit       *commit              // the transaction that is served now
	transactions int                  // applied
	funds        int64                // cents, in all accounts together

	operations []*actor          // what operators did: see operators_book.go
	payloadOf  map[string]string // by token, of what the record was begun with
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

	meant      Ending // how it ended by itself, before a condition failed
	record     string // id
	enlisted   bool   // it enlisted its transfer
	whenFailed bool   // with a failed answer too
	verdict    Ending // if its condition fails
	paid       int    // payments that were made
	inner      innerOutcome
}

// answer returns the text of the run's answer: it names the order, so that nobody
// can get another's answer unnoticed, and the run.
func (r *run) answer() string {
	o := r.actor.order
	return fmt.Sprintf("%s/%s/%s by attempt %d of process %d", o.Owner, o.Key, o.Payload, r.attempt, r.actor.id) + r.actor.w.plan.large.pad()
}

// answer is one request of a client and what came of it.
type answer struct {
	actor    *actor
	from, to time.Time
	got      result
}

func newJournal(w *world) *journal {
	b := &journal{w: w, records: map[string]*history{}, faults: map[Fault]int{}, kinds: map[lambdaidem.Kind]int{},
		runBy: map[uint64]*run{}, parts: map[string]memdynamo.Item{}, callOf: map[string]call{}, keyOf: map[call]string{}, chargedAt: map[charge]time.Time{}, deadInner: map[string]bool{}, payloadOf: map[string]string{}, paths: map[Path]int{}, tokens: map[string]*tokenUse{}}
	b.judge = judge{b: b}
	return b
}

// fault counts a fault that happened.
func (b *journal) fault(f Fault) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.faults[f]++
}

// event enters what the guard tells.
func (b *journal) event(a *actor, e lambdaidem.Event) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if a.dead {
		return
	}
	b.kinds[e.Kind]++
	if e.Kind == lambdaidem.EventUncertain && a.run != nil && a.run.how == RefusedPanicked && !a.underHold() {
		b.paths[PanicUnknown]++
	}
	a.failedOpen = a.failedOpen || e.Kind == lambdaidem.EventFailedOpen
	b.judge.event(a, e)
	b.noteLocked(a, "guard: %s%s", e.Kind, because(e.Err))
}

// because returns the reason of an event, on one line.
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

// beginRun enters that a handler begins.
func (b *journal) beginRun(ctx context.Context, a *actor) *run {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	r := &run{actor: a, attempt: lambdaidem.Attempt(ctx), record: lambdaidem.RecordID(ctx), began: time.Now()}
	r.due, _ = ctx.Deadline()
	b.judge.begin(a, r)
	a.run, b.runBy[a.id] = r, r
	if !a.dead {
		b.runs = append(b.runs, r)
		b.noteLocked(a, "handler begins, attempt %d", r.attempt)
	}
	return r
}

// endRun ends a handler's run. What a dead process does counts for nothing.
func (b *journal) endRun(a *actor, how Ending) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !a.dead {
		b.endRunLocked(a, how)
	}
}

// endRunLocked ends the run of an actor, if one is in progress.
func (b *journal) endRunLocked(a *actor, how Ending) {
	if a.run == nil || !a.run.ended.IsZero() {
		return
	}
	a.run.ended, a.run.how, a.run.meant = time.Now(), how, how
	b.noteLocked(a, "handler ends: %s", how)
}

// effect enters that a handler had its effect.
func (b *journal) effect(r *run) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	r.effects++
	b.addLocked(entry{kind: kindEffect, actor: r.actor, text: "EFFECT " + r.answer()})
}

// gaveUp enters that the client of an invocation stops waiting.
func (b *journal) gaveUp(a *actor) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	a.clientGone = true
	b.addLocked(entry{kind: kindGiveUp, actor: a})
}

// answered enters what a client got.
func (b *journal) answered(a *actor, from time.Time, got result) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.answers = append(b.answers, &answer{a, from, time.Now(), got})
	a.endedAt = time.Now()
	text := got.failed
	if got.Status != 0 {
		text = fmt.Sprintf("%d %s", got.Status, strings.TrimRight(got.Body, " ."))
		if got.Code != "" {
			text = fmt.Sprintf("%d %s", got.Status, got.Code)
		}
		if got.Replayed {
			text += " (replayed)"
		}
	}
	b.addLocked(entry{kind: kindAnswer, actor: a, text: text, lost: a.clientGone})
	b.judge.answered(a, got)
}

// served enters what the database answered.
func (b *journal) served(r *request, status int, out []byte) {
	e := entry{kind: kindServe, actor: r.actor, request: r.label, status: status, write: b.changed}
	if status != 200 {
		e.body = out
	}
	b.changed = nil
	b.add(e)
	b.lateForOperator(r, status)
	if r.tx != nil {
		b.committed(r, status, out)
	}
}

// free tells whether an attempt's answer may stand without its record: it failed
// open, and nothing of what it enlisted is to be committed with it (X5).
func (a *actor) needsNoRecord() bool {
	return a.failedOpen && (a.run == nil || !a.run.commits() || a.run.refused())
}

// obeyed tells whether the run kept to what G3's last sentence asks for: clocks
// within MaxSkew, and no attempt that went on past its context.
func (b *journal) assumptionsHold() bool {
	p := &b.w.plan
	return p.skew <= p.maxSkew && p.disobedient == 0 && b.faults[Stall] == 0
}
