package lambdaidem

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// This file releases records that earlier calls of this process may have left in progress.
// If the release of a record fails, or the reply to its claim is lost, the record may be in
// progress although no handler is running. Every retry would be refused until the lease
// ends, and under policy Hold until an operator decides. The process therefore remembers
// the claim, and later calls try again to release the record. Such a late release is called
// a withdrawal of the claim.

// Limits of the memory and time that a process spends on withdrawals. A withdrawal releases a
// record that an earlier call of the process may have left in progress.
const (
	maxUnreleased     = 1000                   // maximum number of remembered claims; a new one replaces the oldest
	withdrawalsAtOnce = 4                      // maximum number of withdrawals before a call acquires its own record
	withdrawalTime    = 200 * time.Millisecond // maximum time for these withdrawals, or a twentieth of the call's remaining time if that is less
	withdrawalPause   = time.Second            // pause after a failed withdrawal; also the first pause if the claim may still reach the store
)

var errUnreleasedForgotten = errors.New("this process has left too many claims behind to withdraw this one; its record may be held although no handler started: see docs/operate.md, \"An outage under Hold\"")

// unreleased is a list of claims whose records may be in progress although no handler is running.
// Later calls withdraw these claims, that is, they release the records. Each call first tries to
// withdraw a few claims that are due for another try. It also tries to withdraw a claim on its own
// record, even if that claim is not due.
//
// A guard shares its list only with the guards that the method Guard.With derives from it.
type unreleased struct {
	count atomic.Int64 // len(claims), readable without mu

	mu          sync.Mutex
	claims      []*unreleasedClaim // oldest first
	pausedUntil time.Time          // after a failed withdrawal: next returns no claim before this time
}

// unreleasedClaim is a claim whose record may be in progress although no handler is running, so
// that a later call must release the record. unreleased.mu guards the fields dueTime, pause
// and withdrawing. The other fields don't change.
type unreleasedClaim struct {
	g           *Guard
	lease       Lease         // the lease to release
	started     bool          // the handler was started before the attempt tried to release the record
	invocation  string        // Lambda's request id of the claim's invocation, for events
	oldToken    string        // token of the record that the claim takes over; empty if it creates a record
	arrivesBy   time.Time     // when the claim's last request expires: the store refuses it from then on
	dueTime     time.Time     // the earliest time for the next withdrawal
	pause       time.Duration // how long to wait after the next withdrawal if the claim may still arrive; then doubled
	withdrawing bool          // a call is withdrawing the claim now
}

// newUnreleasedClaim returns the last claim of the attempt, as an entry for the list of unreleased
// claims. The parameter cause, if not nil, becomes the record's last failure when a later call
// releases the record.
func (a *attempt) newUnreleasedClaim(cause error) *unreleasedClaim {
	now := time.Now()
	lease := a.lease()
	lease.LastFailure = failureCode(cause)
	// The claim can't be applied later than MinTTL from now: the attempt sends no more requests
	// with the claim, and AWS refuses a request that was signed more than 15 minutes (MinTTL) ago.
	return &unreleasedClaim{g: a.g, lease: lease, started: a.started, invocation: a.invocation, oldToken: a.recordOfLastClaim().Token,
		arrivesBy: now.Add(MinTTL), dueTime: now, pause: withdrawalPause}
}

// withdraw releases the record if the claim holds the record's lease. rec and err are the results
// of Store.Release. resolved is true if the claim does not hold the lease and can never acquire it.
// The claim can then be removed from the list of unreleased claims.
func (c *unreleasedClaim) withdraw(ctx context.Context) (rec Record, resolved bool, err error) {
	start, now := time.Now(), c.g.opts.Clock()
	lease := c.lease
	lease.Expires = ceil(now.Add(c.g.opts.TTL), time.Second)
	rec, err = c.g.store.Release(ctx, lease, now)
	return rec, c.resolvedBy(rec, err, start), err
}

// resolvedBy reports whether the claim is resolved: it does not hold the lease and can never
// acquire it. rec and err are the results of Store.Release, and start is the time of that call.
//
// Until c.arrivesBy, a request with the claim may still reach the database. Before then, the claim
// is resolved only if the database would refuse such a request.
func (c *unreleasedClaim) resolvedBy(rec Record, err error, start time.Time) bool {
	switch {
	case err == nil:
		// The record was released under the claim's token. The database would refuse a late request
		// with the claim.
		return true
	case !errors.Is(err, ErrLeaseLost):
		return false
	case rec.State == Completed, rec.State != Absent && rec.Token != c.oldToken:
		// The database would refuse a late request with the claim, because the record is completed,
		// or its token is not c.oldToken.
		return true
	}
	return !start.Before(c.arrivesBy)
}

// remember adds a claim to the list. If the list is full, remember removes the oldest claim and
// returns that claim as dropped, so that the caller can report its loss. Otherwise dropped is
// nil.
func (u *unreleased) remember(c *unreleasedClaim) (dropped *unreleasedClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.claims) >= maxUnreleased {
		dropped = u.claims[0]
		u.claims = slices.Delete(u.claims, 0, 1)
	}
	u.claims = append(u.claims, c)
	u.count.Store(int64(len(u.claims)))
	return dropped
}

