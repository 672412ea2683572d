package storetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/lambdaidem/storetest"
)

// The test of a store of your own: each step of the suite is a subtest.
func ExampleTest() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T) in its test file
		storetest.Test(t, func(*testing.T) lambdaidem.Store { return memstore.New() })
	}
}

// Outside of a test, the steps are played one by one. Each returns the promise
// that the store broke, if it broke one.
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

// forgetful says that it completed a record, and did not.
type forgetful struct{ *memstore.Store }

func (s forgetful) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	record, err := s.Get(ctx, lease.ID, result.At)
	record.State, record.Result, record.CompletedAt, record.Expires = lambdaidem.Completed, result, result.At, result.Expires
	return record, err
}
