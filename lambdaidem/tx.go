package lambdaidem

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Transactor is a Store that can commit a handler's writes and the completion of its
// record in one transaction. A handler enlists writes by a function of the store's
// package, such as dynamostore.Enlist, which finds the transaction by [TxOf].
type Transactor interface {
	// Begin returns a transaction without writes, and sends nothing. The transaction
	// reads from random the token by which the database recognizes it when it is sent
	// again. A store that wraps another store returns nil if the inner store has no
	// transactions.
	Begin(random io.Reader) Tx
}

// transactorOf returns s as a Transactor, or nil if s has no transactions.
func transactorOf(s Store) Transactor {
	if t, ok := s.(Transactor); ok && t.Begin(rand.Reader) != nil {
		return t
	}
	return nil
}

// Tx collects the writes that one run of a handler enlists, and commits them.
type Tx interface {
	// Seal ends enlisting. Enlisting a write after Seal MUST panic, because the write
	// would be lost. Seal reports whether Commit has anything to do for an answer with
	// the given outcome. For OutcomeFailed it has not, unless the handler asked that
	// its writes be made then too. A write that could not be enlisted counts too, so
	// that Commit can return its error.
	Seal(Outcome) bool

	// Writes returns the number of writes enlisted so far, including those that
	// Commit will find invalid.
	Writes() int

	// Refuse makes every attempt to enlist a write, or to change an enlisted one,
	// panic with the text of why. Refuse(nil) allows enlisting again. The guard
	// refuses writes while a part of the handler runs that a retry may skip.
	Refuse(why error)

	// Commit makes the enlisted writes and the completion in one transaction: either
	// all of them happen, or none does. When it is called again with the same
	// *Completion, Commit MUST send the same bytes under the same database token.
	//
	// Commit returns what Store.Complete returns. If the database refused the
	// transaction for several reasons, the record's comes first: Commit succeeds if
	// the record is already completed under the lease's token, and returns
	// [ErrLeaseLost] with the current record if the record is not what the completion
	// asks for. If the database refused one of the handler's conditions or writes,
	// the error is a *[Rejected]. A StoreError with [ReasonConflict] or
	// [ReasonThrottled] is worth another try. A StoreError whose NotApplied is false
	// means that the transaction may have happened, in this call of Commit or in an
	// earlier one.
	Commit(context.Context, *Completion) (Record, error)
}

// Completion says how a transaction completes a record. At most one of Claim and
// Alone is set. If neither is, the record must be in progress under the lease's
// token, as for Store.Complete.
type Completion struct {
	Lease  Lease
	Result Result
	// Claim, if not nil, acquires the record and completes it in one step. The record
	// must be free, or equal to Claim.Over, or in progress under the claim's token. A
	// record with steps is never free.
	Claim *Claim
	// Alone reports whether the transaction has only the handler's writes and no
	// record, because the call runs unguarded.
	Alone bool
}

// Rejected is the error of a transaction that the database refused because of one of
// the handler's writes. The guard treats Err as if the handler had returned it. Err
// names the write, or is the error that the handler's author gave for a failed
// condition.
type Rejected struct {
	Err error
	// Verdict, if not nil, is called once, and replaces Err unless it returns nil.
	// It calls the author's code, which may panic.
	Verdict func() error
	// Unsettled reports whether the same transaction was sent before and may still
	// commit. Only a change of the record prevents that. If Unsettled is false,
	// nothing was written, and nothing will be.
	Unsettled bool
}

// verdict returns the error to treat as the handler's.
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

// enlisting holds the transaction of one run of a handler, begun when the handler
// first asks for it.
type enlisting struct {
	mu        sync.Mutex
	tx        Tx
	ended     error // why nothing can be enlisted any more; nil while enlisting is possible
	skippable int   // number of steps and guarded calls that are running inside the handler; see pause
}

