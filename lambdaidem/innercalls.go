package lambdaidem

import (
	"context"
	"errors"
)

// An inner call is a guarded call that a guarded handler makes. This file decides how inner
// calls affect the record of the handler that makes them, the outer record. docs/effects.md
// has the same rules for users.
//
// First, attempt.endInner decides how an inner call ended:
//
//	settled      its record has an answer, or was released and never had an effect, or the
//	             guard will refuse every retry of the call for the same reason
//	refused      it was not carried out now, and a retry may succeed; OutcomeReleased
//	unknown      it may have been carried out; OutcomeUncertain
//
// When the handler has returned, attempt.decideOutcome decides what happens to its answer:
//
//	the answer   all settled    one was refused          one is unknown or still running
//	success      stored         stored                   stored
//	failure      stored         released; uncertain      uncertain
//	                            under Hold
//	released     released       released                 uncertain
//	uncertain    uncertain      uncertain                uncertain
//
// If the outcome changes according to this table, attempt.finish gives the caller a 503
// instead of the handler's answer. The caller also gets a 503 if the answer is final, such as
// a 402, and is not stored while an inner call is not settled. A client that received the 402
// would not repeat the request.
//
// An inner call that may have had an effect also binds the outer record to its payload:
// once released, the record refuses another payload. See BoundByInnerCall.

// bindsEffect reports whether a record refuses other payloads because of an effect that an earlier
// attempt may have had. The parameter bound is Record.Bound or Claim.Bound. These values say so:
//
//   - BoundByDeadAttempt: the attempt died, or it had no lease (Options.FailOpen) and ran a step
//     whose result the record does not have.
//   - BoundByInnerCall: the attempt made a guarded call that may have had an effect.
func bindsEffect(bound string) bool { return bound == BoundByDeadAttempt || bound == BoundByInnerCall }

// innerOutcome summarizes the inner calls of the attempt's handler in one Outcome:
// OutcomeUncertain or OutcomeReleased, or "" if these calls do not affect the handler's outcome.
func (a *attempt) innerOutcome() Outcome {
	innerOutcome, _ := a.inner.outcome()
	return innerOutcome
}

// releasedEnding returns the innerEnding of an attempt whose record is released:
//
//   - OutcomeUncertain: a guarded call that this attempt's handler made is still running, or its
//     outcome is unknown.
//   - OutcomeReleased: this attempt may have had a part of its effects, and a retry may complete
//     them.
//   - "": this attempt has had no effect.
func (a *attempt) releasedEnding() Outcome {
	// If one of these conditions is true, the call may be half done. An optimistic attempt writes
	// no record when it is released, so nothing prevents a transaction that it sent earlier from
	// committing.
	if a.g.opts.Optimistic || bindsEffect(a.bound) || a.steps.any() || a.inner.anyEffect() {
		return outcomeOfBoth(a.innerOutcome(), OutcomeReleased)
	}
	return a.innerOutcome()
}

// isInner reports whether the attempt is for an inner call. The attempt that stands for an
// unguarded run has no id: a call that an unguarded handler makes is not an inner call.
func (a *attempt) isInner() bool { return a != nil && a.outer != nil && a.outer.id != "" }

// beginInner registers a running guarded call that the attempt's handler makes, and returns the
// call's number. The calls inside one outermost handler have the numbers 1, 2 and so on. The caller
// must call endInner when the guarded call has returned.
//
// If the handler or an outer handler has already ended without success, beginInner returns 0. The
// guarded call must then not run.
func (a *attempt) beginInner() (number int64) {
	// Register the call for every outer handler too, because the call may continue in a goroutine
	// after the attempt's handler has returned.
	for outer := a; outer != nil; outer = outer.outer {
		if !outer.inner.begin() {
			for prev := a; prev != outer; prev = prev.outer {
				prev.inner.end()
			}
			return 0
		}
	}
	return a.outermost().callsBegun.Add(1)
}

// outermost returns the outermost of the attempts that enclose this attempt. If no attempt encloses
// this attempt, outermost returns this attempt itself.
func (a *attempt) outermost() *attempt {
	for a.outer != nil {
		a = a.outer
	}
	return a
}

// endInner records how a guarded call that the attempt's handler made has ended, and that the call
// no longer runs.
//
//   - number is the result of beginInner for the call.
//   - rec identifies the call's record.
//   - inner is the call's attempt, or nil if there was none, for example because the answer was
//     cached.
//   - d is the decision about the call, or zero if the call panicked.
func (a *attempt) endInner(number int64, rec innerRecord, inner *attempt, d decision) {
	a.recordInner(number, rec, inner, d)
	for outer := a; outer != nil; outer = outer.outer {
		outer.inner.end()
	}
}

