// Package memstore implements a [lambdaidem.Store] in memory, for tests and demos. Its
// records are lost when the process ends, and Lambda execution environments don't share them.
// So it does not make a function in production safe to retry. Use a database there, for
// example with package dynamostore.
//
// It passes the suite of package storetest. It reads no clock and starts no goroutines.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Store is a [lambdaidem.Store], [lambdaidem.StepStore] and [lambdaidem.Holder] in memory. Create
// one with [New]. It is safe for concurrent use. It copies what its callers pass in and what it
// returns. Its methods return only these errors:
//
//   - a *[lambdaidem.StoreError] with ReasonTimeout and NotApplied, if the context has ended;
//   - [lambdaidem.ErrLeaseLost], if the lease is lost;
//   - a StoreError with ReasonInvalid and NotApplied, if SaveSteps receives outdated steps: the
//     record already has at least as many steps, but not the same ones.
type Store struct {
	mu      sync.Mutex
	records map[string]lambdaidem.Record

	// ids has the id of every record, so that sweep can check the records one after another.
	ids []string
	// hand is the index in ids of the next record that sweep checks.
	hand int
}

var (
	_ lambdaidem.Store     = (*Store)(nil)
	_ lambdaidem.StepStore = (*Store)(nil)
	_ lambdaidem.Holder    = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{records: make(map[string]lambdaidem.Record)}
}

