package lambdaidem

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
)

// Guard makes handlers safe to retry. It is safe for concurrent use; what
// belongs to one invocation is kept with that invocation.
type Guard struct {
	store    Store
	transact Transactor // the store, if it has transactions; else nil
	opts     Options    // with the defaults filled in
	off      bool       // by the environment: see SwitchOff
	cache    *cache     // of finished records; nil: there is none
	counts   counted    // in fingerprints, besides what always does (F4)
	// Claims of this process whose handlers never started; shared by all guards of the store.
	unstarted *unstarted
}

// New returns a guard that keeps its records in store. It panics if store is
// nil or an option is invalid, and names the field.
func New(store Store, optFns ...func(*Options)) *Guard {
	if store == nil {
		panic("lambdaidem: New: store is nil")
	}
	g := &Guard{store: store, transact: transactorOf(store), off: switchedOff(), unstarted: new(unstarted)}
	return g.With(optFns...)
}

// With returns a guard with further options, for one route say. Both keep
// their records in the same store, and share one cache unless an option changes
// Options.Cache. An option sees what this guard has, the
// defaults included: appending to Options.Methods adds a method.
func (g *Guard) With(optFns ...func(*Options)) *Guard {
	o := g.opts.settle() // with Methods of its own
	// What an option changes in place must be of the new guard alone.
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
	return &Guard{store: g.store, transact: g.transact, opts: o, off: g.off, cache: cache, counts: o.counted(), unstarted: g.unstarted}
}

// SwitchOff is the environment variable that switches every guard of a process
// off, for local runs: set to a true value (1, true) it lets all calls run
// unguarded. New says so in a warning on slog.Default(), and each call by an
// [EventSwitchedOff]. Default: not set. New panics on what is no truth value.
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

// call is one guarded call, whatever event it came by. Guard.newCall makes it.
type call struct {
	who         Identity
	fingerprint string          // given to a record that the call begins
	others      func() []string // fingerprints by the other secrets, computed once needed; nil: there are none
}

// work is what a guarded call is for: the user's handler, called at most once,
// and how that ended.
type work interface {
	run(context.Context)
	// ending is asked once, after run has returned. It may call what else the
	// user wrote: the outcome rule, say.
	ending() ending
	// encode makes the value to store, of an ending that has one.
	encode() ([]byte, error)
	// replay decodes the answer of a finished record, which is returned to the
	// caller instead of running the handler. The error says why it can't be read.
	replay(d decision) error
	// rejected is the ending instead, where nothing of what the handler enlisted
	// was written: as if the handler had returned err (E2).
	rejected(err error) ending
}

// ending is how a run of the handler ended.
type ending struct {
	outcome Outcome
	success bool // whatever its outcome, the caller takes the answer for a success
	encoded bool // the work's encode makes what is stored; else err is, as a Failure
	err     error
}

// decision is what the caller of a guarded call gets. The zero decision is the
// attempt's own answer.
type decision struct {
	refusal *Error

	replays bool // this, of a finished record
	value   []byte
	failure *Failure // instead of a value
	from    *memory  // whose the replay is, if it is from the process's own (R4)
}

// once takes one call through the guard: acquire, run, finish. How each of them
// is done, and what it comes to, is decided in attempt.go.
func (g *Guard) once(ctx context.Context, c call, w work) decision {
	if guardedInside(ctx, &c) {
		e := guardedTwice()
		g.refused(ctx, c.who, EventKeyInvalid, e)
		return decision{refusal: e}
	}
	if d, ok := g.recall(ctx, c, w); ok {
		return d
	}
	a := g.newAttempt(ctx, c)
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

// guardedInside reports whether a call is made by the handler of its own record:
// it would wait for itself, or, optimistic, complete the record before that
// handler does and have its writes dropped.
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
