package lambdaidem

import (
	"context"
	"time"
)

// This file has optional interfaces of a Store; another one, Transactor, is in tx.go. The
// guard tests by a type assertion whether its Store implements them. Their methods return
// the same kinds of errors as those of Store.

// Loader is an optional interface of a [Store] that can store a large answer outside the answer's
// record, for example in several items. The guard reads such an answer with Load. The record of
// such an answer has Result.Apart set instead of Result.Value.
type Loader interface {
	// Load returns the complete result of a completed record, including the Value that the store
	// has put outside the record; see Result.Apart. The guard calls Load only to replay an answer.
	//
	// Load MUST return exactly the bytes that were stored, or a *[StoreError]. If every later read
	// would fail too, because the answer is missing, damaged or written by another attempt, the
	// error's Reason is [ReasonForeign]. If a later read may succeed, the Reason MUST NOT be
	// ReasonForeign.
	Load(ctx context.Context, record Record) (Result, error)
}

// StepStore is an optional interface of a [Store] that can store the results of the steps
// that a handler runs with [Step].
type StepStore interface {
	// SaveSteps replaces all steps of the record with the given steps if the record is in progress
	// and has the lease's token. It changes no other part of the record. If the record already has
	// exactly these steps, SaveSteps also succeeds. If the record has another state or token,
	// SaveSteps changes nothing and returns [ErrLeaseLost] with the current record.
	//
	// Each call for one lease passes all earlier steps and a new one. A request that arrives late
	// MUST NOT remove the steps that later calls have saved. So if the record has at least as many
	// steps as the request, but not exactly the same ones, SaveSteps changes nothing. It returns a
	// StoreError with [ReasonInvalid] and with NotApplied set.
	//
	// If the steps are too large to store, the error is a StoreError with [ReasonTooLarge] and with
	// NotApplied set.
	//
	// Other methods treat steps as follows:
	//
	//   - Release and a takeover keep the steps. Complete removes them.
	//   - Every record that is not completed is returned with its steps.
	//   - Acquire returns the current steps of a record that it takes over. The old attempt may
	//     have saved some of them after claim.Over was read.
	//   - If the caller does not hold the lease, the results in Record.Steps may be nil, but the
	//     names of the steps must be there.
	SaveSteps(ctx context.Context, lease Lease, steps Steps, now time.Time) (Record, error)
}

// Preparer is an optional interface of a [Store] that needs something before it can store
// an answer, such as a key to encrypt the answer.
type Preparer interface {
	// Prepare obtains what the store needs to store an answer, such as an encryption key. The guard
	// calls Prepare before it runs a handler with Options.Optimistic, so that the handler does not
	// run if its answer can't be stored. Without Optimistic, the guard does not call Prepare. It
	// calls Acquire before it runs the handler, so Acquire must obtain whatever Prepare obtains.
	// The error of Prepare is a StoreError with NotApplied set.
	Prepare(ctx context.Context) error
}

// Holder is an optional interface of a [Store] that can remove the expiry of a record.
type Holder interface {
	// Hold removes the expiry of a record that is in progress, and returns the changed record. The
	// record then waits for an operator, as if it had been acquired under policy [Hold]. oldRec
	// is the record as the caller has read it, and now is the time of the call.
	//
	// If the record has expired, or no longer has the state, token and lease end of oldRec, Hold
	// changes nothing. It then returns the current record, or the zero Record if there is none, and
	// no error. Any error is a StoreError.
	//
	// Hold also sets the lease end to the result of [HeldUntil], so that the store refuses a
	// takeover by an attempt that read the record before it was held.
	//
	// The guard calls Hold for the record of a dead attempt that began under policy [Rerun], if the
	// policy has been changed to Hold since. Otherwise the record would expire, and the next retry
	// would run the handler although no operator has decided.
	Hold(ctx context.Context, oldRec Record, now time.Time) (Record, error)
}

// HeldUntil returns the lease end that [Holder.Hold] gives a record. oldRec is the record before
// the call of Hold. The result is one millisecond after oldRec.LeaseEnd, because that is the
// smallest difference between two lease ends. The store then refuses a takeover whose Claim.Over
// has the old lease end. The guard calls Hold only after the lease has ended, so the new lease end
// normally lies in the past too.
func HeldUntil(oldRec Record) time.Time { return oldRec.LeaseEnd.Add(time.Millisecond) }

// Steps maps the name of each step of a record to the step's result, as JSON.
type Steps map[string][]byte