// recordInner records in a, the attempt of an outer handler, how an inner call of that handler has
// ended. For the parameters, see endInner; number is 0 if the call failed before it began.
//
// The ending may change the outcome of the outer handler. If that handler has already succeeded,
// the ending counts for the next handler outward instead. For handlers further out, recordInner
// records only whether the call may have had an effect.
func (a *attempt) recordInner(number int64, rec innerRecord, inner *attempt, d decision) {
	innerEnding := inner.endingOf(d)
	effect := innerEnding == OutcomeSucceeded || innerEnding == OutcomeUncertain || d.carriedOut() || d.panicked(inner) || inner != nil && inner.mayHaveHadEffect()
	ran := inner != nil && inner.started && d.refusal == nil
	calls := &a.outermost().callsBegun
	counts := true // whether the ending may change the outcome of the next handler
	for outer := a; outer != nil; outer = outer.outer {
		switch {
		case counts:
			// If this outer handler has already succeeded, its outcome can't change. The ending
			// then counts for the next handler outward.
			counts = outer.inner.recordEnding(number, calls, rec, innerEnding, ran, effect) == handlerSucceeded
		case effect:
			outer.inner.setEffect()
		}
	}
}

// recordUnidentified records an inner call that panicked while the guard identified it, for example
// in the application's key function. The call counts as refused, and a retry may succeed.
// recordUnidentified does not recover the panic.
//
// The guard defers recordUnidentified before it calls the application's function, and sets
// identified to true afterwards.
func recordUnidentified(ctx context.Context, identified *bool) {
	if outer := attemptOf(ctx); outer != nil && !*identified {
		outer.recordInner(0, innerRecord{}, nil, decision{refusal: &Error{forNow: true}})
	}
}

// endingOf returns how an inner call ended, for the handler that made the call:
//
//   - OutcomeSucceeded or OutcomeFailed: the call's record has an answer.
//   - OutcomeReleased: a retry of the call may succeed.
//   - OutcomeUncertain: the outcome of the call is unknown.
//   - "": the call does not affect the outcome of the handler that made it.
//
// d is the decision about the call. The receiver is the call's attempt, or nil if there was none.
func (a *attempt) endingOf(d decision) Outcome {
	switch {
	case d.replays && d.failure != nil && d.failure.Code == ErrAnswerUnavailable: // the record has no answer, so it is unknown whether the call succeeded
		return OutcomeReleased
	case d.replays:
		return d.outcome
	case d.panicked(a):
		return OutcomeReleased
	case d.refusal == nil, d.replaced:
		return a.innerEnding
	}
	var innerEnding Outcome
	switch {
	case d.refusal.Code == ErrOutcomeUnknown:
		innerEnding = OutcomeUncertain
	case d.refusal.temporary():
		innerEnding = OutcomeReleased
	}
	switch {
	case a == nil || !a.started:
		return innerEnding
	case a.g.opts.Optimistic: // the writes of the call's handler were not made, but calls inside it may have had effects
		return outcomeOfBoth(innerEnding, a.innerOutcome())
	default: // the call's handler ran, and its answer is not stored
		return OutcomeUncertain
	}
}

// panicked reports whether an inner call ended with a panic before its handler ran, for example
// while a function of the application decoded a stored answer. It recognizes such a call by the
// decision d, which neither refuses the call nor replays an answer. The parameter a is the call's
// attempt, or nil if there was none.
func (d *decision) panicked(a *attempt) bool {
	return d.refusal == nil && !d.replays && (a == nil || !a.started)
}

// carriedOut reports whether the call's answer is not available, although the call was, or may have
// been, carried out. Either the answer could not be stored, or the stored answer can't be read.
func (d *decision) carriedOut() bool {
	return d.unreturned || d.failure != nil && d.failure.Code == ErrAnswerUnavailable
}

// mayHaveHadEffect reports whether the attempt's call may have had an effect, even if the call
// failed. That is so if one of these is true:
//
//   - A transaction stored the answer together with the handler's writes.
//   - The record has results of steps.
//   - The record refuses other payloads, because an earlier attempt may have had an effect.
//   - A guarded call inside this call may have had an effect.
func (a *attempt) mayHaveHadEffect() bool {
	return a.storedByTx || a.steps.any() || a.bound != "" || a.inner.anyEffect()
}

