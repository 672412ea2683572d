package dynamostore

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// forget removes the answer and the steps from a record and makes the record expire. It returns
// false if the record has changed since it was read. forget does not delete the item: a delayed
// write of an attempt must find the item, so that DynamoDB refuses the write.
func (p *purge) forget(ctx context.Context, itm *item, now time.Time) (bool, error) {
	own, err := p.o.newToken()
	if err != nil {
		return false, err
	}
	newItm := p.erasedItem(itm, OperationForgotten, own, now)
	newItm.Token = itm.Token
	if itm.Status == lambdaidem.Released {
		newItm.Token, newItm.Failure = own, nil // takeovers that were sent earlier are refused, because the token has changed
	}
	// Never extend the record's life.
	if newItm.Expiration = deletionOf(p.forgottenAt(now)); itm.Expiration.isSet {
		newItm.Expiration.n = min(newItm.Expiration.n, itm.Expiration.n)
	}
	return p.removeAnswer(ctx, itm, newItm, isAsSeen+" AND "+expiresNoSooner, attrSteps, attrToken, attrExpiration)
}

// forgottenAt returns the expiry that a purge sets in order to forget a record: MinTTL (15 minutes)
// from now, plus MaxSkew for a clock that is ahead, plus a second for rounding. AWS refuses a
// request more than MinTTL after it was signed, so the expiry is not in the past when the purge's
// request arrives.
func (p *purge) forgottenAt(now time.Time) time.Time {
	// The expiry must not be in the past. Otherwise the record would count as absent at once, and a
	// delayed copy of an old claim, whose attempt has ended, could then acquire the lease.
	return now.Add(lambdaidem.MinTTL + p.o.opts.MaxSkew + time.Second)
}

// wasForgotten reports whether an earlier purge has forgotten the record, so that this purge need
// not do it again. The record's last Operation alone does not show that: a retry may since have
// stored an answer or steps again, and set a later expiry.
func (p *purge) wasForgotten(itm *item, now time.Time) bool {
	n := len(itm.Operations)
	holdsNothing := itm.isErased() || itm.Status == lambdaidem.Released && len(itm.Steps) == 0
	return n > 0 && itm.Operations[n-1].What == OperationForgotten && holdsNothing && itm.Expiration.n <= deletionOf(p.forgottenAt(now)).n
}

// expiresNoSooner is a condition that holds if the new expiry is not later than the record's
// expiry, or if the record has none. A purge must never extend the record's life, and another purge
// may have set an earlier expiry since the record was read.
const expiresNoSooner = "(attribute_not_exists(#expiration) OR #expiration >= :expiration)"
