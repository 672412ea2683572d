package lambdaidem

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Pauses between tries of one store call; each is jittered by half.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
	// conflictPatience is how long a claim is repeated while a transaction
	// holds the item (X9).
	conflictPatience = 200 * time.Millisecond
)

// attempt is one call on its way through the guard. Everything that belongs to
// the invocation is here, since one process may serve several at once.
type attempt struct {
	g     *Guard
	call  call
	id    string
	scope string
	token string // fencing token: random, of this attempt alone (L3)

	began    time.Time     // by Options.Clock
	deadline time.Time     // the invocation's own; zero without one
	over     time.Time     // when the attempt must be over: the deadline, or the claim and LeaseDuration
	leaseEnd time.Time     // of the last claim, by Options.Clock
	giveUp   time.Time     // when waiting ends; zero before it began
	reserved time.Duration // of the time until over, for the completion and the answer (L5)
	number   int           // attempt number of the record
	handler  time.Duration // spent in the handler
	mayHold  bool          // a claim was sent whose fate is unknown
	open     bool          // failed open: runs without the lease (X5)
}

func (g *Guard) newAttempt(ctx context.Context, c call) *attempt {
	var token [16]byte
	if _, err := io.ReadFull(g.opts.Random, token[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err)) // without randomness there is no fencing
	}
	a := &attempt{g: g, call: c, id: c.who.id(), scope: c.who.scope(), token: base64.RawURLEncoding.EncodeToString(token[:]), began: g.opts.Clock()}
	a.deadline, _ = ctx.Deadline()
	a.over = a.deadline
	if a.deadline.IsZero() {
		a.over = time.Now().Add(g.opts.LeaseDuration)
	}
	return a
}

// left is the time until the attempt must be over. It is measured by the
// monotonic clock where the deadline allows it, never by Options.Clock, which
// may jump.
func (a *attempt) left() time.Duration {
	if a.deadline.IsZero() {
		return a.g.opts.LeaseDuration // its time begins with the claim
	}
	return time.Until(a.deadline)
}

// claim asks the store for the lease: over the record that was seen, if there
// was one.
func (a *attempt) claim(ctx context.Context, seen Record) (Record, error) {
	var over *Record
	if seen.State != Absent {
		over = &seen
	}
	var patience time.Time
	for pause := 5 * time.Millisecond; ; pause *= 2 {
		rec, err := a.g.store.Acquire(ctx, a.newClaim(over))
		if err == nil {
			return rec, nil
		}
		a.mayHold = a.mayHold || !notApplied(err)
		if reasonOf(err) != ReasonConflict {
			return rec, err
		}
		if patience.IsZero() {
			patience = time.Now().Add(conflictPatience)
		}
		if time.Until(patience) < pause || !a.pause(ctx, pause) {
			return rec, err
		}
	}
}

func (a *attempt) newClaim(over *Record) Claim {
	left := max(a.left(), 0)
	a.over = time.Now().Add(left)
	now, o := a.g.opts.Clock(), &a.g.opts
	// L5: the lease outlives the attempt by as much as clocks may differ.
	a.leaseEnd = ceil(now.Add(left).Add(o.MaxSkew), time.Millisecond)
	c := Claim{ID: a.id, Scope: a.scope, Fingerprint: a.call.fingerprint, Token: a.token,
		Now: now, LeaseEnd: a.leaseEnd, Over: over}
	if o.Policy != Hold { // L6: a held record does not expire
		c.Expires = a.expires(now)
		// L7: not before the lease is over by every clock.
		if least := ceil(a.leaseEnd.Add(o.MaxSkew).Add(time.Second), time.Second); c.Expires.Before(least) {
			c.Expires = least
		}
	}
	return c
}

// expires is when a record that is finished now expires.
func (a *attempt) expires(now time.Time) time.Time {
	return ceil(now.Add(a.g.opts.TTL), time.Second)
}

// acquired takes note that the lease is ours, and of whom it was taken from.
func (a *attempt) acquired(ctx context.Context, seen, rec Record) {
	a.number = rec.Attempt
	a.leaseEnd = rec.LeaseEnd
	// L5: where an earlier claim of ours turned out to have landed, its lease
	// counts, which may end before that of the last claim.
	a.over = earlier(a.over, time.Now().Add(rec.LeaseEnd.Sub(a.g.opts.Clock())-a.g.opts.MaxSkew))
	if seen.State == InProgress {
		a.note(ctx, EventTakenOver, nil)
	}
}

// lease is what finishes the record.
func (a *attempt) lease() Lease {
	return Lease{ID: a.id, Token: a.token, Expires: a.expires(a.g.opts.Clock())}
}

// result is what the record is to keep of an ending. The error tells why the
// answer can't be kept, if it can't (X4).
func (a *attempt) result(end ending) (Result, error) {
	now := a.g.opts.Clock()
	r := Result{Outcome: end.outcome, At: now.Truncate(time.Millisecond), Expires: a.expires(now)}
	if end.encode == nil {
		r.Failure = failureOf(end.err)
		return r, nil
	}
	value, err := end.encode()
	if err != nil {
		return a.withoutAnswer(end), err
	}
	r.Value = value
	return r, nil
}

