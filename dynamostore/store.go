package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Store is a [lambdaidem.Store] that keeps its records in a DynamoDB table. It is safe
// for concurrent use. Its methods leave no goroutines behind.
type Store struct {
	wire   *wire.Client
	first  transport // makes the first try of each request; nil if the SDK's client makes all tries
	whySDK string    // why the SDK's client makes all tries; "" if first is set
	table  string
	tables []string // a slice with only table, for wire.Request.Tables
	opts   Options
	layout *layout
	writes writes
	keys   *keyring // the keys that encrypt answers; nil without Options.Encryption
}

var (
	_ lambdaidem.Store  = (*Store)(nil)
	_ lambdaidem.Loader = (*Store)(nil)
	_ lambdaidem.Holder = (*Store)(nil)
)

// New returns a store for a table. table is the table's name or its ARN.
//
// The store uses a copy of client with the same credentials, HTTP client, Region,
// endpoint, logging, tracing and APIOptions. Retries and timeouts are those of Options.
// A Retryer set on client is not used.
//
// New panics if client is nil, or if the table's name or an option is invalid. The text of
// the panic names the option.
func New(client *dynamodb.Client, table string, optFns ...func(*Options)) *Store {
	if client == nil {
		panic("dynamostore: New: client is nil; pass dynamodb.NewFromConfig(cfg)")
	}
	s := &Store{table: table, tables: []string{table}, opts: resolved("New", table, optFns)}
	s.wire = wire.New(client, wire.Options{
		Attempts: s.opts.Attempts, AttemptTimeout: s.opts.AttemptTimeout,
		BackoffBase: s.opts.BackoffBase, BackoffMax: s.opts.BackoffMax, Random: s.opts.Random,
	})
	s.chooseTransport(client)
	s.layout = s.opts.layout()
	s.keys = newKeyring(s.opts.Encryption)
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
	opHold      = "hold"
	opWarm      = "warm"
)

// Acquire takes the lease by one conditional PutItem or, if claim.Over is not nil, by
// one conditional UpdateItem. If the condition fails, DynamoDB's reply has the existing
// record, so Acquire needs no second request to return that record. With
// Options.Encryption, one more UpdateItem encrypts the steps of a record that was taken
// over, unless they are encrypted under the current key.
func (s *Store) Acquire(ctx context.Context, claim lambdaidem.Claim) (lambdaidem.Record, error) {
	it := s.locked(claim)
	if size := s.layout.size(it); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(opAcquire, size)
	}
	if s.keys != nil {
		if err := s.fetchKey(ctx, opAcquire); err != nil {
			return s.withoutKey(ctx, claim, err)
		}
	}
	var old *item
	var err error
	if claim.Over == nil {
		old, err = s.lock(ctx, it, claim.Now)
	} else {
		old, err = s.takeOver(ctx, it, claim.Now, claim.Over)
	}
	switch {
	case err == nil:
		return s.acquired(ctx, it, claim.Now)
	case !errors.Is(err, wire.ErrRefused):
		return lambdaidem.Record{}, err
	case old.heldBy(claim.Token): // an earlier try of this request was applied
		return s.acquired(ctx, old, claim.Now)
	}
	if seen := s.shown(old); !seen.GoneAt(claim.Now) {
		return seen, nil
	}
	return lambdaidem.Record{}, nil
}

// acquired returns the record whose lease Acquire has just taken, with its steps decrypted.
// With Options.Encryption, acquired also stores the steps again if they are not encrypted
// under the current key.
func (s *Store) acquired(ctx context.Context, it *item, now time.Time) (lambdaidem.Record, error) {
	r, err := s.decrypted(ctx, opAcquire, it)
	if err == nil && s.needsResealing(it) {
		s.resealSteps(ctx, it, r.Steps, now)
	}
	return r, err
}

// locked returns the item to write in order to take the lease.
func (s *Store) locked(claim lambdaidem.Claim) *item {
	it := claimed(claim)
	it.LeaseShard = s.opts.leaseShard(claim.ID)
	if s.keys != nil {
		it.Encrypts = cipherName // an Operator without a key then refuses to settle the record with an unencrypted answer
	}
	return it
}

// withoutKey returns the result of Acquire when the encryption key can't be fetched. Acquire
// does not take the lease then, because the attempt could not encrypt its answer. err is the
// error of fetching the key.
//
// If claim.Over is nil and the table already has a record, withoutKey returns that record,
// because the guard may be able to replay its answer or refuse the call. If the existing item
// is damaged or not a record, withoutKey returns the error of reading it. Otherwise it
// returns err.
func (s *Store) withoutKey(ctx context.Context, claim lambdaidem.Claim, err error) (lambdaidem.Record, error) {
	if claim.Over == nil {
		switch seen, unread := s.Get(ctx, claim.ID, claim.Now); {
		case isForeign(unread):
			return lambdaidem.Record{}, unread
		case unread == nil && seen.State != lambdaidem.Absent:
			return seen, nil
		}
	}
	return lambdaidem.Record{}, err
}

// lock takes the lease by a conditional PutItem. If the condition fails, lock returns
// wire.ErrRefused and the existing item, or nil if there is none any more. Any other error
// is a StoreError.
func (s *Store) lock(ctx context.Context, it *item, now time.Time) (*item, error) {
	r := s.locking(it, given{now: now})
	fate, err := s.wire.Do(ctx, &r.Request)
	return r.refused(opAcquire, fate, err)
}

