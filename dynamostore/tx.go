package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.Transactor = (*Store)(nil)

// Begin implements [lambdaidem.Transactor]. The guard calls it; a handler calls
// [Enlist] to use the transaction.
func (s *Store) Begin(random io.Reader) lambdaidem.Tx {
	return &transaction{store: s, random: random, enlisted: &Tx{}}
}

// transaction implements [lambdaidem.Tx].
type transaction struct {
	store    *Store
	random   io.Reader
	enlisted *Tx

	prepared *prepared // the request for the completion most recently committed
	doubt    bool      // a request was sent that may have been applied
}

// Seal ends enlisting.
func (t *transaction) Seal(o lambdaidem.Outcome) bool { return t.enlisted.seal(o) }

// Writes returns the number of enlisted writes.
func (t *transaction) Writes() int { return t.enlisted.count() }

// Refuse makes enlisting panic; Refuse(nil) allows it again.
func (t *transaction) Refuse(why error) { t.enlisted.refuse(why) }

// Commit implements [lambdaidem.Tx]. The record that it returns on success is built
// from c, because DynamoDB does not return written items.
func (t *transaction) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	if err := t.enlisted.invalid(t.store); err != nil {
		return lambdaidem.Record{}, writeInvalid(err)
	}
	if t.prepared == nil || t.prepared.of != c {
		p, seen, err := t.prepare(ctx, c)
		if err != nil {
			return seen, err
		}
		t.prepared = p
	}
	p := t.prepared
	if !p.mayBeSent() {
		return lambdaidem.Record{}, t.unknown(errTokenTooOld)
	}
	fate, err := t.store.wire.Do(ctx, &p.request.Request)
	if err == nil {
		t.doubt = false
		return p.record, nil
	}
	if t.doubt {
		fate = wire.Unknown // an earlier request may have been applied
	}
	rec, fate, err := t.judge(p, fate, err)
	t.doubt = fate == wire.Unknown
	return rec, err
}

// prepared is the request for one completion. It is built once, so that every retry
// sends the same bytes.
type prepared struct {
	of      *lambdaidem.Completion
	request *transactRequest
	record  lambdaidem.Record // the record once the transaction has committed
	now     time.Time         // the time in the record's condition, by the guard's clock
	token   string            // the record's fencing token; empty without a record
	writes  []*Write          // the handler's writes, which follow the record's
	first   time.Time         // when the request was first sent; zero before
}

// records returns the number of actions on the record, which come before the
// handler's writes.
func (p *prepared) records() int {
	if p.of.Alone {
		return 0
	}
	return 1
}

// prepare builds the request for c and writes the parts of a large answer, which must
// exist before the record refers to them. If another attempt has taken the record,
// prepare returns that record and [lambdaidem.ErrLeaseLost].
func (t *transaction) prepare(ctx context.Context, c *lambdaidem.Completion) (*prepared, lambdaidem.Record, error) {
	var token [16]byte
	if _, err := io.ReadFull(t.random, token[:]); err != nil {
		panic(fmt.Sprintf("dynamostore: the guard's Options.Random: %v", err))
	}
	p := &prepared{of: c, writes: t.enlisted.writes, token: c.Lease.Token, now: c.Result.At}
	var record []byte
	if !c.Alone {
		answer, seen, err := t.store.storedBefore(ctx, c)
		if err != nil {
			return nil, seen, err
		}
		if record, err = t.store.completing(c, answer, p); err != nil {
			return nil, lambdaidem.Record{}, err
		}
	}
	var err error
	if p.request, err = t.store.transacting(base64.RawURLEncoding.EncodeToString(token[:]), record, p.writes); err != nil {
		return nil, lambdaidem.Record{}, writeInvalid(err)
	}
	return p, lambdaidem.Record{}, nil
}

// storedBefore writes the parts of a large answer and returns the result to store in
// the record. An attempt without a lease first reads the record, in order not to
// write parts after another attempt has already won.
func (s *Store) storedBefore(ctx context.Context, c *lambdaidem.Completion) (answer lambdaidem.Result, seen lambdaidem.Record, err error) {
	p, err := s.pack(ctx, c.Lease, c.Result)
	if err != nil {
		return lambdaidem.Result{}, lambdaidem.Record{}, err
	}
	if p.stored != nil && c.Claim != nil && c.Claim.Over == nil {
		seen, err = s.Get(ctx, c.Lease.ID, c.Claim.Now)
		if err == nil && seen.State != lambdaidem.Absent && seen.Token != c.Lease.Token {
			err = lambdaidem.ErrLeaseLost
		}
		if err != nil {
			return lambdaidem.Result{}, seen, err
		}
	}
	return p.result, lambdaidem.Record{}, s.writeParts(ctx, c.Lease, p)
}

// completing returns the action that completes the record, in JSON. A claim that replaces a
// known record is an update, which preserves the list of operators' changes in the
// record.
func (s *Store) completing(c *lambdaidem.Completion, answer lambdaidem.Result, p *prepared) ([]byte, error) {
	ours := &item{ID: c.Lease.ID, Token: c.Lease.Token}
	if c.Claim != nil {
		ours = claimed(*c.Claim)
	}
	ours.finish(answer)
	p.record = ours.record()
	if size := s.layout.size(ours); size > maxItemSize {
		return nil, tooLarge(opCommit, size)
	}
	given := given{now: p.now, token: c.Lease.Token}
	switch {
	case c.Claim == nil:
		return s.updateAction(&s.writes.completion, ours, given), nil
	case c.Claim.Over == nil:
		return s.putAction(&s.writes.claim, ours, given), nil
	}
	given.seen, given.token = c.Claim.Over, "" // the update itself has the token among its values
	return s.updateAction(&s.writes.claimOver, ours, given), nil
}

// tokenLife limits how long a transaction without a record is retried. DynamoDB
// remembers a transaction's token for 10 minutes (AWS, "Amazon DynamoDB Transactions:
// How it works") and would apply the transaction again after that. A transaction with
// a record can be retried at any time, because the record's condition fails once the
// transaction has been applied.
const tokenLife = 9 * time.Minute

var errTokenTooOld = errors.New("the transaction was first sent longer ago than DynamoDB surely remembers it: sent again, it might happen twice")

// mayBeSent reports whether sending the request can't apply the transaction twice.
func (p *prepared) mayBeSent() bool {
	if p.first.IsZero() {
		p.first = time.Now()
	}
	return p.records() > 0 || time.Since(p.first) < tokenLife
}

// unknown returns the error of a request that was not sent. The transaction may still
// have been applied by an earlier request.
func (t *transaction) unknown(err error) error {
	return &lambdaidem.StoreError{Op: opCommit, NotApplied: !t.doubt, Err: err}
}
