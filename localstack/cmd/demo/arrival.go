package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/localstack/mailer"
)

// arrived waits until each of the payments has a receipt and a mail, all queues are empty, and no
// attempt is in progress. From then on, nothing more can happen.
func (d *demo) arrived(ctx context.Context, payments ...string) error {
	return d.await(ctx, func(ctx context.Context) (string, error) {
		missing, err := d.missing(ctx, payments)
		if missing == "" && err == nil {
			missing, err = d.underWay(ctx)
		}
		return missing, err
	})
}

// await calls missing until it returns "". If it still returns something after outboxTime, await
// reports a failed check and returns nil.
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

// missing returns a description of a receipt or mail that one of the payments lacks, or "" if
// none is missing.
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

// underWay returns a description of something that is not finished yet: a queue with messages, or
// an attempt in progress. It returns "" if there is nothing.
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

// receiptsOf returns the number of receipts by payment.
func (d *demo) receiptsOf(ctx context.Context) (map[string]int, error) {
	all, err := d.tables.allReceipts(ctx)
	count := map[string]int{}
	for _, r := range all {
		count[r.PaymentID]++
	}
	return count, err
}

// mailsOf returns the mails by payment.
func (d *demo) mailsOf() map[string][]mailer.Effect {
	of := map[string][]mailer.Effect{}
	for _, e := range d.outbox.mailer.Effects() {
		of[e.Payment] = append(of[e.Payment], e)
	}
	return of
}
