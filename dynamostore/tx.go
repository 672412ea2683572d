package dynamostore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.Transactor = (*Store)(nil)

// Begin returns a transaction without writes: see [lambdaidem.Transactor]. A
// handler gets at it by [Enlist].
func (s *Store) Begin(random io.Reader) lambdaidem.Tx {
	return &transaction{store: s, random: random, enlisted: &Tx{}}
}

// transaction is what a handler enlisted, on its way into the database.
type transaction struct {
	store    *Store
	random   io.Reader
	enlisted *Tx

	prepared  *prepared // for the completion that came last
	ambiguous bool      // a call's fate is unknown (X8)
}

// Seal ends enlisting.
func (t *transaction) Seal(o lambdaidem.Outcome) bool { return t.enlisted.seal(o) }

// Writes returns the number of enlisted writes.
func (t *transaction) Writes() int { return t.enlisted.count() }

// Refuse makes enlisting panic; Refuse(nil) allows it again.
func (t *transaction) Refuse(why error) { t.enlisted.refuse(why) }

// Commit sends the transaction: see [lambdaidem.Tx]. What it returns after success
// has of the record what the completion says.
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
	ctx, v := witnessed(ctx, opCommit)
	v.ambiguous = t.ambiguous // judged over every call
	v.bytes = &p.body
	rec := p.record
	_, err := t.store.transport.send(ctx, &transactRequest{p.input, p.records() > 0})
	if err != nil {
		rec, err = t.verdict(p, v, err)
	}
	t.ambiguous = err != nil && v.ambiguous // verdict may have settled it
	return rec, err
}

// prepared is a transaction as it is sent, every time: the input is built once
// (E1).
type prepared struct {
	of     *lambdaidem.Completion
	input  *dynamodb.TransactWriteItemsInput
	record lambdaidem.Record // as it is once the transaction has happened
	now    time.Time         // of the record's condition, by the guard's clock
	token  string            // fencing token of the record; empty without a record
	writes []*Write          // after the record's
	body   sameBody
	first  time.Time // when it was first sent; zero before
}

// records tells how many actions come before the handler's.
func (p *prepared) records() int {
	if p.of.Alone {
		return 0
	}
	return 1
}

// prepare builds the input, and writes what must be there before it is sent. Where
// the record is found taken, it returns that, with [lambdaidem.ErrLeaseLost].
func (t *transaction) prepare(ctx context.Context, c *lambdaidem.Completion) (*prepared, lambdaidem.Record, error) {
	var token [16]byte
	if _, err := io.ReadFull(t.random, token[:]); err != nil {
		panic(fmt.Sprintf("dynamostore: the guard's Options.Random: %v", err))
	}
	p := &prepared{of: c, writes: t.enlisted.writes, token: c.Lease.Token, now: c.Result.At}
	var actions []types.TransactWriteItem
	if !c.Alone {
		answer, seen, err := t.store.storedBefore(ctx, c)
		if err != nil {
			return nil, seen, err
		}
		action, err := t.store.completing(c, answer, p)
		if err != nil {
			return nil, lambdaidem.Record{}, err
		}
		actions = append(actions, action)
	}
	for _, w := range p.writes {
		actions = append(actions, w.action())
	}
	p.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      actions,
		ClientRequestToken: aws.String(base64.RawURLEncoding.EncodeToString(token[:])),
	}
	return p, lambdaidem.Record{}, nil
}

// storedBefore is the answer as the record is to keep it, its parts written (R3).
// Without a lease the record is looked at before: a race that is lost already is
// not worth the parts (E4).
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

// completing returns the action that completes the record. A claim over a record that
// was seen is an update, so that what operators did to the record stays in it.
func (s *Store) completing(c *lambdaidem.Completion, answer lambdaidem.Result, p *prepared) (types.TransactWriteItem, error) {
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	ours := &item{ID: c.Lease.ID, Token: c.Lease.Token}
	if c.Claim != nil {
		ours = claimed(*c.Claim)
	}
	ours.finish(answer)
	p.record = ours.record()
	if size := s.layout.size(ours); size > maxItemSize {
		return types.TransactWriteItem{}, tooLarge(opCommit, size)
	}
	given := given{now: p.now, token: c.Lease.Token}
	w := &s.writes.completion
	switch {
	case c.Claim == nil:
	case c.Claim.Over == nil:
		w := &s.writes.claim
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                           aws.String(s.table),
			Item:                                s.layout.attributes(ours),
			ConditionExpression:                 aws.String(w.condition),
			ExpressionAttributeNames:            w.names,
			ExpressionAttributeValues:           given.attributes(),
			ReturnValuesOnConditionCheckFailure: old,
		}}, nil
	default:
		w, given.seen = &s.writes.claimOver, c.Claim.Over
	}
	values := given.attributes()
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           aws.String(s.table),
		Key:                                 s.key(c.Lease.ID),
		UpdateExpression:                    aws.String(s.layout.expression(w.sets, ours, values)),
		ConditionExpression:                 aws.String(w.condition),
		ExpressionAttributeNames:            w.names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: old,
	}}, nil
}

// tokenLife is for how long a transaction without a record is sent again. The
// database knows its token for 10 minutes after it happened (AWS, "Amazon DynamoDB
// Transactions: How it works"), and afterwards would do it once more. One with a
// record is safe for ever: its condition fails on what it wrote itself.
const tokenLife = 9 * time.Minute

var errTokenTooOld = errors.New("the transaction was first sent longer ago than DynamoDB surely remembers it: sent again, it might happen twice")

// mayBeSent tells whether the transaction can be sent again without harm.
func (p *prepared) mayBeSent() bool {
	if p.first.IsZero() {
		p.first = time.Now()
	}
	return p.records() > 0 || time.Since(p.first) < tokenLife
}

// unknown is the error of a transaction that may have happened.
func (t *transaction) unknown(err error) error {
	return &lambdaidem.StoreError{Op: opCommit, NotApplied: !t.ambiguous, Err: err}
}
