package main

import (
	"context"
	"fmt"
	"time"
)

// newRecords returns the records of clients' requests that no earlier call has returned. The ID
// of a record is a hash, so this is how the demo finds the record of a request.
func (d *demo) newRecords(ctx context.Context) ([]record, error) {
	all, err := d.tables.allRecords(ctx)
	if err != nil {
		return nil, err
	}
	var fresh []record
	for _, r := range all {
		if !d.records[r.ID] && !r.behindQueues() {
			d.records[r.ID] = true
			fresh = append(fresh, r)
		}
	}
	return fresh, nil
}

// expectNewRecord checks that there is exactly one new record. It prints and returns the record.
func (d *demo) expectNewRecord(ctx context.Context) (record, error) {
	fresh, err := d.newRecords(ctx)
	if err != nil {
		return record{}, err
	}
	if len(fresh) != 1 {
		d.out.check(false, "one new record", fmt.Sprintf("%d", len(fresh)))
		return record{}, nil
	}
	d.out.record(fresh[0])
	return fresh[0], nil
}

// expectNoRecord checks that there is no new record.
func (d *demo) expectNoRecord(ctx context.Context) error {
	fresh, err := d.newRecords(ctx)
	if err != nil {
		return err
	}
	if len(fresh) == 0 {
		d.out.noRecord()
	}
	d.out.check(len(fresh) == 0, "nothing is stored", fmt.Sprintf("%d new records", len(fresh)))
	return nil
}

// again reads a known record again. It prints and returns the record.
func (d *demo) again(ctx context.Context, known record) (record, error) {
	all, err := d.tables.allRecords(ctx)
	if err != nil {
		return record{}, err
	}
	for _, r := range all {
		if r.ID == known.ID {
			d.out.record(r)
			return r, nil
		}
	}
	d.out.check(false, "the record is there still", "none")
	return record{}, nil
}

// awaitRecord waits until a request in progress has a record. If there is none after ten seconds,
// awaitRecord reports a failed check.
func (d *demo) awaitRecord(ctx context.Context) (record, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for {
		fresh, err := d.newRecords(ctx)
		if err != nil {
			return record{}, err
		}
		if len(fresh) > 0 {
			d.out.record(fresh[0])
			return fresh[0], nil
		}
		select {
		case <-ticker.C:
		case <-late.C:
			d.out.check(false, "a record of the request under way", "none")
			return record{}, nil
		case <-ctx.Done():
			return record{}, fmt.Errorf("waiting for the record of a request under way: %w", ctx.Err())
		}
	}
}
