package lambdaidem

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
)

// Guard makes handlers safe to retry. It is safe for concurrent use.
type Guard struct {
	store    Store
	storeKey any        // equal for guards on one store, if the store's type is comparable
	transact Transactor // store, if it has transactions; else nil
	opts     Options    // with the defaults filled in
	off      bool       // switched off by the environment; see SwitchOff
	cache    *cache     // nil without Options.Cache
	counts   counted    // the fingerprint options
	// unreleased has the claims of this process that may still hold their records. Guards
	// derived by With share it.
	unreleased *unreleased
}

// New returns a guard that keeps its records in store. It panics if store is nil, or if
// an option is invalid, and names the option.
func New(store Store, optFns ...func(*Options)) *Guard {
	if store == nil {
		panic("lambdaidem: New: store is nil")
	}
	g := &Guard{store: store, storeKey: new(byte), transact: transactorOf(store), off: switchedOff(), unreleased: new(unreleased)}
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
	o := g.opts.settle() // copies Methods and the fingerprint options
	// An option function may change the elements of these slices.
	o.ReplayMarks, o.UnstoredHeaders = slices.Clone(o.ReplayMarks), slices.Clone(o.UnstoredHeaders)
	for _, fn := range optFns {
		fn(&o)
	}
	o = o.settle()
	o.check()
	if o.Optimistic && g.transact == nil {
		panic(fmt.Sprintf("lambdaidem: Options.Optimistic is true; the store, a %T, has no transactions", g.store))
	}
	cache := g.cache
	if o.Cache != g.opts.Cache {
		cache = newCache(o.Cache)
	}
	return &Guard{store: g.store, storeKey: g.storeKey, transact: g.transact, opts: o, off: g.off, cache: cache, counts: o.counted(), unreleased: g.unreleased}
}

// SwitchOff is the name of an environment variable that switches off every guard of a
// process, for local runs. If its value is true (or 1, or another value that
// strconv.ParseBool understands as true), all calls run unguarded. New then logs a
// warning on slog.Default(), and each call sends an [EventSwitchedOff]. New panics if
// the value is not a boolean. Default: not set.
const SwitchOff = "LAMBDAIDEM_OFF"

func switchedOff() bool {
	value := os.Getenv(SwitchOff)
	if value == "" {
		return false
	}
	off, err := strconv.ParseBool(value)
	if err != nil {
		panic(fmt.Sprintf("lambdaidem: New: the environment's %s is %q; it must be true or false, or not be set", SwitchOff, value))
	}
	if off {
		slog.Default().Warn("idempotency is off: every call runs unguarded, and a retry runs again", "by", SwitchOff+"="+value)
	}
	return off
}

// call identifies one guarded call, for any kind of event. It is made by
// Guard.newCall.
type call struct {
	who         Identity
	fingerprint string          // the fingerprint for a record that the call begins
	others      func() []string // fingerprints by the other secrets, computed at the first call; nil if there is one secret at most
}

// work runs the user's handler for one guarded call. A kind of event implements it to
// store and replay the handler's answer.
type work interface {
	// run calls the handler. It is called at most once.
	run(context.Context)
	// ending returns how the handler ended. It is called once, after run has
	// returned. It may call other code of the user, such as Options.Outcome.
	ending() ending
	// encode returns the value to store. It is called if ending.encoded is true.
	encode() ([]byte, error)
	// replay decodes the answer of a finished record, which the caller receives
	// although the handler does not run. The error says why the answer can't be
	// decoded.
	replay(d decision) error
	// rejected replaces what the handler returned by err, because none of the
	// enlisted writes were made. It returns the new ending.
	rejected(err error) ending
}

// ending is how a run of the handler ended.
type ending struct {
	outcome Outcome
	success bool // the answer tells the caller of a success, whatever the outcome is
	encoded bool // store the value from work.encode; otherwise store err as a Failure
	err     error
	changed error // why an inner call or a step changed the outcome: see attempt.settle; nil if none did
}

// decision is what the caller of a guarded call receives. The zero decision stands for
// what the handler returned.
type decision struct {
	refusal *Error // the guard refuses the call

	replays bool // the call replays value or failure, the answer of a finished record
	value   []byte
	failure *Failure
	outcome Outcome     // of the finished record: OutcomeSucceeded or OutcomeFailed
	from    *cacheEntry // the cache entry of the replay; nil if the store returned it

	unreturned bool // with a refusal: the call has an answer, or may have one, that can't be read
}

// once runs one call under the guard: it decides the call by its record, or runs the
// handler. If the handler of another attempt makes the call, that attempt learns how the
// call ended: see attempt.endInner.
func (g *Guard) once(ctx context.Context, c call, w work) (d decision) {
	var a *attempt
	if outer := attemptOf(ctx); outer != nil {
		if !outer.beginInner() {
			e := outOfTime(errInnerTooLate, g.opts.RetryAfter)
			g.refused(ctx, c.who, EventOutOfTime, e)
			return decision{refusal: e}
		}
		defer func() {
			if d.refusal != nil {
				d.refusal.Err = &innerCallError{g.readable(&c.who), c.who.id(), d.refusal.Err}
			}
			outer.endInner(innerRecord{g.storeKey, c.who.id()}, a, d)
		}()
	}
	if guardedInside(ctx, &c) {
		e := guardedTwice()
		g.refused(ctx, c.who, EventKeyInvalid, e)
		return decision{refusal: e}
	}
	if d, ok := g.recall(ctx, c, w); ok {
		return d
	}
	a = g.newAttempt(ctx, c)
	a.work = w
	if g.opts.Optimistic {
		if d, may := a.prepare(ctx); !may {
			return d
		}
		return a.run(ctx, w)
	}
	if d, may := a.acquire(ctx); !may {
		return d
	}
	return a.run(ctx, w)
}

// guardedInside reports whether a call is made by a handler that is running under the
// same record. Such a call would wait for that handler, which waits for the call. With
// Options.Optimistic it would complete the record first, and the handler's writes would
// be dropped.
func guardedInside(ctx context.Context, c *call) bool {
	outer := runOf(ctx)
	if outer == nil {
		return false
	}
	id := c.who.id()
	for ; outer != nil; outer = outer.outer {
		if outer.id == id {
			return true
		}
	}
	return false
}
