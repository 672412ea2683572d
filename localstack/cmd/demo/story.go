package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdaidem/toolkit/localstack/stack"
)

// step is one scene of the demo.
type step struct {
	title string
	play  func(*demo, context.Context) error
}

// story has the steps in order. Later steps use the results of earlier steps.
var story = []step{
	{"A new key: the handler runs", (*demo).firstRequest},
	{"The same again: the first answer is replayed, nothing runs", (*demo).sameAgain},
	{"The same JSON, members reordered and spaced: it counts by value, a replay", (*demo).reordered},
	{"The same key for another amount: refused", (*demo).otherAmount},
	{"The same key twice at once, on a slow handler: one runs, one is told to come back", (*demo).twiceAtOnce},
	{"No key: refused", (*demo).noKey},
	{"A malformed key: refused", (*demo).malformedKey},
	{"The handler fails with 500: nothing is kept, and the same key runs again as attempt 2", (*demo).failedOnce},
	{"Two users, one key: two payments", (*demo).twoUsers},
	{fmt.Sprintf("%d requests at once with one key: one payment", crowd), (*demo).crowd},
	{"A refund, and the same again: one refund", (*demo).refund},
	{"A refund of more than is left: the application's own 409, kept and replayed", (*demo).refundTooMuch},
	{"More than the account has: 402 by the condition of a write, kept and replayed", (*demo).insufficient},
	{"A transfer that dies when the clearing house has been told: a retry ends it, and tells it once", (*demo).transfer},
	{"One POST under faults, by a client that retries: one payment, one receipt, one mail", (*demo).underFaults},
	{"A transfer that dies under policy Hold: a retry is told so, and nothing runs", (*demo).held},
	{"At three in the morning: the watch finds it, idem show explains it", (*demo).found},
	{"idem settle ends it: the client's retry gets the operator's answer", (*demo).settled},
	{"Counted in the tables", (*demo).audit},
	{"The roles of template.yaml allow what the functions did, and nothing was refused", (*demo).permissions},
}

// slow is how long the slow handler takes. A second request must arrive in this time even on a busy
// machine.
const slow = 1500 * time.Millisecond

// order returns a request for a payment.
func order(user, key, body string) request {
	return request{path: "/payments", user: user, key: key, body: body}
}

const dinner = `{"amount":1250,"currency":"EUR","reference":"dinner"}`

func (d *demo) firstRequest(ctx context.Context) error {
	a, err := d.send(ctx, order("alice", "order-1", dinner))
	if err != nil {
		return err
	}
	r, err := d.expectNewRecord(ctx)
	if err != nil {
		return err
	}
	d.first = a
	d.firstID = d.expectPayment(a)
	d.out.check(r.Status == "COMPLETED" && r.Attempt == 1 && r.Outcome == "succeeded", "the record is completed by attempt 1",
		fmt.Sprintf("%s, attempt %d, %s", r.Status, r.Attempt, r.Outcome))
	d.firstRecord = r
	return nil
}

func (d *demo) sameAgain(ctx context.Context) error {
	return d.replayOf(ctx, order("alice", "order-1", dinner))
}

func (d *demo) reordered(ctx context.Context) error {
	return d.replayOf(ctx, order("alice", "order-1", "{ \"reference\": \"dinner\",\n  \"currency\": \"EUR\",  \"amount\": 1250 }"))
}

// replayOf sends a request and checks that its answer is a replay of the first answer.
func (d *demo) replayOf(ctx context.Context, r request) error {
	a, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectReplay(d.first, a)
	return d.expectFirstRecordUnchanged(ctx)
}

func (d *demo) expectFirstRecordUnchanged(ctx context.Context) error {
	now, err := d.again(ctx, d.firstRecord)
	if err != nil {
		return err
	}
	d.out.check(now == d.firstRecord, "the record has not changed", fmt.Sprintf("%+v", now))
	return nil
}

func (d *demo) otherAmount(ctx context.Context) error {
	a, err := d.send(ctx, order("alice", "order-1", strings.Replace(dinner, "1250", "9999", 1)))
	if err != nil {
		return err
	}
	d.expectRefusal(a, 422, "idempotency_payload_mismatch")
	return d.expectFirstRecordUnchanged(ctx)
}

func (d *demo) twiceAtOnce(ctx context.Context) error {
	r := order("alice", "order-2", dinner).with("X-Demo-Delay-Ms", strconv.FormatInt(slow.Milliseconds(), 10))
	var first answer
	group, groupCtx := errgroup.WithContext(ctx)
	d.out.request(r)
	group.Go(func() error {
		var err error
		first, err = d.client.send(groupCtx, r)
		return err
	})
	underWay, err := d.awaitRecord(groupCtx)
	if err != nil {
		return errors.Join(err, group.Wait())
	}
	d.out.check(underWay.Status == "INPROGRESS", "the first is under way", underWay.Status)
	second, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectRefusal(second, 409, "idempotency_in_progress")
	d.expectRetryAfter(second)
	if err := group.Wait(); err != nil {
		return err
	}
	d.out.answer(first)
	d.expectPayment(first)
	_, err = d.again(ctx, underWay)
	return err
}

