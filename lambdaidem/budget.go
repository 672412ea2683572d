package lambdaidem

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// Pauses between tries of one store call; each is jittered by half.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
	// conflictPatience is how long a claim is repeated while a transaction
	// holds the item (X9).
	conflictPatience = 200 * time.Millisecond
	leaseUnit        = time.Millisecond
)

// budget is the time of one attempt: until when it may run, and how much of
// that is kept back for the completion and for the answer (L5). Times are by
// this machine's monotonic clock, but for leaseEnd.
type budget struct {
	opts     *Options
	deadline time.Time     // the invocation's own; zero without one
	over     time.Time     // when the attempt must be over: the deadline, or the claim and LeaseDuration
	reserved time.Duration // of the time until over
	leaseEnd time.Time     // of the last claim, by Options.Clock
	giveUp   time.Time     // when waiting ends; zero before it began
}

func newBudget(ctx context.Context, o *Options) budget {
	b := budget{opts: o}
	b.deadline, _ = ctx.Deadline()
	b.over = b.deadline
	if b.deadline.IsZero() {
		b.over = time.Now().Add(o.LeaseDuration)
	}
	return b
}

// left is the time until the attempt must be over. It is measured by the
// monotonic clock where the deadline allows it, never by Options.Clock, which
// may jump.
func (b *budget) left() time.Duration {
	if b.deadline.IsZero() {
		return b.opts.LeaseDuration // its time begins with the claim
	}
	return time.Until(b.deadline)
}

// beginLease settles when a lease that is claimed at now ends: it outlives the
// attempt by as much as clocks may differ (L5).
func (b *budget) beginLease(now time.Time) {
	left := max(b.left(), 0)
	b.over = time.Now().Add(left)
	b.leaseEnd = ceil(now.Add(left).Add(b.opts.MaxSkew), leaseUnit)
}

// holdTo takes the lease's end as it stands in the record. Where an earlier
// claim of ours turned out to have landed, its lease counts, which may end
// before that of the last claim (L5).
func (b *budget) holdTo(leaseEnd time.Time) {
	b.leaseEnd = leaseEnd
	b.over = earlier(b.over, time.Now().Add(leaseEnd.Sub(b.opts.Clock())-b.opts.MaxSkew))
}

// keepBack settles how much of the time left is kept back for the completion
// and the answer (L5).
func (b *budget) keepBack() {
	b.reserved = b.opts.Reserve
	if b.reserved == 0 {
		b.reserved = min(500*time.Millisecond, max(time.Until(b.over), 0)/10)
	}
}

// answerMargin is the part of the reserve that is kept for sending the answer:
// half of it, at most 200 ms. Measured under a CPU quota: a process with a
// fourteenth of a core (128 MB on Lambda) that had just used its share up stands
// still for most of its period, and needed up to 95 ms for a small answer, 146 ms
// with a garbage collection, 189 ms for one of 1 MB. With a tenth, 50 ms at most,
// up to 44 of 100 of its answers came after the deadline; with half, none of the
// small ones, and 3 of 100 of 1 MB under a timeout of 3 s. A completion itself
// took 0.4 ms, 96 ms at worst.
func (b *budget) answerMargin() time.Duration { return min(b.reserved/2, 200*time.Millisecond) }

// acquireEnd is when everything before the handler ends: it leaves time to give
// back what an unanswered claim may have taken, and to answer (X5). Zero: never.
func (b *budget) acquireEnd() time.Time {
	if b.deadline.IsZero() {
		return time.Time{}
	}
	return b.deadline.Add(-b.reserved)
}

// waitContext ends when Options.Wait is over, counted from the first wait of
// this attempt (L8).
func (b *budget) waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.giveUp.IsZero() {
		b.giveUp = time.Now().Add(b.opts.Wait)
	}
	return context.WithDeadline(ctx, b.giveUp)
}

// handlerEnd is a reserve before the attempt must be over (L5).
func (b *budget) handlerEnd() time.Time { return b.over.Add(-b.reserved) }

// finishContext is for a completion: it lives on when the request's context
// ends (X3), until just before the attempt must be over; if that is past, for a
// short limit of its own.
func (b *budget) finishContext(ctx context.Context) *deadline.Context {
	end := b.over.Add(-b.answerMargin())
	if time.Until(end) <= 0 {
		end = time.Now().Add(b.opts.CleanupTimeout)
	}
	return deadline.With(context.WithoutCancel(ctx), end)
}

// cleanupContext returns the context of a release, or of the transaction of an
// unguarded run: like finishContext, but never longer than Options.CleanupTimeout.
func (b *budget) cleanupContext(ctx context.Context) *deadline.Context {
	end := time.Now().Add(b.opts.CleanupTimeout)
	if due := b.over.Add(-b.answerMargin()); time.Until(due) > 0 {
		end = earlier(end, due)
	}
	return deadline.With(context.WithoutCancel(ctx), end)
}

// pause sleeps for about d, and tells whether ctx is still alive then. Nothing
// of it outlives the call (X7).
func (b *budget) pause(ctx context.Context, d time.Duration) bool {
	var random [4]byte
	if _, err := io.ReadFull(b.opts.Random, random[:]); err != nil {
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
