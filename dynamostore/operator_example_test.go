package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// settle completes the record of a dead attempt with the answer that another service knows.
func settle(ctx context.Context, store *dynamostore.Store, id string, known []byte) error {
	alice, err := store.Operator("alice", "TICKET-1: the bank has it", func(o *dynamostore.OperatorOptions) { o.TTL = 7 * 24 * time.Hour })
	if err != nil {
		return err
	}
	inspected, err := store.Inspect(ctx, id)
	if err != nil {
		return err
	}
	_, err = alice.Settle(ctx, inspected, lambdaidem.Result{Outcome: lambdaidem.OutcomeSucceeded, Value: known})
	switch live := (*dynamostore.LeaseLiveError)(nil); {
	case errors.As(err, &live):
		return fmt.Errorf("try again in %v: %w", live.Left(), err)
	case errors.Is(err, dynamostore.ErrRecordChanged):
		return fmt.Errorf("look again, somebody was faster: %w", err)
	}
	return err
}

// This operator knows the outcome of an attempt that died.
func ExampleStore_Operator() { _ = settle }

// erase erases the stored answers of one caller.
func erase(ctx context.Context, o *dynamostore.Operator, caller string) error {
	for done, err := range o.Purge(ctx, func(p *dynamostore.PurgeOptions) {
		p.Match = func(rec lambdaidem.Record) bool {
			scope, err := lambdaidem.ParseScope(rec.Scope)
			return err == nil && scope.Principal == lambdaidem.ScopePart(caller)
		}
	}) {
		if err != nil {
			return fmt.Errorf("to go on, set PurgeOptions.After to %q: %w", done.After, err)
		}
	}
	return nil
}

// A caller has asked to be forgotten.
func ExampleOperator_Purge() { _ = erase }
