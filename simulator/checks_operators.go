package simulator

import (
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

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
