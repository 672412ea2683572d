package simulator

// unstarted checks a record after withdrawUnstarted has invoked the processes again.
func (j *judge) unstarted(h *history) {
	a := h.holder
	if a == nil {
		return
	}
	if p := a.process; p != nil && p.lives() && a.withoutEffect() {
		j.brokenRecord(h, CheckWithdrawn, "process %d lives, and its claim holds the record, though no handler had an effect", p.first.id)
	}
}

// withdrawal checks a write of actor a's attempt that a later invocation of the same process
// sent. left is the state in which it left the record.
func (j *judge) withdrawal(a, sender *actor, left state) {
	switch {
	case a == sender:
		return
	case left != released:
		j.brokenLocked(sender, CheckWithdrawn, "it left the record of process %d's claim %s", a.id, left)
	case !a.withoutEffect() && !a.failedOpen:
		j.brokenLocked(sender, CheckWithdrawn, "it withdrew the claim of process %d, whose handler may have had an effect", a.id)
	}
	j.b.paths[ClaimWithdrawn]++
}
