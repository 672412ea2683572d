package lambdaidem

import (
	"sync"
	"sync/atomic"
)

// innerCalls is the state of the guarded calls that one handler makes. A handler may make
// several calls at the same time.
type innerCalls struct {
	mu        sync.Mutex
	handler   handlerState
	running   int                           // number of calls that have not returned, including calls inside calls
	effect    bool                          // a call, or a call inside it, may have had an effect
	unsettled map[innerRecord]unsettledCall // the calls that a retry may still complete, or whose outcome is unknown
}

// unsettledCall describes the unsettled guarded calls for one record, usually a single call. A call
// is unsettled if a retry may still complete it, or if its outcome is unknown.
type unsettledCall struct {
	innerEnding Outcome // OutcomeReleased if a retry of the call may succeed, OutcomeUncertain if its outcome is unknown
	effect      bool    // the call may have had an effect
	callsBegun  int64   // how many calls had begun when the last of these calls ended; a call with a higher number began after that
}

// handlerState says whether a handler may still make guarded calls.
type handlerState int

const (
	handlerRunning   handlerState = iota
	handlerSucceeded              // the handler has succeeded; goroutines that it started may still make guarded calls
	handlerFailed                 // the handler has ended without success; no further guarded call may begin
)

// innerRecord identifies the record of an inner call. Calls that were refused before their
// records were known all have the zero innerRecord.
type innerRecord struct {
	store any    // Guard.storeKey
	id    string // Record.ID
}

// begin counts one more inner call as running and returns true. The caller must call end when the
// inner call has returned. If the handler has ended without success, begin returns false, and the
// inner call must not run.
func (i *innerCalls) begin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.handler == handlerFailed {
		return false
	}
	i.running++
	return true
}

// end records that an inner call has returned. Each call of begin that returned true must be
// followed by one call of end.
func (i *innerCalls) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running--
}

// recordEnding updates the state after an inner call has ended, and returns the state of the outer
// handler. If a retry may still complete the call, or its outcome is unknown, recordEnding adds the
// call to i.unsettled, from which attempt.decideOutcome decides the outcome of the outer handler.
// Any other call may settle earlier calls for the same record, for example because the record now
// has an answer. recordEnding removes the settled calls from i.unsettled.
//
//   - number is the call's number; see attempt.beginInner.
//   - callsBegun counts the calls that have begun. recordEnding stores the count in i.unsettled. It
//     loads the count while i.mu is locked, so that the stored one never decreases.
//   - innerEnding says how the call ended; see attempt.endingOf.
//   - ran reports whether the inner call ran its handler and was not refused.
//   - effect reports whether the call may have had an effect.
func (i *innerCalls) recordEnding(number int64, callsBegun *atomic.Int64, rec innerRecord, innerEnding Outcome, ran, effect bool) handlerState {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.effect = i.effect || effect
	earlier := i.unsettled[rec]
	switch {
	case innerEnding == OutcomeReleased, innerEnding == OutcomeUncertain:
		if i.unsettled == nil {
			i.unsettled = make(map[innerRecord]unsettledCall)
		}
		i.unsettled[rec] = unsettledCall{outcomeOfBoth(innerEnding, earlier.innerEnding), effect || earlier.effect, callsBegun.Load()}
	// The new call was not a retry of the earlier one, which was refused: it had begun before the
	// earlier call ended. The handler may return that refusal although the new call succeeded, so
	// keep the earlier call in i.unsettled.
	case number <= earlier.callsBegun:
	case innerEnding == OutcomeSucceeded, innerEnding == OutcomeFailed: // the record has an answer
		delete(i.unsettled, rec)
	case innerEnding == "" && ran && !earlier.effect: // the earlier call was only refused
		delete(i.unsettled, rec)
	}
	return i.handler
}

// setEffect records that an inner call may have had an effect.
func (i *innerCalls) setEffect() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.effect = true
}

// anyEffect reports whether an inner call may have had an effect, or is still running.
func (i *innerCalls) anyEffect() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.effect || i.running > 0
}

// handlerHasFailed reports whether the handler has ended without success.
func (i *innerCalls) handlerHasFailed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.handler == handlerFailed
}

func (i *innerCalls) setHandler(s handlerState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handler = s
}

// outcome summarizes the inner calls for attempt.decideOutcome. innerOutcome is the first of these
// that applies:
//
//   - OutcomeUncertain: a call is still running, or the outcome of a call is unknown.
//   - OutcomeReleased: a retry of a call may succeed.
//   - "": the inner calls do not affect the handler's outcome.
//
// running reports whether a call is still running.
func (i *innerCalls) outcome() (innerOutcome Outcome, running bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running > 0 {
		return OutcomeUncertain, true
	}
	for _, one := range i.unsettled {
		innerOutcome = outcomeOfBoth(innerOutcome, one.innerEnding)
	}
	return innerOutcome, false
}
