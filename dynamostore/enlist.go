package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Tx is the writes of one run of a handler that are to happen with its answer,
// or not at all (E1). It is safe for concurrent use.
type Tx struct {
	mu         sync.Mutex
	writes     []*Write
	err        error // of the first write that can't be made
	whenFailed bool
	sealed     bool
	refused    error // why nothing can be enlisted at the moment; nil: it can
}

// Enlist returns the transaction of the handler that has this context. What is
// enlisted there, the handler's answer and the completion of its record are one
// TransactWriteItems: all of it happens, exactly once, or nothing does (G1). It
// is sent after the handler has returned, so a handler can't read its own writes.
//
// The writes are made if the answer counts as succeeded, and dropped if it counts
// as failed (see [Tx.AlsoWhenFailed]), is released or uncertain. A success never
// goes out without its writes: where Options.Outcome drops the writes of an answer
// with a status of 200 to 399, the answer becomes 500 [lambdaidem.ErrWriteInvalid].
// A handler that
// runs unguarded (a GET, a request without a key where keys are optional) has its
// writes made in a transaction of their own, before its answer is sent; a net/http
// handler that runs unguarded enlists before it writes its answer.
//
// The writes go to tables of the account and Region of the store's client, with
// its credentials: dynamodb:PutItem, UpdateItem, DeleteItem and ConditionCheckItem
// are the actions. Up to 99 writes, one for each item, 4 MB together.
//
// Enlist panics where nothing would ever commit the writes: outside of a guarded
// handler, after it has returned, after a net/http handler that runs unguarded
// began its answer, and with a guard on another store. For tests of a handler
// without a guard see [Capture].
//
// The methods of Tx and Write panic after the handler has returned, and while a
// [lambdaidem.Step] of the handler, or a guarded call that the handler makes (a
// [lambdaidem.Do], say), is running: a retry skips a step or a call that was
// stored, and would miss what it enlisted. A Tx can't tell which goroutine calls
// it, so a handler that runs steps in goroutines waits for all of them before it
// enlists what they returned. A guarded call enlists in a transaction of its own.
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

// AlsoWhenFailed has the writes made with an answer that counts as failed too, a
// 4xx say (X1): to keep count of what was refused.
func (t *Tx) AlsoWhenFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.whenFailed = true
}

// Drop takes back every write enlisted so far. A handler that finds out late that
// nothing is to be written, and still answers with a success, calls it: a success
// that drops writes by Options.Outcome alone is refused (see [Enlist]).
func (t *Tx) Drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mustBeOpen()
	t.writes, t.err = nil, nil
}

// Put enlists a put. The name tells the write from others in errors; each has one
// of its own. What is passed must not be changed afterwards.
//
// Here and in the others: what can't be enlisted is kept, and the handler's answer
// becomes 500 [lambdaidem.ErrWriteInvalid], with nothing written.
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

// failed keeps the first error of a write.
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

// mustBeOpen panics where what is about to be enlisted or changed would be lost.
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

// seal ends enlisting, and tells whether there is anything to commit.
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
	key       attributes // nil of a put
	item      attributes // of a put
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

// Else says what becomes of the call if this write's condition fails: err is
// taken as if the handler had returned it, so [lambdaidem.Reject] makes an answer
// that is stored, [lambdaidem.Answer] one of the handler's own, and
// [lambdaidem.Retryable] has a retry run again. Without it, the call fails with
// [lambdaidem.ErrConditionFailed]: released, so that a retry runs again; uncertain
// under policy Hold, since outside calls may have gone before.
//
// Of several failed conditions that of the write that was enlisted first counts.
func (w *Write) Else(err error) *Write {
	return w.ElseFunc(func(*ConditionFailed) error { return err })
}

// ElseFunc is Else with a look at what failed: an item that is absent can be told
// from one that compares otherwise. A nil error is as if ElseFunc had not been
// called.
func (w *Write) ElseFunc(verdict func(*ConditionFailed) error) *Write {
	w.tx.mu.Lock()
	defer w.tx.mu.Unlock()
	w.tx.mustBeOpen()
	w.verdict = verdict
	return w
}

// action is the write as the API takes it. Its condition brings the item along
// that it failed on.
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
