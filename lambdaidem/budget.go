package lambdaidem

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/internal/elapsed"
)

// leaseUnit is the precision of the end of a lease in a record.
const leaseUnit = time.Millisecond

// budget divides the time of one attempt into the time for the handler, for storing the answer, and
// for sending it. leaseEnd is measured by Options.Clock, like all times in a record. All other
// times are measured by time.Now, because Options.Clock may differ from the clock that Lambda uses
// to end the invocation.
type budget struct {
	opts     *Options
	start    time.Time     // when the attempt began
	around   *budget       // budget of the attempt whose handler made this call; nil if there is none
	deadline time.Time     // the invocation's deadline; zero if there is none
	over     time.Time     // when the attempt must end: at the deadline or, without one, LeaseDuration after the claim; earlier if the lease or lastTx is earlier
	reserve  time.Duration // Options.Reserve, or half of the time left if Reserve exceeds nine tenths of it
	reserved time.Duration // time before over that the handler must not use, so that the answer can be stored and sent
	leaseEnd time.Time     // end of the lease, by Options.Clock: as the claim requests it or, once the record is acquired, as the record has it
	lastTx   time.Time     // when an attempt without a lease must stop sending its transaction; zero if the attempt has a lease
	giveUp   time.Time     // when to stop waiting for another attempt to end; zero before the first wait
}

// newBudget returns the budget of an attempt for a call with the given context. outer is
// the attempt whose handler makes the call, or nil. If outer has a deadline, the call must
// end before the outer handler does, even if that handler has removed the deadline from the
// context by context.WithoutCancel.
func newBudget(ctx context.Context, outer *attempt, o *Options) budget {
	b := budget{opts: o, start: time.Now()}
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

// left returns the time until the attempt must end. It compares the deadline with time.Now, because
// Options.Clock may differ from the clock that Lambda uses to end the invocation.
func (b *budget) left() time.Duration {
	if b.deadline.IsZero() {
		return b.opts.LeaseDuration // counted from the claim, which is sent next
	}
	return time.Until(b.deadline)
}

// beginLease sets leaseEnd for a lease that is claimed at now. The lease lasts
// Options.MaxSkew longer than the attempt may run, so that a machine whose clock is ahead
// does not take over the record while the attempt is running.
func (b *budget) beginLease(now time.Time) {
	left := max(b.left(), 0)
	b.over = time.Now().Add(left)
	b.leaseEnd = ceil(now.Add(left).Add(b.opts.MaxSkew), leaseUnit)
}

// holdTo sets leaseEnd to the end of the lease in the record. If that lease ends earlier
// than the attempt expected, holdTo also shortens the attempt, so that the attempt ends
// before its lease. A lease ends earlier than expected if the attempt sent several claims
// and the store applied an earlier one, whose reply was lost.
func (b *budget) holdTo(leaseEnd time.Time) {
	b.leaseEnd = leaseEnd
	b.over = earlier(b.over, time.Now().Add(leaseEnd.Sub(b.opts.Clock())-b.opts.MaxSkew))
}

// endsWithoutLease limits the time of an attempt whose handler is about to run without a lease. The
// attempt then ends within longestWithoutLease, in time for its transaction.
func (b *budget) endsWithoutLease() {
	b.lastTx = b.start.Add(longestWithoutLease)
	if b.lastTx.Before(b.over) {
		b.over = b.lastTx
		b.reserve = b.opts.reserveOf(max(time.Until(b.over), 0))
	}
}

// maySendTx reports whether an attempt without a lease may still send its transaction. The time for
// which the process was frozen counts too.
func (b *budget) maySendTx() bool {
	age, _ := elapsed.Since(b.start)
	return age < longestWithoutLease
}

// longestWithoutLease is how long after its beginning an attempt without a lease may send its
// transaction: 30 minutes. The record of another attempt makes that transaction fail, unless the
// record expired before this attempt began. The transaction must arrive while the store still has
// that record; see KeptAfterExpiry.
//
// On Lambda, only invocations on Managed Instances last longer than 30 minutes.
const longestWithoutLease = 30 * time.Minute

// setReserved sets reserved, the time for storing and sending the answer. If Options.Reserve is
// set, reserved is the result of reserveOf, which the field reserve has. Otherwise it is a tenth of
// the time until the attempt must end, but at most 500 ms.
func (b *budget) setReserved() {
	b.reserved = b.reserve
	if b.opts.Reserve == 0 {
		b.reserved = min(500*time.Millisecond, max(time.Until(b.over), 0)/10)
	}
}

// reserveOf returns the time to reserve for storing and sending the answer. timeLeft is the time
// until the attempt must end. The result is Options.Reserve, or half of timeLeft if Options.Reserve
// exceeds nine tenths of timeLeft. Without this exception, a function whose timeout is not longer
// than Reserve would never run its handler. If Options.Reserve is 0, reserveOf returns 0, and
// setReserved sets the default.
func (o Options) reserveOf(timeLeft time.Duration) time.Duration {
	if o.Reserve > timeLeft-timeLeft/10 {
		return timeLeft / 2
	}
	return o.Reserve
}

// answerMargin returns the part of the reserved time that is left for sending the answer:
// half of the reserved time, but at most 200 ms. The rest is for storing the answer.
//
// The numbers come from measurements under a CPU quota of a fourteenth of a core, as for
// 128 MB on Lambda. The kernel suspends such a process for most of each scheduling period.
// Storing an answer took 0.4 ms, and 96 ms in the worst case. Sending a small answer took
// up to 95 ms, or 146 ms with a garbage collection, and sending an answer of 1 MB took up
// to 189 ms.
//
// With a margin of half of the reserved time, every small answer was sent before the
// deadline. Of 100 answers of 1 MB, 3 were sent after the deadline, under a timeout of three
// seconds. With a margin of a tenth of the reserved time, at most 50 ms, up to 44 of 100
// answers were sent after the deadline.
func (b *budget) answerMargin() time.Duration { return min(b.reserved/2, 200*time.Millisecond) }

// acquireEnd returns the deadline for everything that happens before the handler runs, or the zero
// time if the invocation has no deadline. The attempt needs the time after acquireEnd to answer,
// and to release the lease if a claim was applied but its reply was lost.
func (b *budget) acquireEnd() time.Time {
	if b.deadline.IsZero() {
		return time.Time{}
	}
	return b.deadline.Add(-b.reserved)
}

// waitContext returns a context for waiting until another attempt ends. The context ends
// when Options.Wait has passed since the first call of waitContext, so an attempt that
// waits several times does not wait longer.
func (b *budget) waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.giveUp.IsZero() {
		b.giveUp = time.Now().Add(b.opts.Wait)
	}
	return context.WithDeadline(ctx, b.giveUp)
}

