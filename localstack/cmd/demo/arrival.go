package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/localstack/mailer"
)

// arrived waits until the payments have a receipt and a mail each, every queue is
// empty, and no attempt is in progress: what could still happen has happened.
func (d *demo) arrived(ctx context.Context, payments ...string) error {
	return d.await(ctx, func(ctx context.Context) (string, error) {
		missing, err := d.missing(ctx, payments)
		if missing == "" && err == nil {
			missing, err = d.underWay(ctx)
		}
		return missing, err
	})
}

// await waits until nothing is missing any more; what is after a while is a wrong
// answer.
func (d *demo) await(ctx context.Context, missing func(context.Context) (string, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(outboxTime)
	defer late.Stop()
	for {
		what, err := missing(ctx)
		if err != nil || what == "" {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			d.out.check(false, "everything has arrived", what)
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting: %s: %w", what, ctx.Err())
		}
	}
}

// missing names a receipt or a mail that the payments do not have yet; empty: they
// have all.
func (d *demo) missing(ctx context.Context, payments []string) (string, error) {
	receipts, err := d.receiptsOf(ctx)
	if err != nil {
		return "", err
	}
	mails := d.mailsOf()
	for _, p := range payments {
		if receipts[p] == 0 {
			return "no receipt of payment " + p, nil
		}
		if len(mails[p]) == 0 {
			return "no mail about payment " + p, nil
		}
	}
	return "", nil
}

// underWay names something that goes on still; empty: nothing does.
func (d *demo) underWay(ctx context.Context) (string, error) {
	for _, name := range d.outbox.queues {
		waiting, hidden, err := d.outbox.depth(ctx, name)
		if err != nil {
			return "", err
		}
		if waiting+hidden > 0 {
			return fmt.Sprintf("the queue %s is not empty: %d messages wait, %d are in flight", name, waiting, hidden), nil
		}
	}
	records, err := d.tables.allRecords(ctx)
	for _, r := range records {
		if r.Status == "INPROGRESS" && r.behindQueues() {
			return "an attempt is under way: " + r.Scope, nil
		}
	}
	return "", err
}

// receiptsOf counts the receipts of each payment.
func (d *demo) receiptsOf(ctx context.Context) (map[string]int, error) {
	all, err := d.tables.allReceipts(ctx)
	count := map[string]int{}
	for _, r := range all {
		count[r.PaymentID]++
	}
	return count, err
}

// mailsOf finds the mails about each payment.
func (d *demo) mailsOf() map[string][]mailer.Effect {
	of := map[string][]mailer.Effect{}
	for _, e := range d.outbox.mailer.Effects() {
		of[e.Payment] = append(of[e.Payment], e)
	}
	return of
}
