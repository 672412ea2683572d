package lambdaidem

import "context"

// lost returns what the caller receives if this attempt's answer was not stored, because
// another attempt has taken over or completed the record. rec is the current record. The
// parameter end describes how this attempt's handler ended.
func (a *attempt) lost(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	if a.failedOpen {
		// With FailOpen, the caller receives the handler's answer, with two exceptions. If
		// the record has an answer, the caller receives that answer. If the handler's answer
		// is final, such as a 402, and another attempt may carry out the call, or may have
		// done so, the caller is refused. After a final answer, the client would not repeat
		// the request, and would not learn what became of the other attempt.
		if means != isFinished && (!end.final || !a.mayBeCarriedOut(rec)) {
			return decision{}
		}
	}
	a.report(ctx, EventLeaseLost, nil)
	if means == isFinished || means == isMismatch {
		return a.fromRecord(ctx, means, rec)
	}
	return a.inProgress(ctx)
}

// failedLate returns what the caller receives if the handler failed after another attempt
// had taken over the record. If the other attempt has finished, the caller receives the
// other attempt's answer. If the record has another payload, the caller receives
// ErrPayloadMismatch.
//
// Otherwise the call may still succeed in another attempt. The caller receives the failure
// of this handler, unless that failure is final, such as a 402. After a final failure, the
// client would not repeat the request, and would not learn of a later success. The caller
// therefore receives ErrInProgress instead of a final failure.
func (a *attempt) failedLate(ctx context.Context, rec Record, end ending) decision {
	means := a.meaningOf(rec)
	switch {
	case means == isFinished, means == isMismatch:
		return a.fromRecord(ctx, means, rec)
	case end.final:
		return a.inProgress(ctx)
	}
	return decision{}
}
