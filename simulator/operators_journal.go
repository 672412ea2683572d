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
