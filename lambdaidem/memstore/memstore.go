// Package memstore is a [lambdaidem.Store] in memory, for tests and demos: it
// serves one process, and what it holds is lost when that process ends. Two
// Lambda execution environments never share it, so it guards nothing in
// production; use a database there.
//
// It keeps every promise of the Store contract (see package storetest), reads
// no clock and starts no goroutine.
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

// Store is a [lambdaidem.Store] in memory, and a [lambdaidem.StepStore]. Make one
// with [New]. All methods may be called from several goroutines at once. Nothing
// in a record is shared with a caller: values are copied on the way in and on the
// way out.
//
// Its one error besides [lambdaidem.ErrLeaseLost] and that of a late save of steps
// is a *[lambdaidem.StoreError] with ReasonTimeout and NotApplied, from a call
// whose context has ended.
type Store struct {
	mu      sync.Mutex
	records map[string]lambdaidem.Record

	// What has expired is looked for a few records at a time, so that no call
	// pays for all: ids holds the key of every record, hand the next to look at.
	ids  []string
	hand int
}

var (
	_ lambdaidem.Store     = (*Store)(nil)
	_ lambdaidem.StepStore = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{records: make(map[string]lambdaidem.Record)}
}

// Acquire takes the lease on a record: see [lambdaidem.Store].
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
		if !isSeen(r, *claim.Over) {
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

// Complete stores the result: see [lambdaidem.Store]. The moment of the call is
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
		r.Steps = nil // replays don't pay for them
		return s.put(r), nil
	case r.State == lambdaidem.Completed && r.Token == lease.Token: // L4
		return copied(r), nil
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
}

// Release says that the attempt had no effect: see [lambdaidem.Store].
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
	case r.State == lambdaidem.Released && r.Token == lease.Token: // L4
		return copied(r), nil
	default:
		return copied(r), lambdaidem.ErrLeaseLost
	}
}

// SaveSteps stores the results of steps: see [lambdaidem.StepStore]. It bounds
// neither their number nor their bytes.
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
	case maps.EqualFunc(r.Steps, steps, bytes.Equal): // L4
		return copied(r), nil
	case len(r.Steps) >= len(steps):
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: "save_steps", Reason: lambdaidem.ReasonInvalid, NotApplied: true,
			Err: fmt.Errorf("the record has %d steps; a save of %d others comes late", len(r.Steps), len(steps))}
	}
	r.Steps = steps
	return s.put(r), nil
}

// Get reads the record: see [lambdaidem.Store].
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	if err := ended(ctx, "get"); err != nil {
		return lambdaidem.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return copied(s.at(id, now)), nil
}

// Len returns the number of records in memory, including those that have expired
// and that no sweep has dropped yet. It is for tests.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// at returns the record that counts at now: the zero Record if it is gone.
func (s *Store) at(id string, now time.Time) lambdaidem.Record {
	r := s.records[id]
	if r.GoneAt(now) {
		return lambdaidem.Record{}
	}
	return r
}

// put writes the record, and returns a copy of it.
func (s *Store) put(r lambdaidem.Record) lambdaidem.Record {
	if _, known := s.records[r.ID]; !known {
		s.ids = append(s.ids, r.ID)
	}
	s.records[r.ID] = copied(r)
	return copied(r)
}

// sweep looks at two records and drops those that have been gone for
// lambdaidem.KeptAfterExpiry. An acquire adds at most one record, so memory stays in
// proportion to the records that count or expired within that time.
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

// isSeen reports whether r is the record that a takeover has seen. A
// completed record never changes, so it can't be taken over.
func isSeen(r, seen lambdaidem.Record) bool {
	return (r.State == lambdaidem.InProgress || r.State == lambdaidem.Released) &&
		r.State == seen.State &&
		r.Token == seen.Token &&
		r.LeaseEnd.UnixMilli() == seen.LeaseEnd.UnixMilli()
}

// ended returns the error of a call whose context has ended: nothing is written.
func ended(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTimeout, NotApplied: true, Err: err}
	}
	return nil
}

// copied returns r with a Value, a Failure and Steps of its own.
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

// milliseconds is t as a database keeps it.
func milliseconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// seconds is t as a database's TTL keeps it.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.Unix(t.Unix(), 0).UTC()
}