// TxOf returns the transaction of the handler's run that ctx belongs to. It is for
// the packages of stores, which let their users enlist writes in it. TxOf returns
// the same transaction for the whole run. The error says why there is none.
func TxOf(ctx context.Context) (Tx, error) {
	a := runOf(ctx)
	if a == nil {
		return nil, errors.New("this context is not of a guarded handler, so nothing would ever commit what is enlisted: " +
			"pass on the context that the handler was given, and guard the handler")
	}
	if within, _ := ctx.Value(stepKey{}).(*attempt); within == a {
		return nil, errors.New("this is within a step, which does not run again once it is stored, and then nothing would be enlisted: " +
			"enlist in the handler, outside of its steps")
	}
	if a.g.transact == nil {
		return nil, fmt.Errorf("the guard's store, a %T, has no transactions", a.g.store)
	}
	a.enlist.mu.Lock()
	defer a.enlist.mu.Unlock()
	if a.enlist.ended != nil {
		return nil, a.enlist.ended
	}
	if a.enlist.tx == nil {
		a.enlist.tx = a.g.transact.Begin(a.g.opts.Random)
		if a.enlist.skippable > 0 {
			a.enlist.tx.Refuse(errSkippable)
		}
	}
	return a.enlist.tx, nil
}

var (
	errRunEnded    = errors.New("the handler has returned, so nothing would commit what is enlisted now")
	errAnswerBegan = errors.New("the answer has begun to be sent, so it would say too early that the writes are there: enlist them before the answer is written")
	errSkippable   = errors.New("a step, or a call with a record of its own, is running inside the handler: a retry skips it once it is stored, " +
		"and a write enlisted by it would be missing then. Enlist before it begins, or after it has returned")
)

// pause refuses writes until the matching call of resume. A step, or a call with a
// record of its own, is about to run. A retry skips such a part of the handler once
// its result is stored, and the writes that the part enlisted would be missing from
// the retry's transaction. The Tx can't tell which goroutine enlists a write, so
// pause refuses the writes of all goroutines of the handler.
func (e *enlisting) pause() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.skippable++
	if e.tx != nil && e.skippable == 1 {
		e.tx.Refuse(errSkippable)
	}
}

// resume ends one pause. Writes are allowed again after the last one.
func (e *enlisting) resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.skippable--
	if e.tx != nil && e.skippable == 0 {
		e.tx.Refuse(nil)
	}
}

// end ends enlisting for the given reason. It returns the transaction, or nil if the
// handler never asked for one.
func (e *enlisting) end(why error) Tx {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended == nil {
		e.ended = why
	}
	return e.tx
}

// begun reports whether the handler has asked for a transaction. If it has not, and
// why is not nil, begun ends enlisting for that reason.
func (e *enlisting) begun(why error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tx == nil && e.ended == nil {
		e.ended = why
	}
	return e.tx != nil
}

// seal ends enlisting. It returns the transaction to commit with an answer of the
// given outcome, or nil if there is nothing to commit. dropped is the number of
// enlisted writes that won't be made because of the outcome.
func (e *enlisting) seal(o Outcome) (tx Tx, dropped int) {
	tx = e.end(errRunEnded)
	switch {
	case tx == nil:
		return nil, 0
	case tx.Seal(o):
		return tx, 0
	case o == OutcomeSucceeded:
		return nil, 0
	}
	return nil, tx.Writes()
}

// successWithoutWrites returns the error that replaces an answer whose status tells
// the caller of a success, while the answer's outcome drops the enlisted writes. The
// error is marked so that the record is settled as the outcome would have had it.
func successWithoutWrites(o Outcome, dropped int) error {
	err := &Error{Code: ErrWriteInvalid, Status: http.StatusInternalServerError,
		Detail: "The request was not carried out, since its answer contradicts what would be written.",
		Err: fmt.Errorf("the handler answered with a success, but Options.Outcome returned %q for it, which drops its enlisted writes (%d of them): "+
			"return OutcomeSucceeded for it, answer with an error, or have the handler call Drop on its Tx", o, dropped)}
	switch o {
	case OutcomeReleased:
		return Retryable(err)
	case OutcomeFailed, OutcomeSucceeded:
		return err
	case OutcomeUncertain:
	}
	return Uncertain(err)
}

// drop forgets the transaction after the database has rejected it.
func (e *enlisting) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tx = nil
}
