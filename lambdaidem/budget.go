package lambdaidem

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

const (
	firstPause   = 20 * time.Millisecond // between the first two tries of a store call
	longestPause = time.Second           // between later tries
	// conflictPatience is how long a claim is retried while a transaction of another
	// attempt is writing the item.
	conflictPatience = 200 * time.Millisecond
	leaseUnit        = time.Millisecond // the precision of a lease's end in a record
)

// budget divides the time of one attempt between the handler, storing the answer, and
// sending it. All times except leaseEnd are by this machine's monotonic clock.
type budget struct {
	opts     *Options
	around   *budget       // the budget of the attempt whose handler made this call; nil if there is none
	deadline time.Time     // the invocation's deadline; zero if there is none
	over     time.Time     // when the attempt must end: at the deadline, or else LeaseDuration after the claim
	reserve  time.Duration // Options.Reserve, or less if the attempt began with hardly more time; see reserveOf
	reserved time.Duration // the part of the time before over that the handler must not use
	leaseEnd time.Time     // the lease's end in the last claim, by Options.Clock
	giveUp   time.Time     // when waiting for another attempt ends; zero before the first wait
}

// newBudget returns the budget of an attempt with that context. outer is the attempt whose
// handler makes the call, or nil. The deadline is not later than when the outer handler must
// end, also if the context was detached by context.WithoutCancel.
func newBudget(ctx context.Context, outer *attempt, o *Options) budget {
	b := budget{opts: o}
	b.deadline, _ = ctx.Deadline()
	if outer != nil {
		b.around = &outer.budget
		if !outer.deadline.IsZero() && (b.deadline.IsZero() || outer.handlerEnd().Before(b.deadline)) {
			b.deadline = outer.handlerEnd()
		}
	}
	b.over = b.deadline
	if b.deadline.IsZero() {
		b.over = time.Now().Add(o.LeaseDuration)
	}
	b.reserve = o.reserveOf(time.Until(b.over))
	return b
}

// left returns the time until the attempt must end. It does not use Options.Clock,
// which may jump, but the deadline's monotonic clock reading if it has one.
func (b *budget) left() time.Duration {
	if b.deadline.IsZero() {
		return b.opts.LeaseDuration // counted from the claim, which is about to be sent
	}
	return time.Until(b.deadline)
}

// beginLease sets the end of a lease that is claimed at now. The lease lasts
// Options.MaxSkew longer than the attempt, so that a machine whose clock is ahead does
// not take the lease while the attempt is running.
func (b *budget) beginLease(now time.Time) {
	left := max(b.left(), 0)
	b.over = time.Now().Add(left)
	b.leaseEnd = ceil(now.Add(left).Add(b.opts.MaxSkew), leaseUnit)
}

// holdTo sets the end of the lease to that in the record. The record may have the lease
// of an earlier claim of this attempt whose reply was lost, which ends before that of
// the last claim.
func (b *budget) holdTo(leaseEnd time.Time) {
	b.leaseEnd = leaseEnd
	b.over = earlier(b.over, time.Now().Add(leaseEnd.Sub(b.opts.Clock())-b.opts.MaxSkew))
}

// keepBack sets the time that is reserved for storing and sending the answer, from the
// time that is left now.
func (b *budget) keepBack() {
	b.reserved = b.reserve
	if b.opts.Reserve == 0 {
		b.reserved = min(500*time.Millisecond, max(time.Until(b.over), 0)/10)
	}
}

// reserveOf returns the part of the time left that Reserve keeps from the handler. If that
// is more than nine tenths, it is half instead, so that a function whose timeout is not
// above Reserve still runs.
func (o Options) reserveOf(left time.Duration) time.Duration {
	if o.Reserve > left-left/10 {
		return left / 2
	}
	return o.Reserve
}

// answerMargin returns the part of the reserved time that is left for sending the
// answer: half of it, but at most 200 ms.
//
// The numbers come from measurements under a CPU quota of a fourteenth of a core, as
// for 128 MB on Lambda. The kernel suspends such a process for most of each scheduling
// period. It took up to 95 ms to send a small answer, 146 ms with a garbage collection,
// and 189 ms for an answer of 1 MB. With a margin of a tenth, at most 50 ms, up to 44
// of 100 answers were sent after the deadline. With half, no small answer was late, and
// 3 of 100 answers of 1 MB were late under a timeout of 3 s. Storing an answer took
// 0.4 ms, and 96 ms in the worst case.
func (b *budget) answerMargin() time.Duration { return min(b.reserved/2, 200*time.Millisecond) }

// acquireEnd returns the deadline for everything before the handler, or the zero time if
// there is none. It leaves time to release what a claim without a reply may have taken,
// and to answer.
func (b *budget) acquireEnd() time.Time {
	if b.deadline.IsZero() {
		return time.Time{}
	}
	return b.deadline.Add(-b.reserved)
}

// waitContext returns a context that ends Options.Wait after the first wait of this
// attempt began.
func (b *budget) waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.giveUp.IsZero() {
		b.giveUp = time.Now().Add(b.opts.Wait)
	}
	return context.WithDeadline(ctx, b.giveUp)
}

// handlerEnd returns the deadline of the handler's context.
func (b *budget) handlerEnd() time.Time { return b.over.Add(-b.reserved) }

// finishEnd returns the time by which the answer should be stored, so that time is left
// to send it.
func (b *budget) finishEnd() time.Time { return b.over.Add(-b.answerMargin()) }

// cleanupEnd returns when cleaning up that begins now must end: Options.CleanupTimeout from
// now. If the call was made inside the handler of another call, that call must still store
// its own answer, so cleaning up takes at most half of the time until its finishEnd. If
// that time has passed too, the call around it counts instead, and so on.
func (b *budget) cleanupEnd() time.Time {
	now := time.Now()
	end := now.Add(b.opts.CleanupTimeout)
	for outer := b.around; outer != nil; outer = outer.around {
		if left := outer.finishEnd().Sub(now); left > 0 {
			return earlier(end, now.Add(left/2))
		}
	}
	return end
}

// finishContext returns the context for storing the answer. It does not end with the
// request's context, but shortly before the attempt must end, or, if that time has
// passed, at cleanupEnd.
func (b *budget) finishContext(ctx context.Context) *deadline.Context {
	end := b.finishEnd()
	if time.Until(end) <= 0 {
		end = b.cleanupEnd()
	}
	return deadline.With(context.WithoutCancel(ctx), end)
}

// cleanupContext returns the context of a release, or of the transaction of an
// unguarded run: like finishContext, but it never ends after cleanupEnd.
func (b *budget) cleanupContext(ctx context.Context) *deadline.Context {
	end := b.cleanupEnd()
	if due := b.finishEnd(); time.Until(due) > 0 {
		end = earlier(end, due)
	}
	return deadline.With(context.WithoutCancel(ctx), end)
}

// pause sleeps for d/2 to d, chosen at random, or until ctx ends. It reports whether
// ctx has not ended.
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
