package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// This file has the third act: a crash under policy Hold, after which no retry takes the record
// over, and the operator who settles the record. docs/idem.md describes the operator's part.

// night is the state that the scenes of the third act share.
type night struct {
	request request
	record  record // the record that the dead attempt has left
	shown   shown
	moved   transfer // the transfer, as stored in the record's step
}

// shown is the output of `idem show -o json`.
type shown struct {
	State, Token   string
	Steps          map[string]json.RawMessage
	DownstreamKeys []struct{ Name, Key string }
}

// held plays a transfer under policy Hold whose attempt dies after it has called the clearing
// house.
func (d *demo) held(ctx context.Context) error {
	if err := d.expectDead(ctx, 0); err != nil {
		return err
	}
	r := request{path: "/transfers", user: "alice", key: "transfer-2", body: `{"to":"bob","amount":700,"currency":"EUR","reference":"deposit"}`}.
		with("X-Demo-Crash", "cleared").with("X-Demo-Policy", "hold")
	fresh, err := d.dies(ctx, r)
	if err != nil {
		return err
	}
	for _, left := range fresh { // the records of the request and of its reservation
		if left.Status == "INPROGRESS" {
			d.out.record(left)
			d.night.record = left
		}
	}
	d.out.check(d.night.record.ID != "", "the dead attempt's record is in progress", fmt.Sprintf("%+v", fresh))
	again, err := d.whenLeaseIsOver(ctx, r)
	if err != nil {
		return err
	}
	d.expectRefusal(again, 409, "idempotency_attempt_abandoned")
	d.night.request = r
	return nil
}

// found shows how the operator finds the held record, and what its details are.
func (d *demo) found(ctx context.Context) error {
	id := d.night.record.ID
	if err := d.expectDead(ctx, 1); err != nil {
		return err
	}
	leases, err := d.idemUntil(ctx, id, "leases")
	if err != nil {
		return err
	}
	rows := strings.Count(strings.TrimSpace(leases.out), "\n") // the first line is a heading
	d.out.check(leases.code == 0 && rows == 1 && strings.Contains(leases.out, "  held  ") && strings.Contains(leases.out, id),
		"one lease, held", fmt.Sprintf("%d: %s%s", leases.code, leases.out, leases.errs))
	show := []string{"show", id, "--downstream", "clear"}
	text, err := d.idem(ctx, show...)
	if err != nil {
		return err
	}
	data, err := d.operator.run(ctx, append(show, "-o", "json")...) // the same output in JSON
	if err != nil {
		return err
	}
	now, moved := &d.night.shown, &d.night.moved
	err = json.Unmarshal([]byte(data.out), now)
	if err == nil {
		err = json.Unmarshal(now.Steps["reserve"], moved)
	}
	d.out.check(err == nil && text.code == 0 && now.State == "held" && now.Token == d.night.record.Token && strings.Contains(text.out, now.Token) && moved.Amount == 700,
		"it is held, and its step says that 700 are reserved", fmt.Sprintf("%v: %s%s", err, data.out, data.errs))
	if len(now.DownstreamKeys) != 1 {
		d.out.check(false, "the key that the clearing house was called with", data.out)
		return nil
	}
	key := now.DownstreamKeys[0].Key
	effect, there := d.clearing.Effects()[key]
	d.out.note("%s asked for that key: transfer %s, %d, called × %d", d.out.in(dim, "clearing house"), effect.Transfer, effect.Amount, effect.Calls)
	d.out.check(there && strings.Contains(text.out, key) && effect.Transfer == moved.ID && effect.Calls == 1 && !effect.Refused,
		"the clearing house knows the key: it was called once, and has cleared the transfer", fmt.Sprintf("%t %+v", there, effect))
	return nil
}

