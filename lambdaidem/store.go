package lambdaidem

import (
	"context"
	"time"
)

// A Store keeps one record for each idempotency key. It makes no decisions: each method changes or
// reads a record and returns the record's current state, and the [Guard] decides what to do next.
// The caller passes in the time and all random values.
//
// Every method treats an expired record as absent, even if the database has not deleted it yet. A
// record is expired if its Expires has passed at the time of the call and no lease on it is live;
// see [Record.GoneAt]. A Store must keep an expired record for at least [KeptAfterExpiry].
//
// The error of a method is a *[StoreError] or [ErrLeaseLost]. If it is unknown whether a write was
// applied, the error is a StoreError whose NotApplied is false.
//
// Package lambdaidem/storetest has the tests that every Store must pass.
type Store interface {
	// Acquire takes the lease on a record, and returns the current record. The caller holds the
	// lease if and only if that record is in progress and has claim.Token. An earlier request
	// with the same claim, whose reply was lost, may have taken that lease. If the current record
	// prevents the write, Acquire returns no error.
	//
	// If claim.Over is nil, Acquire MUST write the record only if there is none. The new record has
	// attempt number 1.
	//
	// If claim.Over is set, Acquire takes over a record:
	//
	//   - It MUST write only if the record has the same token, state and lease end as claim.Over,
	//     and is not completed.
	//   - It raises the attempt number by one, replaces the record's invocation with the claim's,
	//     and erases the last failure.
	//   - If there is no record, or it has expired, Acquire returns the zero Record and no error.
	Acquire(ctx context.Context, claim Claim) (Record, error)

	// Complete stores the result if the record is in progress and has the lease's token, even if
	// the lease has ended. If the record is already completed under that token, Complete succeeds
	// too, and the record keeps its earlier result: the guard repeats a call whose reply was lost.
	// In all other cases, Complete changes nothing and returns [ErrLeaseLost] with the current
	// record. result.At is the time of the call.
	//
	// If the result can't be stored, the error is a StoreError with NotApplied set, and with the
	// Reason [ReasonTooLarge] or [ReasonEncoding]. The guard then completes the record with a
	// Failure instead.
	Complete(ctx context.Context, lease Lease, result Result) (Record, error)

	// Release ends an attempt without storing an answer, so that the next attempt may begin at
	// once. Release MUST write only if the record is in progress and has the lease's token. If the
	// record is already released under that token, Release changes nothing and succeeds. In all
	// other cases, Release changes nothing and returns [ErrLeaseLost] with the current record.
	//
	// A released record keeps its attempt number, fingerprint, token and invocation. Release sets
	// the record's fields Expires, LastFailure and Bound to those of the lease.
	Release(ctx context.Context, lease Lease, now time.Time) (Record, error)

	// Get returns the record with the given id. If there is none, or if it has expired at the given
	// time, Get returns the zero Record and no error. The read is strongly consistent: it reflects
	// every write whose reply was received before Get was called.
	Get(ctx context.Context, id string, now time.Time) (Record, error)
}

// KeptAfterExpiry is how long a store keeps a record after it has expired: one hour. The kept
// record makes the database refuse claims that arrive late. The condition of a claim is that there
// is no record, or that the record had expired at Claim.Now, when the claim was made. A claim that
// was made before the expiry, and arrives after it, fails this condition as long as the record is
// kept. If the record were deleted, the database would grant the claim to an attempt that no longer
// exists.
//
// The claims that can arrive latest are in transactions of attempts without a lease. They arrive
// within 55 minutes after Claim.Now, the sum of these times:
//
//   - 30 minutes from Claim.Now, when the attempt began, to the call of Commit; see
//     Options.Optimistic
//   - 10 minutes from the call of Commit until the store sends the transaction; a store must not
//     send it later, even if the process was frozen meanwhile
//   - 15 minutes from the signature of the request until it arrives; AWS refuses it later
//
// The rest of the hour allows for clocks that differ.
const KeptAfterExpiry = time.Hour