// withoutAnswer is the result of an attempt whose answer can't be kept (X4).
func (a *attempt) withoutAnswer(end ending) Result {
	now := a.g.opts.Clock()
	return Result{Outcome: end.outcome, At: now.Truncate(time.Millisecond), Expires: a.expires(now),
		Failure: &Failure{Code: ErrAnswerUnavailable, Status: http.StatusInternalServerError,
			Message: string(ErrAnswerUnavailable) + ": the operation was carried out, but its answer could not be kept"}}
}

// wait polls until the record is not busy any more, and judges it then (L8).
// acquire's context ends it in time to answer before the invocation's deadline.
func (a *attempt) wait(ctx context.Context, rec Record) (Record, verdict) {
	if a.g.opts.Wait == 0 {
		return rec, busy
	}
	if a.giveUp.IsZero() {
		a.giveUp = time.Now().Add(a.g.opts.Wait)
	}
	ctx, cancel := context.WithDeadline(ctx, a.giveUp)
	defer cancel()
	var unread error // why the last read that was given its time failed
	for pause := firstPause; ; pause = min(pause+pause/2, longestPause) {
		if !a.pause(ctx, pause) {
			if unread != nil {
				a.note(ctx, EventStoreError, unread)
			}
			return rec, busy
		}
		now, err := a.g.store.Get(ctx, a.id, a.g.opts.Clock())
		if ctx.Err() == nil {
			unread = err
		}
		if err != nil {
			continue // it was in progress when last seen: look again while there is time
		}
		if v := a.judge(now); v != busy {
			return now, v
		}
	}
}

// reserve settles how much of the time left is kept back for the completion
// (L5).
func (a *attempt) reserve() time.Duration {
	a.reserved = a.g.opts.Reserve
	if a.reserved == 0 {
		a.reserved = min(500*time.Millisecond, max(time.Until(a.over), 0)/10)
	}
	return a.reserved
}

// answerMargin is the part of the reserve that is kept for sending the answer.
// It is a share of it, since the whole invocation may be shorter than any fixed
// time.
func (a *attempt) answerMargin() time.Duration { return a.reserved / 10 }

// acquireContext is for everything before the handler: it leaves time to give
// back what an unanswered claim may have taken, and to answer (X5).
func (a *attempt) acquireContext(ctx context.Context) (context.Context, context.CancelFunc) {
	reserve := a.reserve()
	if a.deadline.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, a.deadline.Add(-reserve))
}

type attemptKey struct{}

// Attempt is the number of this attempt at the record, in a handler's context:
// 1 for the first; higher after a release, or after an attempt died (L6). It is
// 0 where no guard holds a lease.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return n
}

// handlerContext is the request's context with the attempt's number, ending a
// reserve before the attempt must be over (L5).
func (a *attempt) handlerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(context.WithValue(ctx, attemptKey{}, a.number), a.over.Add(-a.reserve()))
}

// finishContext is for a completion: it lives on when the request's context
// ends (X3), until just before the attempt must be over; if that is past, for a
// short limit of its own.
func (a *attempt) finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := a.over.Add(-a.answerMargin())
	if time.Until(end) <= 0 {
		end = time.Now().Add(a.g.opts.CleanupTimeout)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// cleanupContext is for a release: like finishContext, but never longer than
// the short limit.
func (a *attempt) cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := time.Now().Add(a.g.opts.CleanupTimeout)
	if due := a.over.Add(-a.answerMargin()); time.Until(due) > 0 {
		end = earlier(end, due)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// pause sleeps for about d, and tells whether ctx is still alive then. Nothing
// of it outlives the call (X7).
func (a *attempt) pause(ctx context.Context, d time.Duration) bool {
	var random [4]byte
	if _, err := io.ReadFull(a.g.opts.Random, random[:]); err != nil {
		panic(fmt.Sprintf("lambdaidem: Options.Random: %v", err))
	}
	half := d / 2
	timer := time.NewTimer(half + time.Duration(binary.BigEndian.Uint32(random[:]))%(half+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// note tells the observer of an outcome of this call.
func (a *attempt) note(ctx context.Context, kind Kind, err error) {
	a.g.opts.Observer.Observe(ctx, Event{Kind: kind, Scope: a.scope, Key: a.g.keyLabel(a.call.who.key),
		Attempt: a.number, Duration: a.g.opts.Clock().Sub(a.began), Handler: a.handler, Reason: reasonOf(err), Err: err})
}

// ceil rounds t up to a whole multiple of unit since the epoch.
func ceil(t time.Time, unit time.Duration) time.Time {
	if down := t.Truncate(unit); !down.Equal(t) {
		return down.Add(unit)
	}
	return t.Round(0)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// reasonOf is the reason of a store's error; ReasonUnknown for any other.
func reasonOf(err error) Reason {
	if err == nil {
		return ReasonUnknown
	}
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Reason
	}
	return ReasonUnknown
}

// notApplied tells whether a store's error says that surely nothing was
// written.
func notApplied(err error) bool {
	e, ok := errors.AsType[*StoreError](err)
	return ok && e.NotApplied
}
