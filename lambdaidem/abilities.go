package lambdaidem

import (
	"context"
	"time"
)

// What a Store may be able to do beyond the Store contract. Each is an interface
// of its own that the guard asks for; the errors are those of [Store].

// Loader is a Store that may keep answers apart from their records: compressed,
// or over several items. It says so by Result.Apart.
type Loader interface {
	// Load returns the result of a completed record whole, with the Value that
	// Result.Apart stood for. It MUST return the bytes that were completed, every
	// one of them, or an error: a StoreError with [ReasonForeign] where the answer
	// is gone, damaged or of another attempt, which reading again would not mend;
	// any other StoreError where it could not be read now. Load is called for
	// replays alone, never for a mismatch or a conflict.
	Load(ctx context.Context, record Record) (Result, error)
}

// StepStore is a Store that keeps the results of an attempt's steps.
type StepStore interface {
	// SaveSteps stores the steps, all of them, if the record is in progress under
	// the lease's token; else it changes nothing and returns [ErrLeaseLost] with
	// the record as it now stands. It changes nothing but the steps. Release and a
	// takeover keep them, Complete drops them. It succeeds too where the record has
	// exactly these steps under that token already.
	//
	// Steps only grow, so that a save which comes late takes none away: where the
	// record has as many steps, or more, and not these, nothing changes and the
	// error is a StoreError with [ReasonInvalid] and NotApplied. Steps that can't
	// be stored are one with [ReasonTooLarge] and NotApplied.
	//
	// A store that is a StepStore returns the record's steps with every record that
	// is not completed: an Acquire by takeover those that the record has by then,
	// which may be more than were seen. Of a record whose lease is not the caller's the
	// results may be nil, where they can't be read without more ado: its names tell
	// that there are steps.
	SaveSteps(ctx context.Context, lease Lease, steps Steps, now time.Time) (Record, error)
}

// Preparer is a Store that must have something before it can keep a result: a key to
// encrypt it with, say.
type Preparer interface {
	// Prepare gets it, so that no completion soon after fails for lack of it. The
	// guard calls it before the handler of an attempt that asks the store for nothing
	// else before; an Acquire does it by itself. The error is a StoreError with
	// NotApplied.
	Prepare(ctx context.Context) error
}

// Steps are the stored results of a record's steps by their names, as JSON.
type Steps map[string][]byte
