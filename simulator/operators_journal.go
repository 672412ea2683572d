package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/internal/memdynamo"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The paths that operations take. See Path.
const (
	OperatorReleased    Path = "an operator released"
	OperatorSettled     Path = "an operator settled"
	OperatorErased      Path = "an operator erased"
	OperatorForgot      Path = "an operator forgot"
	OperatorForgotSteps Path = "an operator forgot a released record with steps"
	OperatorTold        Path = "an operator was told that the record had changed"
	OperatorWaited      Path = "an operator was told that the lease is live"
	OperatorUnknown     Path = "an operator was told that nobody knows"
	LateForOperator     Path = "an attempt ended later than an operator decided"
)

// payload returns the payload with which the record of a token was begun.
func (b *journal) payload(token string) string {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.payloadOf[token]
}

// operatorBegins records that an operator looks at a record.
func (b *journal) operatorBegins(a *actor) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.operations = append(b.operations, a)
	b.addLocked(entry{kind: kindOperator, actor: a, text: "looks, to " + string(a.operation.act)})
}

// operatorActs records that an operator acts on the record that it was shown.
func (b *journal) operatorActs(a *actor, seen lambdaidem.Record) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	a.operation.seen, a.operation.began = seen, true
	b.addLocked(entry{kind: kindOperator, actor: a, text: fmt.Sprintf("acts on token %s, %s", seen.Token, seen.State)})
}

// operatorEnds records the result that an operator was told.
func (b *journal) operatorEnds(a *actor, err error) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	a.operation.ended, a.operation.err = true, err
	b.addLocked(entry{kind: kindOperator, actor: a, text: "is told: " + because(err), done: err == nil})
	switch _, live := errors.AsType[*dynamostore.LeaseLiveError](err); {
	case live:
		b.paths[OperatorWaited]++
	case errors.Is(err, dynamostore.ErrRecordChanged):
		b.paths[OperatorTold]++
	case isUnknown(err):
		b.paths[OperatorUnknown]++
	}
}

// isUnknown reports whether, after the error, a write may or may not have been applied.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*lambdaidem.StoreError](err)
	return ok && !e.NotApplied
}

// operated records an operator's write to a record, and has it checked. It is called under w.mu.
func (b *journal) operated(a *actor, w memdynamo.Write, h *history) {
	a.operation.wrote++
	if h == nil || len(h.lives) == 0 {
		b.judge.brokenLocked(a, CheckAsShown, "an operator made a record")
		return
	}
	l, now := h.lives[len(h.lives)-1], time.Now()
	b.judge.operated(a, w, h)
	switch after := stateOf(w.After); {
	case forgetting(w):
		b.paths[OperatorForgot]++
		if after == completed {
			l.completed, l.lost = w.After, true
		}
		if endsSteps(w) {
			b.paths[OperatorForgotSteps]++
			l.completedAt, l.completedBy, l.settled = now, a, true
		}
		clear(l.steps)
	case stateOf(w.Before) == completed: // the answer was erased
		b.paths[OperatorErased]++
		l.completed, l.lost = w.After, true
	case after == released:
		b.paths[OperatorReleased]++
		h.freed, h.holder = append(h.freed, now), nil
	case after == completed:
		b.paths[OperatorSettled]++
		l.completed, l.completedAt, l.completedBy, l.settled = w.After, now, a, true
		h.freed, h.holder = append(h.freed, now), nil
		l.keepAnswer(b, a)
	}
	if w.After != nil {
		b.payloadOf[w.After["token"].Text] = b.payloadOf[w.Before["token"].Text]
	}
}

// forgetting reports whether an operator's write forgets the record.
func forgetting(w memdynamo.Write) bool {
	did := w.After["operations"].List
	if len(did) == 0 {
		return false
	}
	last := did[len(did)-1].Map
	return last["what"].Text == string(dynamostore.OperationForgotten) &&
		!slices.ContainsFunc(w.Before["operations"].List, func(before memdynamo.Value) bool { return before.Map["token"].Text == last["token"].Text })
}

// endsSteps reports whether an operator's write forgets a released record that has steps. The
// record is completed without an answer, because a retry would run without the steps.
func endsSteps(w memdynamo.Write) bool {
	return forgetting(w) && stateOf(w.Before) == released && len(w.Before["steps"].Map) > 0
}

