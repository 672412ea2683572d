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
	opts        *Options
	start       time.Time     // when the attempt began
	outerBudget *budget       // budget of the attempt whose handler made this call; nil if there is none
	deadline    time.Time     // the invocation's deadline; zero if there is none
	attemptEnd  time.Time     // when the attempt must end: at the deadline or, without one, LeaseDuration after the claim; earlier if the lease or lastTx is earlier
	reserve     time.Duration // Options.Reserve, or half of the time left if Reserve exceeds nine tenths of it
	answerTime  time.Duration // time before attemptEnd that the handler must not use, so that the answer can be stored and sent
	leaseEnd    time.Time     // end of the lease, by Options.Clock: as the claim requests it or, once the record is acquired, as the record has it
	lastTx      time.Time     // when an attempt without a lease must stop sending its transaction; zero if the attempt has a lease
	giveUp      time.Time     // when to stop waiting for another attempt to end; zero before the first wait
}

// newBudget returns the budget of an attempt for a call with the given context. outer is
// the attempt whose handler makes the call, or nil. If outer has a deadline, the call must
// end before the outer handler does, even if that handler has removed the deadline from the
// context by context.WithoutCancel.
func newBudget(ctx context.Context, outer *attempt, o *Options) budget {
	b := budget{opts: o, start: time.Now()}
	b.deadline, _ = ctx.Deadline()
	if outer != nil {
		b.outerBudget = &outer.budget
		if !outer.deadline.IsZero() && (b.deadline.IsZero() || outer.handlerEnd().Before(b.deadline)) {
			b.deadline = outer.handlerEnd()
		}
	}
	b.attemptEnd = b.deadline
	if b.deadline.IsZero() {
		b.attemptEnd = time.Now().Add(o.LeaseDuration)
	}
	b.reserve = o.reserveOf(time.Until(b.attemptEnd))
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

// beginLease sets attemptEnd and leaseEnd for a lease that is claimed now. The parameter now is the
// current time by Options.Clock. The lease lasts Options.MaxSkew longer than the attempt may run,
// so that a machine whose clock is ahead does not take over the record while the attempt is
// running.
func (b *budget) beginLease(now time.Time) {
	left := max(b.left(), 0)
	b.attemptEnd = time.Now().Add(left)
	b.leaseEnd = ceil(now.Add(left).Add(b.opts.MaxSkew), leaseUnit)
}

// holdTo sets leaseEnd to the end of the lease in the record. If the attempt expected a later end,
// holdTo also shortens the attempt, which must end before its lease. The lease ends earlier than
// expected if the store applied an earlier claim of this attempt and the reply was lost.
func (b *budget) holdTo(leaseEnd time.Time) {
	b.leaseEnd = leaseEnd
	b.attemptEnd = earlier(b.attemptEnd, time.Now().Add(leaseEnd.Sub(b.opts.Clock())-b.opts.MaxSkew))
}

// endsWithoutLease limits the time of an attempt whose handler is about to run without a lease. The
// attempt must end within longestWithoutLease, because it must not send its transaction later.
func (b *budget) endsWithoutLease() {
	b.lastTx = b.start.Add(longestWithoutLease)
	if b.lastTx.Before(b.attemptEnd) {
		b.attemptEnd = b.lastTx
		b.reserve = b.opts.reserveOf(max(time.Until(b.attemptEnd), 0))
	}
}

// maySendTx reports whether an attempt without a lease may still send its transaction: whether it
// began less than longestWithoutLease ago. Time during which the process was frozen is included.
func (b *budget) maySendTx() bool {
	age, _ := elapsed.Since(b.start)
	return age < longestWithoutLease
}

// longestWithoutLease is the maximum time from the start of an attempt without a lease until it
// sends its transaction. The transaction must fail if another attempt has written the record, even
// if the record has expired since this attempt began. So the transaction must arrive before the
// store deletes the expired record; see KeptAfterExpiry.
const longestWithoutLease = 30 * time.Minute

// setAnswerTime sets the time for storing and sending the answer to b.reserve if Options.Reserve is
// set. Otherwise it sets that time to a tenth of the time until the attempt must end, but at most
// 500 ms.
func (b *budget) setAnswerTime() {
	b.answerTime = b.reserve
	if b.opts.Reserve == 0 {
		b.answerTime = min(500*time.Millisecond, max(time.Until(b.attemptEnd), 0)/10)
	}
}

// reserveOf returns the time to reserve for storing and sending the answer: Options.Reserve, but
// half of timeLeft if Reserve exceeds nine tenths of timeLeft. Without this exception, a function
// whose timeout is not longer than Reserve would never run its handler. timeLeft is the time until
// the attempt must end.
func (o Options) reserveOf(timeLeft time.Duration) time.Duration {
	if o.Reserve > timeLeft-timeLeft/10 {
		return timeLeft / 2
	}
	return o.Reserve
}

// sendTime returns how much of answerTime is for sending the answer: half, but at most 200 ms. The
// rest is for storing the answer.
//
// Under the CPU quota of 128 MB on Lambda, sending an answer of 1 MB took up to 189 ms. With half
// of answerTime for sending, 3 of 100 such answers missed the deadline. With a tenth of answerTime,
// up to 44 of 100 did.
func (b *budget) sendTime() time.Duration { return min(b.answerTime/2, 200*time.Millisecond) }

// acquireEnd returns the deadline for everything that happens before the handler runs, or the zero
// time if the invocation has no deadline. The attempt needs the time after acquireEnd to answer,
// and to release the lease if a claim was applied but its reply was lost.
func (b *budget) acquireEnd() time.Time {
	if b.deadline.IsZero() {
		return time.Time{}
	}
	return b.deadline.Add(-b.answerTime)
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
func (b *budget) handlerEnd() time.Time { return b.attemptEnd.Add(-b.answerTime) }

// finishEnd returns the time by which the answer should be stored. The time after it is for
// sending the answer.
func (b *budget) finishEnd() time.Time { return b.attemptEnd.Add(-b.sendTime()) }

// cleanupEnd returns the deadline for a cleanup that begins now, such as releasing a record:
// Options.CleanupTimeout from now. In an inner call, the cleanup may use at most half of the time
// until the outer call's finishEnd. The outer call must store its own answer by then.
func (b *budget) cleanupEnd() time.Time {
	now := time.Now()
	end := now.Add(b.opts.CleanupTimeout)
	// The limit comes from the nearest outer call whose finishEnd is still in the future.
	for outer := b.outerBudget; outer != nil; outer = outer.outerBudget {
		if left := outer.finishEnd().Sub(now); left > 0 {
			return earlier(end, now.Add(left/2))
		}
	}
	return end
}

// finishContext returns the context for storing the answer, which ignores cancellation of the
// request's context. The context ends at finishEnd or, if finishEnd has passed, at cleanupEnd. The
// context never lasts longer than longestFinish.
func (b *budget) finishContext(ctx context.Context) (context.Context, context.CancelFunc) {
	end := b.finishEnd()
	if time.Until(end) <= 0 {
		end = b.cleanupEnd()
	}
	// After lastTx, an attempt without a lease sends no transaction, but may still read the record.
	if time.Until(b.lastTx) > 0 {
		end = earlier(end, b.lastTx)
	}
	return withDeadline(context.WithoutCancel(ctx), earlier(end, time.Now().Add(longestFinish)))
}

// longestFinish is the maximum time for storing an answer. An answer expires when Options.TTL has
// passed since its handler returned, however late it is stored. Without longestFinish, an attempt
// on Lambda Managed Instances might go on for 90 minutes, and store an answer that has expired
// already.
const longestFinish = 15 * time.Minute

// cleanupContext returns the context for releasing a record, for the transaction of an unguarded
// call, or for storing an answer after a run with FailOpen. The context ignores cancellation of the
// request's context. It ends at finishEnd, to leave time for sending the answer, but no later than
// cleanupEnd. If finishEnd has passed, the context ends at cleanupEnd, so that there is some time
// for the cleanup.
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
