package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// TxOf returns the transaction of the handler with the context ctx. The handler can enlist writes
// in it. TxOf is for packages that implement a store; handlers call a function such as
// dynamostore.Enlist. Every call during one run of a handler returns the same transaction. TxOf
// returns an error outside a guarded handler, within a step, after the handler has returned or
// begun its answer, or if the store is not a [Transactor].
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
		return nil, fmt.Errorf("the guard's store, a %T, has no transactions: use a store that has them, such as dynamostore.Store; "+
			"in a test, use dynamostore.Capture, or a dynamostore.Store on DynamoDB Local", a.g.store)
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

// enlisting holds the transaction of one run of a handler. The first call of TxOf during the run
// begins the transaction.
type enlisting struct {
	mu        sync.Mutex
	tx        Tx    // nil until the handler calls TxOf
	ended     error // why no write can be enlisted any more; nil while enlisting is possible
	skippable int   // number of steps and guarded calls that are running inside the handler; see pause
}

var (
	errRunEnded    = errors.New("the handler has returned, so nothing would commit what is enlisted now")
	errAnswerBegan = errors.New("the answer has begun to be sent, so it would say too early that the writes are there: enlist them before the answer is written")
	errSkippable   = errors.New("a step, or a call with a record of its own, is running inside the handler: a retry skips it once it is stored, " +
		"and a write enlisted by it would be missing then. Enlist before it begins, or after it has returned")
)

// pause refuses enlisted writes until the matching call of resume. The guard calls pause before a
// step, or an inner call with its own record, runs inside the handler. A retry skips both once
// their results are stored. Writes enlisted there would then be missing from the retry's
// transaction.
func (e *enlisting) pause() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.skippable++
	if e.tx != nil && e.skippable == 1 {
		// The Tx can't tell which goroutine enlists a write, so refuse the writes of all goroutines
		// of the handler.
		e.tx.Refuse(errSkippable)
	}
}

// resume undoes one call of pause. Writes are allowed again once every pause has ended.
func (e *enlisting) resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.skippable--
	if e.tx != nil && e.skippable == 0 {
		e.tx.Refuse(nil)
	}
}

// end stops the enlisting of writes: later calls of TxOf return err. If end or endIfUnused has
// already stopped the enlisting, end keeps the earlier error. end returns the transaction, or nil if
// there is none.
func (e *enlisting) end(err error) Tx {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended == nil {
		e.ended = err
	}
	return e.tx
}

// used reports whether the handler has called TxOf.
func (e *enlisting) used() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tx != nil
}

// endIfUnused stops the enlisting of writes unless the handler has called TxOf: later calls of TxOf
// return err. It reports whether the handler has not called TxOf. The guard calls endIfUnused just
// before it sends the first part of a response, because a write enlisted later could not be
// committed before the response.
func (e *enlisting) endIfUnused(err error) (unused bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tx == nil {
		e.ended = err
	}
	return e.tx == nil
}

// seal ends enlisting after the handler has returned. It returns the transaction to commit
// with an answer of the given outcome, or nil if there is nothing to commit. dropped is the
// number of enlisted writes that are not made because of the outcome.
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

// successWithoutWrites returns the error that replaces a successful answer whose enlisted writes
// are dropped. The answer says that the writes were made, so the caller must not receive it. o is
// the outcome that Options.Outcome returned for the answer, and dropped is the number of writes.
func successWithoutWrites(o Outcome, dropped int) error {
	err := &Error{Code: ErrWriteInvalid, Status: http.StatusInternalServerError,
		Detail: "The request was not completed, because its answer contradicts what would be written.",
		Err: fmt.Errorf("the handler answered with a success, but Options.Outcome returned %q for it, which drops its enlisted writes (%d of them): "+
			"return OutcomeSucceeded for it, answer with an error, or have the handler call Drop on its Tx", o, dropped)}
	switch o {
	case OutcomeReleased:
		return Retryable(err)
	case OutcomeFailed, OutcomeSucceeded:
		// Return the error without a mark such as Permanent, so that it is not stored. A stored
		// error would complete the record although the writes are missing.
		return err
	case OutcomeUncertain:
	}
	return Uncertain(err)
}

// drop removes the transaction after the database has rejected it. A later call of seal then
// finds nothing to commit.
func (e *enlisting) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tx = nil
}
