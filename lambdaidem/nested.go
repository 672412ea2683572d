package lambdaidem

import "sync"

// This file relates a guarded handler to the guarded calls that it makes.

// innerCalls has the state of the guarded calls that one handler makes. A handler may make
// several calls at the same time.
type innerCalls struct {
	mu        sync.Mutex
	running   int                     // calls that have not returned
	succeeded bool                    // a call has succeeded or has replayed a success, or a call inside one of them has
	unsettled map[innerRecord]Outcome // OutcomeUncertain or OutcomeReleased
}

// innerRecord identifies the record of an inner call. It is zero for all calls that were
// refused before their records were known.
type innerRecord struct {
	store any // Guard.storeKey
	id    string
}

// begin records that an inner call has begun. Each begin must be followed by one end.
func (i *innerCalls) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running++
}

// end records how an inner call ended. left is OutcomeSucceeded or OutcomeFailed if the
// record has the call's answer, OutcomeUncertain if the call may have had effects although
// the record has no answer, OutcomeReleased if the same call may succeed later, and ""
// otherwise. An unsettled call stays unsettled until the handler makes it again and the
// record then has its answer.
func (i *innerCalls) end(rec innerRecord, left Outcome) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running--
	switch {
	case left == "", i.unsettled[rec] == OutcomeUncertain && left == OutcomeReleased:
	case left == OutcomeSucceeded, left == OutcomeFailed:
		delete(i.unsettled, rec)
	default:
		if i.unsettled == nil {
			i.unsettled = make(map[innerRecord]Outcome)
		}
		i.unsettled[rec] = left
	}
}

// refuse records that an inner call was refused before its record was known, and may be
// accepted later.
func (i *innerCalls) refuse() {
	i.begin()
	i.end(innerRecord{}, OutcomeReleased)
}

// succeed records that an inner call, or a call inside an inner call, has succeeded.
func (i *innerCalls) succeed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.succeeded = true
}

// anySucceeded reports whether succeed was called.
func (i *innerCalls) anySucceeded() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.succeeded
}

// busy reports whether an inner call is still running.
func (i *innerCalls) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.running > 0
}

// outcome returns OutcomeUncertain if an inner call is uncertain or still running,
// OutcomeReleased if an inner call may succeed later, and "" if all are settled.
func (i *innerCalls) outcome() Outcome {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running > 0 {
		return OutcomeUncertain
	}
	var o Outcome
	for _, left := range i.unsettled {
		if left == OutcomeUncertain {
			return OutcomeUncertain
		}
		o = left
	}
	return o
}

// insideOutcome returns the outcome that the inner calls of the attempt's handler stand
// for: see innerCalls.outcome. The attempt is nil if the handler ran unguarded.
func (a *attempt) insideOutcome() Outcome {
	if a == nil {
		return ""
	}
	return a.inner.outcome()
}

// endInner records how a guarded call that the attempt's handler made has ended: by d, or
// by a panic, in which case d is zero. inner is the call's attempt, or nil if the call was
// decided without one.
func (a *attempt) endInner(rec innerRecord, inner *attempt, d decision) {
	left := d.leaves()
	switch {
	case inner == nil:
	case d.refusal != nil && inner.started && !inner.g.opts.Optimistic: // it ran, and another attempt has the record
		left = OutcomeUncertain
	case left == "":
		left = inner.ended
	}
	a.inner.end(rec, left)
	if left == OutcomeSucceeded || d.carriedOut() || inner != nil && inner.hadEffect() {
		for around := a; around != nil; around = around.outer {
			around.inner.succeed()
		}
	}
}

// hadEffect reports whether the attempt, which did not succeed, left an effect that another
// payload must not repeat: a stored step, or writes that were made with a failure.
func (a *attempt) hadEffect() bool { return a.wrote || a.steps.any() }

// carriedOut reports whether the call is refused because its record has an answer, or may
// have one, that this version of the program can't read.
func (d *decision) carriedOut() bool {
	return d.refusal != nil && (d.refusal.Code == ErrAnswerUnreadable || d.refusal.Code == ErrRecordForeign)
}

// leaves returns what the decision says about the record of an inner call: see
// innerCalls.end. It is "" if the handler ran, and for refusals that every retry gets.
func (d *decision) leaves() Outcome {
	switch {
	case d.replays && d.failure != nil:
		return OutcomeFailed
	case d.replays:
		return OutcomeSucceeded
	case d.refusal == nil:
		return ""
	}
	switch d.refusal.Code { //nolint:exhaustive // a retry gets all other refusals again
	case ErrOutcomeUnknown:
		return OutcomeUncertain
	case ErrPayloadMismatch:
		if d.refusal.unsure { // the next deployment may know the settings of the record
			return OutcomeReleased
		}
	case ErrInProgress, ErrAttemptAbandoned, ErrStoreUnavailable, ErrOutOfTime,
		ErrAnswerUnreadable, ErrRecordForeign: // the next deployment may be able to read the record
		return OutcomeReleased
	}
	return ""
}
