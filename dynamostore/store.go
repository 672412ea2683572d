package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Store is a [lambdaidem.Store] that keeps its records in a DynamoDB table. It is safe
// for concurrent use. Its methods leave no goroutines behind.
type Store struct {
	client    *dynamodb.Client
	transport transport // sends the requests for items
	whySDK    string    // why transport uses client; empty if it sends requests itself
	table     string
	opts      Options
	layout    *layout
	writes    writes
	keys      *keyring // nil without Options.Encryption
}

var (
	_ lambdaidem.Store  = (*Store)(nil)
	_ lambdaidem.Loader = (*Store)(nil)
)

// New returns a store that uses a table, which is given by its name or its ARN.
//
// The store uses a copy of client with the same credentials, HTTP client, Region,
// endpoint, logging, tracing and APIOptions. Retries and timeouts are those of Options.
// A Retryer set on client is not used.
//
// New panics if client is nil, or if the table's name or an option is invalid, and names
// the option.
func New(client *dynamodb.Client, table string, optFns ...func(*Options)) *Store {
	if client == nil {
		panic("dynamostore: New: client is nil; pass dynamodb.NewFromConfig(cfg)")
	}
	s := &Store{table: table, opts: resolved("New", table, optFns)}
	var quota retry.RateLimiter
	s.client, quota = tuned(client, &s.opts)
	s.layout = s.opts.layout()
	s.keys = newKeyring(s.opts.Encryption)
	if s.whySDK = s.opts.whySDK(client.Options()); s.whySDK != "" {
		s.transport = sdks{s.client}
	} else {
		s.transport = newDirect(s.client, s.opts.AttemptTimeout, quota)
	}
	s.writes = s.layout.writes(table)
	return s
}

// Values of StoreError.Op.
const (
	opAcquire   = "acquire"
	opComplete  = "complete"
	opRelease   = "release"
	opGet       = "get"
	opCommit    = "commit"
	opLoad      = "load"
	opSaveSteps = "save_steps"
)

// Acquire takes the lease by one conditional PutItem or, if claim.Over is not nil, by
// one conditional UpdateItem. If the condition fails, DynamoDB's reply has the existing
// record, so Acquire needs no second request to return that record.
func (s *Store) Acquire(ctx context.Context, claim lambdaidem.Claim) (lambdaidem.Record, error) {
	it := s.locked(claim)
	if size := s.layout.size(it); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(opAcquire, size)
	}
	if s.keys != nil {
		if err := s.haveKey(ctx, opAcquire); err != nil {
			return s.withoutKey(ctx, claim, err)
		}
	}
	ctx, v := witnessed(ctx, opAcquire)
	var err error
	if claim.Over == nil {
		_, err = s.transport.send(ctx, &lockRequest{s, it, given{now: claim.Now}})
	} else {
		err = s.takeOver(ctx, v, it, claim.Now, claim.Over)
	}
	if err == nil {
		v.ambiguous = true // the lease is taken, even if held fails to decrypt the steps
		return s.held(ctx, v, it)
	}
	old, err := s.refused(v, err)
	switch {
	case err != nil:
		return lambdaidem.Record{}, err
	case old.heldBy(claim.Token): // an earlier try of this request was applied
		v.ambiguous = true
		return s.held(ctx, v, old)
	}
	if seen := s.shown(old); !seen.GoneAt(claim.Now) {
		return seen, nil
	}
	return lambdaidem.Record{}, nil
}

// locked returns the item that takes the lease.
func (s *Store) locked(claim lambdaidem.Claim) *item {
	it := claimed(claim)
	it.LeaseShard = s.opts.leaseShard(claim.ID)
	if s.keys != nil {
		it.Encrypts = cipherName // tells operators not to settle the record with an unencrypted answer
	}
	return it
}

// withoutKey is the result of Acquire if there is no key to encrypt an answer with. It
// claims nothing. If claim.Over is nil and there is a record, withoutKey returns that
// record, which may be replayed or refuse the call. Otherwise it returns the error of
// the key.
func (s *Store) withoutKey(ctx context.Context, claim lambdaidem.Claim, err error) (lambdaidem.Record, error) {
	if claim.Over == nil {
		if seen, unread := s.Get(ctx, claim.ID, claim.Now); unread == nil && seen.State != lambdaidem.Absent {
			return seen, nil
		}
	}
	return lambdaidem.Record{}, err
}

