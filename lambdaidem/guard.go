package lambdaidem

import (
	"context"
	"slices"
)

// Guard makes handlers safe to retry. It is safe for concurrent use; what
// belongs to one invocation is kept with that invocation.
type Guard struct {
	store Store
	given Options // as the caller set them, for With
	opts  Options // with the defaults filled in
}

// New returns a guard that keeps its records in store. It panics if store is
// nil or an option is invalid, and names the field.
func New(store Store, optFns ...func(*Options)) *Guard {
	if store == nil {
		panic("lambdaidem: New: store is nil")
	}
	return (&Guard{store: store}).With(optFns...)
}

// With returns a guard with further options, for one route say. Both keep
// their records in the same store.
func (g *Guard) With(optFns ...func(*Options)) *Guard {
	given := g.given
	// What an option appends to must be of this guard alone.
	given.Methods, given.ReplayMarks, given.UnstoredHeaders =
		slices.Clone(given.Methods), slices.Clone(given.ReplayMarks), slices.Clone(given.UnstoredHeaders)
	for _, fn := range optFns {
		fn(&given)
	}
	return &Guard{store: g.store, given: given, opts: given.settle()}
}

// call is one guarded call, whatever event it came by.
type call struct {
	who         identity
	fingerprint string
}

// work is what a guarded call is for: the user's handler, called at most once,
// and how that ended.
type work interface {
	run(context.Context)
	// ending is asked once, after run has returned. It may call what else the
	// user wrote: the outcome rule, say.
	ending() ending
}

// ending is how a run of the handler ended.
type ending struct {
	outcome Outcome
	encode  func() ([]byte, error) // the value to store; nil: err is stored, as a Failure
	err     error
}

// decision is what the caller of a guarded call gets. The zero decision is the
// attempt's own answer.
type decision struct {
	refusal *Error
	replay  *Result
}

// once takes one call through the guard: acquire, run, finish. How each of them
// is done, and what it comes to, is decided in attempt.go.
func (g *Guard) once(ctx context.Context, c call, w work) decision {
	a := g.newAttempt(ctx, c)
	if d, may := a.acquire(ctx); !may {
		return d
	}
	return a.run(ctx, w)
}
