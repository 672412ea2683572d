package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/runcount"
)

// Guard makes handlers safe to retry. It is safe for concurrent use; what
// belongs to one invocation is kept with that invocation.
type Guard struct {
	store Store
	given Options // as the caller set them, for With
	opts  Options // with the defaults filled in
}

// New returns a guard that keeps its records in store. It panics if store is
// nil or an option can't be meant, and names the field.
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

// run runs the handler. What it returns tells afterwards how that ended, and may
// call what else the user wrote: the outcome rule, say.
type run func(context.Context) (judge func() ending)

// once is the guard's whole protocol for one call: acquire, run, finish. run
// gets the handler's context.
func (g *Guard) once(ctx context.Context, c call, run run) decision {
	a := g.newAttempt(ctx, c)
	if d, ours := a.acquire(ctx); !ours {
		return d
	}
	return a.run(ctx, run)
}

// verdict is what a record means to a call that does not hold it.
type verdict int

const (
	free      verdict = iota // nothing stands in the way: acquire, or take over
	ours                     // this attempt holds the lease (L4)
	busy                     // another attempt holds it (L8)
	abandoned                // an attempt died, and an operator must decide (L6)
	mismatch                 // it belongs to another payload (F5)
	finished                 // its answer is to be replayed (R1)
)

// judge is the one place that decides what a record means.
func (a *attempt) judge(rec Record) verdict {
	switch now := a.g.opts.Clock(); {
	case rec.State == Absent:
		return free
	case rec.State == Released:
		return free // F5: without steps it forgets its fingerprint
	case rec.Fingerprint != a.call.fingerprint:
		return mismatch
	case rec.State == Completed:
		return finished
	case rec.Token == a.token:
		return ours
	case rec.LeaseLiveAt(now):
		return busy
	case a.g.opts.Policy == Hold:
		return abandoned
	default:
		return free
	}
}

// maxClaims bounds how often one call tries to get hold of a record that
// others keep taking before it gives way (L6).
const maxClaims = 8

// acquire gets hold of the record, or decides the call without it.
func (a *attempt) acquire(ctx context.Context) (decision, bool) {
	request := ctx
	ctx, cancel := a.acquireContext(request)
	defer cancel()
	if ctx.Err() != nil {
		return a.outOfTime(ctx, ctx.Err()), false
	}
	var seen Record // as the store last had it
	for claims, waited := 0, false; ; {
		if claims == maxClaims {
			return a.inProgress(ctx), false
		}
		claims++
		rec, err := a.claim(ctx, seen)
		v := busy // X9: a transaction in the way means busy
		if reasonOf(err) != ReasonConflict {
			if err != nil {
				return a.notAcquired(request, err)
			}
			v = a.judge(rec)
		}
		if v == busy {
			waited, claims = true, 0 // a wait has a bound of its own (L8)
			rec, v = a.wait(ctx, rec)
		}
		switch {
		case v == ours:
			a.acquired(ctx, seen, rec)
			return decision{}, true
		case v == busy, v == free && waited && a.left() < a.g.opts.MinRunTime:
			return a.inProgress(ctx), false
		case v != free:
			return a.standing(ctx, v, rec), false
		}
		seen = rec
	}
}

// standing decides a call by a record that stands in its way for good.
func (a *attempt) standing(ctx context.Context, v verdict, rec Record) decision {
	a.number = rec.Attempt
	switch v {
	case finished:
		a.note(ctx, EventReplayed, nil)
		return decision{replay: &rec.Result}
	case mismatch:
		a.note(ctx, EventMismatch, nil)
		return decision{refusal: &Error{Code: ErrPayloadMismatch, Status: a.g.opts.MismatchStatus,
			Detail: "This idempotency key was used with another request. Send a new key with a new request, and the same request with the same key."}}
	default:
		a.note(ctx, EventAbandoned, nil)
		return decision{refusal: &Error{Code: ErrAttemptAbandoned, Status: http.StatusConflict,
			Detail: "An earlier attempt of this request ended without a known outcome. It has to be looked into before the key can be used again."}}
	}
}

// inProgress refuses a call because another attempt is under way (L8).
func (a *attempt) inProgress(ctx context.Context) decision {
	a.withdraw(ctx)
	a.note(ctx, EventInProgress, nil)
	return decision{refusal: &Error{Code: ErrInProgress, Status: http.StatusConflict, RetryAfter: a.g.opts.RetryAfter,
		Detail: "A request with this idempotency key is in progress. Repeat this request later to get its answer."}}
}

// notAcquired decides a call whose claim the store could not answer (X5).
func (a *attempt) notAcquired(ctx context.Context, err error) (decision, bool) {
	if reasonOf(err) == ReasonForeign {
		a.note(ctx, EventUnreadable, err)
		return decision{refusal: recordForeign(err)}, false
	}
	a.note(ctx, EventStoreError, err)
	if a.g.opts.FailOpen && ctx.Err() == nil {
		a.open = true
		a.note(ctx, EventFailedOpen, err)
		return decision{}, true
	}
	a.withdraw(ctx)
	return decision{refusal: &Error{Code: ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: a.g.opts.RetryAfter,
		Detail: "The request was not carried out, since it can't be told now whether it was before. Repeat it later.", Err: err}}, false
}