func (d *demo) expectRetryAfter(a answer) {
	text := a.header.Get("Retry-After")
	seconds, err := strconv.Atoi(text)
	d.out.check(err == nil && seconds > 0, "a Retry-After in seconds", strconv.Quote(text))
}

func (d *demo) noKey(ctx context.Context) error {
	return d.refusedKey(ctx, "", "idempotency_key_missing")
}

func (d *demo) malformedKey(ctx context.Context) error {
	return d.refusedKey(ctx, `"order-3`, "idempotency_key_invalid")
}

func (d *demo) refusedKey(ctx context.Context, key, code string) error {
	a, err := d.send(ctx, order("alice", key, dinner))
	if err != nil {
		return err
	}
	d.expectRefusal(a, 400, code)
	return d.expectNoRecord(ctx)
}

func (d *demo) failedOnce(ctx context.Context) error {
	r := order("alice", "order-4", dinner).with("X-Demo-Fail-Attempts", "1")
	a, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectStatus(a, 500)
	released, err := d.expectNewRecord(ctx)
	if err != nil {
		return err
	}
	d.out.check(released.Status == "RELEASED" && released.Attempt == 1, "the record is released by attempt 1",
		fmt.Sprintf("%s, attempt %d", released.Status, released.Attempt))
	if a, err = d.send(ctx, r); err != nil {
		return err
	}
	d.expectPayment(a)
	now, err := d.again(ctx, released)
	if err != nil {
		return err
	}
	d.out.check(now.Status == "COMPLETED" && now.Attempt == 2, "the record is completed by attempt 2",
		fmt.Sprintf("%s, attempt %d", now.Status, now.Attempt))
	return nil
}

func (d *demo) twoUsers(ctx context.Context) error {
	for _, user := range []string{"alice", "bob"} {
		a, err := d.send(ctx, order(user, "order-5", dinner))
		if err != nil {
			return err
		}
		d.expectPayment(a)
		r, err := d.expectNewRecord(ctx)
		if err != nil {
			return err
		}
		d.out.check(strings.HasSuffix(r.Scope, "|"+user), "the record is "+user+"'s", r.Scope)
	}
	return nil
}

// refundOf returns a request for a refund of the first payment.
func (d *demo) refundOf(key, body string) request {
	return request{path: "/payments/" + d.firstID + "/refunds", user: "alice", key: key, body: body}
}

func (d *demo) refund(ctx context.Context) error {
	r := d.refundOf("refund-1", `{"amount":1000}`)
	first, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.out.check(first.status == 201 && strings.Contains(first.body, `"left":250`), "201, and 250 are left", fmt.Sprintf("%d %s", first.status, first.body))
	if _, err := d.expectNewRecord(ctx); err != nil {
		return err
	}
	again, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectReplay(first, again)
	return nil
}

func (d *demo) refundTooMuch(ctx context.Context) error {
	return d.keptRefusal(ctx, d.refundOf("refund-2", `{"amount":251}`), 409, "refund_exceeds_rest")
}

func (d *demo) insufficient(ctx context.Context) error {
	return d.keptRefusal(ctx, order("alice", "order-7", strings.Replace(dinner, "1250", "1000000", 1)), 402, "insufficient_funds")
}

// keptRefusal sends a request that the function refuses for good, twice, and checks that the
// refusal is stored and replayed.
func (d *demo) keptRefusal(ctx context.Context, r request, status int, code string) error {
	first, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectRefusal(first, status, code)
	kept, err := d.expectNewRecord(ctx)
	if err != nil {
		return err
	}
	d.out.check(kept.Status == "COMPLETED" && kept.Outcome == "failed", "the refusal is kept as failed",
		fmt.Sprintf("%s, %s", kept.Status, kept.Outcome))
	again, err := d.send(ctx, r)
	if err != nil {
		return err
	}
	d.expectReplay(first, again)
	return nil
}

// opening is the initial balance of each account, in cents.
const opening = 10_000

// openAccounts opens the accounts of the demo's users.
func (d *demo) openAccounts(ctx context.Context, s *stack.Stack) error {
	for _, user := range []string{"alice", "bob"} {
		if err := s.OpenAccount(ctx, user, "EUR", opening); err != nil {
			return err
		}
		d.opened += opening
	}
	return nil
}
