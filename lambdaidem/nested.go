package lambdaidem

import "sync"

// This file relates a guarded handler to the guarded calls that it makes.

// innerRefusals has the guarded calls of one handler that were refused with a code after
// which the same call may succeed later. A handler may make several calls at the same time.
type innerRefusals struct {
	mu    sync.Mutex
	codes map[string]Code // by the id of the inner call's record
}

// note records how the guard decided an inner call. refusal is nil if the call was not
// refused. Only the last decision about each record counts.
func (i *innerRefusals) note(id string, refusal *Error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if refusal != nil {
		switch refusal.Code { //nolint:exhaustive // a retry gets all other refusals again
		case ErrInProgress, ErrAttemptAbandoned, ErrStoreUnavailable, ErrOutOfTime, ErrOutcomeUnknown:
			if i.codes == nil {
				i.codes = make(map[string]Code)
			}
			i.codes[id] = refusal.Code
			return
		}
	}
	delete(i.codes, id)
}

// outcome returns OutcomeUncertain if an inner call was refused with ErrOutcomeUnknown,
// OutcomeReleased if inner calls were refused with other codes only, and "" if none was
// refused.
func (i *innerRefusals) outcome() Outcome {
	i.mu.Lock()
	defer i.mu.Unlock()
	var o Outcome
	for _, code := range i.codes {
		if code == ErrOutcomeUnknown {
			return OutcomeUncertain
		}
		o = OutcomeReleased
	}
	return o
}

// insideOutcome returns the outcome that the inner calls of the attempt's handler stand
// for: see innerRefusals.outcome. The attempt is nil if the handler ran unguarded.
func (a *attempt) insideOutcome() Outcome {
	if a == nil {
		return ""
	}
	return a.inner.outcome()
}