// Acquire takes the lease on a record; see [lambdaidem.Store]. It also deletes up to two
// records that expired at least [lambdaidem.KeptAfterExpiry] ago.
func (s *Store) Acquire(ctx context.Context, claim lambdaidem.Claim) (lambdaidem.Record, error) {
	if err := ended(ctx, "acquire"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(claim.Now)

	r := s.at(claim.ID, claim.Now)
	attempt, steps := 1, lambdaidem.Steps(nil)
	if claim.Over == nil {
		if r.State != lambdaidem.Absent {
			return copied(r), nil
		}
	} else {
		if !isUnchanged(r, *claim.Over) {
			return copied(r), nil
		}
		attempt, steps = r.Attempt+1, r.Steps
	}
	return s.put(lambdaidem.Record{
		ID:          claim.ID,
		State:       lambdaidem.InProgress,
		Token:       claim.Token,
		Attempt:     attempt,
		LeaseEnd:    milliseconds(claim.LeaseEnd),
		Expires:     seconds(claim.Expires),
		Fingerprint: claim.Fingerprint,
		Scope:       claim.Scope,
		StartedAt:   milliseconds(claim.Now),
		Invocation:  claim.Invocation,
		Bound:       claim.Bound,
		Steps:       steps,
	}), nil
}

// Complete stores the result of an attempt; see [lambdaidem.Store]. The time of the call is
// result.At.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	if err := ended(ctx, "complete"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.at(lease.ID, result.At)
	switch {
	case r.State == lambdaidem.InProgress && r.Token == lease.Token:
		result.At = milliseconds(result.At)
		result.Expires = seconds(result.Expires)
		r.State = lambdaidem.Completed
		r.CompletedAt = result.At
		r.Expires = result.Expires
		r.Result = result
		r.Steps = nil // a replay does not need them
		return s.put(r), nil
	case r.State == lambdaidem.Completed && r.Token == lease.Token: // a repeated call, whose first reply was lost
		return copied(r), nil
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
}

// Release ends the lease of an attempt whose handler had no effect, so that a retry can run
// the handler at once. It returns the record; see [lambdaidem.Store].
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	if err := ended(ctx, "release"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.at(lease.ID, now)
	switch {
	case r.State == lambdaidem.InProgress && r.Token == lease.Token:
		r.State = lambdaidem.Released
		r.Expires = seconds(lease.Expires)
		r.LastFailure, r.Bound = lease.LastFailure, lease.Bound
		return s.put(r), nil
	case r.State == lambdaidem.Released && r.Token == lease.Token: // a repeated call, whose first reply was lost
		return copied(r), nil
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
}

// SaveSteps stores the results of an attempt's steps; see [lambdaidem.StepStore]. It limits neither
// the number of steps nor their size.
func (s *Store) SaveSteps(ctx context.Context, lease lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	if err := ended(ctx, "save_steps"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	r := s.at(lease.ID, now)
	switch {
	case r.State != lambdaidem.InProgress || r.Token != lease.Token:
		return copied(r), lambdaidem.ErrLeaseLost
	case maps.EqualFunc(r.Steps, steps, bytes.Equal): // a repeated call, whose first reply was lost
		return copied(r), nil
	case len(r.Steps) >= len(steps):
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "save_steps", Reason: lambdaidem.ReasonInvalid, NotApplied: true,
			Err: fmt.Errorf("the record has %d steps; a save of %d others comes late", len(r.Steps), len(steps))}
	}
	r.Steps = steps
	return s.put(r), nil
}

// Hold removes the expiry of a record in progress and returns the changed record. If the record is
// no longer as in oldRec, Hold returns the current record instead; see [lambdaidem.Holder].
func (s *Store) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	if err := ended(ctx, "hold"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.at(oldRec.ID, now)
	if r.State != lambdaidem.InProgress || !isUnchanged(r, oldRec) {
		return copied(r), nil
	}
	r.Expires, r.LeaseEnd = time.Time{}, lambdaidem.HeldUntil(r)
	return s.put(r), nil
}

// Get returns the record with an id; see [lambdaidem.Store].
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	if err := ended(ctx, "get"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return copied(s.at(id, now)), nil
}

// Len returns the number of records in memory, including expired records that have not been
// deleted yet. It is for tests.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// at returns the record with an id. It returns the zero Record if there is none, or if it has
// expired at the time now.
func (s *Store) at(id string, now time.Time) lambdaidem.Record {
	r := s.records[id]
	if r.GoneAt(now) {
		return lambdaidem.Record{}
	}
	return r
}

// put stores a record and returns a copy of it.
func (s *Store) put(r lambdaidem.Record) lambdaidem.Record {
	if _, known := s.records[r.ID]; !known {
		s.ids = append(s.ids, r.ID)
	}
	s.records[r.ID] = copied(r)
	return copied(r)
}

// sweep deletes records that expired at least lambdaidem.KeptAfterExpiry ago. It checks only two
// records in each call, so that no call takes long. Each Acquire calls sweep once and adds at most
// one record, so sweep checks records faster than they are added.
func (s *Store) sweep(now time.Time) {
	for range min(2, len(s.ids)) {
		if s.hand >= len(s.ids) {
			s.hand = 0
		}
		id := s.ids[s.hand]
		if !s.records[id].GoneAt(now.Add(-lambdaidem.KeptAfterExpiry)) {
			s.hand++
			continue
		}
		delete(s.records, id)
		last := len(s.ids) - 1
		s.ids[s.hand] = s.ids[last]
		s.ids[last] = ""
		s.ids = s.ids[:last]
	}
}

// isUnchanged compares r, the current record, with oldRec, the record as an attempt read it
// earlier. It reports whether the attempt may take over r: r is in progress or released, and has
// the same state, token and end of the lease as oldRec.
func isUnchanged(r, oldRec lambdaidem.Record) bool {
	return (r.State == lambdaidem.InProgress || r.State == lambdaidem.Released) &&
		r.State == oldRec.State &&
		r.Token == oldRec.Token &&
		r.LeaseEnd.UnixMilli() == oldRec.LeaseEnd.UnixMilli()
}

// ended returns an error if ctx has ended. Each method calls ended before it changes anything, and
// returns this error, which says that the method changed nothing (NotApplied). op is the name of
// the method.
func ended(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTimeout, NotApplied: true, Err: err}
	}
	return nil
}

// copied returns a copy of r that shares no memory with it.
func copied(r lambdaidem.Record) lambdaidem.Record {
	r.Result.Value = bytes.Clone(r.Result.Value)
	if f := r.Result.Failure; f != nil {
		own := *f
		r.Result.Failure = &own
	}
	r.Steps = maps.Clone(r.Steps)
	for name, result := range r.Steps {
		r.Steps[name] = bytes.Clone(result)
	}
	return r
}

// milliseconds returns t truncated to milliseconds in UTC, the precision that a record keeps.
// The zero time stays zero.
func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// seconds returns t truncated to seconds in UTC, the precision of an expiry in a database's
// TTL. The zero time stays zero.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.Unix(t.Unix(), 0).UTC()
}
