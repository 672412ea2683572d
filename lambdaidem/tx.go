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

// Transactor is a Store that can make a handler's own writes and the completion
// of its record one transaction (E1). A handler enlists its writes by a function
// of the store's package, which finds them by [TxOf].
type Transactor interface {
	// Begin returns a transaction without writes, and sends nothing. random gives
	// the tokens by which the database tells transactions apart. Nil says that there
	// are no transactions: of a store around one that has none.
	Begin(random io.Reader) Tx
}

// transactorOf is the store as a Transactor, if it is one.
func transactorOf(s Store) Transactor {
	if t, ok := s.(Transactor); ok && t.Begin(rand.Reader) != nil {
		return t
	}
	return nil
}

// Tx is what one run of a handler enlisted, and the transaction that it becomes.
type Tx interface {
	// Seal ends enlisting: whatever is enlisted later MUST panic, since it would
	// be lost. It tells whether there is anything to commit beside an answer of
	// that outcome: nothing beside a failed one, unless the handler asked for it
	// (E1). An error at enlisting counts as something to commit.
	Seal(Outcome) bool

	// Writes returns the number of writes enlisted so far. A write that can't be
	// made counts too.
	Writes() int

	// Refuse makes every attempt to enlist a write, or to change an enlisted one,
	// panic with the text of why. Refuse(nil) allows enlisting again. The guard
	// refuses writes while a part of the handler runs that a retry may skip.
	Refuse(why error)

	// Commit makes the enlisted writes and the completion in one transaction:
	// either all of it is there, or nothing (E1). Called again with the same
	// pointer, it MUST send the same bytes under the same token of the database's.
	//
	// It returns what Store.Complete returns, with two more errors (E2). The
	// record's own reason comes before any other: a record that is completed under
	// our token is success; one that is not what the completion asks for is
	// [ErrLeaseLost] with the record as it now stands. A condition or a write of
	// the handler's that the database refused is a *[Rejected]. A StoreError with
	// [ReasonConflict] or [ReasonThrottled] is worth another try; one whose
	// NotApplied is false means that it is unknown whether the whole happened, over
	// every call of Commit.
	Commit(context.Context, *Completion) (Record, error)
}

// Completion is what a transaction completes. Of Claim and Alone one at most is
// set; without either, the record must be in progress under the lease's token, as
// in Store.Complete.
type Completion struct {
	Lease  Lease
	Result Result
	// Claim asks for the record as Store.Acquire does, and completes it at once
	// (E4): it must be free, or be exactly what Claim.Over is, or be in progress
	// under the claim's own token. One with steps is never free.
	Claim *Claim
	// Alone leaves the record out: the writes of a call that runs unguarded.
	Alone bool
}

// Rejected is the error of a transaction that a write of the handler's kept from
// happening. Err says what becomes of the call, by the rules for a handler's own
// errors (X2): an error that names the write, or what the handler's author gave for
// a failed condition.
type Rejected struct {
	Err error
	// Verdict, if set, is asked once for the author's error; nil: Err stands. It is
	// the author's own code.
	Verdict func() error
	// Unsettled says that an earlier sending of the same transaction may still
	// happen, unless the record is changed before (X8). Without it nothing was
	// written, and nothing will be.
	Unsettled bool
}

// verdict is what becomes of the call.
func (r *Rejected) verdict() error {
	if r.Verdict != nil {
		if err := r.Verdict(); err != nil {
			return err
		}
	}
	return r.Err
}

// Error says why.
func (r *Rejected) Error() string { return "the transaction was rejected: " + r.Err.Error() }

// Unwrap returns Err.
func (r *Rejected) Unwrap() error { return r.Err }

// enlisting is a run's transaction, if its handler asked for one.
type enlisting struct {
	mu        sync.Mutex
	tx        Tx
	ended     error // why nothing can be enlisted any more; nil while it can
	skippable int   // parts of the run under way that a retry may skip: see pause
}

// TxOf is the transaction of the run whose handler has this context: to be used
// by a store's package, for its users to enlist writes in. The same run gets the
// same one every time. The error says why there is none.
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

// pause refuses writes until the matching call of resume, because a part of the
// run begins that a retry may skip: a step, or a call with a record of its own. A
// write enlisted by that part would be missing from the retry's transaction. The
// Tx can't tell who enlists, so pause refuses the handler's other goroutines too.
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

// end ends enlisting for a reason, and returns the transaction if anything asked
// for one.
func (e *enlisting) end(why error) Tx {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended == nil {
		e.ended = why
	}
	return e.tx
}

// begun tells whether anything asked for the transaction; if not, and why is
// given, nothing can any more.
func (e *enlisting) begun(why error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tx == nil && e.ended == nil {
		e.ended = why
	}
	return e.tx != nil
}

// seal ends enlisting and returns the transaction to commit with an answer of that
// outcome; nil: there is nothing to commit. dropped is the number of writes that
// the outcome drops.
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

// successWithoutWrites returns the error of a run whose answer tells the caller
// that it succeeded, while its outcome drops the writes that it enlisted. The
// error's mark has the record settled as that outcome would have.
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

// drop takes back what was enlisted: the transaction was rejected.
func (e *enlisting) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tx = nil
}