// settled shows how the operator settles the record, and which answer the client then gets.
func (d *demo) settled(ctx context.Context) error {
	n := d.night
	if n.moved.ID == "" { // an earlier scene failed and reported it
		d.out.check(false, "a transfer to settle", "none")
		return nil
	}
	// This is the answer that the function would have given.
	answered := fmt.Sprintf(`{"id":%q,"amount":700,"currency":"EUR","reference":"deposit","to":"bob","createdAt":%q}`, n.moved.ID, n.moved.CreatedAt)
	settle := func(body string) []string {
		return []string{"settle", n.record.ID, "--token", n.shown.Token, "--by", "olga", "--reason", "TICKET-1: cleared, and credited by hand", "--yes",
			"--status", "201", "--header", "Content-Type: application/json", "--body", body}
	}
	// Do by hand what was left to do. If the attempt were still alive, the condition of the
	// transaction would let only one of the two succeed.
	if err := d.tables.endTransfer(ctx, n.moved); err != nil {
		return err
	}
	d.out.note("%s by hand, in one transaction: transfer %s reserved → done, its 700 to bob", d.out.in(dim, "tables"), n.moved.ID)
	done, err := d.idem(ctx, settle(answered)...)
	if err != nil {
		return err
	}
	d.out.check(done.code == 0 && strings.Contains(done.out, "completed: retries get its answer") && strings.Contains(done.out, "olga settled attempt 1"),
		"exit code 0: settled, and the record says by whom", fmt.Sprintf("%d: %s%s", done.code, done.out, done.errs))

	again, err := d.send(ctx, n.request)
	if err != nil {
		return err
	}
	d.expectReplay(answer{status: 201, body: answered}, again)
	kept, err := d.again(ctx, n.record)
	if err != nil {
		return err
	}
	d.out.check(kept.Status == "COMPLETED" && kept.Attempt == 1 && kept.Token != n.record.Token, "the record is completed, still by attempt 1, under a new token",
		fmt.Sprintf("%+v", kept))

	late, err := d.idem(ctx, settle(`{"id":"another"}`)...)
	if err != nil {
		return err
	}
	now, err := d.again(ctx, n.record)
	if err != nil {
		return err
	}
	d.out.check(late.code == 4 && strings.Contains(late.errs, "olga settled it") && now == kept,
		"exit code 4: who settles by what was shown before is told who was faster, and changes nothing", fmt.Sprintf("%d: %s%s", late.code, late.out, late.errs))
	calls := 0
	for _, e := range d.clearing.Effects() {
		if e.Transfer == n.moved.ID {
			calls += e.Calls
		}
	}
	d.out.check(calls == 1, "nothing ran again: the clearing house was called once", calls)
	return d.expectDead(ctx, 0)
}

// idem runs the operator's command. It prints the command and its output.
func (d *demo) idem(ctx context.Context, args ...string) (said, error) {
	d.out.command("idem " + quoted(args))
	s, err := d.operator.run(ctx, args...)
	if err == nil {
		d.out.output(s)
	}
	return s, err
}

// idemUntil runs the operator's command until the output contains word, for 10 seconds at most.
// It prints only the last run. idem uses DynamoDB's clock, which has whole seconds, and the watch
// uses its own clock. So idem may find a dead lease up to a second later than the watch.
func (d *demo) idemUntil(ctx context.Context, word string, args ...string) (said, error) {
	for late := time.Now().Add(10 * time.Second); ; {
		s, err := d.operator.run(ctx, args...)
		if err != nil {
			return s, err
		}
		if strings.Contains(s.out, word) || time.Now().After(late) {
			d.out.command("idem " + quoted(args))
			d.out.output(s)
			return s, nil
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return s, fmt.Errorf("waiting for idem %s to find a dead lease: %w", quoted(args), ctx.Err())
		}
	}
}

// expectDead invokes the watch and checks that it finds n dead leases, 0 or 1. The one is that of
// the third act. A lease counts as dead only some seconds after its end, so expectDead invokes
// the watch for up to 10 seconds until it finds n.
func (d *demo) expectDead(ctx context.Context, n int) error {
	var s sighting
	for late := time.Now().Add(10 * time.Second); ; {
		var err error
		if s, err = d.watch.look(ctx); err != nil {
			return err
		}
		if s.dead >= float64(n) || time.Now().After(late) {
			break
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the watch to find a dead lease: %w", ctx.Err())
		}
	}
	d.out.note("%s %s", d.out.in(dim, "watch"), s)
	if n == 0 {
		d.out.check(s.told && s.dead == 0 && len(s.named) == 0, "the watch finds no dead lease", s)
		return nil
	}
	d.out.check(s.dead == 1 && s.byRoute["POST /transfers"] == 1 && len(s.byRoute) == 1, "the watch counts 1 dead lease, of POST /transfers", s)
	d.out.check(len(s.named) == 1 && s.named[0] == named{d.night.record.ID, "POST /transfers", 1, true}, "its log names the record, which is held", s)
	return nil
}
