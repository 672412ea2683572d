package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Tx collects the DynamoDB writes that one run of a handler enlists. The writes are committed in
// one transaction with the handler's answer, or not at all. [Enlist] returns a Tx. A Tx is safe for
// concurrent use.
//
// The methods of Tx and Write panic after the handler has returned. They also panic while the
// handler runs a [lambdaidem.Step] or makes a guarded call such as [lambdaidem.Do], because a retry
// may skip the step or call, and with it the write. A handler that runs steps in goroutines must
// therefore wait for all of them before it enlists writes.
type Tx struct {
	mu         sync.Mutex
	writes     []*Write // in the order in which they were enlisted
	err        error    // a *WriteError for the first write that can't be made; nil if there is none
	whenFailed bool     // whether to make the writes for OutcomeFailed too; see AlsoWhenFailed
	sealed     bool     // whether enlisting has ended, because the handler has returned
	refused    error    // why writes can't be enlisted now, while a step or a guarded call runs; otherwise nil
}

// Enlist returns the transaction of the handler that ctx belongs to. The handler adds writes to it.
// After the handler has returned, one TransactWriteItems request makes these writes, stores the
// handler's answer and completes the record of the call. Either all of that happens, exactly once,
// or none of it. A handler can't read its own writes, because they are not made while it runs.
//
// The writes are made if the answer's outcome is OutcomeSucceeded. They are dropped if the outcome
// is OutcomeFailed (but see [Tx.AlsoWhenFailed]), OutcomeReleased or OutcomeUncertain. If
// lambdaidem.Options.Outcome returns one of these for a response with a status of 200 to 399, the
// client receives 500 [lambdaidem.ErrWriteInvalid] instead, because the response is untrue without
// the writes.
//
// If a request runs unguarded, that is, without a record, the guard commits the handler's writes
// before it sends the answer. A net/http handler must then enlist before it writes its response.
//
// The tables of the writes must be in the account and Region of the store's client. The client's
// credentials need dynamodb:PutItem, UpdateItem, DeleteItem and ConditionCheckItem on the tables. A
// handler can enlist at most 99 writes, each to a different item, and 4 MB in total.
//
// Enlist panics if nothing would ever commit the writes:
//
//   - if ctx is not derived from the context that a guard passes to its handler
//   - if ctx is the context of a [lambdaidem.Step]
//   - after the handler has returned
//   - after a net/http handler that runs unguarded has begun to write its response
//   - if the guard's store is not a [Store] of this package
//
// A function that is passed to a guarded call, such as [lambdaidem.Do], has its own transaction: it
// calls Enlist with the ctx that it receives. To test a handler without a guard, see [Capture].
func Enlist(ctx context.Context) *Tx {
	enlisted, err := lambdaidem.TxOf(ctx)
	for enlisted != nil {
		if t, ok := enlisted.(*transaction); ok {
			return t.enlisted
		}
		wrapped, ok := enlisted.(interface{ Unwrap() lambdaidem.Tx })
		if !ok {
			err = fmt.Errorf("the guard's store is not of this package: its transactions are %T", enlisted)
			break
		}
		enlisted = wrapped.Unwrap()
	}
	if c, ok := ctx.Value(captureKey{}).(*Captured); ok {
		return &c.tx
	}
	panic(fmt.Sprintf("dynamostore: Enlist: %v", err))
}

// AlsoWhenFailed asks for the writes to be made even if the answer's outcome is
// OutcomeFailed, which by default is the outcome of most 4xx responses. For example, a
// handler can call AlsoWhenFailed to record the requests that it refuses.
//
// AlsoWhenFailed has no effect in a handler of messages, such as those of SQS. The outcome of
// such a handler is never OutcomeFailed, because a message that failed must be handled again.
func (t *Tx) AlsoWhenFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.whenFailed = true
}

// Drop discards all writes enlisted so far. A handler calls Drop if it has enlisted writes and then
// finds that it should succeed without them. Don't use lambdaidem.Options.Outcome for this: if that
// function drops the writes of a successful answer, the client receives an error instead; see
// [Enlist].
func (t *Tx) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.writes, t.err = nil, nil
}