// takeOver sends a conditional UpdateItem that takes over a record and keeps the record's
// steps. seen is the record as it was read. After a success, takeOver copies the steps from
// the response into the given item, because the old attempt may have stored more steps after
// seen was read. If the condition fails, takeOver returns the existing item and
// wire.ErrRefused. Any other error is a StoreError.
func (s *Store) takeOver(ctx context.Context, it *item, now time.Time, seen *lambdaidem.Record) (*item, error) {
	old, err := s.update(ctx, &s.writes.takeover, it, given{now: now, seen: seen})
	if err == nil {
		it.Steps, it.Encoding = old.Steps, old.Encoding
	}
	return old, err
}

// update sends the conditional UpdateItem w with the values of the given item. It returns the
// item that was in the table before the write. If the condition fails, update returns the
// existing item and wire.ErrRefused. Any other error is a StoreError.
//
// The write of resealSteps asks DynamoDB to return no item. For such a write, update
// returns an error even if the write was applied. resealSteps ignores the error.
func (s *Store) update(ctx context.Context, w *write, it *item, g given) (*item, error) {
	r := s.updating(w, it, g)
	fate, err := s.wire.Do(ctx, &r.Request)
	if err != nil {
		return r.refused(w.op, fate, err)
	}
	if r.item == nil && r.foreign == nil {
		_, r.foreign = s.layout.parse(nil)
	}
	if r.foreign != nil { // the write was applied, but the old item is not a valid record
		return nil, failed(w.op, wire.Unknown, r.foreign)
	}
	return r.item, nil
}

// Complete stores the result by one conditional UpdateItem. If the answer is larger than
// Options.MaxInline, Complete first writes it to separate items. If the answer is larger
// than Options.MaxAnswer, Complete sends nothing and returns an error.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	kept, err := s.prepare(ctx, lease, result)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.end(ctx, &s.writes.completion, lease, result.At, func(it *item) { it.finish(kept) })
}

// Release releases the record by one conditional UpdateItem.
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.end(ctx, &s.writes.release, lease, now, func(it *item) { it.release(lease.Expires, lease.LastFailure, lease.Bound) })
}

// end completes or releases a record, and returns the new record. The update w changes the
// item in the table, and the function change makes the same change to an item in memory.
// DynamoDB returns the old item, so end gets the new record by applying change to that item,
// without another read.
//
// If another attempt holds the lease, or the record has ended otherwise, end returns
// [lambdaidem.ErrLeaseLost] with the current record, or with a zero Record if the record is
// absent or has expired. Any other error is a StoreError.
func (s *Store) end(ctx context.Context, w *write, lease lambdaidem.Lease, now time.Time, change func(*item)) (lambdaidem.Record, error) {
	ours := &item{ID: lease.ID, Token: lease.Token}
	change(ours)
	// The variable ours has only the attributes that this update sets. The whole item is
	// larger, because it also has attributes such as the fingerprint. If only these make
	// the item too large, DynamoDB itself refuses the update.
	if size := s.layout.size(ours); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(w.op, size)
	}
	it, err := s.update(ctx, w, ours, given{now: now, token: lease.Token})
	if err == nil {
		change(it)
		return s.shown(it), nil
	}
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	seen := s.shown(it)
	switch {
	case seen.Token == lease.Token && seen.State == ours.Status: // an earlier try of this request was applied
		return seen, nil
	case seen.GoneAt(now):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	}
	return seen, lambdaidem.ErrLeaseLost
}

// Hold removes the expiry of a record that is in progress, by one conditional UpdateItem.
func (s *Store) Hold(ctx context.Context, seen lambdaidem.Record, now time.Time) (lambdaidem.Record, error) {
	held := seen
	held.Expires, held.LeaseEnd = time.Time{}, lambdaidem.HeldUntil(seen)
	it := &item{ID: seen.ID, LeaseEnd: integer{held.LeaseEnd.UnixMilli(), true}}
	r := s.updating(&s.writes.holding, it, given{now: now, seen: &seen})
	fate, err := s.wire.Do(ctx, &r.Request)
	if err == nil {
		return held, nil
	}
	existing, err := r.refused(opHold, fate, err)
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	if current := s.shown(existing); !current.GoneAt(now) { // another attempt's record, or held by an earlier try
		return current, nil
	}
	return lambdaidem.Record{}, nil
}

// Get reads the record by one consistent GetItem.
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	it, err := s.read(ctx, opGet, id)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	if r := s.shown(it); !r.GoneAt(now) {
		return r, nil
	}
	return lambdaidem.Record{}, nil
}

// read reads a record by one consistent GetItem. It returns nil if there is none. The error
// is a StoreError.
func (s *Store) read(ctx context.Context, op, id string) (*item, error) {
	r := s.getting(id)
	if _, err := s.wire.Do(ctx, &r.Request); err != nil {
		return nil, failed(op, wire.NotApplied, err)
	}
	if r.foreign != nil {
		return nil, failed(op, wire.NotApplied, r.foreign)
	}
	return r.item, nil
}

// failed returns the StoreError for a request that failed with err. The error's NotApplied
// is true if fate is wire.NotApplied.
func failed(op string, fate wire.Fate, err error) *lambdaidem.StoreError {
	reason := reasonOf(err)
	throttle, err := throttling(err)
	return &lambdaidem.StoreError{Op: op, Reason: reason, Throttle: throttle, NotApplied: fate == wire.NotApplied, Err: err}
}

func (s *Store) key(id string) attributes { return s.layout.key(id) }

// tooLarge returns the error of a call that has sent nothing, because its item would
// exceed DynamoDB's limit. size is the item's size in bytes.
func tooLarge(op string, size int) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
		Err: fmt.Errorf("the item would have %d bytes; DynamoDB keeps at most %d (400 KB, names included)", size, maxItemSize)}
}
