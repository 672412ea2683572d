package propagate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
	"github.com/lambdaidem/toolkit/propagate"
)

// Key returns the downstream key of the name, or an error.
func TestV4_KeyOrError(t *testing.T) {
	if key, err := propagate.Key(t.Context(), "charge"); key != "" || !errors.Is(err, propagate.ErrUnguarded) {
		t.Errorf("outside of a handler it is %q, %v", key, err)
	}
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	_, err := lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(ctx context.Context) (int, error) {
		key, err := propagate.Key(ctx, "charge")
		if want := lambdaidem.DownstreamKey(ctx, "charge"); key != want || err != nil {
			t.Errorf("%q, %v", key, err)
		}
		return 0, propagate.Check(key)
	})
	if err != nil {
		t.Error(err)
	}
}

// A message for another service can carry the key in any place.
func ExampleKey() {
	guard := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Namespace = "payments" })
	_, err := lambdaidem.Do(context.Background(), guard, lambdaidem.Call{Operation: "pay", Key: "order-1"}, func(ctx context.Context) (string, error) {
		key, err := propagate.Key(ctx, "receipt")
		if err != nil {
			return "", err
		}
		fmt.Println(propagate.Attribute, key)
		return "paid", nil
	})
	fmt.Println(err)
	_, err = propagate.Key(context.Background(), "receipt")
	fmt.Println(errors.Is(err, propagate.ErrUnguarded))
	// Output:
	// x-idempotency-key ad151c88-49de-8fa8-a4cb-fc3cc6ee1bfe
	// <nil>
	// true
}
