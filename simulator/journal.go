package simulator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// journal records what happens in a world. It checks nothing itself. When a check must look at
// something at once, the journal calls its judge.
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
	parts     map[string]memdynamo.Item // the parts of large answers, by id
	changed   *memdynamo.Write          // the write to a record by the request that is served now; nil: none yet
	callOf    map[string]call           // the step that has a downstream key
	keyOf     map[call]string           // the downstream key of a step
	chargedAt map[charge]time.Time      // when each inner call succeeded
	deadInner map[string]bool           // the inner records that an attempt took over from one that had died

	// About transactions: see transactions.go.
	paths        map[Path]int
	tokens       map[string]*tokenUse // by ClientRequestToken
	commit       *commit              // the transaction that is served now, or nil
	transactions int                  // how many were applied
	funds        int64                // what all accounts together must hold, in cents

	operations []*actor          // the operators' actors: see operators_journal.go
	payloadOf  map[string]string // the payload with which the record of a token was begun
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

	meant      Ending // how the handler ended, whether or not a condition failed later
	record     string // the record's ID; empty if it has none
	enlisted   bool   // it enlisted its transfer
	whenFailed bool   // the transfer is to be committed with a failed answer too
	verdict    Ending // how the run ends if its condition fails
	paid       int    // how often its transfer was committed
	inner      innerOutcome
}

// answer returns the text of the run's answer. It names the order and the run, so that the checks
// notice if a client gets another one's answer.
func (r *run) answer() string {
	o := r.actor.order
	return fmt.Sprintf("%s/%s/%s by attempt %d of process %d", o.Owner, o.Key, o.Payload, r.attempt, r.actor.id) + r.actor.w.plan.large.pad()
}

// answer is what a client got for a request.
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

// event records an event that the guard reports.
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

// because returns the reason of an event in parentheses, on one line and shortened. It returns ""
// if err is nil.
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

// beginRun records that a handler begins, and returns its run.
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

// endRun records that a handler's run ends, unless its process is dead.
func (b *journal) endRun(a *actor, how Ending) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if !a.dead {
		b.endRunLocked(a, how)
	}
}

// endRunLocked records that the run of an actor ends, if one is in progress.
func (b *journal) endRunLocked(a *actor, how Ending) {
	if a.run == nil || !a.run.ended.IsZero() {
		return
	}
	a.run.ended, a.run.how, a.run.meant = time.Now(), how, how
	b.noteLocked(a, "handler ends: %s", how)
}

// effect records that a handler had its effect, unless its process is dead.
func (b *journal) effect(r *run) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.actor.dead {
		return
	}
	r.effects++
	b.addLocked(entry{kind: kindEffect, actor: r.actor, text: "EFFECT " + r.answer()})
}

// gaveUp records that the client of an invocation stops waiting.
func (b *journal) gaveUp(a *actor) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	a.clientGone = true
	b.addLocked(entry{kind: kindGiveUp, actor: a})
}

// answered records what an invocation returned to its client.
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

// served records the database's reply to a request.
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

// needsNoRecord reports whether the attempt's answer may be sent although no record stores it. That
// is so if the attempt failed open and has no enlisted writes to commit.
func (a *actor) needsNoRecord() bool {
	return a.failedOpen && (a.run == nil || !a.run.commits() || a.run.refused())
}

// assumptionsHold reports whether the run kept the assumptions under which the guard promises that
// at most one attempt runs at a time: the clocks differ by at most MaxSkew, and no attempt runs on
// after its context has ended.
func (b *journal) assumptionsHold() bool {
	p := &b.w.plan
	return p.skew <= p.maxSkew && p.disobedient == 0 && b.faults[Stall] == 0
}
