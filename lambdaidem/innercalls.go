package lambdaidem

import (
	"errors"
	"sync"
)

// This file decides what the guarded calls inside a handler, its inner calls, mean for the
// handler's own record. docs/effects.md has the same rules for users.
//
// First, attempt.endInner decides how an inner call ended:
//
//	settled      its record has an answer or was released, or the guard will refuse every
//	             retry of the call for the same reason
//	refused      it was not carried out now, and a retry may succeed; OutcomeReleased
//	unknown      it may have been carried out; OutcomeUncertain
//
// When the handler has returned, attempt.settle decides what happens to its answer:
//
//	the answer   all settled    one was refused          one is unknown or still running
//	success      stored         stored                   stored
//	failure      stored         released; uncertain      uncertain
//	                            under Hold
//	released     released       released                 uncertain
//	uncertain    uncertain      uncertain                uncertain
//
// If the table makes a failure less final, attempt.finish sends the client a 503 instead of
// the handler's answer: after a 402, for example, the client would not repeat the request.
//
// Also, an inner call that may have had an effect binds the outer record to its payload; see
// BoundByInnerCall.

// innerCalls is the state of the guarded calls that one handler makes. A handler may make
// several calls at the same time.
type innerCalls struct {
	mu        sync.Mutex
	handler   handlerState
	running   int                     // calls that have not returned, with the calls inside them
	effect    bool                    // a call, or a call inside it, may have had an effect
	unsettled map[innerRecord]Outcome // OutcomeReleased for a refused call, OutcomeUncertain for an unknown one
}

// handlerState says whether a handler may still make guarded calls.
type handlerState int

const (
	handlerRunning   handlerState = iota
	handlerSucceeded              // calls that it left in goroutines may still begin
	handlerFailed                 // no call may begin any more
)

// innerRecord identifies the record of an inner call. It is zero for all calls that were
// refused before their records were known.
type innerRecord struct {
	store any // Guard.storeKey
	id    string
}

// begin reports whether an inner call may begin. If it may, it counts as running until end.
func (i *innerCalls) begin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.handler == handlerFailed {
		return false
	}
	i.running++
	return true
}

// end takes back a begin.
func (i *innerCalls) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running--
}

