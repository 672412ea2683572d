package lambdaidem

import (
	"context"
	"crypto/rand"
	"io"
)

// Transactor is an optional interface of a [Store] that can commit a handler's writes and the
// completion of the handler's record in one transaction. A handler enlists such writes with
// a function of the store's package, such as dynamostore.Enlist. That function gets the
// transaction from [TxOf].
type Transactor interface {
	// Begin returns a new transaction without writes. It sends nothing to the database. random is
	// the source of the transaction's idempotency token. The database uses the token to recognize a
	// transaction that is sent again. If the store wraps a store that has no transactions, Begin
	// returns nil.
	Begin(random io.Reader) Tx
}

// transactorOf returns s as a Transactor, or nil if s does not support transactions.
func transactorOf(s Store) Transactor {
	if t, ok := s.(Transactor); ok && t.Begin(rand.Reader) != nil {
		return t
	}
	return nil
}

// Tx collects the writes that one run of a handler enlists, and commits them.
type Tx interface {
	// Seal ends enlisting: enlisting a write after Seal MUST panic, because the write
	// would be lost.
	//
	// Seal reports whether the guard must call Commit for an answer with the given outcome.
	// Without enlisted writes, it returns false. With writes, it returns true for
	// OutcomeSucceeded, and for OutcomeFailed if the handler has asked to make its writes even
	// then. An invalid write counts as enlisted, so that Commit can return its error.
	Seal(Outcome) bool

	// Writes returns the number of writes enlisted so far, including those that
	// Commit will find invalid.
	Writes() int

	// After Refuse(cause), every call that enlists a write or changes an enlisted write panics with
	// the text cause.Error(). Refuse(nil) allows such calls again. The guard refuses writes while a
	// step or an inner guarded call runs, because a retry may skip that step or call, and would
	// then not enlist its writes.
	Refuse(cause error)

	// Commit makes the enlisted writes and the completion in one transaction: either all of them
	// are applied, or none is. If Commit is called again with the same *Completion, it MUST send
	// the same bytes with the same idempotency token.
	//
	// Commit returns the record, like Store.Complete. If the database refuses the transaction, the
	// first of these cases that applies decides:
	//
	//   - The record is already completed under the lease's token: Commit succeeds.
	//   - The record is not in the state that the completion requires: the error is [ErrLeaseLost],
	//     and Commit returns the current record.
	//   - One of the handler's writes or its condition failed: the error is a *[Rejected].
	//   - All other cases: the error is a *[StoreError]. With [ReasonConflict] or
	//     [ReasonThrottled], another call may succeed. If NotApplied is false, the transaction may
	//     have been applied, by this call of Commit or an earlier one.
	Commit(context.Context, *Completion) (Record, error)
}

// Completion specifies how a transaction completes a record. At most one of Claim and Alone is set.
// If neither is set, the record must be in progress under the lease's token, as with
// Store.Complete.
type Completion struct {
	Lease  Lease  // the lease of the attempt
	Result Result // the answer to store
	// Claim, if not nil, makes the transaction acquire the record and complete it at once, for an
	// attempt without a lease. Commit MUST apply the transaction only in one of these cases:
	//
	//   - Claim.Over is nil, and there is no record.
	//   - Claim.Over is set, and the record equals Claim.Over and has no steps.
	//   - The record is in progress under the claim's token. The attempt has called Store.Acquire
	//     before its handler ran, the reply was lost, and the lease was granted after all.
	//
	// Commit MUST use Claim.Now, the time when the attempt began, to decide whether a record has
	// expired. This applies to the condition of the transaction and to the record that Commit
	// returns. A record that has expired since Claim.Now prevents the transaction. Without a Claim,
	// Commit uses Result.At, like Store.Complete.
	Claim *Claim
	// Alone means that the transaction has only the handler's writes and no record,
	// because the call runs unguarded.
	Alone bool
}

// Rejected is the error of a transaction that the database refused because of one of the handler's
// writes. The guard then acts as if the handler had returned the error from Verdict, or Err if
// Verdict is nil or returns nil.
type Rejected struct {
	// Err is the error that the handler specified for the failed condition, or else an
	// error that names the failed write.
	Err error
	// Verdict, if not nil, returns an error that replaces Err, or nil to keep Err. It
	// calls a function of the user, which may panic. The guard calls Verdict once.
	Verdict func() error
	// Unsettled is true if the transaction was sent more than once, and only the last request was
	// refused for sure. An earlier request may still be on its way to the database, which may apply
	// it unless the record has changed by then. If Unsettled is false, nothing was written, and
	// nothing will be.
	Unsettled bool
}

// verdict returns the error that the guard treats as the handler's error. It is the result of
// the function Verdict, or Err if Verdict is nil or returns nil.
func (r *Rejected) verdict() error {
	if r.Verdict != nil {
		if err := r.Verdict(); err != nil {
			return err
		}
	}
	return r.Err
}

// Error returns "the transaction was rejected: " and the text of Err.
func (r *Rejected) Error() string { return "the transaction was rejected: " + r.Err.Error() }

// Unwrap returns Err.
func (r *Rejected) Unwrap() error { return r.Err }
