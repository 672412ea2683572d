package lambdaidem

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// attempt carries out the protocol for one guarded call: it acquires the record, runs the
// handler and finishes the record. Only its methods decide what a record means and what
// follows from it. Each attempt has its own state, because one process may serve several
// invocations at once.
type attempt struct {
	budget
	g          *Guard
	outer      *attempt // the attempt, or the unguarded run, whose handler made this call; nil if there is none
	call       call
	work       work
	id         string   // id of the record
	scope      string   // Claim.Scope
	token      string   // fencing token: random, used by this attempt only
	random     [16]byte // the random bytes that token encodes
	invocation string   // Claim.Invocation
	steps      steps

	began     time.Time     // when the attempt began, by Options.Clock
	number    int           // Record.Attempt; 0 until the record is known
	inHandler time.Duration // time spent in the handler
	inStore   time.Duration // time spent in the store, except for storing steps

	// How the record was acquired.
	mayHoldLease  bool    // the reply to a claim is missing, so this attempt may hold the lease
	lastClaimOver *Record // the record that the last claim replaces; nil if the claim creates a record
	failedOpen    bool    // the handler runs without a lease because of Options.FailOpen
	needsLease    bool    // the handler must not run without a lease, even with Options.FailOpen, because of the record that lookUp has read
	cached        bool    // the record is from the process's cache
	memory        *cacheEntry

	// What the handler has done.
	started     bool        // the handler has been started
	enlist      enlisting   // the writes that the handler enlists
	inner       innerCalls  // the guarded calls that the handler makes
	askedForKey atomic.Bool // the handler has called DownstreamKey

	// How the record is completed.
	txRejected      bool       // the database has rejected the transaction with the handler's writes
	txMayCommit     bool       // an earlier request of the rejected transaction may still commit, until the record changes
	failedClaims    int        // number of completions that failed because another attempt had taken the record
	lastResultAt    time.Time  // Result.At of the last result; see isResult
	lastResultMade  time.Time  // when that result was made, before the request that stores it
	firstCompletion Completion // the last completion that the method completion made, without a claim
	storedByTx      bool       // a transaction has stored the answer

	// innerEnding says how this call ended. It matters only if the handler of an outer
	// guarded call made this call, because it helps to decide what happens to the record of
	// the outer call. Its values are:
	//
	//   - OutcomeSucceeded or OutcomeFailed: this call ended with that outcome.
	//   - OutcomeReleased: a retry of this call may still carry it out.
	//   - OutcomeUncertain: nobody knows whether this call had an effect.
	//   - "": this call leaves nothing to settle.
	innerEnding Outcome

	fingerprint string // Record.Fingerprint: of the acquired record, or as the last completion with a claim sets it; that of the call before
	bound       string // Claim.Bound of the last claim
}

func (g *Guard) newAttempt(ctx context.Context, c call) *attempt {
	outer := runOf(ctx)
	a := &attempt{g: g, outer: outer, call: c, id: c.id, scope: c.who.scope(g.readable(&c.who)), budget: newBudget(ctx, outer, &g.opts),
		began: g.opts.Clock(), fingerprint: c.fingerprint, invocation: invocationOf(ctx)}
	if _, err := io.ReadFull(g.opts.Random, a.random[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err)) // without randomness there is no fencing
	}
	a.token = base64.RawURLEncoding.EncodeToString(a.random[:])
	return a
}

type attemptKey struct{}

// Attempt returns the number of the attempt whose handler has this context. The first
// attempt for a record has number 1. Each attempt after a release, or after the death
// of an attempt, has a higher number. Attempt returns 0 if no guard holds a lease for
// the handler.
func Attempt(ctx context.Context) int {
	if a := attemptOf(ctx); a != nil {
		return a.number
	}
	return 0
}

// Key returns the idempotency key of the guarded call whose handler has this context,
// for example to log it or pass it on. It returns "" if the call runs unguarded. Two
// callers may use the same key, so derive ids from [RecordID] instead.
func Key(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.call.who.Key
	}
	return ""
}

// Principal returns the caller of the guarded call whose handler has this context, as the
// guard identified it: Request.Principal, or what Options.Principal,
// HandlerOptions.Principal or Call.Principal says. Give it to a [Do] inside the handler
// as Call.Principal, so that the inner call of one caller never gets the result of another
// caller. It returns "" if callers are anonymous, and if the call runs unguarded.
func Principal(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.call.who.Principal
	}
	return ""
}

// RecordID returns the id of the record of the guarded call whose handler has this
// context: 54 bytes of printable ASCII or, with Options.IDPrefix, up to 95. Every attempt
// for one key of one caller on one route has the same id, and no other attempt has it. A
// handler can therefore derive from it the ids of the items that the handler creates. As an
// idempotency key for another service, use [DownstreamKey] instead. RecordID returns "" if the call runs unguarded.
func RecordID(ctx context.Context) string {
	if a := attemptOf(ctx); a != nil {
		return a.id
	}
	return ""
}

