package lambdaidem

import (
	"errors"
	"sync"
)

// This file decides what the guarded calls that a handler makes, its inner calls, mean for
// the handler's own record. There are two questions.
//
// How did the inner call end? See attempt.endInner:
//
//	settled      its record has an answer, or every retry of the call is refused as this one
//	             was, or its own record was released
//	refused      it may be answered otherwise later; this is OutcomeReleased
//	unknown      it may have had its effect, and nothing says so; this is OutcomeUncertain
//
// What becomes of the handler's own answer then? See attempt.settle:
//
//	answer       all settled    one refused              one unknown, or running
//	success      stored         stored                   stored
//	failure      stored         released; under Hold     uncertain
//	                            uncertain
//	released     released       released                 uncertain
//	uncertain    uncertain      uncertain                uncertain
//
// An answer that becomes less final than it sounds is not sent to a client, who might not
// repeat the request: see attempt.finish.
//
// Besides, an inner call that may have had an effect binds the outer record to its payload;
// see Claim.Bound. docs/effects.md has the same rules for users.

// innerCalls has the state of the guarded calls that one handler makes. A handler may make
// several calls at the same time.
type innerCalls struct {
	mu        sync.Mutex
	running   int                     // calls that have not returned
	closed    bool                    // the handler has returned, and no further call may begin
	effect    bool                    // a call, or one that a call made, may have had an effect
	unsettled map[innerRecord]Outcome // OutcomeReleased for a refused call, OutcomeUncertain for an unknown one
}

// innerRecord identifies the record of an inner call. It is zero for all calls that were
// refused before their records were known.
type innerRecord struct {
	store any // Guard.storeKey
	id    string
}

// begin reports whether an inner call may begin. If so, one end must follow.
func (i *innerCalls) begin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.running++
	return true
}

// end records how an inner call ended: left is OutcomeSucceeded or OutcomeFailed if its
// record has the answer, OutcomeReleased if the call was refused, OutcomeUncertain if its
// outcome is unknown, and "" if the call says nothing about an earlier one for its record.
// A call that is not settled stays so until the handler makes it again and the record then
// has its answer.
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

// setEffect records that an inner call may have had an effect.
func (i *innerCalls) setEffect() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.effect = true
}

// anyEffect reports whether an inner call may have had an effect.
func (i *innerCalls) anyEffect() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.effect
}

// setClosed says whether further calls are refused.
func (i *innerCalls) setClosed(closed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = closed
}

// outcome returns OutcomeUncertain if a call is unknown or running, OutcomeReleased if a
// call was refused, and "" if all calls are settled.
func (i *innerCalls) outcome() (left Outcome, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running > 0 {
		return OutcomeUncertain, true
	}
	for _, one := range i.unsettled {
		left = careful(left, one)
	}
	return left, false
}

// innerOutcome returns OutcomeUncertain if an inner call of the attempt's handler is
// unknown or running, OutcomeReleased if one was refused, and "" if all are settled.
func (a *attempt) innerOutcome() Outcome {
	left, _ := a.inner.outcome()
	return left
}

// endInner records how a guarded call that the attempt's handler made has ended: by d, or
// by a panic, in which case d is zero. inner is the call's attempt; nil if the cache or a
// check before the first request to the store has decided the call.
func (a *attempt) endInner(rec innerRecord, inner *attempt, d decision) {
	var left Outcome
	switch {
	case d.replays && d.failure == nil:
		left = OutcomeSucceeded
	case d.replays && d.failure.Code != ErrAnswerUnavailable:
		left = OutcomeFailed
	case d.replays: // it was carried out, and nobody knows how it ended
		left = OutcomeReleased
	case d.refusal == nil && inner != nil:
		left = inner.ended
	case d.refusal == nil:
	case inner != nil && inner.started && !inner.g.opts.Optimistic: // it ran, and another attempt has the record
		left = OutcomeUncertain
	case d.refusal.Code == ErrOutcomeUnknown:
		left = OutcomeUncertain
	case d.refusal.temporary():
		left = OutcomeReleased
	}
	a.inner.end(rec, left)
	if left == OutcomeSucceeded || d.carriedOut() || inner != nil && inner.mayHaveHadEffect() {
		for around := a; around != nil; around = around.outer {
			around.inner.setEffect()
		}
	}
}

// carriedOut reports whether the call's record has an answer, or may have one, that can't
// be returned.
func (d *decision) carriedOut() bool {
	return d.unreturned || d.failure != nil && d.failure.Code == ErrAnswerUnavailable
}

// mayHaveHadEffect reports whether an attempt that did not succeed may have had an effect:
// it stored a step, made writes with a failure, or has a record that is bound to its payload.
func (a *attempt) mayHaveHadEffect() bool { return a.wrote || a.steps.any() || a.bound != "" }

// temporary reports whether a call that a guard has refused with e may be answered
// otherwise later, without a change of the call.
func (e *Error) temporary() bool {
	switch e.Code { //nolint:exhaustive // a retry is refused with all other codes of the guard again
	case ErrInProgress, ErrAttemptAbandoned, ErrStoreUnavailable, ErrOutOfTime, ErrOutcomeUnknown:
		return true
	case ErrAnswerUnavailable, ErrAnswerUnreadable, ErrRecordForeign: // the next deployment may be able to read the record
		return true
	case ErrPayloadMismatch: // the next deployment may know the settings of the record
		return e.unsure
	}
	return e.forNow || e.rejected && (asksForRetry(e.Status) || serverFailed(e.Status))
}

// Reasons why an inner call is refused, or the handler's answer is not stored, for events.
var (
	errInnerTooLate = errors.New("the handler that makes this call has returned without success; it must wait for the calls that it makes")
	errInnerRunning = errors.New("the handler has returned while a guarded call that it made is still running; it must wait for the call")
	errInnerUnknown = errors.New("the outcome of a guarded call that the handler made is unknown")
	errInnerRefused = errors.New("a guarded call that the handler made was refused and may succeed later, so the failure is not final")
)

// settle returns the outcome of a handler that has returned: o, unless a step or an inner
// call is not settled; see the table at the top of this file. success reports whether the
// answer tells the caller of a success. why says what changed the outcome; it is nil if
// nothing did. Unless the handler has succeeded, inner calls that it has not begun yet are
// refused from now on, because their effects would be those of a request that has failed.
func (a *attempt) settle(o Outcome, success bool) (settled Outcome, why error) {
	stored := o == OutcomeSucceeded || o == OutcomeFailed
	if a == nil || success && stored {
		return o, nil
	}
	a.inner.setClosed(true)
	left, running := a.inner.outcome()
	switch {
	case a.steps.left:
		left, why = OutcomeUncertain, errHandlerReturned
	case running:
		why = errInnerRunning
	case left == OutcomeUncertain:
		why = errInnerUnknown
	case left == OutcomeReleased && stored:
		why = errInnerRefused
		if a.g.opts.Policy == Hold {
			left = OutcomeUncertain
		}
	default:
		return o, nil
	}
	if !stored && o != OutcomeReleased { // uncertain, or an invalid value of Options.Outcome
		return o, nil
	}
	return left, why
}

// outermost reports whether the attempt's answer goes to a client, and not to the handler of
// another attempt.
func (a *attempt) outermost() bool { return a.outer == nil || a.outer.id == "" }
