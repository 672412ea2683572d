package simulator

import "slices"

// begin checks an invocation whose handler begins.
func (j *judge) begin(a *actor, r *run) {
	if a.run != nil {
		j.brokenLocked(a, CheckOneRun, "the handler ran twice in one invocation")
	}
	if without := a.optimistic || a.failedOpen || a.order.Unguarded != ""; without != (r.attempt == 0) || a.optimistic && a.underHold() {
		j.brokenLocked(a, CheckNoLease, "its attempt has number %d and policy %s", r.attempt, a.policy)
	}
}

// checkRuns compares the handler's runs for one record with each other and with the record.
func (j *judge) checkRuns(h *history) {
	b := j.b
	var runs []*run
	for _, r := range b.runs {
		if o := r.actor.order; o.Key == h.order.Key && o.Owner == h.order.Owner && !r.actor.failedOpen {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(x, y *run) int { return x.began.Compare(y.began) })
	for i, r := range runs {
		how, end := r.how.traits(), r.ended
		if end.IsZero() {
			end = r.due
		}
		for _, next := range runs[i+1:] {
			if r.actor.optimistic || next.actor.optimistic { // an optimistic run has no effect before it commits
				continue
			}
			if b.assumptionsHold() && next.began.Before(end) {
				j.broken(next.actor, CheckOneAtATime, "it began %v before the run of process %d ended", end.Sub(next.began), r.actor.id)
			}
			if r.actor.underHold() && (how.unsure || r.leaves(r.how) == inProgress) && !h.freedBetween(r, next) {
				j.broken(next.actor, CheckHeld, "it ran after process %d, whose run ended by %q", r.actor.id, r.how)
			}
		}
		stored := slices.ContainsFunc(h.lives, func(l *life) bool { return l.completedBy == r.actor })
		if r.leaves(r.how) == completed && (r.effects > 0 || r.commits()) && !r.actor.optimistic && !stored && len(r.actor.met) == 0 && !r.actor.dead && b.assumptionsHold() {
			j.broken(r.actor, CheckEffectKept, "its run ended by %q and nothing was completed", r.how)
		}
		gaveBack := slices.ContainsFunc(h.lives, func(l *life) bool { return l.released[r.actor] })
		if r.leaves(r.how) == released && len(r.actor.met) == 0 && !r.actor.dead && !r.actor.optimistic && !gaveBack && b.assumptionsHold() {
			j.broken(r.actor, CheckCleanUp, "its run ended by %q and nothing was released", r.how)
		}
	}
}
