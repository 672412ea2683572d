package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Hold removes the expiry of a record that is in progress, and sets its lease end to
// [lambdaidem.HeldUntil], by one conditional UpdateItem. It implements [lambdaidem.Holder]. If the
// record has changed since oldRec was read, Hold changes nothing and returns the current record, or
// the zero Record if the record is absent or has expired.
func (s *Store) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	held := oldRec
	held.Expires, held.LeaseEnd = time.Time{}, lambdaidem.HeldUntil(oldRec)
	itm := &item{ID: oldRec.ID, LeaseEnd: integer{held.LeaseEnd.UnixMilli(), true}}
	r := s.updating(&s.writes.holding, itm, given{now: now, oldRec: &oldRec})
	fate, err := s.wire.Do(ctx, &r.Request)
	if err == nil {
		return held, nil
	}
	existing, err := r.refused(opHold, fate, err)
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	if current := s.shown(existing); !current.GoneAt(now) { // another attempt's record, or held by an earlier try
		return current, nil
	}
	return lambdaidem.Record{}, nil
}
