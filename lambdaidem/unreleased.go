package lambdaidem

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// Limits of what a process does about claims that it left behind.
const (
	maxUnreleased     = 1000                   // claims remembered; the oldest makes room for a new one
	withdrawalsAtOnce = 4                      // withdrawals before one acquire
	withdrawalTime    = 200 * time.Millisecond // for all of them, and never more than a twentieth of the time left
	withdrawalPause   = time.Second            // after a withdrawal that failed, and the first pause after one that found nothing
)

var errUnreleasedForgotten = errors.New("this process has left too many claims behind to withdraw this one; its record may be held although no handler started: see docs/operate.md, \"An outage under Hold\"")

// unreleased remembers the claims of this process that may hold their records although no
// handler started, or although the handler had no effect: the release got no reply, or the
// claim may still arrive. Attempts release such records before they acquire their own, and
// when they meet one. A guard shares the list with the guards that With derives from it.
// Two guards made by New have two lists, even on one store.
type unreleased struct {
	count atomic.Int64 // len(claims), to be read without the lock

	mu       sync.Mutex
	claims   []*unreleasedClaim // oldest first
	resuming time.Time          // no withdrawals before acquires until then
}

// unreleasedClaim is one of these claims. The mutex of the list guards due, pause and
// withdrawn. The other fields don't change.
type unreleasedClaim struct {
	g          *Guard
	lease      Lease
	started    bool          // the handler was started, and had no effect
	invocation string        // that made the claim
	over       string        // token of the record that it would take over; empty: it would begin one
	arrivesBy  time.Time     // when the claim can no longer arrive
	due        time.Time     // of the next withdrawal
	pause      time.Duration // until the withdrawal after that
	withdrawn  bool          // being withdrawn by an attempt that is about to acquire
}

// newUnreleasedClaim describes the attempt's last claim. No further request is sent for the
// claim, and a signature is valid for MinTTL at most. why is the error to store as the
// record's last failure.
func (a *attempt) newUnreleasedClaim(why error) *unreleasedClaim {
	now := time.Now()
	lease := a.lease()
	lease.LastFailure = failureCode(why)
	return &unreleasedClaim{g: a.g, lease: lease, started: a.started, invocation: a.invocation, over: a.replaced().Token,
		arrivesBy: now.Add(MinTTL), due: now, pause: withdrawalPause}
}

// withdraw releases the record if the claim holds it. It reports whether the claim
// is settled: it neither holds the record nor can take it any more.
func (c *unreleasedClaim) withdraw(ctx context.Context) (rec Record, settled bool, err error) {
	asked, now := time.Now(), c.g.opts.Clock()
	lease := c.lease
	lease.Expires = ceil(now.Add(c.g.opts.TTL), time.Second)
	rec, err = c.g.store.Release(ctx, lease, now)
	return rec, c.settledBy(rec, err, asked), err
}

// settledBy reports whether the reply to a withdrawal that was sent at asked settles
// the claim. A released record refuses it, and so does one with another token than
// the claim expects. If there is no such record, the claim may still arrive.
func (c *unreleasedClaim) settledBy(rec Record, err error, asked time.Time) bool {
	switch {
	case err == nil:
		return true
	case !errors.Is(err, ErrLeaseLost):
		return false
	case rec.State == Completed, rec.State != Absent && rec.Token != c.over:
		return true
	}
	return !asked.Before(c.arrivesBy)
}

// remember adds a claim. It returns the one that had to make room; nil: none.
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

// holding returns the claim that holds the record; nil: no claim of this list does.
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

// next returns the claim whose withdrawal has been due the longest, or nil if none is due.
func (u *unreleased) next(now time.Time) *unreleasedClaim {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.resuming) {
		return nil
	}
	var first *unreleasedClaim
	for _, c := range u.claims {
		if !c.withdrawn && !now.Before(c.due) && (first == nil || c.due.Before(first.due)) {
			first = c
		}
	}
	if first != nil {
		first.withdrawn = true
	}
	return first
}

// tried takes note of a withdrawal that next asked for.
func (u *unreleased) tried(c *unreleasedClaim, settled bool, err error) {
	if settled {
		u.forget(c)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	c.withdrawn = false
	if !errors.Is(err, ErrLeaseLost) {
		// The others come first now: this claim may fail for a reason of its own.
		u.resuming, c.due = now.Add(withdrawalPause), now
		return
	}
	c.due = now.Add(c.pause)
	if now.Before(c.arrivesBy) {
		c.due = earlier(c.due, c.arrivesBy)
	}
	c.pause *= 2
}

// leaveBehind remembers the attempt's claim, unless the claim is settled. rec and err are
// the result of its release, why is the error that was to be stored with the release.
func (a *attempt) leaveBehind(ctx context.Context, why error, rec Record, err error) {
	c := a.newUnreleasedClaim(why)
	if c.settledBy(rec, err, time.Now()) {
		return
	}
	if errors.Is(err, ErrLeaseLost) { // it holds nothing, but may still arrive
		c.due, c.pause = c.due.Add(c.pause), 2*c.pause
	} else if !c.started {
		a.note(ctx, EventNeverStarted, err)
	}
	if dropped := a.g.unreleased.remember(c); dropped != nil && !dropped.started {
		dropped.g.opts.Observer.Observe(ctx, Event{Kind: EventNeverStarted, RecordID: dropped.lease.ID, Scope: dropped.lease.Scope,
			Invocation: dropped.invocation, TokenHash: TokenHash(dropped.lease.Token), Err: errUnreleasedForgotten})
	}
}

// withdrawUnreleased withdraws claims that earlier calls left behind: a few, in a
// short time, until one fails. A process that can't reach its store loses that
// time once a second at most.
func (a *attempt) withdrawUnreleased(ctx context.Context) {
	u := a.g.unreleased
	if u.count.Load() == 0 {
		return
	}
	asked := time.Now()
	defer a.spent(asked)
	within := deadline.With(ctx, asked.Add(min(withdrawalTime, max(a.left(), 0)/20)))
	defer within.Cancel()
	for range withdrawalsAtOnce {
		c := u.next(time.Now())
		if c == nil {
			return
		}
		_, settled, err := c.withdraw(within)
		u.tried(c, settled, err)
		if err != nil && !errors.Is(err, ErrLeaseLost) {
			return
		}
	}
}

// freed returns the record as it is after the release of the claim that holds it, if the
// claim is in the process's list. Otherwise, or if the claim can't be released now, freed
// returns rec.
func (a *attempt) freed(ctx context.Context, rec Record) Record {
	c := a.g.unreleased.holding(rec)
	if c == nil {
		return rec
	}
	asked := time.Now()
	defer a.spent(asked)
	within := deadline.With(ctx, asked.Add(min(withdrawalTime, max(a.left(), 0)/20)))
	defer within.Cancel()
	now, settled, err := c.withdraw(within)
	if settled {
		a.g.unreleased.forget(c)
	}
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		return rec
	}
	return now
}