// takeOver takes over the record seen by a conditional UpdateItem, which keeps the
// record's steps. takeOver sets the steps of it from the reply: there may be more than
// seen has, because the old attempt may have stored some since.
func (s *Store) takeOver(ctx context.Context, v *verdict, it *item, now time.Time, seen *lambdaidem.Record) error {
	out, err := s.transport.send(ctx, &updateRequest{s, &s.writes.takeover, it, given{now: now, seen: seen}})
	if err != nil {
		return err
	}
	old, err := s.layout.record(out)
	if err != nil { // the write was applied, but the old item can't be read
		v.ambiguous = true
		return err
	}
	it.Steps, it.Encoding = old.Steps, old.Encoding
	return nil
}

// Complete stores the result by one conditional UpdateItem, after writing the parts of
// a large answer. If the result is larger than Options.MaxAnswer, Complete sends nothing
// and returns an error.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	kept, err := s.prepare(ctx, lease, result)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.end(ctx, &s.writes.completion, lease, result.At, func(it *item) { it.finish(kept) })
}

// Release releases the record by one conditional UpdateItem.
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.end(ctx, &s.writes.release, lease, now, func(it *item) { it.giveBack(lease.Expires, lease.LastFailure) })
}

// end ends an attempt by the update w, which makes the same change to the item as the
// function change. It returns the resulting record without another read.
func (s *Store) end(ctx context.Context, w *write, lease lambdaidem.Lease, now time.Time, change func(*item)) (lambdaidem.Record, error) {
	ours := &item{ID: lease.ID, Token: lease.Token}
	change(ours)
	// The item also has attributes that the lock wrote, a few hundred bytes, which are
	// not known here. If the item exceeds the limit by those, DynamoDB refuses it.
	if size := s.layout.size(ours); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(w.op, size)
	}
	ctx, v := witnessed(ctx, w.op)
	old, err := s.transport.send(ctx, &updateRequest{s, w, ours, given{now: now, token: lease.Token}})
	if err == nil {
		it, err := s.layout.record(old)
		if err != nil { // the write was applied, but the old item can't be read
			v.ambiguous = true
			return lambdaidem.Record{}, v.storeError(err)
		}
		change(it)
		return s.shown(it), nil
	}
	seen, err := s.refusal(v, err)
	switch {
	case err != nil:
		return lambdaidem.Record{}, err
	case seen.Token == lease.Token && seen.State == ours.Status: // an earlier try of this request was applied
		return seen, nil
	case seen.GoneAt(now):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	}
	return seen, lambdaidem.ErrLeaseLost
}

// Get reads the record by one consistent GetItem.
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	ctx, v := witnessed(ctx, opGet)
	out, err := s.transport.send(ctx, &getRequest{store: s, id: id})
	v.ambiguous = false // a read changes nothing, even if it fails
	if err != nil {
		return lambdaidem.Record{}, v.storeError(err)
	}
	if out.none() {
		return lambdaidem.Record{}, nil
	}
	it, err := s.layout.record(out)
	if err != nil {
		return lambdaidem.Record{}, v.storeError(err)
	}
	if r := s.shown(it); !r.GoneAt(now) {
		return r, nil
	}
	return lambdaidem.Record{}, nil
}

// refusal returns the record because of which a write's condition failed, or the zero
// Record if there is no item. Any other failure is a StoreError.
func (s *Store) refusal(v *verdict, err error) (lambdaidem.Record, error) {
	old, err := s.refused(v, err)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.shown(old), nil
}

// refused returns the item because of which a write's condition failed, or nil if there
// is no item. It takes the item from err. Such a reply also shows whether an earlier try
// of the request was applied. Any other failure is a StoreError.
func (s *Store) refused(v *verdict, err error) (*item, error) {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return s.standing(v, refused.found)
	}
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return s.standing(v, found{attrs: refused.Item})
	}
	return nil, v.storeError(err)
}

// standing returns the item because of which a write's condition failed, or nil if there
// is none.
func (s *Store) standing(v *verdict, old found) (*item, error) {
	if old.none() {
		return nil, nil
	}
	it, err := s.layout.record(old)
	if err != nil {
		v.ambiguous = false
		return nil, v.storeError(err)
	}
	return it, nil
}

func (s *Store) key(id string) attributes { return attributes{s.layout.id(): str(id)} }

// tooLarge returns the error of a call that has sent nothing, because its item would
// exceed DynamoDB's limit. size is the item's size in bytes.
func tooLarge(op string, size int) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
		Err: fmt.Errorf("the item would have %d bytes; DynamoDB keeps at most %d (400 KB, names included)", size, maxItemSize)}
}
