package dynamostore

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.Transactor = (*Store)(nil)

// Begin returns a transaction without writes, and sends nothing. The parameter random is the source
// of the token that lets DynamoDB recognize a retried transaction. Begin implements
// [lambdaidem.Transactor]. Only the guard calls Begin. A handler calls [Enlist], which returns the
// transaction that the guard has begun.
func (s *Store) Begin(random io.Reader) lambdaidem.Tx {
	return &transaction{store: s, random: random, enlisted: &Tx{}}
}

// transaction implements [lambdaidem.Tx], which the guard uses to commit a handler's writes. The
// handler never sees the transaction. It enlists its writes in a [Tx] of this package, which the
// transaction holds in its field "enlisted".
type transaction struct {
	store    *Store
	random   io.Reader // the source of the token that lets DynamoDB recognize a retried transaction
	enlisted *Tx       // the handler's writes

	prepared     *prepared // the request of the most recent Commit; nil before the first Commit
	mayBeApplied bool      // whether a request was sent that may have been applied
}

// Seal ends enlisting: every later call that enlists a write panics. o is the outcome of
// the handler's answer. Seal reports whether there are enlisted writes that the guard must
// commit with this answer. With OutcomeSucceeded, the guard commits the writes. With
// OutcomeFailed, the guard commits them only if the handler has called [Tx.AlsoWhenFailed].
// With any other outcome, the guard drops them.
func (t *transaction) Seal(o lambdaidem.Outcome) bool { return t.enlisted.seal(o) }

// Writes returns the number of writes that the handler has enlisted.
func (t *transaction) Writes() int { return t.enlisted.count() }

// Refuse forbids enlisting until Refuse(nil) is called: every call that enlists a write panics with
// a message that includes err. The guard calls Refuse while a step or a guarded call runs inside
// the handler. A retry skips a completed step or call, so the retry's transaction would lack the
// writes that were enlisted inside it.
func (t *transaction) Refuse(err error) { t.enlisted.refuse(err) }

// Commit makes the enlisted writes and completes the record in one TransactWriteItems. It
// implements [lambdaidem.Tx]. If it succeeds, it returns the record that it has written.
// That record is built from c, because DynamoDB does not return the items of a
// transaction.
func (t *transaction) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	if err := t.enlisted.validateFor(t.store); err != nil {
		return lambdaidem.Record{}, writeInvalid(err)
	}
	startedAt := time.Now()
	if t.prepared == nil || t.prepared.completion != c {
		p, current, err := t.prepare(ctx, c)
		if err != nil {
			return current, err
		}
		p.startedAt = startedAt
		t.prepared = p
	}
	p := t.prepared
	if c.Claim != nil {
		p.startedAt = startedAt // the record refuses the transaction if an earlier Commit has applied it
	}
	if err := p.mayBeSent(); err != nil {
		return lambdaidem.Record{}, t.notSent(err)
	}
	fate, err := t.store.wire.Do(ctx, &p.request.Request)
	if err == nil {
		t.mayBeApplied = false
		return p.record, nil
	}
	if t.mayBeApplied {
		fate = wire.Unknown // an earlier request may have been applied
	}
	rec, fate, err := t.judge(p, fate, err)
	t.mayBeApplied = fate == wire.Unknown
	return rec, err
}

// prepared is the TransactWriteItems request for one completion. It is built once, so
// that every retry sends the same bytes, as DynamoDB demands for requests with the same
// token.
type prepared struct {
	completion *lambdaidem.Completion // the completion that the request carries out
	request    *transactRequest
	record     lambdaidem.Record // the record after the transaction; zero if the transaction has no record
	now        time.Time         // the time at which the record's condition judges the expiry: Claim.Now or, without a claim, Result.At
	token      string            // the fencing token of the attempt; empty without a record
	writes     []*Write          // the handler's writes, which follow the action on the record
	startedAt  time.Time         // when Commit was called; with a lease or without a record, when it was first called
}

// records returns how many actions of the transaction write the idempotency record: 1, or 0
// if the handler runs unguarded. The action on the record is the first of the transaction,
// and the handler's writes follow it.
func (p *prepared) records() int {
	if p.completion.Alone {
		return 0
	}
	return 1
}

