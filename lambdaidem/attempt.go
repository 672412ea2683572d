package lambdaidem

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// attempt is one call on its way through the guard, and the whole protocol:
// acquire, run, finish. What a record means, and what follows from it, is
// decided here and nowhere else. Everything that belongs to the invocation is
// here, since one process may serve several at once.
type attempt struct {
	budget
	g          *Guard
	outer      *attempt // the attempt whose handler made this call; nil: there is none
	call       call
	work       work // what runs, or takes the replay
	id         string
	scope      string
	token      string   // fencing token: random, of this attempt alone (L3)
	random     [16]byte // that the token is made of
	invocation string   // names this invocation in the record; see Claim
	steps      steps

	acquiring deadline.Context // of everything before the handler
	handling  handlerContext   // of the handler

	began      time.Time     // by Options.Clock
	number     int           // attempt number of the record
	handler    time.Duration // spent in the handler
	stored     time.Duration // spent in the store, but for steps
	mayHold    bool          // a claim was sent whose fate is unknown
	replaces   string        // token of the record that the last claim was to take over; empty: it was to begin one
	started    bool          // the handler
	open       bool          // failed open: runs without the lease (X5)
	rejected   bool          // its transaction was (E2)
	unsettled  bool          // and may happen all the same, unless its record changes (X8)
	contests   int           // completions that found their record taken (E4)
	finishedAt time.Time     // of the last result (see isResult)
	asked      time.Time     // when the store was asked to keep it
	first      Completion    // that is asked for
	enlist     enlisting     // what the handler enlists (E1)
	cached     bool          // its record is from the process's own memory (R4),
	memory     *memory       // which is this

	fingerprint string // the record's, or the call's own until that is known
	payload     int    // which of the record's payloads this one is, for downstream keys; 0 while no record is known
}

func (g *Guard) newAttempt(ctx context.Context, c call) *attempt {
	a := &attempt{g: g, outer: runOf(ctx), call: c, id: c.who.id(), scope: c.who.scope(g.readable(&c.who)), budget: newBudget(ctx, &g.opts),
		began: g.opts.Clock(), fingerprint: c.fingerprint, invocation: invocationOf(ctx)}
	if _, err := io.ReadFull(g.opts.Random, a.random[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err)) // without randomness there is no fencing
	}
	a.token = base64.RawURLEncoding.EncodeToString(a.random[:])
	return a
}

// handlerContext is a handler's context: it has the attempt's own values (see attemptOf).
type handlerContext struct {
	deadline.Context
	a *attempt
}

func (c *handlerContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.a
	}
	return c.Context.Value(key)
}

type attemptKey struct{}

// Attempt is the number of this attempt at the record, in a handler's context:
// 1 for the first; higher after a release, or after an attempt died (L6). It is
// 0 where no guard holds a lease.
func Attempt(ctx context.Context) int {
	if a := attemptOf(ctx); a != nil {
		return a.number
	}
	return 0
}

// Key is the idempotency key of the guarded call, in a handler's context, as
// the guard read it: to pass on to services that take one. It is empty where
// the call runs unguarded. It tells calls of one caller apart, not callers: to
// derive ids from, take [RecordID].
func Key(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.call.who.Key
	}
	return ""
}

// RecordID is the id of the guarded call's record, in a handler's context:
// printable ASCII of 54 bytes, the same in every attempt, and of this key of
// this caller on this route alone. Ids of what a handler makes can be derived
// from it. It is empty where the call runs unguarded.
func RecordID(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.id
	}
	return ""
}

// attemptOf is the attempt whose handler has this context; nil if it runs
// unguarded.
func attemptOf(ctx context.Context) *attempt {
	a := runOf(ctx)
	if a == nil || a.id == "" { // see unguarded.go
		return nil
	}
	return a
}

// runOf returns the attempt whose handler has this context, even one that runs
// unguarded; nil if there is none.
func runOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// inContext returns a context in which runOf finds the attempt.
func (a *attempt) inContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// finding is what a record means to a call.
type finding int

const (
	isFree      finding = iota // nothing stands in the way: acquire, or take over
	isOurs                     // this attempt holds the lease (L4)
	isBusy                     // another attempt holds it (L8)
	isAbandoned                // an attempt died, and an operator must decide (L6)
	isMismatch                 // it belongs to another payload (F5)
	isFinished                 // its answer is to be replayed (R1)
)

// judge is the one place that decides what a record means.
func (a *attempt) judge(rec Record) finding {
	switch now := a.g.opts.Clock(); {
	case rec.State == Absent:
		return isFree
	case rec.State == Released && len(rec.Steps) == 0:
		return isFree // F5: it forgets its fingerprint
	case !a.call.fits(rec.Fingerprint):
		return isMismatch
	case rec.State == Released:
		return isFree
	case rec.State == Completed:
		return isFinished
	case rec.Token == a.token:
		return isOurs
	case rec.LeaseLiveAt(now):
		return isBusy
	case a.g.opts.Policy == Hold, rec.Expires.IsZero(): // what began under Hold doesn't expire
		return isAbandoned
	default:
		return isFree
	}
}

