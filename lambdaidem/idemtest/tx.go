package idemtest

import (
	"context"
	"io"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.Transactor = (*Store)(nil)

// Begin begins a transaction of the inner store, and passes random to that store; see
// lambdaidem.Transactor. If a fault has been set for [Commit], it applies to the transaction's
// method Commit. Begin returns nil if the inner store has no transactions.
func (s *Store) Begin(random io.Reader) lambdaidem.Tx {
	inner, ok := s.inner.(lambdaidem.Transactor)
	if !ok {
		return nil
	}
	begun := inner.Begin(random)
	if begun == nil {
		return nil
	}
	return &tx{Tx: begun, store: s}
}

// tx wraps a transaction of the inner store, so that its Commit can be made to fail.
type tx struct {
	lambdaidem.Tx
	store *Store
}

// Unwrap returns the inner store's transaction. The package of the inner store needs it to
// enlist writes.
func (t *tx) Unwrap() lambdaidem.Tx { return t.Tx }

func (t *tx) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	return t.store.call(ctx, Commit, c.Lease.ID, func() (lambdaidem.Record, error) {
		return t.Tx.Commit(ctx, c) //nolint:wrapcheck // passes the error of the inner store on unchanged
	})
}
