package main

import (
	"context"
	"fmt"
	"time"
)

// dies sends a request whose attempt kills its own process. It returns the records that the
// attempt has left.
func (d *demo) dies(ctx context.Context, r request) ([]record, error) {
	died, err := d.send(ctx, r)
	if err != nil {
		return nil, err
	}
	d.expectStatus(died, 500)
	return d.newRecords(ctx)
}

// transfer plays a transfer whose first attempt kills its process after it has called the
// clearing house. It then retries until the lease has ended.
func (d *demo) transfer(ctx context.Context) error {
	r := request{path: "/transfers", user: "alice", key: "transfer-1", body: `{"to":"bob","amount":500,"currency":"EUR","reference":"rent"}`}.
		with("X-Demo-Crash", "cleared")
	fresh, err := d.dies(ctx, r)
	if err != nil {
		return err
	}
	for _, left := range fresh { // the records of the request and of its reservation
		d.out.record(left)
	}
	d.out.check(len(fresh) == 2, "two records: the request's, and that of the reservation", len(fresh))
	if err := d.expectTransfer(ctx, "reserved"); err != nil {
		return err
	}
	ended, err := d.whenLeaseIsOver(ctx, r)
	if err != nil {
		return err
	}
	d.expectStatus(ended, 201)
	if err := d.expectTransfer(ctx, "done"); err != nil {
		return err
	}
	effects, calls := 0, 0
	for _, e := range d.clearing.Effects() {
		effects++
		calls += e.Calls
	}
	d.out.check(effects == 1 && calls == 2, "the clearing house was called twice under one key, and cleared once",
		fmt.Sprintf("%d effects of %d calls", effects, calls))
	return nil
}

// whenLeaseIsOver repeats a request whose attempt died, until the answer is no longer that an
// attempt is in progress. It prints and returns the last answer.
func (d *demo) whenLeaseIsOver(ctx context.Context, r request) (answer, error) {
	d.out.note("… until the dead attempt's lease is over")
	for {
		a, err := d.client.send(ctx, r)
		if err != nil {
			return a, err
		}
		if a.code() != "idempotency_in_progress" {
			d.out.request(r)
			d.out.answer(a)
			return a, nil
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return a, fmt.Errorf("waiting for a lease to end: %w", ctx.Err())
		}
	}
}

// expectTransfer checks the status of the demo's only transfer.
func (d *demo) expectTransfer(ctx context.Context, status string) error {
	all, err := d.tables.allTransfers(ctx)
	if err != nil {
		return err
	}
	d.out.check(len(all) == 1 && all[0].Status == status, "one transfer in the table, "+status, fmt.Sprintf("%+v", all))
	return nil
}