// temporary reports whether a call that a guard has refused with e may succeed if it is
// repeated later.
func (e *Error) temporary() bool {
	switch e.Code { //nolint:exhaustive // a call that is refused with another code is always refused
	case ErrInProgress, ErrAttemptAbandoned, ErrStoreUnavailable, ErrOutOfTime, ErrOutcomeUnknown:
		return true
	case ErrAnswerUnavailable, ErrAnswerUnreadable, ErrRecordForeign: // after another deployment, the record may be readable
		return true
	case ErrPayloadMismatch: // after another deployment, it may be possible to compare the payloads
		return e.unsure
	}
	return e.forNow || asksForRetry(e.Status) || serverFailed(e.Status)
}

// Errors in the events that Options.Observer receives. Each says why a guarded call inside a
// handler is refused, or why the answer of the handler is not stored.
var (
	errInnerTooLate   = errors.New("the handler that makes this call has returned without success; it must wait for the calls that it makes")
	errInnerRunning   = errors.New("the handler has returned while a guarded call that it made is still running; it must wait for the call")
	errInnerUnknown   = errors.New("the outcome of a guarded call that the handler made is unknown")
	errInnerRefused   = errors.New("a guarded call that the handler made was refused and may succeed later, so the failure is not final")
	errStepUnreadable = errors.New("the stored result of a step can't be decoded by this version, so the failure is not final")
	// errUncertainCause explains why a client receives an ErrOutcomeUnknown instead of a final
	// error, such as a 402. A final error would tell the client not to repeat the request. That
	// would be wrong while the outcome is uncertain.
	errUncertainCause = errors.New("the handler's error tells the client not to repeat the request, but its outcome is uncertain")
)

// decideOutcome returns the outcome of a handler that has returned: whether its answer is stored,
// its record released, or neither, because nobody knows what the handler did. o is the outcome that
// follows from the handler's answer alone. The table at the top of this file says how inner calls
// change o. A step that is still running counts like an inner call that is still running. A step
// whose stored result can't be decoded counts like an inner call that was refused.
//
// If the caller must not receive the handler's answer, reason says why. Otherwise reason is nil.
func (a *attempt) decideOutcome(o Outcome, answer answerTells) (settled Outcome, reason error) {
	stored := o == OutcomeSucceeded || o == OutcomeFailed
	switch {
	case a == nil:
		return o, nil
	case answer == success && stored:
		a.inner.setHandler(handlerSucceeded)
		return o, nil
	}
	// Refuse further inner calls, for example from a goroutine. They must have no effect: the
	// client may learn that the request failed, or a retry may run the handler again.
	a.inner.setHandler(handlerFailed)
	innerOutcome, running := a.inner.outcome()
	switch {
	case a.steps.leftRunning:
		innerOutcome, reason = OutcomeUncertain, errHandlerReturned
	case running:
		reason = errInnerRunning
	case innerOutcome == OutcomeUncertain:
		reason = errInnerUnknown
	case innerOutcome == OutcomeReleased && (stored || answer == final):
		reason = errInnerRefused
	case a.steps.anyUnreadable() && (stored || answer == final):
		innerOutcome, reason = OutcomeReleased, errStepUnreadable
	default:
		return o, nil
	}
	switch {
	case stored && innerOutcome == OutcomeReleased && a.g.opts.Policy == Hold:
		return OutcomeUncertain, reason
	case stored, o == OutcomeReleased:
		return innerOutcome, reason
	case answer == final: // o is uncertain, or an invalid value of Options.Outcome
		return o, reason
	}
	return o, nil
}

// endingOfError returns the ending of a handler that returned the error err. a is the handler's
// attempt. If err is final, such as a 402, but the outcome is uncertain, the client receives
// another error, because a final error would tell the client not to repeat the request.
func (g *Guard) endingOfError(a *attempt, err error) ending {
	o := g.outcomeOfError(err, OutcomeFailed)
	e := g.answeredError(err, o)
	tells := answerOfError(err, e)
	end := ending{err: err, final: tells == final || e.refusesForGood()}
	// A handler that marks its own error as Uncertain knows that the outcome is uncertain, so the
	// client receives that error.
	if _, marked := err.(*uncertainError); marked { //nolint:errorlint // a mark inside err is not that of the whole error
		tells = mayRepeat
	}
	end.outcome, end.withheld = a.decideOutcome(o, tells)
	if a != nil && end.withheld == nil && tells == final && end.outcome == OutcomeUncertain {
		end.withheld = errUncertainCause
	}
	return end
}
