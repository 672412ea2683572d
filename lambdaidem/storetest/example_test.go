package storetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// Call Test in the test of your own store. Each step of the suite is a subtest.
func ExampleTest() {
	_ = func(t *testing.T) { // in a test file: func TestStore(t *testing.T)
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return memstore.New() })
	}
}

// Outside of tests, run the steps one by one. Each returns an error if the store breaks the rule of
// the step.
func ExampleSteps() {
	for _, step := range storetest.Steps() {
		env := storetest.NewEnv(forgetful{memstore.New()})
		if err := step.Run(context.Background(), env); err != nil {
			fmt.Println("the first step that fails:", step.Rule, step.Name)
			break
		}
	}
	// Output: the first step that fails: L1 completion
}

// forgetful is a store whose Complete returns a completed record without storing it.
type forgetful struct{ *memstore.Store }

func (s forgetful) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	record, err := s.Get(ctx, lease.ID, result.At)
	record.State, record.Result, record.CompletedAt, record.Expires = lambdaidem.Completed, result, result.At, result.Expires
	return record, err
}