// attemptOf returns the attempt whose handler has this context, or nil if the handler
// runs unguarded.
func attemptOf(ctx context.Context) *attempt {
	a := runOf(ctx)
	if a == nil || a.id == "" { // an unguarded run has no record
		return nil
	}
	return a
}

// runOf is like attemptOf, but if the handler runs unguarded, runOf returns the attempt
// that stands for the unguarded run. That attempt has no id, because it has no record.
func runOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// inContext returns a copy of ctx that carries the attempt. The functions runOf and
// attemptOf find the attempt in the copy.
func (a *attempt) inContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// meaning is what a record means to a call.
type meaning int

const (
	isFree      meaning = iota // there is no record, or the call may take the record over
	isAcquired                 // this attempt holds the lease
	isBusy                     // another attempt holds the lease
	isAbandoned                // an attempt died under policy Hold, and an operator must decide
	isMismatch                 // the record has another payload, or one that can't be compared with the call's
	isFinished                 // the record has an answer, which must be replayed
)

// meaningOf decides what a record means to the call. It does not check whether the record
// has expired, because Store.Get and Store.Acquire return an expired record as absent.
func (a *attempt) meaningOf(rec Record) meaning {
	switch now := a.g.opts.Clock(); {
	case rec.State == Absent:
		return isFree
	case rec.State == Released && len(rec.Steps) == 0 && a.call.mayReplace(rec):
		return isFree // even for another payload, so that a client can correct its request
	case a.call.comparePayload(rec.Fingerprint) != samePayload:
		return isMismatch
	case rec.State == Released:
		return isFree
	case rec.State == Completed:
		return isFinished
	case rec.Token == a.token:
		return isAcquired
	case rec.LeaseLiveAt(now):
		return isBusy
	case a.g.opts.Policy == Hold, rec.Held():
		return isAbandoned
	default:
		return isFree
	}
}

// acquire acquires the lease on the record. If mayRun is true, the handler may run.
// Otherwise d is what the caller receives instead, such as a replay or a refusal. If
// Options.Observer panics, the handler will not start, so acquire releases the lease if the
// attempt may hold it.
func (a *attempt) acquire(request context.Context) (d decision, mayRun bool) {
	returned := false
	defer func() {
		if !returned {
			a.withdraw(request)
		}
	}()
	d, mayRun = a.tryToAcquire(request)
	returned = true
	return d, mayRun
}

func (a *attempt) tryToAcquire(request context.Context) (d decision, mayRun bool) {
	a.setReserved()
	ctx, cancel := withDeadline(request, a.acquireEnd())
	defer cancel()
	if ctx.Err() != nil {
		return a.outOfTime(ctx, ctx.Err()), false
	}
	a.withdrawUnreleased(ctx)
	var over Record // the record to take over; zero to create one
	for {
		seen, rec, means, err := a.claimRepeatedly(ctx, over)
		if err != nil {
			return a.notAcquired(request, seen, err)
		}
		waited := means == isBusy
		if waited {
			rec, means = a.wait(ctx, rec)
			if means == isFree && a.left()-a.reserve >= a.g.opts.MinRunTime {
				over = rec
				continue
			}
		}
		switch means {
		case isAcquired:
			if waited && len(rec.Steps) > 0 { // rec is from Store.Get, which may leave out the results of the steps
				a.withdraw(ctx)
				return a.inProgress(ctx), false
			}
			a.acquired(ctx, seen, rec)
			return decision{}, true
		case isBusy, isFree: // isFree here means that waiting has left too little time to run the handler
			a.withdraw(ctx)
			return a.inProgress(ctx), false
		default:
			return a.fromRecord(ctx, means, rec), false
		}
	}
}

// prepare gets the store ready before the handler of an optimistic attempt runs. Such an
// attempt runs without a lease, so it does not call Store.Acquire, which would get the
// store ready too. prepare calls Preparer.Prepare, or does nothing if the store does not
// have this method. If mayRun is true, the handler may run. Otherwise d is what the caller
// receives.
func (a *attempt) prepare(request context.Context) (d decision, mayRun bool) {
	store, ok := a.g.store.(Preparer)
	if !ok {
		return decision{}, true
	}
	a.setReserved()
	ctx, cancel := withDeadline(request, a.acquireEnd())
	defer cancel()
	asked := time.Now()
	err := store.Prepare(ctx)
	a.spent(asked)
	if err == nil {
		return decision{}, true
	}
	return a.notAcquired(request, Record{}, err)
}

// maxClaims is the maximum number of times that one call claims its record. If other
// attempts take the record each time, the call is refused with ErrInProgress.
const maxClaims = 8