// acquire gets hold of the record, or decides the call without it. may tells
// whether the handler may run.
func (a *attempt) acquire(request context.Context) (d decision, may bool) {
	a.keepBack()
	ctx := &a.acquiring
	ctx.Begin(request, a.acquireEnd())
	defer ctx.Cancel()
	if ctx.Err() != nil {
		return a.outOfTime(ctx, ctx.Err()), false
	}
	a.withdrawUnstarted(ctx)
	var over Record // the record to take over; zero: there is none
	for {
		seen, rec, found, err := a.contend(ctx, over)
		if err != nil {
			return a.notAcquired(request, seen, err)
		}
		if found == isBusy {
			rec, found = a.wait(ctx, rec)
			if found == isFree && a.left() >= a.g.opts.MinRunTime {
				over = rec
				continue
			}
		}
		switch found {
		case isOurs:
			a.acquired(ctx, seen, rec)
			return decision{}, true
		case isBusy, isFree: // L8: too little time is left to begin after a wait
			a.withdraw(ctx)
			return a.inProgress(ctx), false
		default:
			return a.fromRecord(ctx, found, rec), false
		}
	}
}

// prepare has the store get what a completion needs, before the handler of an attempt
// that acquires nothing runs (S1).
func (a *attempt) prepare(request context.Context) (d decision, may bool) {
	store, ok := a.g.store.(Preparer)
	if !ok {
		return decision{}, true
	}
	a.keepBack()
	ctx := &a.acquiring
	ctx.Begin(request, a.acquireEnd())
	defer ctx.Cancel()
	asked := time.Now()
	err := store.Prepare(ctx)
	a.spent(asked)
	if err == nil {
		return decision{}, true
	}
	return a.notAcquired(request, Record{}, err)
}

// maxClaims bounds how often one call tries to get hold of a record that
// others keep taking before it gives way (L6).
const maxClaims = 8

// contend claims the record until it means something else than free. It returns
// what the last claim was made over, the record as it then stood, and what that
// means: never isFree.
func (a *attempt) contend(ctx context.Context, over Record) (seen, rec Record, found finding, err error) {
	for range maxClaims {
		rec, err = a.claim(ctx, over)
		if reasonOf(err) == ReasonConflict {
			return over, rec, isBusy, nil // X9: a transaction in the way means busy
		}
		if err != nil {
			return over, rec, isBusy, err
		}
		rec = a.freed(ctx, rec)
		if found = a.judge(rec); found != isFree {
			return over, rec, found, nil
		}
		over = rec
	}
	return over, rec, isBusy, nil
}

// acquired takes note that the lease is ours, and of whom it was taken from.
func (a *attempt) acquired(ctx context.Context, over, rec Record) {
	a.mayHold = false
	a.number, a.fingerprint, a.payload, a.steps.stored = rec.Attempt, rec.Fingerprint, rec.payload(), rec.Steps
	a.holdTo(rec.LeaseEnd)
	if over.State == InProgress {
		a.note(ctx, EventTakenOver, nil)
	}
}

// notAcquired decides a call whose claim the store could not answer (X5). What was
// seen before, and has steps, never runs without them (E5).
func (a *attempt) notAcquired(ctx context.Context, seen Record, err error) (d decision, may bool) {
	if reasonOf(err) == ReasonForeign {
		a.note(ctx, EventUnreadable, err)
		if len(seen.Steps) > 0 { // it was taken over before its steps were found to be unreadable
			a.withdraw(ctx)
		}
		return decision{refusal: recordForeign(err)}, false
	}
	a.note(ctx, EventStoreError, err)
	if a.g.opts.FailOpen && ctx.Err() == nil && len(seen.Steps) == 0 {
		a.open = true
		a.note(ctx, EventFailedOpen, err)
		return decision{}, true
	}
	a.withdraw(ctx)
	return decision{refusal: storeUnavailable(err, a.g.opts.RetryAfter)}, false
}

// fromRecord decides a call by a record that stands in its way for good.
func (a *attempt) fromRecord(ctx context.Context, found finding, rec Record) decision {
	a.number = rec.Attempt
	switch found {
	case isFinished:
		return a.replay(ctx, rec, EventReplayed)
	case isMismatch:
		a.note(ctx, EventMismatch, nil)
		return decision{refusal: payloadMismatch(a.g.opts.MismatchStatus)}
	default:
		a.note(ctx, EventAbandoned, nil)
		return decision{refusal: attemptAbandoned()}
	}
}

// replay decides a call by the answer of a finished record: all of it, or none.
// as is the event kind to report: EventNew if a transaction of
// this attempt itself had stored the answer.
func (a *attempt) replay(ctx context.Context, rec Record, as Kind) decision {
	switch result, err := a.load(ctx, rec); {
	case err == nil:
		rec.Result = result
		a.remember(rec)
		d := decision{replays: true, value: result.Value, failure: result.Failure, from: a.memory}
		if err := a.work.replay(d); err != nil {
			a.note(ctx, EventUnreadable, err)
			return decision{refusal: answerUnreadable(err)}
		}
		a.note(ctx, as, nil)
		return d
	case reasonOf(err) == ReasonForeign: // X4: reading again would not mend it
		a.note(ctx, EventUnreadable, err)
		return decision{refusal: answerGone(err)}
	default:
		a.note(ctx, EventStoreError, err)
		return decision{refusal: answerUnread(err, a.g.opts.RetryAfter)}
	}
}

// inProgress refuses a call because another attempt is under way (L8).
func (a *attempt) inProgress(ctx context.Context) decision {
	a.note(ctx, EventInProgress, nil)
	return decision{refusal: inProgress(a.g.opts.RetryAfter)}
}

// outOfTime refuses a call that has no time left to run.
func (a *attempt) outOfTime(ctx context.Context, why error) decision {
	a.note(ctx, EventOutOfTime, why)
	return decision{refusal: outOfTime(why, a.g.opts.RetryAfter)}
}