// run runs the handler under the lease and finishes the record.
func (a *attempt) run(ctx context.Context, run run) decision {
	hctx, cancel := a.handlerContext(ctx)
	defer cancel()
	if hctx.Err() != nil {
		if a.open {
			a.withdraw(ctx)
		} else {
			a.release(ctx, hctx.Err())
		}
		return a.outOfTime(ctx, hctx.Err())
	}
	returned, finished := false, false
	defer func() {
		// A panic, or runtime.Goexit: it goes on by itself, with its own value
		// and stack, since nothing recovers it here (X2).
		switch {
		case !returned:
			a.died(ctx)
		case !finished: // X4: the handler had its effect
			a.note(ctx, EventUncertain, errJudgeDied)
		}
	}()
	runcount.Add(ctx)
	started := time.Now()
	judge := run(hctx)
	a.handler = time.Since(started)
	returned = true
	cancel()
	d := a.finish(ctx, judge())
	finished = true
	return d
}

// finish settles the record by how the handler ended.
func (a *attempt) finish(ctx context.Context, end ending) decision {
	switch end.outcome {
	case OutcomeSucceeded, OutcomeFailed:
		return a.complete(ctx, end)
	case OutcomeReleased:
		a.release(ctx, end.err)
	case OutcomeUncertain:
		a.note(ctx, EventUncertain, end.err)
	default: // keep the lease: whether there were effects isn't known
		a.note(ctx, EventUncertain, fmt.Errorf("Options.Outcome returned %q, which is no outcome", end.outcome))
	}
	return decision{}
}

// outOfTime refuses a call that has no time left to run.
func (a *attempt) outOfTime(ctx context.Context, why error) decision {
	a.note(ctx, EventOutOfTime, why)
	return decision{refusal: &Error{Code: ErrOutOfTime, Status: http.StatusServiceUnavailable, RetryAfter: a.g.opts.RetryAfter,
		Detail: "The request was not carried out, since no time was left for it. Repeat it.", Err: why}}
}

// What stands for a panic in events; its value is not touched.
var (
	errHandlerDied = errors.New("the handler panicked or called runtime.Goexit")
	errJudgeDied   = errors.New("the handler returned; then Options.Outcome or the encoding of its result panicked")
)

// died ends an attempt whose handler did not return.
func (a *attempt) died(ctx context.Context) {
	if a.g.opts.Policy == Hold {
		a.note(ctx, EventUncertain, errHandlerDied)
		return
	}
	a.release(ctx, errHandlerDied)
}

// complete stores the answer, for as long as there is time (X4).
func (a *attempt) complete(ctx context.Context, end ending) decision {
	ctx, cancel := a.finishContext(ctx)
	defer cancel()
	result, unstorable := a.result(end)
	var err error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var rec Record
		rec, err = a.g.store.Complete(ctx, a.lease(), result)
		if err == nil {
			if unstorable != nil {
				a.note(ctx, EventAnswerLost, unstorable)
			} else {
				a.note(ctx, EventNew, end.err)
			}
			return decision{}
		}
		if errors.Is(err, ErrLeaseLost) {
			return a.lost(ctx, rec)
		}
		if r := reasonOf(err); unstorable == nil && (r == ReasonTooLarge || r == ReasonEncoding) {
			unstorable = err
			result = a.withoutAnswer(end)
			continue
		}
		if a.open || !a.pause(ctx, pause) {
			break
		}
	}
	a.note(ctx, EventStoreError, err)
	if a.open {
		return decision{} // X5: it ran without the store from the start
	}
	a.note(ctx, EventUncertain, err)
	wait := max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter)
	return decision{refusal: &Error{Code: ErrOutcomeUnknown, Status: http.StatusServiceUnavailable, RetryAfter: wait,
		Detail: "The request was carried out, but this could not be recorded. Repeat it with the same key to learn what became of it.", Err: err}}
}

// lost decides a call whose lease another attempt took before it ended: its own
// answer is not the truth any more (X6).
func (a *attempt) lost(ctx context.Context, rec Record) decision {
	if a.open && rec.State != Completed {
		return decision{} // X5: it ran without the store, and nobody knows better
	}
	a.note(ctx, EventLeaseLost, nil)
	if v := a.judge(rec); v == finished || v == mismatch {
		return a.standing(ctx, v, rec)
	}
	return a.inProgress(ctx)
}

// release ends an attempt without effect, so that a retry runs again.
func (a *attempt) release(ctx context.Context, why error) {
	switch err := a.settleRelease(ctx); {
	case err == nil:
		a.note(ctx, EventReleased, why)
	case a.open: // X5: there may have been nothing to release
		a.note(ctx, EventReleased, why)
	case errors.Is(err, ErrLeaseLost):
		a.note(ctx, EventLeaseLost, why)
	default:
		a.note(ctx, EventStoreError, err)
	}
}

// withdraw gives back a lease that a claim may have taken unnoticed (X5). If it
// did not, or can't be given back, the lease's end must do.
func (a *attempt) withdraw(ctx context.Context) {
	if !a.mayHold {
		return
	}
	a.mayHold = false
	if err := a.settleRelease(ctx); err != nil && !errors.Is(err, ErrLeaseLost) {
		a.note(ctx, EventStoreError, err)
	}
}

// settleRelease writes the release, even if the request's context has ended
// (X3).
func (a *attempt) settleRelease(ctx context.Context) error {
	ctx, cancel := a.cleanupContext(ctx)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		_, err := a.g.store.Release(ctx, a.lease(), a.g.opts.Clock())
		if err == nil || errors.Is(err, ErrLeaseLost) || a.open || !a.pause(ctx, pause) {
			return err
		}
	}
}
