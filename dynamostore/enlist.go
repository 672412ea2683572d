package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Tx collects the writes that one run of a handler enlists. The writes are made in
// one transaction with the handler's answer, or not at all. A Tx is safe for
// concurrent use.
type Tx struct {
	mu         sync.Mutex
	writes     []*Write
	err        error // the first write that can't be made, and why
	whenFailed bool
	sealed     bool
	refused    error // why nothing can be enlisted at the moment; nil while enlisting is possible
}

// Enlist returns the transaction of the handler that ctx belongs to. One
// TransactWriteItems makes the enlisted writes, stores the handler's answer and
// completes its record: either all of it happens, exactly once, or none of it. The
// request is sent after the handler has returned, so a handler can't read its own
// writes.
//
// The writes are made if the answer's outcome is OutcomeSucceeded. They are dropped if
// the outcome is OutcomeFailed (but see [Tx.AlsoWhenFailed]), OutcomeReleased or
// OutcomeUncertain. A success is never sent without its writes: if Options.Outcome
// drops the writes of an answer with a status of 200 to 399, the client receives
// 500 [lambdaidem.ErrWriteInvalid] instead. The writes of a handler that runs
// unguarded (for a GET, or for a request without a key where keys are optional) are
// made in a transaction without a record, before the handler's answer is sent. A
// net/http handler that runs unguarded must enlist before it begins its answer.
//
// The writes go to tables in the account and Region of the store's client, with the
// client's credentials, which need dynamodb:PutItem, UpdateItem, DeleteItem and
// ConditionCheckItem for them. A transaction takes at most 99 writes of a handler, one
// for each item, and 4 MB in total.
//
// Enlist panics where nothing would ever commit the writes: outside a guarded
// handler, after the handler has returned, after an unguarded net/http handler has
// begun its answer, and if the guard uses a store of another package. To test a
// handler without a guard, see [Capture].
//
// The methods of Tx and Write panic after the handler has returned, and while the
// handler runs a [lambdaidem.Step] or makes a guarded call such as [lambdaidem.Do]. A
// retry skips a step or call whose result is stored, so a write enlisted there would
// be missing from the retry. A Tx can't tell which goroutine calls it. A handler that
// runs steps in goroutines must therefore wait for all of them before it enlists
// their results. A guarded call enlists in its own transaction.
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

// AlsoWhenFailed makes the writes even if the answer's outcome is OutcomeFailed, which
// by default a 4xx has. Use it to record refused requests, for example. It has no effect in
// a handler of messages, whose failures are never stored.
func (t *Tx) AlsoWhenFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.whenFailed = true
}

// Drop discards every write enlisted so far. A handler calls Drop if it has enlisted
// writes and then finds that it should succeed without them. Dropping the writes of a
// success by Options.Outcome instead is an error; see [Enlist].
func (t *Tx) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.writes, t.err = nil, nil
}

// Put enlists a put. Errors identify the write by name, which must be different for
// every write of a transaction. The caller must not change put's maps afterwards.
//
// If Put or another method can't enlist a write, for example because its name is
// taken, nothing is written, and the client receives 500
// [lambdaidem.ErrWriteInvalid] in place of the handler's answer.
func (t *Tx) Put(name string, put types.Put) *Write {
	return t.add(&Write{name: name, table: put.TableName, key: nil, item: put.Item,
		names: put.ExpressionAttributeNames, values: put.ExpressionAttributeValues, condition: put.ConditionExpression, kind: aPut})
}

// Update enlists an update.
func (t *Tx) Update(name string, update types.Update) *Write {
	return t.add(&Write{name: name, table: update.TableName, key: update.Key, update: update.UpdateExpression,
		names: update.ExpressionAttributeNames, values: update.ExpressionAttributeValues, condition: update.ConditionExpression, kind: anUpdate})
}

// Delete enlists a delete.
func (t *Tx) Delete(name string, del types.Delete) *Write {
	return t.add(&Write{name: name, table: del.TableName, key: del.Key,
		names: del.ExpressionAttributeNames, values: del.ExpressionAttributeValues, condition: del.ConditionExpression, kind: aDelete})
}

