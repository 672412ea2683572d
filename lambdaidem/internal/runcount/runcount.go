// Package runcount lets package idemtest count how often the guard ran a handler, guarded or not.
// Calls that the guard answered from a record don't count.
package runcount

import (
	"context"
	"sync/atomic"
)

type key struct{}

// With returns a copy of ctx, and a new counter that the copy carries. The counter counts the runs
// of handlers that are started with the copy or with a context derived from it.
func With(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, key{}, n), n
}

// Add adds one run to the context's counter. It does nothing if ctx does not come from [With].
func Add(ctx context.Context) { add(ctx, 1) }

// Undo subtracts one run from the context's counter. The guard calls it after a run without a lease
// (Options.Optimistic) if the run's writes were not committed, for example because the request was
// a duplicate. Such a run had no effect, so package idemtest must not count it.
func Undo(ctx context.Context) { add(ctx, -1) }

func add(ctx context.Context, delta int64) {
	if n, ok := ctx.Value(key{}).(*atomic.Int64); ok {
		n.Add(delta)
	}
}
