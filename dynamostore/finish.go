package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Complete implements [lambdaidem.Store]. It stores the result with one conditional UpdateItem, and
// returns the completed record. If the answer in the result is larger than Options.MaxInline,
// Complete first writes the answer to separate items. If the answer is larger than
// Options.MaxAnswer, Complete sends nothing and returns a [lambdaidem.StoreError] with
// ReasonTooLarge.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	kept, err := s.prepare(ctx, lease, result)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.end(ctx, &s.writes.completion, lease, result.At, func(itm *item) { itm.finish(kept) })
}

// Release implements [lambdaidem.Store]. It releases the record with one conditional UpdateItem,
// and returns the released record. If the record was already released under the lease's token,
// Release succeeds too. If the record is no longer in progress under that token, Release returns
// [lambdaidem.ErrLeaseLost] with the current record, or with the zero Record if the record is
// absent or has expired.
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.end(ctx, &s.writes.release, lease, now, func(itm *item) { itm.release(lease.Expires, lease.LastFailure, lease.Bound) })
}

// end completes or releases a record, and returns the new record. The write w changes the item in
// the table. DynamoDB returns the old item, and the function apply makes the same change to it.
//
// If the record is no longer in progress under the lease's token, end returns ErrLeaseLost with the
// current record. If an earlier try of the update was applied, end returns no error. Any other
// error is a StoreError.
func (s *Store) end(ctx context.Context, w *write, lease lambdaidem.Lease, now time.Time, apply func(*item)) (lambdaidem.Record, error) {
	newItm := &item{ID: lease.ID, Token: lease.Token}
	apply(newItm)
	// newItm lacks attributes that this update does not set, such as the fingerprint. So if the
	// whole item is too large, this check may not notice, and DynamoDB refuses the update.
	if size := s.layout.size(newItm); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(w.op, size)
	}
	oldItm, err := s.update(ctx, w, newItm, given{now: now, token: lease.Token})
	if err == nil {
		apply(oldItm)
		return s.shown(oldItm), nil
	}
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	current := s.shown(oldItm)
	switch {
	case current.Token == lease.Token && current.State == newItm.Status: // an earlier try of this request was applied
		return current, nil
	case current.GoneAt(now):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	}
	return current, lambdaidem.ErrLeaseLost
}