// prepare builds the request for c. If the answer is large, prepare also writes its parts
// to DynamoDB, because they must exist before the record refers to them. If
// writeAnswerParts finds that the record belongs to another attempt, prepare returns that
// record and [lambdaidem.ErrLeaseLost].
func (t *transaction) prepare(ctx context.Context, c *lambdaidem.Completion) (*prepared, lambdaidem.Record, error) {
	var token [16]byte
	if _, err := io.ReadFull(t.random, token[:]); err != nil {
		panic(fmt.Sprintf("dynamostore: the guard's Options.Random: %v", err))
	}
	p := &prepared{completion: c, writes: t.enlisted.writes, token: c.Lease.Token, now: c.Result.At}
	if c.Claim != nil {
		p.now = c.Claim.Now
	}
	var record []byte
	if !c.Alone {
		answer, current, err := t.store.writeAnswerParts(ctx, c)
		if err != nil {
			return nil, current, err
		}
		if record, err = t.store.completionAction(c, answer, p); err != nil {
			return nil, lambdaidem.Record{}, err
		}
	}
	var err error
	if p.request, err = t.store.transacting(base64.RawURLEncoding.EncodeToString(token[:]), record, p.writes); err != nil {
		return nil, lambdaidem.Record{}, writeInvalid(err)
	}
	p.request.MayRetry = p.mayBeSent
	return p, lambdaidem.Record{}, nil
}

// writeAnswerParts writes the parts of a large answer, before the transaction that refers to them.
// It returns the result to store in the record. If the completion c would create the record, but
// another attempt has already created it, writeAnswerParts writes nothing, and returns that
// attempt's record with [lambdaidem.ErrLeaseLost].
func (s *Store) writeAnswerParts(ctx context.Context, c *lambdaidem.Completion) (answer lambdaidem.Result, current lambdaidem.Record, err error) {
	p, err := s.pack(ctx, c.Lease, c.Result)
	if err != nil {
		return lambdaidem.Result{}, lambdaidem.Record{}, err
	}
	if p.partData != nil && c.Claim != nil && c.Claim.Over == nil {
		current, err = s.Get(ctx, c.Lease.ID, c.Claim.Now)
		if err == nil && current.State != lambdaidem.Absent && current.Token != c.Lease.Token {
			err = lambdaidem.ErrLeaseLost
		}
		if err != nil {
			return lambdaidem.Result{}, current, err
		}
	}
	return p.result, lambdaidem.Record{}, s.writeParts(ctx, c.Lease, p)
}

// completionAction returns the action that completes the record, as a JSON element of
// TransactItems. It also sets p.record to the completed record. If the attempt has not taken a
// lease yet, the same action also claims the record.
func (s *Store) completionAction(c *lambdaidem.Completion, answer lambdaidem.Result, p *prepared) ([]byte, error) {
	newItm := &item{ID: c.Lease.ID, Token: c.Lease.Token}
	if c.Claim != nil {
		newItm = claimed(*c.Claim)
	}
	newItm.finish(answer)
	p.record = newItm.record()
	if size := s.layout.size(newItm); size > maxItemSize {
		return nil, tooLarge(opCommit, size)
	}
	given := given{now: p.now, token: c.Lease.Token}
	switch {
	case c.Claim == nil:
		return s.updateAction(&s.writes.completion, newItm, given), nil
	case c.Claim.Over == nil:
		return s.putAction(&s.writes.claim, newItm, given), nil
	}
	// Take the record over with an Update. A Put would remove the attribute "operations", the list
	// of what operators did to the record. The Update sets the token and so defines :token itself.
	given.oldRec, given.token = c.Claim.Over, ""
	return s.updateAction(&s.writes.claimOver, newItm, given), nil
}

// notSent returns the StoreError for a Commit that sent no request because of err. NotApplied is
// true unless an earlier Commit may have applied the transaction.
func (t *transaction) notSent(err error) error {
	return &lambdaidem.StoreError{Op: opCommit, NotApplied: !t.mayBeApplied, Err: err}
}
