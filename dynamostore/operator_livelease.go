package dynamostore

import (
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// LeaseLiveError means that the record's lease is live, so its attempt may still be
// running.
type LeaseLiveError struct {
	End     time.Time     // the end of the lease
	Now     time.Time     // the time of the check by the database's clock; see Inspected.At
	MaxSkew time.Duration // OperatorOptions.MaxSkew; the lease counts as live until End plus MaxSkew
}

// Error returns a message that says how long to wait.
func (e *LeaseLiveError) Error() string {
	return fmt.Sprintf("the lease is live: it ends at %s, and clocks may be %v apart; by the database's clock that is in %v",
		e.End.Format(time.RFC3339Nano), e.MaxSkew, e.Left().Round(time.Millisecond))
}

// Left returns the time from Now until the lease no longer counts as live.
func (e *LeaseLiveError) Left() time.Duration { return e.End.Add(e.MaxSkew).Sub(e.Now) }

// mayChange returns an error if the operator must not release or settle the record:
// inspected.Record was not read from the store, the record is absent, expired or completed, or its
// lease is live. If OperatorOptions.Force is set, a live lease is not an error, and forced is true.
func (o *Operator) mayChange(inspected Inspected) (forced bool, err error) {
	now, rec := inspected.At(), inspected.Record
	switch {
	case inspected.readAt.IsZero():
		return false, errNotInspected
	case rec.GoneAt(now):
		return false, ErrRecordGone
	case rec.State == lambdaidem.Completed:
		return false, ErrRecordCompleted
	case rec.LeaseLiveAt(now.Add(-o.opts.MaxSkew)):
		if !o.opts.Force {
			return false, &LeaseLiveError{End: rec.LeaseEnd, Now: now, MaxSkew: o.opts.MaxSkew}
		}
		return true, nil
	}
	return false, nil
}