// record records how a call ended: left is OutcomeSucceeded or OutcomeFailed if its record
// has the answer, OutcomeReleased if it was refused, OutcomeUncertain if its outcome is
// unknown, and "" if it changes nothing. effect reports whether it may have had an effect.
// record returns the state of the handler.
func (i *innerCalls) record(rec innerRecord, left Outcome, effect bool) handlerState {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.effect = i.effect || effect
	switch {
	case left == "", i.unsettled[rec] == OutcomeUncertain && left == OutcomeReleased:
	case left == OutcomeSucceeded, left == OutcomeFailed: // also if an earlier call for the record was not settled
		delete(i.unsettled, rec)
	default:
		if i.unsettled == nil {
			i.unsettled = make(map[innerRecord]Outcome)
		}
		i.unsettled[rec] = left
	}
	return i.handler
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

func (i *innerCalls) setHandler(s handlerState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = s
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

// beginInner reports whether a guarded call may begin that the attempt's handler makes. The
// handlers around that one have to wait for the call too, because an inner handler may leave
// it in a goroutine and return. If the call may begin, endInner must follow.
func (a *attempt) beginInner() bool {
	for around := a; around != nil; around = around.outer {
		if !around.inner.begin() {
			for begun := a; begun != around; begun = begun.outer {
				begun.inner.end()
			}
			return false
		}
	}
	return true
}

// endInner ends a guarded call that the attempt's handler made; see recordInner.
func (a *attempt) endInner(rec innerRecord, inner *attempt, d decision) {
	a.recordInner(rec, inner, d)
	for around := a; around != nil; around = around.outer {
		around.inner.end()
	}
}

// recordInner records how a guarded call that the attempt's handler made has ended: by d, or
// by a panic, in which case d is zero. inner is the call's attempt; nil if the call was
// decided without one.
//
// The call counts for the handler that made it. If that handler has succeeded meanwhile,
// its own record says nothing about the call any more, so the call counts for the handler
// around it too.
func (a *attempt) recordInner(rec innerRecord, inner *attempt, d decision) {
	left := inner.endingOf(d)
	effect := left == OutcomeSucceeded || d.carriedOut() || inner != nil && inner.mayHaveHadEffect()
	for around := a; around != nil; around = around.outer {
		if around.inner.record(rec, left, effect) != handlerSucceeded {
			left = ""
		}
	}
}

// endingOf returns how an inner call ended, as innerCalls.record takes it. a is the call's
// attempt; nil if the call was decided without one.
func (a *attempt) endingOf(d decision) Outcome {
	switch {
	case d.replays && d.failure != nil && d.failure.Code == ErrAnswerUnavailable: // it was carried out, and nobody knows how it ended
		return OutcomeReleased
	case d.replays:
		return d.outcome
	case d.refusal == nil && a == nil:
		return ""
	case d.refusal == nil:
		return a.innerEnding
	}
	var left Outcome
	switch {
	case d.refusal.Code == ErrOutcomeUnknown:
		left = OutcomeUncertain
	case d.refusal.temporary():
		left = OutcomeReleased
	}
	switch {
	case a == nil || !a.started:
		return left
	case a.g.opts.Optimistic: // none of its own writes were made; the calls that it made were
		return careful(left, a.innerOutcome())
	default: // it ran, and another attempt has the record
		return OutcomeUncertain
	}
}

// carriedOut reports whether the call has been carried out, or may have been, although its
// answer can't be returned.
func (d *decision) carriedOut() bool {
	return d.unreturned || d.failure != nil && d.failure.Code == ErrAnswerUnavailable
}

// mayHaveHadEffect reports whether an attempt that did not succeed may have had an effect:
// it stored a step, made writes with a failure, or has a record that is bound to its payload.
func (a *attempt) mayHaveHadEffect() bool { return a.wrote || a.steps.any() || a.bound != "" }

// temporary reports whether the same call may succeed later, after a guard has refused it
// with e.
func (e *Error) temporary() bool {
	switch e.Code { //nolint:exhaustive // a call that is refused with another code is always refused
	case ErrInProgress, ErrAttemptAbandoned, ErrStoreUnavailable, ErrOutOfTime, ErrOutcomeUnknown:
		return true
	case ErrAnswerUnavailable, ErrAnswerUnreadable, ErrRecordForeign: // the next deployment may be able to read the record
		return true
	case ErrPayloadMismatch: // the next deployment may be able to compare the payloads
		return e.unsure
	}
	return e.forNow || e.rejected && (asksForRetry(e.Status) || serverFailed(e.Status))
}

// Reasons for events: why an inner call is refused, or the handler's answer is not stored.
var (
	errInnerTooLate = errors.New("the handler that makes this call has returned without success; it must wait for the calls that it makes")
	errInnerRunning = errors.New("the handler has returned while a guarded call that it made is still running; it must wait for the call")
	errInnerUnknown = errors.New("the outcome of a guarded call that the handler made is unknown")
	errInnerRefused = errors.New("a guarded call that the handler made was refused and may succeed later, so the failure is not final")
	// errUncertainCause is why a rejection is not sent.
	errUncertainCause = errors.New("the handler rejected the request with an error that has other causes, so the outcome is uncertain")
)

// innerCallError is the cause of a guard's refusal of an inner call. The handler often returns
// the refusal, and the event about the outer call must then say which call it is about.
type innerCallError struct {
	what   string // the operation or route
	record string // the record's id
	err    error  // the cause of the refusal; nil if its code says all
}

func (e *innerCallError) Error() string {
	s := "the guarded call " + e.what + " inside the handler, record " + e.record
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

func (e *innerCallError) Unwrap() error { return e.err }

// settle returns the outcome of a handler that has returned: o, unless a step or an inner
// call is not settled; see the table at the top of this file. success reports whether the
// answer tells the caller of a success. why is the reason for a change of the outcome, or
// nil. Unless the handler has succeeded, inner calls that have not begun yet are refused from
// now on: the client is told that the request failed, so no further effect may follow.
func (a *attempt) settle(o Outcome, success bool) (settled Outcome, why error) {
	stored := o == OutcomeSucceeded || o == OutcomeFailed
	switch {
	case a == nil:
		return o, nil
	case success && stored:
		a.inner.setHandler(handlerSucceeded)
		return o, nil
	}
	a.inner.setHandler(handlerFailed)
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

// settleError is like settle, for a handler that returned err. It also returns why the client
// must not receive err although its outcome is not changed: err has a rejection that tells the
// client not to repeat the request, but is not stored, so a retry may succeed. An error that
// the handler has marked as Uncertain is sent, because the handler chose its words.
func (a *attempt) settleError(o Outcome, err error) (settled Outcome, why error) {
	o, why = a.settle(o, false)
	if a == nil || why != nil {
		return o, why
	}
	if _, marked := err.(*uncertainError); marked { //nolint:errorlint // a mark inside err is not that of the whole error
		return o, nil
	}
	if e := clientError(err); e == nil || !e.rejected || serverFailed(e.Status) || asksForRetry(e.Status) {
		return o, nil
	}
	switch left := a.innerOutcome(); {
	case left == OutcomeUncertain:
		return o, errInnerUnknown
	case left == OutcomeReleased:
		return o, errInnerRefused
	case o == OutcomeUncertain:
		return o, errUncertainCause
	}
	return o, nil
}

// outermost reports whether the attempt's answer goes to a client. Otherwise it goes to the
// handler of another attempt.
func (a *attempt) outermost() bool { return a.outer == nil || a.outer.id == "" }
