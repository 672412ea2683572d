package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// closes reports whether the purge erases the steps of a record: see PurgeOptions.Steps.
func (p *purge) closes(it *item, clock Inspected) bool {
	if !p.opts.Steps || len(it.Steps) == 0 {
		return false
	}
	rec, now := it.record(), clock.At()
	switch {
	case rec.GoneAt(now):
		return false
	case it.Status == lambdaidem.Released:
		return !p.opts.Forget
	default:
		return it.Status == lambdaidem.InProgress && !rec.LeaseLiveAt(now.Add(-p.o.opts.MaxSkew))
	}
}

// closeWithoutSteps completes a record without an answer, which drops its steps. A new
// fencing token keeps an attempt that is still running from storing anything.
func (p *purge) closeWithoutSteps(ctx context.Context, it *item, clock Inspected) (bool, error) {
	seen := Inspected{Record: it.record(), Operations: it.Operations, Now: clock.Now, read: clock.read}
	next, err := p.o.ending(seen, OperationErased, false)
	if err != nil {
		return false, err
	}
	expires := p.o.expires(seen)
	if seen.Record.Expires.IsZero() {
		// The record is held. For how long retries may come is not known, and after its
		// expiry a retry would run without the steps.
		expires = time.Time{}
	}
	next.finish(lambdaidem.Result{
		Outcome: lambdaidem.OutcomeFailed,
		Failure: lambdaidem.NoAnswer("the operation was not finished when its data was erased"),
		At:      seen.At().Truncate(time.Millisecond),
		Expires: expires,
	})
	return p.update(ctx, &change{
		sets: completion, also: []string{attrToken, attrOperations},
		condition: isStillWhatWasSeen, returns: types.ReturnValueNone,
	}, next, (&given{now: seen.At(), seen: &seen.Record}).attributes())
}
