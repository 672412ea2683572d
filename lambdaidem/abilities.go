package lambdaidem

import "context"

// What a Store may be able to do beyond the Store contract. Each is an interface
// of its own that the guard asks for; the errors are those of [Store].

// Loader is a Store that may keep answers apart from their records: compressed,
// or over several items (R3). It says so by Result.Apart.
type Loader interface {
	// Load returns the result of a completed record whole, with the Value that
	// Result.Apart stood for. It MUST return the bytes that were completed, every
	// one of them, or an error: a StoreError with [ReasonForeign] where the answer
	// is gone, damaged or of another attempt, which reading again would not mend;
	// any other StoreError where it could not be read now. Load is called for
	// replays alone, never for a mismatch or a conflict.
	Load(ctx context.Context, record Record) (Result, error)
}

// StepStore is a Store that keeps the results of an attempt's steps (E5).
type StepStore interface {
	// SaveSteps stores the steps, all of them, if the record is in progress under
	// the lease's token; else it changes nothing and returns [ErrLeaseLost] with
	// the record as it now stands. Release and a takeover keep them, Complete drops
	// them. It succeeds too where the record has exactly these steps under that
	// token already (L4). Steps that can't be stored are a StoreError with
	// [ReasonTooLarge] and NotApplied.
	SaveSteps(ctx context.Context, lease Lease, steps Steps) (Record, error)
}

// Steps are the stored results of a record's steps by their names, as JSON.
type Steps map[string][]byte
