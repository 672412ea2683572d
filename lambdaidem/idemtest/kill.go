package idemtest

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Kill ends the attempt to which a handler's context belongs, as if its process
// died there: nothing of it reaches the store any more, the guard's own
// clean-up included, and the goroutine ends by runtime.Goexit. Call it on the
// goroutine that called the guarded handler, and run that in [Crash]. Kill does
// not return. It panics where ctx belongs to no attempt of this store.
//
// Guarded calls around the attempt are of the same process and die with it; so
// does, at its next call of the store, what they began elsewhere. The guard's
// observer may still be told of the end.
func (s *Store) Kill(ctx context.Context) {
	s.mu.Lock()
	token := s.attempts.of(ctx)
	s.mu.Unlock()
	if token == "" {
		panic("idemtest: Kill: the context is not that of a handler under a lease of this store (an optimistic one has none: " +
			"let KillBefore or KillAfter of Commit kill it)")
	}
	s.kill(ctx, token)
}

func (s *Store) kill(ctx context.Context, token string) {
	s.mu.Lock()
	s.attempts.kill(ctx, token)
	s.mu.Unlock()
	die()
}

// die ends the goroutine. Deferred functions run, those of the guard too; what
// they ask of the store ends them in their turn.
func die() { runtime.Goexit() }

// Crash runs f in a goroutine of its own, waits for its end, and fails t if f
// returned: something in it should have been killed, by [Store.Kill],
// [KillBefore] or [KillAfter].
//
//	idemtest.Crash(t, func() { _, _ = handler(ctx, event) })
func Crash(t testing.TB, f func()) {
	t.Helper()
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		f()
		returned = true
	}()
	<-ended
	if returned {
		t.Error("nothing was killed: the function that should have crashed returned")
	}
}

// attempts is which attempts a store has seen, and which of them are dead. It is
// told apart by tokens, since a record has many attempts. Its methods are called
// under the store's mutex.
type attempts struct {
	tokens map[attempt]string // of the attempts that hold or held a lease
	around map[string]string  // by token, the token of the attempt in whose handler it was begun
	dead   map[string]bool    // by token
}

// attempt is what a handler's context tells of its attempt.
type attempt struct {
	id     string
	number int
}

func newAttempts() attempts {
	return attempts{tokens: map[attempt]string{}, around: map[string]string{}, dead: map[string]bool{}}
}

// claims notes in whose handler a claim is made. A handler that runs although
// its claim failed (Options.FailOpen) has the attempt number 0.
func (a *attempts) claims(ctx context.Context, c lambdaidem.Claim) {
	if outer := a.of(ctx); outer != "" {
		a.around[c.Token] = outer
	}
	a.tokens[attempt{c.ID, 0}] = c.Token
}

// holds notes which attempt a token became.
func (a *attempts) holds(rec lambdaidem.Record) {
	a.tokens[attempt{rec.ID, rec.Attempt}] = rec.Token
}

// of is the token of the attempt to which a handler's context belongs.
func (a *attempts) of(ctx context.Context) string {
	return a.tokens[attempt{lambdaidem.RecordID(ctx), lambdaidem.Attempt(ctx)}]
}

// kill marks an attempt, and those around it, as dead.
func (a *attempts) kill(ctx context.Context, token string) {
	if token == "" { // a read names no attempt of its own
		token = a.of(ctx)
	}
	for _, t := range a.process(token) {
		a.dead[t] = true
	}
}

// isDead tells whether a call comes from a dead process.
func (a *attempts) isDead(ctx context.Context, token string) bool {
	if token == "" {
		token = a.of(ctx)
	}
	return slices.ContainsFunc(a.process(token), func(t string) bool { return a.dead[t] })
}

// process is an attempt and those around it, by token.
func (a *attempts) process(token string) []string {
	var all []string
	for token != "" && !slices.Contains(all, token) { // Options.Random may repeat itself in a test
		all = append(all, token)
		token = a.around[token]
	}
	return all
}
