package idemtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/internal/process"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// Store is a lambdaidem.Store that passes calls on to an inner store, and can make them fail.
// Create one with [NewStore]. A Store is safe for concurrent use.
//
//	store := idemtest.NewStore(nil)
//	store.Next(idemtest.Complete, idemtest.LoseReply)
//
// A Store also passes on the methods of lambdaidem.StepStore, lambdaidem.Transactor,
// lambdaidem.Loader, lambdaidem.Preparer and lambdaidem.Holder. Load, Prepare and Hold can't be
// made to fail. SaveSteps fails if the inner store is not a StepStore.
type Store struct {
	inner lambdaidem.Store

	mu         sync.Mutex
	nextFaults map[Verb][]Fault // set by Next: the faults of the next calls of each verb, one for each call
	always     map[Verb]Fault   // set by Always: the fault of every call when nextFaults has none left
	calls      []Call           // every call so far
}

// Call is one call that reached a [Store]. Calls that a process makes after its
// simulated death don't reach the store.
type Call struct {
	Verb     Verb
	RecordID string
	Fault    Fault // the fault of the call; None if it was only passed on
}

var _ lambdaidem.StepStore = (*Store)(nil)

// NewStore returns a Store that passes calls on to inner, or to a new memstore.Store if
// inner is nil.
func NewStore(inner lambdaidem.Store) *Store {
	if inner == nil {
		inner = memstore.New()
	}
	return &Store{inner: inner, nextFaults: map[Verb][]Fault{}, always: map[Verb]Fault{}}
}

// Next adds faults for the next calls of the method v, one fault for each call. A call whose fault
// is [None] is passed on.
//
// A single fault may change nothing that the test can see, because a guard retries many failed
// calls. For example, if only one reply to Complete is lost, the guard calls Complete again
// milliseconds later, and that call succeeds.
func (s *Store) Next(v Verb, faults ...Fault) {
	for _, f := range faults {
		f.check(v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextFaults[v] = append(s.nextFaults[v], faults...)
}

// Always sets the fault of all further calls of the method v. If [Store.Next] has added faults for
// the next calls, these calls get those faults first. To end the fault that Always has set, call
// Always with [None].
func (s *Store) Always(v Verb, f Fault) {
	f.check(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always[v] = f
}

// Calls returns every call that has reached the store so far, in order.
func (s *Store) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Acquire takes the lease on a record; see lambdaidem.Store.
func (s *Store) Acquire(ctx context.Context, claim lambdaidem.Claim) (lambdaidem.Record, error) {
	return s.call(ctx, Acquire, claim.ID, func() (lambdaidem.Record, error) { return s.inner.Acquire(ctx, claim) })
}

// Complete stores the result; see lambdaidem.Store.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	return s.call(ctx, Complete, lease.ID, func() (lambdaidem.Record, error) { return s.inner.Complete(ctx, lease, result) })
}

// Release gives up the lease; see lambdaidem.Store.
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.call(ctx, Release, lease.ID, func() (lambdaidem.Record, error) { return s.inner.Release(ctx, lease, now) })
}

// Get reads the record; see lambdaidem.Store.
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	return s.call(ctx, Get, id, func() (lambdaidem.Record, error) { return s.inner.Get(ctx, id, now) })
}

// Load reads an answer that is stored separately from its record, if the inner store is a
// lambdaidem.Loader. Otherwise it returns the record's Result. Faults don't apply to Load.
func (s *Store) Load(ctx context.Context, record lambdaidem.Record) (lambdaidem.Result, error) {
	process.EndIfDead(ctx)
	if loader, ok := s.inner.(lambdaidem.Loader); ok {
		return loader.Load(ctx, record) //nolint:wrapcheck // passes the error of the inner store on unchanged
	}
	return record.Result, nil
}

// Prepare calls Prepare of the inner store if that is a lambdaidem.Preparer. Faults don't
// apply to Prepare.
func (s *Store) Prepare(ctx context.Context) error {
	process.EndIfDead(ctx)
	if inner, ok := s.inner.(lambdaidem.Preparer); ok {
		return inner.Prepare(ctx) //nolint:wrapcheck // passes the error of the inner store on unchanged
	}
	return nil
}

// Hold removes the expiry of a record, if the inner store is a lambdaidem.Holder. Otherwise it
// changes nothing and returns oldRec. Faults don't apply to Hold.
func (s *Store) Hold(ctx context.Context, oldRec lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	process.EndIfDead(ctx)
	if inner, ok := s.inner.(lambdaidem.Holder); ok {
		return inner.Hold(ctx, oldRec, now) //nolint:wrapcheck // passes the error of the inner store on unchanged
	}
	return oldRec, nil
}

// SaveSteps stores the results of a handler's steps; see lambdaidem.StepStore. It fails if the
// inner store is not a StepStore.
func (s *Store) SaveSteps(ctx context.Context, lease lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	return s.call(ctx, SaveSteps, lease.ID, func() (lambdaidem.Record, error) {
		inner, ok := s.inner.(lambdaidem.StepStore)
		if !ok {
			return lambdaidem.Record{}, &lambdaidem.StoreError{Op: string(SaveSteps), Reason: lambdaidem.ReasonInvalid, NotApplied: true,
				Err: fmt.Errorf("the %T inside keeps no steps: it is no lambdaidem.StepStore", s.inner)}
		}
		return inner.SaveSteps(ctx, lease, steps, now)
	})
}

// call handles one call of the store method that v names. pass calls that method of the inner
// store. The fault that Next or Always has set decides whether pass runs, which error the caller
// gets, and whether the simulated process dies.
func (s *Store) call(ctx context.Context, v Verb, id string, pass func() (lambdaidem.Record, error)) (lambdaidem.Record, error) {
	process.EndIfDead(ctx)
	s.mu.Lock()
	f := s.always[v]
	if rest := s.nextFaults[v]; len(rest) > 0 {
		f, s.nextFaults[v] = rest[0], rest[1:]
	}
	s.calls = append(s.calls, Call{v, id, f})
	s.mu.Unlock()

	failed := func(reason lambdaidem.Reason, notApplied bool, err error) (lambdaidem.Record, error) {
		return lambdaidem.Record{}, &lambdaidem.StoreError{Op: string(v), Reason: reason, NotApplied: notApplied, Err: err}
	}
	if reason, ok := f.refusal(); ok {
		return failed(reason, true, ErrInjected)
	}
	switch f {
	case None:
	case LoseRequest:
		return failed(lambdaidem.ReasonUnreachable, false, ErrInjected)
	case LoseReply:
		_, _ = pass() // discard the reply, even if it is an error
		return failed(lambdaidem.ReasonTimeout, false, ErrInjected)
	case Hang:
		<-ctx.Done()
		return failed(lambdaidem.ReasonTimeout, false, ctx.Err())
	case KillBefore:
		kill(ctx)
	case KillAfter:
		_, _ = pass()
		kill(ctx)
	}
	return pass()
}
