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

// Store keeps records in a DynamoDB table. It is a [lambdaidem.Store], safe for
// concurrent use. No goroutine of it outlives a call.
type Store struct {
	client    *dynamodb.Client
	transport transport // of requests for items
	whySDK    string    // it is the client's, if it is
	table     string
	opts      Options
	layout    *layout
	writes    writes
	keys      *keyring // nil: nothing is encrypted
}

var (
	_ lambdaidem.Store  = (*Store)(nil)
	_ lambdaidem.Loader = (*Store)(nil)
)

// New returns a store on the table, which may be a name or an ARN.
//
// The store derives a client of its own from the given one: credentials, HTTP
// client and its connections, Region, endpoint, logging, tracing and
// APIOptions stay as they are; attempts, backoff and the time of an attempt
// are those of Options, and a Retryer set on the client is not used.
//
// New panics on a nil client, on an invalid table name and on an invalid
// option, and names it.
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

// The verbs, as StoreError.Op names them.
const (
	opAcquire   = "acquire"
	opComplete  = "complete"
	opRelease   = "release"
	opGet       = "get"
	opCommit    = "commit"
	opLoad      = "load"
	opSaveSteps = "save_steps"
)

// Acquire takes the lease by one conditional PutItem (L2), or, with claim.Over,
// by one conditional UpdateItem (L6). A refusal brings the item that stood in
// the way along: there is no second round trip.
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
		v.ambiguous = true // should its steps not be readable
		return s.held(ctx, v, it)
	}
	old, err := s.refused(v, err)
	switch {
	case err != nil:
		return lambdaidem.Record{}, err
	case old.heldBy(claim.Token): // L4: an earlier attempt on the wire had landed
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
		it.Encrypts = cipherName // so that nobody settles it with an answer in plain text
	}
	return it
}

// withoutKey is a claim that has no key for what it would have to keep: it claims
// nothing. A record that stands in its way is the answer all the same; the error is
// that of the key.
func (s *Store) withoutKey(ctx context.Context, claim lambdaidem.Claim, err error) (lambdaidem.Record, error) {
	if claim.Over == nil {
		if seen, unread := s.Get(ctx, claim.ID, claim.Now); unread == nil && seen.State != lambdaidem.Absent {
			return seen, nil
		}
	}
	return lambdaidem.Record{}, err
}

// takeOver is the conditional UpdateItem. Steps stay: they are the record's,
// not the attempt's (L1). It gives the item those that are there, which may be more
// than were seen: the old attempt may have written until now.
func (s *Store) takeOver(ctx context.Context, v *verdict, it *item, now time.Time, seen *lambdaidem.Record) error {
	out, err := s.transport.send(ctx, &updateRequest{s, &s.writes.takeover, it, given{now: now, seen: seen}})
	if err != nil {
		return err
	}
	old, err := s.layout.record(out)
	if err != nil { // it was written, and over an item that can't be read
		v.ambiguous = true
		return err
	}
	it.Steps, it.Encoding = old.Steps, old.Encoding
	return nil
}

// Complete stores the result by one conditional UpdateItem (L3), the parts of a
// large answer before it (R3). A result over Options.MaxAnswer is refused before
// anything is sent.
func (s *Store) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	kept, err := s.prepare(ctx, lease, result)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.end(ctx, &s.writes.completion, lease, result.At, func(it *item) { it.finish(kept) })
}

// Release gives the record back by one conditional UpdateItem (L3).
func (s *Store) Release(ctx context.Context, lease lambdaidem.Lease, now time.Time) (lambdaidem.Record, error) {
	return s.end(ctx, &s.writes.release, lease, now, func(it *item) { it.giveBack(lease.Expires, lease.LastFailure) })
}

// end ends an attempt: it makes the change to the attempt's item by the update,
// and returns the record as it then stands; it reads nothing twice.
func (s *Store) end(ctx context.Context, w *write, lease lambdaidem.Lease, now time.Time, change func(*item)) (lambdaidem.Record, error) {
	ours := &item{ID: lease.ID, Token: lease.Token}
	change(ours)
	// The item keeps what the lock wrote too, which is not known here: DynamoDB
	// itself judges the last few hundred bytes.
	if size := s.layout.size(ours); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(w.op, size)
	}
	ctx, v := witnessed(ctx, w.op)
	old, err := s.transport.send(ctx, &updateRequest{s, w, ours, given{now: now, token: lease.Token}})
	if err == nil {
		it, err := s.layout.record(old)
		if err != nil { // it was written, and over an item that can't be read
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
	case seen.Token == lease.Token && seen.State == ours.Status: // L4: an earlier attempt on the wire had landed
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
	v.ambiguous = false // a read writes nothing, however it ends
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

// refusal is the record of what stood in the way of a write: see refused. It is the
// zero Record if there is none.
func (s *Store) refusal(v *verdict, err error) (lambdaidem.Record, error) {
	old, err := s.refused(v, err)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	return s.shown(old), nil
}

// refused reads what stood in the way of a write, from the refusal itself. It
// settles whatever was ambiguous before it (X8). The item is nil if there is none;
// any other failure is a StoreError.
func (s *Store) refused(v *verdict, err error) (*item, error) {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return s.standing(v, refused.found)
	}
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return s.standing(v, found{attrs: refused.Item})
	}
	return nil, v.storeError(err)
}

// standing is the item that stood in the way of a write; nil if there is none.
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

// tooLarge is the error of a call that ended before its first attempt, because
// the item would be over DynamoDB's limit by its size in bytes.
func tooLarge(op string, size int) error {
	return &lambdaidem.StoreError{Op: op, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
		Err: fmt.Errorf("the item would have %d bytes; DynamoDB keeps at most %d (400 KB, names included)", size, maxItemSize)}
}