// operated checks an operator's write: it may change only the record that was shown, and only as
// the operation says.
func (j *judge) operated(a *actor, w memdynamo.Write, h *history) {
	op, before, after := a.operation, stateOf(w.Before), stateOf(w.After)
	forgotten := before
	if endsSteps(w) {
		forgotten = completed
	}
	j.operatedOn(a, w, before)
	if h.order.Key != a.order.Key || h.order.Owner != a.order.Owner {
		j.brokenLocked(a, CheckOwnRecord, "wrote to the record of %+v", h.order)
	}
	purges := op.act == erases || op.act == forgets
	switch {
	case w.After == nil:
		j.brokenLocked(a, CheckPurgeSpares, "to %s it deleted %s", op.act, w.Before)
		return
	case !purges && after == inProgress, purges && after != forgotten, forgetting(w) && op.act != forgets:
		j.brokenLocked(a, CheckAsShown, "to %s it made %s of %s", op.act, w.After, w.Before)
	}
	for _, kept := range []string{"validation", "scope", "attempt", "started_at", "in_progress_expiration"} {
		if w.After[kept].Text != w.Before[kept].Text {
			j.brokenLocked(a, CheckOperationKept, "its %s was %s, and is %s", kept, w.Before[kept].Text, w.After[kept].Text)
		}
	}
	if purges {
		kept := []string{"token", "expiration", "completed_at", "outcome"}
		if forgetting(w) {
			kept = kept[2:]
			j.forgotten(a, w)
		}
		if endsSteps(w) {
			kept = nil
		}
		for _, kept := range kept {
			if w.After[kept].Text != w.Before[kept].Text {
				j.brokenLocked(a, CheckPurgeSpares, "its %s was %s, and is %s", kept, w.Before[kept].Text, w.After[kept].Text)
			}
		}
		return
	}
	if _, indexed := w.After["lease_shard"]; indexed {
		j.brokenLocked(a, CheckOperationKept, "it is %s, and in an index of leases", after)
	}
	if len(w.After["operations"].List) == 0 || len(w.After["operations"].List) < len(w.Before["operations"].List) {
		j.brokenLocked(a, CheckOperationKept, "it keeps %d operations, and had %d", len(w.After["operations"].List), len(w.Before["operations"].List))
	}
	if e := expiry(w.After); e.Before(time.Now().Add(23 * time.Hour)) {
		j.brokenLocked(a, CheckOperationKept, "it expires at %v", e)
	}
	if steps := len(w.After["steps"].Map); after == completed && steps > 0 || after == released && steps != len(w.Before["steps"].Map) {
		j.brokenLocked(a, CheckOperationKept, "%s, it has %d steps, and had %d", after, steps, len(w.Before["steps"].Map))
	}
}

// forgotten checks a record that an operator forgets: it must expire soon, and no later than it
// would have.
func (j *judge) forgotten(a *actor, w memdynamo.Write) {
	now := time.Now()
	soon := now.Add(signatureLife + 3*j.b.w.plan.maxSkew + 2*time.Second)
	if after, before := expiry(w.After), expiry(w.Before); after.After(before) || after.After(soon) || after.Before(now) && before.After(now) {
		j.brokenLocked(a, CheckPurgeSpares, "it forgot a record, which expires at %v, and had been to expire at %v", after, before)
	}
	if stateOf(w.After) == released && w.After["token"].Text == w.Before["token"].Text {
		j.brokenLocked(a, CheckAsShown, "it forgot a released record, and left its token")
	}
	if len(w.After["steps"].Map) > 0 {
		j.brokenLocked(a, CheckPurgeSpares, "it forgot a record, and left its steps")
	}
}

// operatedOn checks that the operator may overwrite the record in the state before.
func (j *judge) operatedOn(a *actor, w memdynamo.Write, before state) {
	op, token := a.operation, w.Before["token"].Text
	if op.act == erases || op.act == forgets {
		if before == inProgress || before == released && op.act == erases {
			j.brokenLocked(a, CheckPurgeSpares, "to %s, it wrote over what is %s", op.act, before)
		}
		return
	}
	if token != op.seen.Token || before != state(op.seen.State) || w.After["token"].Text == token {
		j.brokenLocked(a, CheckAsShown, "it was shown %s of token %s, and wrote %s over %s of %s", op.seen.State, op.seen.Token, w.After["token"].Text, before, token)
	}
	if before == completed {
		j.brokenLocked(a, CheckCompletedNeverChanges, "%s became %s", w.Before, w.After)
	}
	// The operator goes by the database's clock, which may be up to MaxSkew ahead of the world's.
	if end := millis(w.Before["in_progress_expiration"]); before == inProgress && time.Now().Before(end) {
		j.brokenLocked(a, CheckOperatorWaits, "the lease had %v left", time.Until(end))
	}
}

// checkOperators compares what operators were told with their writes.
func (j *judge) checkOperators() {
	for _, a := range j.b.operations {
		op := a.operation
		if op.act == erases || op.act == forgets || !op.ended {
			continue
		}
		switch {
		case op.err == nil && op.wrote != 1:
			j.broken(a, CheckOperatorTold, "it was told that it is done, and %d of its writes were applied", op.wrote)
		case op.err != nil && op.wrote > 0 && !isUnknown(op.err):
			j.broken(a, CheckOperatorTold, "it was told %v, and %d of its writes were applied", op.err, op.wrote)
		}
	}
}

// lateForOperator counts an attempt's completion or release that was refused after an operator had
// released or settled the record.
func (b *journal) lateForOperator(r *request, status int) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	a := r.actor
	h := b.historyOf(a.order)
	if verb := r.what; status == http.StatusOK || a.run == nil || h == nil || verb != "complete" && verb != "release" && verb != "commit" {
		return
	}
	if slices.ContainsFunc(h.freed, func(at time.Time) bool { return at.After(a.run.began) }) {
		b.paths[LateForOperator]++
	}
}

// settledByOperators returns the answers of operators as operations for porcupine: first answers
// that no client got.
func (h *history) settledByOperators(born time.Time) (ops []porcupine.Operation) {
	for _, l := range h.lives {
		if l.settled {
			at := int64(l.completedAt.Sub(born))
			ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: observation{Answer: l.text}, Call: at, Return: at})
		}
	}
	return ops
}

// freedBetween reports whether between two runs an operator released or settled the record, or a
// late commit of the first run completed it.
func (h *history) freedBetween(r, next *run) bool {
	within := func(at time.Time) bool { return !at.Before(r.began) && !at.After(next.began) }
	// If a late commit of the first run completed the record, the next run is in a later life.
	late := func(l *life) bool { return l.completedBy == r.actor && within(l.completedAt) }
	return slices.ContainsFunc(h.freed, within) || slices.ContainsFunc(h.lives, late)
}
