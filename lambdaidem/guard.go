package lambdaidem

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// Guard makes handlers safe to retry. Make one with New. It is safe for concurrent use.
type Guard struct {
	store        Store
	storeKey     any                // identifies the store in innerRecord: the store itself, or a unique pointer if it is not comparable
	transact     Transactor         // the store, if it has transactions; else nil
	opts         Options            // the options, with defaults filled in
	switchedOff  bool               // every call runs unguarded; set by the environment variable SwitchOff
	cache        *cache             // the cache of finished records; nil without Options.Cache
	fingerprints fingerprintOptions // the fingerprint options, checked and prepared for use
	// unreleased lists leases that may still block a record although no handler is running:
	// an earlier call failed to release the lease, or tried to acquire it and lost the store's
	// reply. Later calls try to release these leases. Guards derived by With share the list.
	unreleased *unreleased
}

// New returns a guard that keeps its records in store. It panics if store is nil, or if
// an option is invalid, and names the option.
func New(store Store, optFns ...func(*Options)) *Guard {
	if store == nil {
		panic("lambdaidem: New: store is nil")
	}
	g := &Guard{store: store, storeKey: new(byte), transact: transactorOf(store), switchedOff: switchedOff(), unreleased: new(unreleased)}
	if reflect.ValueOf(store).Comparable() {
		g.storeKey = store
	}
	return g.With(optFns...)
}

// With returns a guard with changed options, for one route for example. Both guards
// use the same store, and share a cache unless an option changes Options.Cache. The
// option functions receive the options of g, including defaults, so that appending to
// Options.Methods adds a method.
func (g *Guard) With(optFns ...func(*Options)) *Guard {
	o := g.opts.withDefaults() // copies Methods and the fingerprint options
	// Clone these slices too, because an option function may change their elements, and g
	// must not change.
	o.ReplayMarks, o.UnstoredHeaders = slices.Clone(o.ReplayMarks), slices.Clone(o.UnstoredHeaders)
	for _, fn := range optFns {
		fn(&o)
	}
	o = o.withDefaults()
	o.check()
	if o.Optimistic && g.transact == nil {
		panic(fmt.Sprintf("lambdaidem: Options.Optimistic is true; the store, a %T, has no transactions", g.store))
	}
	cache := g.cache
	if o.Cache != g.opts.Cache {
		cache = newCache(o.Cache)
	}
	return &Guard{store: g.store, storeKey: g.storeKey, transact: g.transact, opts: o, switchedOff: g.switchedOff, cache: cache, fingerprints: o.fingerprintOptions(), unreleased: g.unreleased}
}

// call identifies one guarded call, for any kind of event: by the identity of its record and
// by its payload. Guard.newCall makes it.
type call struct {
	identity    Identity        // identifies the record
	id          string          // id of the record
	fingerprint string          // digest of the payload, for a record that the call creates
	others      func() []string // returns the payload's fingerprints by all secrets but the first; nil if there is at most one secret
	repeated    bool            // the call probably repeats an earlier one; see attempt.lookUp
}

// work is the part of one guarded call that depends on the kind of event. It runs the user's
// handler, and encodes and decodes the handler's answer.
type work interface {
	// run calls the handler. It is called at most once.
	run(context.Context)
	// ending returns how the handler ended. It is called once, after run has
	// returned. It may call other code of the user, such as Options.Outcome.
	ending() ending
	// encode returns the handler's answer as the record stores it. If ending.encoded is false, the
	// record stores the handler's error instead, and the guard does not call encode.
	encode() ([]byte, error)
	// replay decodes the stored answer that d contains, and keeps it until the guarded call returns
	// it. The error says why the answer can't be decoded.
	replay(d decision) error
	// rejected replaces the handler's answer with the error err, and returns the new ending of the
	// call. The guard calls rejected if the handler has enlisted database writes and none of them
	// were made: the handler's answer may then be untrue.
	rejected(err error) ending
}

// ending describes how a run of the handler ended.
type ending struct {
	outcome  Outcome
	success  bool  // the answer tells the caller that the call succeeded; independent of outcome
	final    bool  // the caller does not repeat the call after this answer, such as a 402, or a 200 even if Options.Outcome calls it a failure; independent of outcome
	encoded  bool  // store the value from work.encode; if false, store err as a Failure
	err      error // the handler's error, for the event and the record; nil if there is none
	withheld error // why the caller must not receive the handler's answer, according to attempt.decideOutcome; nil if it may
}

// decision says what the caller of a guarded call receives. The zero decision means that
// the caller receives what the handler returned.
type decision struct {
	refusal *Error // the guard's error that the caller receives; nil if the call is not refused

	replays bool        // the caller receives a stored answer, which is value or failure
	value   []byte      // the stored answer, if replays is true and failure is nil
	failure *Failure    // the stored error, if the record has one instead of a value
	outcome Outcome     // outcome of the replayed record: OutcomeSucceeded or OutcomeFailed
	entry   *cacheEntry // the cache entry of the replayed record; nil if the record came from the store

	unreturned bool // if refusal is set: the record has, or may have, an answer that can't be read
	replaced   bool // if refusal is set: the refusal replaces the handler's answer; see ending.withheld
}

// handleCall handles one guarded call. Depending on the call's record, it runs the handler,
// replays the stored answer, or refuses the call. If another guarded handler makes the call,
// handleCall records in that handler's attempt how the call ended; see attempt.endInner.
func (g *Guard) handleCall(ctx context.Context, c call, w work) (d decision) {
	var a *attempt
	if outer := attemptOf(ctx); outer != nil {
		number := outer.beginInner()
		if number == 0 {
			e := outOfTime(errInnerTooLate, g.opts.RetryAfter)
			g.refused(ctx, c.identity, EventOutOfTime, e)
			return decision{refusal: e}
		}
		defer func() {
			if d.refusal != nil {
				refusal := *d.refusal // a copy, because an observer may have the original
				refusal.Err = &innerRefusal{g.readable(&c.identity), c.id, refusal.Err}
				d.refusal = &refusal
			}
			outer.endInner(number, innerRecord{g.storeKey, c.id}, a, d)
		}()
	}
	if guardedInside(ctx, &c) {
		e := guardedTwice()
		g.refused(ctx, c.identity, EventKeyInvalid, e)
		return decision{refusal: e}
	}
	if d, ok := g.recall(ctx, c, w); ok {
		return d
	}
	a = g.newAttempt(ctx, c)
	a.work = w
	if d, finished := a.lookUp(ctx); finished {
		return d
	}
	if g.opts.Optimistic {
		if d, mayRun := a.prepare(ctx); !mayRun {
			return d
		}
		return a.run(ctx, w)
	}
	if d, mayRun := a.acquire(ctx); !mayRun {
		return d
	}
	return a.run(ctx, w)
}

// guardedInside reports whether the call c is made inside a handler that is guarded by the same
// record. The guard must refuse such a call. With a lease, the call and the outer handler would
// wait for each other. With Options.Optimistic, the call would complete the record first, and the
// outer handler's writes would be dropped.
func guardedInside(ctx context.Context, c *call) bool {
	outer := runOf(ctx)
	if outer == nil {
		return false
	}
	for ; outer != nil; outer = outer.outer {
		if outer.id == c.id {
			return true
		}
	}
	return false
}
