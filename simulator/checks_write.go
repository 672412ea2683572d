package simulator

import (
	"maps"
	"time"

	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// write checks one write to a record against the record's history. a is the actor to whose attempt
// the write belongs, and r is the request with the write.
func (j *judge) write(a *actor, r *request, w memdynamo.Write, as change, h *history) {
	if a.order.Unguarded != "" {
		j.brokenLocked(a, CheckOwnRecord, "it runs unguarded, and wrote to a record")
	}
	if as.claims && !a.optimistic && !a.failedOpen {
		j.brokenLocked(a, CheckLockFirst, "it completed a record that it had no lease on")
	}
	if h.order.Key != a.order.Key || h.order.Owner != a.order.Owner {
		j.brokenLocked(a, CheckOwnRecord, "wrote to the record of %+v", h.order)
	}
	if len(h.lives) == 0 {
		j.brokenLocked(a, CheckLockFirst, "an update made the record")
		return
	}
	l, now := h.lives[len(h.lives)-1], time.Now()
	j.steps(a, w, as, l)
	j.leaseShard(a, w, as)
	after, token := stateOf(w.After), w.After["token"].Text
	before := stateOf(w.Before)
	p := &j.b.w.plan
	if l.completed != nil && w.After.String() != l.completed.String() {
		j.brokenLocked(a, CheckCompletedNeverChanges, "%s became %s", l.completed, w.After)
	}
	judged := now // when the record must have expired
	if as.claims && a.run != nil {
		judged = a.run.began // an attempt without a lease judges its record by the time when it began
	}
	if before == completed && as.begins && !expired(w.Before, judged.Add(p.skew)) {
		j.brokenLocked(a, CheckCompletedNeverChanges, "a lock was written over %s", w.Before)
	}
	if after == inProgress || as.claims {
		if before == inProgress && token != w.Before["token"].Text {
			end := millis(w.Before["in_progress_expiration"])
			// The clock of the attempt that takes over may be ahead by as much as clocks differ.
			if p.skew <= p.maxSkew && now.Add(p.skew).Before(end) {
				j.brokenLocked(a, CheckLeaseBeforeLock, "the lease of %s had %v left", w.Before["token"].Text, end.Sub(now))
			}
		}
		if died := l.tokens[w.Before["token"].Text]; as.over && before == inProgress && died != nil && (died.underHold() || a.underHold() || l.held) {
			j.brokenLocked(a, CheckHeld, "under policy %s it took over from process %d, which died under policy %s", a.policy, died.id, died.policy)
		}
		if as.over && number(w.After["attempt"]) != number(w.Before["attempt"])+1 {
			j.brokenLocked(a, CheckAttemptRaised, "attempt %d after %d", number(w.After["attempt"]), number(w.Before["attempt"]))
		}
	}
	switch after {
	case inProgress:
		end := millis(w.After["in_progress_expiration"])
		if due := a.ends.Add(a.skew + p.maxSkew); end.Before(due) {
			j.brokenLocked(a, CheckLeaseOutlives, "the lease ends %v before the deadline and MaxSkew", due.Sub(end))
		}
		if _, ok := w.After["expiration"]; ok && expiry(w.After).Before(end.Add(p.maxSkew+time.Second)) {
			j.brokenLocked(a, CheckExpiry, "it expires at %v, its lease ends at %v", expiry(w.After), end)
		} else if ok == (a.underHold() || l.held && !as.over) {
			j.brokenLocked(a, CheckExpiry, "under policy %s; has an expiration: %v", a.policy, ok)
		}
	case completed, released:
		if !as.claims && (before != inProgress || l.tokens[token] != a || w.Before["token"].Text != token) {
			j.brokenLocked(a, CheckFenced, "%s was written over %s of token %s", after, before, w.Before["token"].Text)
		}
		if a.run == nil {
			break
		}
		how := a.run.how
		if r.tx != nil && r.tx.actions > 1 { // the transaction was sent before any condition failed
			how = a.run.meant
		}
		if after != a.run.leaves(how) {
			j.brokenLocked(a, CheckStoredEndings, "under policy %s an attempt that ended by %q left the record %s%s", a.policy, how, after, a.run.innerText())
		}
	}
}

// hold checks a write that removes the expiration of a record. Only an attempt under policy Hold
// that has found another attempt dead may do so.
func (j *judge) hold(a *actor, w memdynamo.Write, h *history) {
	p, end := &j.b.w.plan, millis(w.Before["in_progress_expiration"])
	want := maps.Clone(w.Before)
	delete(want, "expiration")
	want["in_progress_expiration"] = w.After["in_progress_expiration"]
	switch {
	case !a.underHold() || h.order.Key != a.order.Key || h.order.Owner != a.order.Owner:
		j.brokenLocked(a, CheckHeld, "under policy %s it took the expiry of the record of %+v away", a.policy, h.order)
	case p.skew <= p.maxSkew && time.Now().Add(p.skew).Before(end):
		j.brokenLocked(a, CheckHeld, "it took the expiry of a record away whose lease had %v left", time.Until(end))
	case want.String() != w.After.String() || !millis(w.After["in_progress_expiration"]).Equal(end.Add(time.Millisecond)):
		j.brokenLocked(a, CheckHeld, "it changed %s to %s", w.Before, w.After)
	}
	j.b.paths[HeldInstead]++
}

// holdKept checks a record after an attempt without a fault has answered that an operator must
// decide. The record must not expire before an operator decides.
func (j *judge) holdKept(a *actor) {
	w := j.b.w
	h := j.b.historyOf(a.order)
	if h == nil || len(w.dbs) > 1 {
		return
	}
	item, _ := w.dbs[0].Item(table, memdynamo.Item{"id": memdynamo.String(h.id)})
	// If the lease is live, another attempt has taken the record over since it was read.
	dead := millis(item["in_progress_expiration"]).Before(time.Now().Add(-w.plan.skew))
	if _, expires := item["expiration"]; expires && stateOf(item) == inProgress && dead {
		j.brokenLocked(a, CheckHeld, "it was told that an operator must decide, and the record expires at %v", expiry(item))
	}
}
