package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Store is a [lambdaidem.Store] that keeps its records in a DynamoDB table. It is safe
// for concurrent use. Its methods leave no goroutines behind.
type Store struct {
	wire   *wire.Client
	whySDK string // why the store does not use the direct transport but only the SDK's client; "" if it uses the direct transport
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
// The store uses a copy of client with the same credentials, HTTP client, Region, endpoint,
// logging, tracing and APIOptions. Retries and timeouts are those of Options; a Retryer set on
// client is not used.
//
// New panics if client is nil, or if the table's name or an option is invalid. The text of the
// panic names the option.
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

// Get reads the record by one consistent GetItem. It returns the zero Record if there is no record,
// or if the record has expired and has no live lease.
func (s *Store) Get(ctx context.Context, id string, now time.Time) (lambdaidem.Record, error) {
	itm, err := s.read(ctx, opGet, id)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	if r := s.shown(itm); !r.GoneAt(now) {
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

func (s *Store) key(id string) attributes { return s.layout.key(id) }

// update sends the conditional UpdateItem w, with the attributes of itm and the condition's values
// in g. The condition must require that the item exists. update returns the item as it was before
// the write. If the condition fails, update returns the existing item and wire.ErrRefused. Any
// other error is a StoreError.
func (s *Store) update(ctx context.Context, w *write, itm *item, g given) (*item, error) {
	r := s.updating(w, itm, g)
	fate, err := s.wire.Do(ctx, &r.Request)
	if err != nil {
		return r.refused(w.op, fate, err)
	}
	// A reply without the old item is an error. Only resealSteps does not request the old item, and
	// it ignores the error.
	if r.item == nil && r.foreign == nil {
		_, r.foreign = s.layout.parse(nil)
	}
	if r.foreign != nil { // the write was applied, but the old item is not a valid record
		return nil, failed(w.op, wire.Unknown, r.foreign)
	}
	return r.item, nil
}
