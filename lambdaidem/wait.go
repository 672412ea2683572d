package lambdaidem

import (
	"context"
	"time"
)

// firstPoll is the maximum of the first pause of a call that waits for another attempt. The call
// reads the record after each pause. The maximum of each further pause is 1.5 times that of the
// pause before it, but never more than longestPause.
//
// A pause is random, from half of its maximum up to its maximum, so that duplicates that arrive
// together do not read together. A call that waits for 200 ms reads the record at most 5 times.
const firstPoll = 40 * time.Millisecond

// wait polls the store until no other attempt holds the lease on the record. It returns the
// record and what the record means to this call: for example, the record now has an answer to
// replay, or the call may take the record over. If the lease is still held when Options.Wait has
// passed or ctx ends, wait returns rec and isBusy. ctx must end some time before the
// invocation's deadline, so that the guard can still send an answer.
func (a *attempt) wait(ctx context.Context, rec Record) (Record, meaning) {
	if a.g.opts.Wait == 0 {
		return rec, isBusy
	}
	ctx, cancel := a.waitContext(ctx)
	defer cancel()
	var unread error // the error of the last read that ctx did not cut short
	for pause := firstPoll; ; pause = min(pause+pause/2, longestPause) {
		if !a.pause(ctx, pause) {
			if unread != nil {
				a.report(ctx, EventStoreError, unread)
			}
			return rec, isBusy
		}
		asked := time.Now()
		now, err := a.g.store.Get(ctx, a.id, a.expiryJudgedAt())
		a.spent(asked)
		if ctx.Err() == nil {
			unread = err
		}
		if err != nil {
			continue // a failed read says nothing about the record, so read it again
		}
		now = a.withdrawClaimOn(ctx, now)
		if means := a.meaningOf(now); means != isBusy {
			return now, means
		}
	}
}
