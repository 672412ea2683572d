package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// erasesSteps reports whether the purge calls eraseSteps for the record. It does so if
// PurgeOptions.Steps is set, the record has steps, and the record is released or its attempt has
// died. But if PurgeOptions.Forget is set too, the purge calls forgetSteps for a released record.
func (p *purge) erasesSteps(itm *item, clock databaseClock) bool {
	if !p.opts.Steps || len(itm.Steps) == 0 {
		return false
	}
	if itm.Status == lambdaidem.Released {
		return !p.opts.Forget
	}
	return itm.Status == lambdaidem.InProgress && !itm.record().LeaseLiveAt(clock.now().Add(-p.o.opts.MaxSkew))
}

// leavesForgetUndone reports whether the record still has to be forgotten after eraseSteps:
// PurgeOptions.Forget is set, and the record has not expired. Forget makes only completed and
// released records expire, and eraseSteps has just completed this one. A second purge forgets it.
func (p *purge) leavesForgetUndone(itm *item, clock databaseClock) bool {
	return p.opts.Forget && !itm.record().GoneAt(clock.now())
}

// eraseSteps erases the steps of a record. It also completes the record, with the failure
// lambdaidem.NoAnswer, so that no retry runs the handler: without the stored results, a retry would
// repeat the effects of the steps. If eraseSteps returns false and no error, the record has changed
// since it was read.
func (p *purge) eraseSteps(ctx context.Context, itm *item, clock databaseClock) (bool, error) {
	inspected := clock.inspected(itm.record(), itm.Operations)
	expires := p.o.expires(inspected)
	switch own := inspected.Record.Expires; {
	case own.IsZero():
		// The record has no expiry, because it waits for an operator (policy Hold). Keep it that
		// way: a retry after an expiry would repeat the steps.
		expires = own
	case inspected.Record.GoneAt(inspected.At()):
		expires = own // the record already counts as absent, and must stay so
	}
	done, err := p.completeWithoutSteps(ctx, inspected, OperationErased, expires)
	if done && p.leavesForgetUndone(itm, clock) {
		p.count(func(sum *PurgeProgress) { sum.OnlyErased++ })
	}
	return done, err
}

// forgetSteps erases the steps of a released record and makes the record expire, as
// PurgeOptions.Forget demands. It also completes the record, with the failure lambdaidem.NoAnswer.
// Otherwise a retry before the expiry would repeat the effects of the steps. If forgetSteps returns
// false and no error, the record has changed since it was read.
func (p *purge) forgetSteps(ctx context.Context, itm *item, clock databaseClock) (bool, error) {
	inspected := clock.inspected(itm.record(), itm.Operations)
	expires := p.forgottenAt(clock.latest())
	if own := inspected.Record.Expires; !own.IsZero() && own.Before(expires) { // never extend the record's life
		expires = own
	}
	return p.completeWithoutSteps(ctx, inspected, OperationForgotten, expires)
}

// completeWithoutSteps completes a record with the failure lambdaidem.NoAnswer and removes the
// record's steps. The record gets a new fencing token, so an attempt that is still running can't
// store anything. completeWithoutSteps returns false if the record has changed since it was read.
func (p *purge) completeWithoutSteps(ctx context.Context, inspected Inspected, opKind OperationKind, expires time.Time) (bool, error) {
	newItm, err := p.o.nextItem(inspected, opKind, false)
	if err != nil {
		return false, err
	}
	newItm.finish(lambdaidem.Result{
		Outcome: lambdaidem.OutcomeFailed,
		Failure: lambdaidem.NoAnswer("the operation was not finished when its data was erased"),
		At:      inspected.At().Truncate(time.Millisecond),
		Expires: expires,
	})
	condition := isStillWhatWasSeen
	// Complete an expired record too. For a guard whose clock is behind, the record may not have
	// expired yet: the guard could take it over, and repeat the steps.
	if inspected.Record.GoneAt(inspected.At()) {
		condition = isStillExpired
	}
	return p.update(ctx, &attributeUpdate{
		sets: completion, also: []string{attrToken, attrOperations},
		condition: condition, returns: types.ReturnValueNone,
	}, newItm, (&given{now: inspected.At(), oldRec: &inspected.Record}).attributes())
}
