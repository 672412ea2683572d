package lambdaidem

import "context"

// meaning classifies a record from the point of view of one call. It decides whether the call runs
// its handler, replays the answer, waits or is refused.
type meaning int

const (
	isFree      meaning = iota // there is no record, or the call may take the record over
	isAcquired                 // this attempt holds the lease
	isBusy                     // another attempt holds the lease
	isAbandoned                // an attempt died under policy Hold, and an operator must decide
	isMismatch                 // the record has another payload, or one that can't be compared with the call's
	isFinished                 // the record has an answer, which must be replayed
)

// meaningOf decides what a record means to the call. It does not check whether the record
// has expired, because Store.Get and Store.Acquire return an expired record as absent.
func (a *attempt) meaningOf(rec Record) meaning {
	switch now := a.g.opts.Clock(); {
	case rec.State == Absent:
		return isFree
	case rec.State == Released && len(rec.Steps) == 0 && a.call.mayReplace(rec):
		return isFree // even for another payload, so that a client can correct its request
	case a.call.comparePayload(rec.Fingerprint) != samePayload:
		return isMismatch
	case rec.State == Released:
		return isFree
	case rec.State == Completed:
		return isFinished
	case rec.Token == a.token:
		return isAcquired
	case rec.LeaseLiveAt(now):
		return isBusy
	case a.g.opts.Policy == Hold, rec.Held():
		return isAbandoned
	default:
		return isFree
	}
}

// fromRecord decides what the caller receives instead of an answer of this attempt's handler. m is
// the result of meaningOf for rec. For isFinished, the caller receives a replay; for isMismatch and
// isAbandoned, a refusal. fromRecord is not called for other meanings.
func (a *attempt) fromRecord(ctx context.Context, m meaning, rec Record) decision {
	a.number = rec.Attempt
	switch m {
	case isFinished:
		return a.replay(ctx, rec, EventReplayed)
	case isMismatch:
		refusal := payloadMismatch(a.g.opts.MismatchStatus)
		switch {
		case a.leftEffects:
			refusal = payloadMismatchAfterRun(a.g.opts.MismatchStatus)
		case a.started && a.mayHaveReplacedAnswer(rec):
			refusal = payloadReplaced(a.g.opts.MismatchStatus)
		}
		if a.call.comparePayload(rec.Fingerprint) == maybeSamePayload {
			if rec.State == InProgress && !rec.LeaseLiveAt(a.g.opts.Clock()) { // the request may be that of the dead attempt
				if _, err := a.hold(ctx, rec); err != nil {
					return a.notHeld(err)
				}
			}
			refusal = payloadUnsure(a.g.opts.MismatchStatus)
			refusal.unfinished = rec.State != Completed || rec.Result.Outcome == OutcomeFailed
		}
		a.report(ctx, EventMismatch, refusal.Err)
		return decision{refusal: refusal}
	default:
		return a.abandoned(ctx, rec)
	}
}
