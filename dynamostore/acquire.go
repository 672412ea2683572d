package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Acquire takes the lease with one conditional write: an UpdateItem that takes over the old record
// if claim.Over is set, and otherwise a PutItem. If the condition fails, DynamoDB's reply has the
// existing record, so Acquire needs no second request to return that record. With
// Options.Encryption, one more UpdateItem encrypts the steps of a record that was taken over,
// unless they are already encrypted under the current key.
func (s *Store) Acquire(ctx context.Context, claim lambdaidem.Claim) (lambdaidem.Record, error) {
	itm := s.locked(claim)
	if size := s.layout.size(itm); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(opAcquire, size)
	}
	if s.keys != nil {
		if err := s.fetchKey(ctx, opAcquire); err != nil {
			return s.withoutKey(ctx, claim, err)
		}
	}
	var oldItm *item
	var err error
	if claim.Over == nil {
		oldItm, err = s.lock(ctx, itm, claim.Now)
	} else {
		oldItm, err = s.takeOver(ctx, itm, claim.Now, claim.Over)
	}
	switch {
	case err == nil:
		return s.acquired(ctx, itm, claim.Now)
	case !errors.Is(err, wire.ErrRefused):
		return lambdaidem.Record{}, err
	case oldItm.heldBy(claim.Token): // an earlier try of this request was applied
		return s.acquired(ctx, oldItm, claim.Now)
	}
	if current := s.shown(oldItm); !current.GoneAt(claim.Now) {
		return current, nil
	}
	return lambdaidem.Record{}, nil
}

// acquired returns the record whose lease Acquire has just taken, with its steps decrypted. With
// Options.Encryption, acquired also encrypts the steps in the table under the current key, unless
// they are already encrypted under it.
func (s *Store) acquired(ctx context.Context, itm *item, now time.Time) (lambdaidem.Record, error) {
	r, err := s.decrypted(ctx, opAcquire, itm)
	if err == nil && s.needsResealing(itm) {
		s.resealSteps(ctx, itm, r.Steps, now)
	}
	return r, err
}

// locked returns the item to write in order to take the lease.
func (s *Store) locked(claim lambdaidem.Claim) *item {
	itm := claimed(claim)
	itm.LeaseShard = s.opts.leaseShard(claim.ID)
	if s.keys != nil {
		itm.Encrypts = cipherName // an Operator without an encryption key then refuses to settle the record with an unencrypted answer
	}
	return itm
}

// withoutKey returns the result of Acquire when the encryption key can't be fetched. Acquire does
// not take the lease then, because the attempt could not encrypt its answer. These are the results:
//
//   - claim.Over is nil, so the claim takes over no record, but the table already has the record:
//     that record, so that the guard can replay its answer.
//   - claim.Over is nil, and the existing item is not a valid record: the error from reading the
//     item.
//   - Otherwise: err, the error from fetching the key.
func (s *Store) withoutKey(ctx context.Context, claim lambdaidem.Claim, err error) (lambdaidem.Record, error) {
	if claim.Over == nil {
		switch current, unread := s.Get(ctx, claim.ID, claim.Now); {
		case isForeign(unread):
			return lambdaidem.Record{}, unread
		case unread == nil && current.State != lambdaidem.Absent:
			return current, nil
		}
	}
	return lambdaidem.Record{}, err
}

// lock takes the lease with a conditional PutItem. If it succeeds, both results are nil. If the
// condition fails, lock returns wire.ErrRefused and the existing item, or a nil item if the table
// no longer has one. Any other error is a StoreError.
func (s *Store) lock(ctx context.Context, itm *item, now time.Time) (*item, error) {
	r := s.locking(itm, given{now: now})
	fate, err := s.wire.Do(ctx, &r.Request)
	return r.refused(opAcquire, fate, err)
}

// takeOver takes over a record with a conditional UpdateItem, which keeps the record's steps.
// oldRec is the record as the attempt read it, and itm is the item with the new values. takeOver
// returns the item as it was before, and copies its steps into itm. If the condition fails,
// takeOver returns wire.ErrRefused and the existing item, or nil if there is none.
func (s *Store) takeOver(ctx context.Context, itm *item, now time.Time, oldRec *lambdaidem.Record) (*item, error) {
	oldItm, err := s.update(ctx, &s.writes.takeover, itm, given{now: now, oldRec: oldRec})
	if err == nil {
		// Copy the steps from oldItm: the earlier attempt may have stored more steps after oldRec
		// was read.
		itm.Steps, itm.Encoding = oldItm.Steps, oldItm.Encoding
	}
	return oldItm, err
}
