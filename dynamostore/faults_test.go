package dynamostore

import (
	"context"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
)

// This is how users can test what their handlers enlist: replies get lost, and processes die before
// or after the commit.
func TestE1_StoreOfFaultsTakesTransactions(t *testing.T) {
	b := openBank(t)
	store := idemtest.NewStore(b.store)
	b.guard = lambdaidem.New(store, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "bank", lambdaidem.Discard })
	store.Next(idemtest.Commit, idemtest.LoseReply, idemtest.LoseRequest)
	if got, err := b.do(t.Context(), "lost", well); err != nil || got != "moved" {
		t.Errorf("got %q, %v", got, err)
	}
	b.wantBalance(t, "bob", 30)

	store.Next(idemtest.Commit, idemtest.KillBefore)
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = b.do(ctx, "before", well) })
	b.wantBalance(t, "bob", 30)

	store.Next(idemtest.Commit, idemtest.KillAfter)
	idemtest.Crash(t, 10*time.Second, func(ctx context.Context) { _, _ = b.do(ctx, "after", well) })
	b.wantBalance(t, "bob", 60)
	if got, err := b.do(t.Context(), "after", well); err != nil || got != "moved" { // replayed
		t.Errorf("got %q, %v", got, err)
	}
	b.wantBalance(t, "bob", 60)
}

// A fault-injecting store around a store without transactions has none either, and Enlist says so.
func TestE1_StoreOfFaultsAroundAStoreWithoutTransactions(t *testing.T) {
	guard := lambdaidem.New(idemtest.NewStore(nil), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "op", Key: "k"}, func(ctx context.Context) (int, error) {
		if _, err := lambdaidem.TxOf(ctx); err == nil {
			t.Error("there is a transaction")
		}
		return 1, nil
	})
	if err != nil {
		t.Error(err)
	}
}