// Check enlists a condition on an item that is not written.
func (t *Tx) Check(name string, check types.ConditionCheck) *Write {
	return t.add(&Write{name: name, table: check.TableName, key: check.Key,
		names: check.ExpressionAttributeNames, values: check.ExpressionAttributeValues, condition: check.ConditionExpression, kind: aCheck})
}

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
	t.failed(w, err)
	t.writes = append(t.writes, w)
	return w
}

// failed records err, which may be nil, if it is the first error of a write.
func (t *Tx) failed(w *Write, err error) {
	if err != nil && t.err == nil {
		t.err = &WriteError{Write: w.name, Err: err}
	}
}

func (t *Tx) named(name string) *Write {
	for _, w := range t.writes {
		if w.name == name {
			return w
		}
	}
	return nil
}

// mustBeOpen panics if a write enlisted or changed now would be lost.
func (t *Tx) mustBeOpen() {
	if t.sealed {
		panic("dynamostore: a write was enlisted after the handler had returned, and would be lost")
	}
	if t.refused != nil {
		panic(fmt.Sprintf("dynamostore: a write can't be enlisted now: %v", t.refused))
	}
}

// refuse makes enlisting panic; nil allows it again.
func (t *Tx) refuse(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = why
}

// count returns the number of enlisted writes.
func (t *Tx) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.writes)
}

// seal ends enlisting. It reports whether there are writes to make for an answer with
// outcome o.
func (t *Tx) seal(o lambdaidem.Outcome) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
	return len(t.writes) > 0 && (o == lambdaidem.OutcomeSucceeded || o == lambdaidem.OutcomeFailed && t.whenFailed)
}

// Write is one enlisted write.
type Write struct {
	tx        *Tx
	kind      kind
	name      string
	table     *string
	key       attributes // nil for a put
	item      attributes // nil unless the write is a put
	update    *string
	condition *string
	names     map[string]string
	values    attributes
	verdict   func(*ConditionFailed) error
	err       error
}

type kind uint8

const (
	aPut kind = iota
	anUpdate
	aDelete
	aCheck
)

// Else sets the error of the call if this write's condition fails. The guard treats
// err as if the handler had returned it: with [lambdaidem.Reject] the client receives
// an error, which is stored; with [lambdaidem.Answer] the client receives an ordinary
// answer; with [lambdaidem.Retryable] a retry runs the handler again.
//
// Without Else, the call fails with [lambdaidem.ErrConditionFailed]. Under policy
// Rerun the record is released, so that a retry runs the handler again. Under policy
// Hold the outcome is uncertain, because the handler may have called other services
// before the condition failed.
//
// If the conditions of several writes fail, the write enlisted first decides.
func (w *Write) Else(err error) *Write {
	return w.ElseFunc(func(*ConditionFailed) error { return err })
}

// ElseFunc is like [Write.Else], but calls verdict for the error. The argument has the
// item on which the condition failed, so that verdict can tell a missing item from
// one with other values. If verdict returns nil, the call fails as without ElseFunc.
func (w *Write) ElseFunc(verdict func(*ConditionFailed) error) *Write {
	w.tx.mu.Lock()
	defer w.tx.mu.Unlock()
	w.tx.mustBeOpen()
	w.verdict = verdict
	return w
}

// action returns the write as an element of a TransactWriteItems request. If its
// condition fails, DynamoDB returns the item on which it failed.
func (w *Write) action() types.TransactWriteItem {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.kind {
	case aPut:
		return types.TransactWriteItem{Put: &types.Put{TableName: w.table, Item: w.item, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	case anUpdate:
		return types.TransactWriteItem{Update: &types.Update{TableName: w.table, Key: w.key, UpdateExpression: w.update, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	case aDelete:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: w.table, Key: w.key, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: w.table, Key: w.key, ConditionExpression: w.condition,
			ExpressionAttributeNames: w.names, ExpressionAttributeValues: w.values, ReturnValuesOnConditionCheckFailure: old}}
	}
}
