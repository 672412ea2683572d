package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/lambdaidem/toolkit/localstack/clearing"
	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/stack"
)

// demo plays the steps in turn.
type demo struct {
	client   *client
	tables   tables
	clearing *clearing.Service
	outbox   outbox
	watch    watch
	iam      *iam.Checker
	operator operator // set for the story alone
	out      *printer

	records map[string]bool // IDs of the records seen so far

	// Of the first request, which later steps repeat.
	first       answer
	firstID     string // of its payment
	firstRecord record

	night night // of the third act

	opened int64 // in all accounts, at first

	owed []string // payments that clients were told of: what the table must hold
}

func newDemo(s *stack.Stack, counted *sends, out *os.File) *demo {
	client := newClient(s.URL())
	return &demo{
		client:   client,
		outbox:   newOutbox(s, counted, client.http.Transport),
		clearing: s.Clearing(),
		watch:    watch{s.Emulator().Invoke},
		iam:      s.IAM(),
		tables:   tables{s.Database().Client(), s.Table("IdempotencyTable"), s.Table("PaymentsTable"), s.Table("AccountsTable"), s.Table("TransfersTable"), s.Table("ReceiptsTable")},
		out:      newPrinter(out),
		records:  map[string]bool{},
	}
}

// play plays every step. An error says that a step could not be played; a wrong
// answer is no error, it is counted by the printer.
func (d *demo) play(ctx context.Context) error {
	for _, s := range story {
		d.out.begin(s.title)
		if err := s.play(d, ctx); err != nil {
			return fmt.Errorf("step %s: %w", d.out.step, err)
		}
	}
	return nil
}

// send sends a request, and prints it with its answer.
func (d *demo) send(ctx context.Context, r request) (answer, error) {
	d.out.request(r)
	a, err := d.client.send(ctx, r)
	if err == nil {
		d.out.answer(a)
	}
	return a, err
}

// newRecords finds the records of clients' requests that no earlier look found. A
// record's ID is a hash, so this is how a request's record is told from the others'.
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

// expectNewRecord looks for exactly one new record, prints it and returns it.
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

// expectNoRecord checks that nothing new was stored.
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

// again reads a record that is known, prints it and returns it.
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

// awaitRecord waits until a request in progress has its record; if it has none
// after ten seconds, that is a wrong answer.
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

// expectStatus checks an answer's status.
func (d *demo) expectStatus(a answer, status int) {
	d.out.check(a.status == status, fmt.Sprint(status), a.status)
}

// expectRefusal checks an answer that the guard or a function made of a
// refusal.
func (d *demo) expectRefusal(a answer, status int, code string) {
	d.out.check(a.status == status && a.code() == code, fmt.Sprintf("%d %s", status, code), fmt.Sprintf("%d %s", a.status, a.body))
}

// expectReplay checks that an answer is the first one again.
func (d *demo) expectReplay(first, again answer) {
	d.out.check(again.status == first.status && again.body == first.body && again.replayed() && !first.replayed(),
		fmt.Sprintf("%d again, the same bytes, marked by %s: true", first.status, replayMark),
		fmt.Sprintf("%d %s: %q %s", again.status, replayMark, again.header.Get(replayMark), again.body))
}

// expectPayment checks a 201 and takes note of its payment.
func (d *demo) expectPayment(a answer) string {
	var p struct{ ID string }
	err := json.Unmarshal([]byte(a.body), &p)
	d.out.check(err == nil && a.status == 201 && p.ID != "" && !a.replayed() && a.header.Get("Location") == "/payments/"+p.ID,
		"201 with a new payment and its Location", fmt.Sprintf("%d Location: %q %s", a.status, a.header.Get("Location"), a.body))
	d.owed = append(d.owed, p.ID)
	return p.ID
}