// Put enlists a put of an item, and returns the enlisted write. Errors identify the write by its
// name, which must be unique within the transaction. The caller must not change the maps of the
// [types.Put] afterwards.
//
// If Put or another method of Tx can't enlist a write, for example because its name is
// already used, none of the writes is made. The client then receives 500
// [lambdaidem.ErrWriteInvalid] instead of the handler's answer.
func (t *Tx) Put(name string, put types.Put) *Write {
	return t.add(&Write{name: name, table: put.TableName, key: nil, item: put.Item,
		names: put.ExpressionAttributeNames, values: put.ExpressionAttributeValues, condition: put.ConditionExpression, kind: aPut})
}

// Update enlists an update of an item. For the name, the result and the errors, see [Tx.Put].
func (t *Tx) Update(name string, update types.Update) *Write {
	return t.add(&Write{name: name, table: update.TableName, key: update.Key, update: update.UpdateExpression,
		names: update.ExpressionAttributeNames, values: update.ExpressionAttributeValues, condition: update.ConditionExpression, kind: anUpdate})
}

// Delete enlists the deletion of an item. For the name, the result and the errors, see [Tx.Put].
func (t *Tx) Delete(name string, del types.Delete) *Write {
	return t.add(&Write{name: name, table: del.TableName, key: del.Key,
		names: del.ExpressionAttributeNames, values: del.ExpressionAttributeValues, condition: del.ConditionExpression, kind: aDelete})
}

// Check enlists a condition on an item that the transaction does not write. If the condition fails,
// none of the transaction's writes is made. For the name, the result and the errors, see [Tx.Put].
func (t *Tx) Check(name string, check types.ConditionCheck) *Write {
	return t.add(&Write{name: name, table: check.TableName, key: check.Key,
		names: check.ExpressionAttributeNames, values: check.ExpressionAttributeValues, condition: check.ConditionExpression, kind: aCheck})
}

// add enlists a write. It always returns w, so that calls can be chained. A write that can't
// be made is reported when the transaction is committed.
func (t *Tx) add(w *Write) *Write {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	w.tx = t
	err := w.err
	switch {
	case err != nil:
	case w.name == "":
		err = errors.New("it has no name")
	case w.table == nil || *w.table == "":
		err = errors.New("it has no table")
	case t.named(w.name) != nil:
		err = errors.New("another write has this name")
	}
	t.recordError(w, err)
	t.writes = append(t.writes, w)
	return w
}

// recordError stores err as the error of the transaction, unless an earlier write already had
// an error. It does nothing if err is nil.
func (t *Tx) recordError(w *Write, err error) {
	if err != nil && t.err == nil {
		t.err = &WriteError{Write: w.name, Err: err}
	}
}

// named returns the enlisted write with the given name, or nil.
func (t *Tx) named(name string) *Write {
	for _, w := range t.writes {
		if w.name == name {
			return w
		}
	}
	return nil
}

// mustBeOpen panics if the handler must not enlist or change a write now. After the handler has
// returned, the write would be lost. While a step or a guarded call runs inside the handler, the
// write would be missing from a retry, which skips the step or call. The caller must hold t.mu.
func (t *Tx) mustBeOpen() {
	if t.sealed {
		panic("dynamostore: a write was enlisted after the handler had returned, and would be lost")
	}
	if t.refused != nil {
		panic(fmt.Sprintf("dynamostore: a write can't be enlisted now: %v", t.refused))
	}
}

// refuse forbids enlisting until refuse(nil) is called: every call that enlists or changes a write
// panics with a message that includes err. The guard forbids enlisting while a step or a guarded
// call runs inside the handler: a retry may skip the step or call, and with it the write.
func (t *Tx) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = err
}

// count returns the number of enlisted writes.
func (t *Tx) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.writes)
}

// seal ends enlisting: enlisting a write panics from now on. It reports whether there are writes to
// make. The writes are dropped unless o, the outcome of the handler's answer, is OutcomeSucceeded,
// or OutcomeFailed after AlsoWhenFailed.
func (t *Tx) seal(o lambdaidem.Outcome) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
	return len(t.writes) > 0 && (o == lambdaidem.OutcomeSucceeded || o == lambdaidem.OutcomeFailed && t.whenFailed)
}