// claimRepeatedly sends claims of the record until a claim succeeds or the record is not
// free. over is the record that the first claim takes over, or the zero Record to create
// one. A claim fails if the record is not as the claim expects, for example because another
// attempt has just changed it. If the changed record is free too, the next claim takes over
// the changed record.
//
// rec is the record after the last claim. seen is the record that the last claim was to
// take over; after maxClaims failed claims, seen is equal to rec. means is what rec means
// to the call, but never isFree. In two cases, means is isBusy whatever rec is: maxClaims
// claims have failed, or a transaction of another attempt is writing the record.
func (a *attempt) claimRepeatedly(ctx context.Context, over Record) (seen, rec Record, means meaning, err error) {
	for range maxClaims {
		rec, err = a.claim(ctx, over)
		if reasonOf(err) == ReasonConflict {
			return over, rec, isBusy, nil // a transaction of another attempt is writing the record
		}
		if err != nil {
			return over, rec, isBusy, err
		}
		rec = a.withdrawClaimOn(ctx, rec)
		if means = a.meaningOf(rec); means != isFree {
			return over, rec, means, nil
		}
		over = rec
	}
	return over, rec, isBusy, nil
}

// acquired records that this attempt holds the lease on rec. The parameter over is the old
// record, which the claim has replaced. If the old record was in progress, acquired reports
// a takeover. If Options.Observer panics during the report, acquired releases the lease,
// because the handler will not start.
func (a *attempt) acquired(ctx context.Context, over, rec Record) {
	a.mayHoldLease = false
	a.number, a.fingerprint, a.steps.stored = rec.Attempt, rec.Fingerprint, rec.Steps
	a.holdTo(rec.LeaseEnd)
	if over.State == InProgress {
		noted := false
		defer func() {
			if !noted {
				a.release(ctx, errObserverDied)
			}
		}()
		a.report(ctx, EventTakenOver, nil)
		noted = true
	}
}

// fromRecord returns what the caller receives according to the record. means is what the
// record means to the call: isFinished, isAbandoned or isMismatch.
func (a *attempt) fromRecord(ctx context.Context, means meaning, rec Record) decision {
	a.number = rec.Attempt
	switch means {
	case isFinished:
		return a.replay(ctx, rec, EventReplayed)
	case isMismatch:
		refusal := payloadMismatch(a.g.opts.MismatchStatus)
		if a.call.comparePayload(rec.Fingerprint) == maybeSamePayload {
			if rec.State == InProgress && !rec.LeaseLiveAt(a.g.opts.Clock()) { // the request may be that of the dead attempt
				if _, err := a.hold(ctx, rec); err != nil {
					return a.notHeld(err)
				}
			}
			refusal = payloadUnsure(a.g.opts.MismatchStatus)
			refusal.unfinished = rec.State != Completed || rec.Result.Outcome == OutcomeFailed
		}
		a.report(ctx, EventMismatch, refusal.Err)
		return decision{refusal: refusal}
	default:
		return a.abandoned(ctx, rec)
	}
}

// replay returns the decision to send the answer of a finished record, or to refuse the call
// if the answer can't be loaded or decoded. The parameter as is the kind of event to report
// for a sent answer: EventReplayed, or EventNew if this attempt has stored the answer.
func (a *attempt) replay(ctx context.Context, rec Record, as Kind) decision {
	switch result, err := a.load(ctx, rec); {
	case err == nil:
		rec.Result = result
		a.remember(rec)
		d := decision{replays: true, value: result.Value, failure: result.Failure, outcome: result.Outcome, from: a.memory}
		if err := a.work.replay(d); err != nil {
			a.report(ctx, EventUnreadable, err)
			return decision{refusal: answerUnreadable(err, result.Outcome), unreturned: true}
		}
		a.report(ctx, as, nil)
		return d
	case reasonOf(err) == ReasonForeign: // another read would fail too
		a.report(ctx, EventUnreadable, err)
		return decision{refusal: answerGone(err, rec.Result.Outcome), unreturned: true}
	default:
		a.report(ctx, EventStoreError, err)
		return decision{refusal: answerUnread(err, rec.Result.Outcome, a.g.opts.RetryAfter), unreturned: true}
	}
}

// inProgress refuses a call because another attempt is running.
func (a *attempt) inProgress(ctx context.Context) decision {
	a.report(ctx, EventInProgress, nil)
	return decision{refusal: inProgress(a.g.opts.RetryAfter)}
}

// outOfTime refuses a call that has no time left to run.
func (a *attempt) outOfTime(ctx context.Context, why error) decision {
	a.report(ctx, EventOutOfTime, why)
	return decision{refusal: outOfTime(why, a.g.opts.RetryAfter)}
}