// handlerEnd returns the deadline of the handler's context.
func (b *budget) handlerEnd() time.Time { return b.over.Add(-b.reserved) }

// finishEnd returns the time by which the answer should be stored. The time after it is for
// sending the answer.
func (b *budget) finishEnd() time.Time { return b.over.Add(-b.answerMargin()) }

// cleanupEnd returns the deadline for a cleanup that begins now, such as releasing a record:
// Options.CleanupTimeout from now.
//
// If the handler of an outer guarded call made this call, the cleanup may use at most half of the
// time until the outer call's finishEnd. The other half is for the outer call, which must store its
// own answer by then. If several outer calls are around this call, the innermost one whose
// finishEnd has not passed counts.
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

// finishContext returns the context for storing the answer. The context ignores cancellation of the
// request's context. It ends at finishEnd, so that time is left for sending the answer. If
// finishEnd has passed, it ends at cleanupEnd instead. The context never lasts longer than
// longestFinish. If the attempt has no lease, the context ends at lastTx at the latest, unless
// lastTx has passed. The attempt then sends no transaction, but may still read the record.
func (b *budget) finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := b.finishEnd()
	if time.Until(end) <= 0 {
		end = b.cleanupEnd()
	}
	if time.Until(b.lastTx) > 0 {
		end = earlier(end, b.lastTx)
	}
	return withDeadline(context.WithoutCancel(ctx), earlier(end, time.Now().Add(longestFinish)))
}

// longestFinish is the maximum time for storing an answer. The answer expires Options.TTL after its
// handler returned, however late it is stored. Without longestFinish, an attempt on Lambda Managed
// Instances might go on for 90 minutes, and store an answer that has expired already.
const longestFinish = 15 * time.Minute

// cleanupContext returns the context for releasing a record, or for the transaction of a
// call that runs unguarded. The context ignores cancellation of the request's context. It
// ends at cleanupEnd, or at finishEnd if that is earlier, so that time is left for sending
// the answer. If finishEnd has passed, the context ends at cleanupEnd.
func (b *budget) cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := b.cleanupEnd()
	if due := b.finishEnd(); time.Until(due) > 0 {
		end = earlier(end, due)
	}
	return withDeadline(context.WithoutCancel(ctx), end)
}

// withDeadline is [context.WithDeadline], except that a zero end sets no deadline.
func withDeadline(parent context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if end.IsZero() {
		return context.WithCancel(parent)
	}
	return context.WithDeadline(parent, end)
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
