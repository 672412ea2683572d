package commands

import (
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// stateOf returns the state of a record at now, as idem prints it.
func stateOf(rec lambdaidem.Record, now time.Time) string {
	switch {
	case rec.GoneAt(now):
		return "expired"
	case rec.State == lambdaidem.Completed && rec.Result.Outcome == lambdaidem.OutcomeFailed:
		return "failed"
	case rec.State == lambdaidem.Completed:
		return "completed"
	case rec.State == lambdaidem.Released:
		return "released"
	case rec.LeaseLiveAt(now):
		return "in progress"
	case rec.Held():
		return "held"
	default:
		return "dead"
	}
}

// says returns the state and its meaning. A released record was released by an operator, or by its
// attempt after the handler failed; says distinguishes the two. The second case does not mean that
// the handler had no effect: under policy Rerun, every error releases the record.
func (v recordView) says() string {
	if n := len(v.Operations); v.State == "released" && n > 0 && v.Operations[n-1].Token == v.Token && v.Operations[n-1].What == dynamostore.OperationReleased {
		return v.State + ": an operator decided that the next retry runs"
	}
	means := map[string]string{
		"in progress": "an attempt holds the lease",
		"dead":        "its attempt died; the next retry takes it over (policy rerun)",
		"held":        "its attempt died or ended unsure; retries are refused (idempotency_attempt_abandoned) until an operator decides",
		"completed":   "retries get its answer",
		"failed":      "retries get its answer, a failure",
		"released":    "its last attempt failed, and no answer is stored; the next retry runs",
		"expired":     "it counts as absent; the next retry runs as the first",
	}[v.State]
	return v.State + ": " + means
}

// boundTo describes a record's Bound.
func boundTo(bound string) string {
	why := map[string]string{
		lambdaidem.BoundByDownstreamKey: "another service may have got a downstream key",
		lambdaidem.BoundByDeadAttempt:   "an attempt died or ran a step without a lease",
		lambdaidem.BoundByInnerCall:     "a guarded call that the handler made may have had an effect",
	}[bound]
	if why == "" { // a later version of the toolkit wrote it
		return clip(bound)
	}
	return bound + ": only the same payload runs again, because " + why
}
