// Package runcount lets idemtest count how often a guarded handler really ran.
package runcount

import (
	"context"
	"sync/atomic"
)

type key struct{}

// With returns a context that counts, and its counter.
func With(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, key{}, n), n
}

// Add counts one run, if the context counts.
func Add(ctx context.Context) { add(ctx, 1) }

// Undo takes one run back: one whose effects were all rejected.
func Undo(ctx context.Context) { add(ctx, -1) }

func add(ctx context.Context, delta int64) {
	if n, ok := ctx.Value(key{}).(*atomic.Int64); ok {
		n.Add(delta)
	}
}
