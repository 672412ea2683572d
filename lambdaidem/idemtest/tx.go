package idemtest

import (
	"context"
	"io"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.Transactor = (*Store)(nil)

// Begin returns a transaction of the inner store, whose [Commit] can be made to
// fail: see lambdaidem.Transactor. Around a store without transactions there are
// none.
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

// tx is a transaction of the inner store.
type tx struct {
	lambdaidem.Tx
	store *Store
}

// Unwrap returns the inner store's transaction, for its package to enlist in.
func (t *tx) Unwrap() lambdaidem.Tx { return t.Tx }

func (t *tx) Commit(ctx context.Context, c *lambdaidem.Completion) (lambdaidem.Record, error) {
	return t.store.call(ctx, Commit, c.Lease.ID, func() (lambdaidem.Record, error) {
		return t.Tx.Commit(ctx, c) //nolint:wrapcheck // as the inner store has it
	})
}
