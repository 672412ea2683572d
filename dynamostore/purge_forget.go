package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// forget removes the answer and the steps from a record and makes the record expire. It reports
// false if the record has changed since it was read.
//
// forget does not delete the item. A write that an attempt sent to DynamoDB earlier may arrive
// late. It must still find the item, so that its condition fails and DynamoDB refuses the write.
func (p *purge) forget(ctx context.Context, it *item, now time.Time) (bool, error) {
	own, err := p.o.newToken()
	if err != nil {
		return false, err
	}
	next := p.erasedItem(it, OperationForgotten, own, now)
	next.Token = it.Token
	if it.Status == lambdaidem.Released {
		next.Token, next.Failure = own, nil // takeovers that were sent earlier are refused, because the token has changed
	}
	// Never extend the record's life.
	if next.Expiration = deletionOf(p.forgottenAt(now)); it.Expiration.there {
		next.Expiration.n = min(next.Expiration.n, it.Expiration.n)
	}
	return p.removeAnswer(ctx, it, next, isAsSeen+" AND "+expiresNoSooner, attrSteps, attrToken, attrExpiration)
}

// forgottenAt returns the expiry that a purge sets in a record in order to forget it; see
// PurgeOptions.Forget. The expiry is MinTTL (15 minutes) from now, plus MaxSkew for a clock that is
// ahead, plus a second for rounding. So the expiry is still in the future when the purge's request
// arrives, even if the request is delayed: AWS refuses a request more than MinTTL after it was
// signed.
//
// If the purge's request arrived after the expiry, a delayed claim could take the record's lease.
// An attempt may send its claim twice. DynamoDB refuses the first copy, because the record has not
// expired yet, and the attempt ends. Then the purge sets an expiry that is earlier than the time at
// which the claim was made. DynamoDB compares the two, and grants the lease to the second copy,
// although no attempt is running.
func (p *purge) forgottenAt(now time.Time) time.Time {
	return now.Add(lambdaidem.MinTTL + p.o.opts.MaxSkew + time.Second)
}

// wasForgotten reports whether an earlier purge has forgotten the record (see
// PurgeOptions.Forget), so that this purge need not do it again. That is so if:
//   - the latest operation in the record is an OperationForgotten,
//   - the record has no answer and no steps, and
//   - the record's expiry is not later than the one that this purge would set.
//
// The first condition is not enough: a retry that ran after the earlier purge may have stored an
// answer or steps again, and set a later expiry.
func (p *purge) wasForgotten(it *item, now time.Time) bool {
	n := len(it.Operations)
	holdsNothing := it.isErased() || it.Status == lambdaidem.Released && len(it.Steps) == 0
	return n > 0 && it.Operations[n-1].What == OperationForgotten && holdsNothing && it.Expiration.n <= deletionOf(p.forgottenAt(now)).n
}

// expiresNoSooner is a condition that holds if the record has no expiry, or if the new expiry is
// not later than the record's expiry. A purge must never extend the record's life. Before it sends
// the write, the purge compares the new expiry with the expiry that it has read. The condition is
// needed because another purge may have set an earlier expiry since that read.
const expiresNoSooner = "(attribute_not_exists(#expiration) OR #expiration >= :expiration)"