func (u *unreleased) forget(c *unreleasedClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.claims = slices.DeleteFunc(u.claims, func(each *unreleasedClaim) bool { return each == c })
	u.count.Store(int64(len(u.claims)))
}

// holding returns the claim in u that has the lease on rec, or nil if none has it.
func (u *unreleased) holding(rec Record) *unreleasedClaim {
	if rec.State != InProgress || u.count.Load() == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.claims {
		if c.lease.ID == rec.ID && c.lease.Token == rec.Token {
			return c
		}
	}
	return nil
}

// next returns the claim that has been due for withdrawal for the longest time, or nil if no claim
// is due. After a failed withdrawal, next returns nil for withdrawalPause. next marks the claim as
// being withdrawn, so that no other call withdraws the same claim at the same time.
func (u *unreleased) next(now time.Time) *unreleasedClaim {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.pausedUntil) {
		return nil
	}
	var first *unreleasedClaim
	for _, c := range u.claims {
		if !c.withdrawing && !now.Before(c.dueTime) && (first == nil || c.dueTime.Before(first.dueTime)) {
			first = c
		}
	}
	if first != nil {
		first.withdrawing = true
	}
	return first
}

// withdrawalDone ends the withdrawal of c, a claim returned by u.next. resolved and err are results
// of c.withdraw. If c is resolved, withdrawalDone removes it from the list. If c may still arrive
// at the database (err is ErrLeaseLost), withdrawalDone sets the time of the next try. After any
// other error the store may be out of reach, so withdrawalDone pauses the withdrawals of all
// claims.
func (u *unreleased) withdrawalDone(c *unreleasedClaim, resolved bool, err error) {
	if resolved {
		u.forget(c)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	c.withdrawing = false
	if !errors.Is(err, ErrLeaseLost) {
		// Move this claim behind the other claims that are due, because it may be the only one that
		// fails.
		u.pausedUntil, c.dueTime = now.Add(withdrawalPause), now
		return
	}
	c.dueTime = now.Add(c.pause)
	if now.Before(c.arrivesBy) {
		c.dueTime = earlier(c.dueTime, c.arrivesBy)
	}
	c.pause *= 2
}

// rememberClaim adds the attempt's claim to the list of unreleased claims, so that a later call
// releases the record. rec and err are the results of the attempt's own Store.Release. If they show
// that the claim is resolved (see resolvedBy), rememberClaim does nothing. The parameter cause, if
// not nil, becomes the record's last failure when a later call releases the record.
//
// If the record may be in progress although the handler did not start, rememberClaim also sends an
// EventNeverStarted.
func (a *attempt) rememberClaim(ctx context.Context, cause error, rec Record, err error) {
	c := a.newUnreleasedClaim(cause)
	if c.resolvedBy(rec, err, time.Now()) {
		return
	}
	late := errors.Is(err, ErrLeaseLost) // the claim does not hold the lease now, but may still reach the database
	if late {
		c.dueTime, c.pause = c.dueTime.Add(c.pause), 2*c.pause
	}
	dropped := a.g.unreleased.remember(c) // before the events, because Options.Observer may panic
	if !late && !c.started {
		a.report(ctx, EventNeverStarted, err)
	}
	if dropped != nil && !dropped.started {
		dropped.g.opts.Observer.Observe(ctx, Event{Kind: EventNeverStarted, RecordID: dropped.lease.ID, Scope: dropped.lease.Scope,
			Invocation: dropped.invocation, TokenHash: TokenHash(dropped.lease.Token), Err: errUnreleasedForgotten})
	}
}

// withdrawUnreleased withdraws claims of earlier calls of this process: it releases the records
// that these claims may have left in progress. It tries at most withdrawalsAtOnce of the claims
// that are due. It stops after withdrawalTime, or when a withdrawal fails. After a failure, later
// calls do nothing for withdrawalPause, so that an outage of the store does not delay every call.
func (a *attempt) withdrawUnreleased(ctx context.Context) {
	u := a.g.unreleased
	if u.count.Load() == 0 {
		return
	}
	start := time.Now()
	defer a.addStoreTime(start)
	within, cancel := context.WithDeadline(ctx, start.Add(min(withdrawalTime, max(a.left(), 0)/20)))
	defer cancel()
	for range withdrawalsAtOnce {
		c := u.next(time.Now())
		if c == nil {
			return
		}
		_, resolved, err := c.withdraw(within)
		u.withdrawalDone(c, resolved, err)
		if err != nil && !errors.Is(err, ErrLeaseLost) {
			return
		}
	}
}

// withdrawClaimOn withdraws the unreleased claim that holds the lease on rec, and returns the
// record as Store.Release returned it. If there is no such claim, or if the withdrawal fails,
// withdrawClaimOn returns rec.
func (a *attempt) withdrawClaimOn(ctx context.Context, rec Record) Record {
	c := a.g.unreleased.holding(rec)
	if c == nil {
		return rec
	}
	start := time.Now()
	defer a.addStoreTime(start)
	within, cancel := context.WithDeadline(ctx, start.Add(min(withdrawalTime, max(a.left(), 0)/20)))
	defer cancel()
	current, resolved, err := c.withdraw(within)
	if resolved {
		a.g.unreleased.forget(c)
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return rec
	}
	return current
}
