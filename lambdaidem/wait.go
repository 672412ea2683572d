package lambdaidem

import (
	"context"
	"time"
)

// firstPoll is the maximum of the first pause of a call that waits for another attempt. The maximum
// grows by half with each further pause, up to longestPause. Each pause is random, from half of its
// maximum up to its maximum, so that duplicates that arrive together do not read together.
const firstPoll = 40 * time.Millisecond

// wait polls the store until no other attempt holds the lease on the record. It returns the record
// and what the record means to this call. If the duration Options.Wait elapses or ctx ends first,
// wait returns rec unchanged, and isBusy. The caller passes a ctx that ends some time before the
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
		start := time.Now()
		current, err := a.g.store.Get(ctx, a.id, a.expiryJudgedAt())
		a.addStoreTime(start)
		if ctx.Err() == nil {
			unread = err
		}
		if err != nil {
			continue // a failed read says nothing about the record, so read it again
		}
		current = a.withdrawClaimOn(ctx, current)
		if recMeaning := a.meaningOf(current); recMeaning != isBusy {
			return current, recMeaning
		}
	}
}
