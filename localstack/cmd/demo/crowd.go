package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// crowd is the number of requests that are sent at the same time.
const crowd = 200

// tally counts the answers of a crowd.
type tally struct{ fresh, replayed, busy, other int }

func (t *tally) add(a answer) {
	switch {
	case a.status == 201 && !a.replayed():
		t.fresh++
	case a.status == 201:
		t.replayed++
	case a.status == 409 && a.header.Get("Retry-After") != "":
		t.busy++
	default:
		t.other++
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("%d × 201 new, %d × 201 replayed, %d × 409 with Retry-After, %d others", t.fresh, t.replayed, t.busy, t.other)
}

func (d *demo) crowd(ctx context.Context) error {
	r := order("alice", "order-6", dinner)
	d.out.request(r)
	first, err := d.sendAtOnce(ctx, slices.Repeat([]request{r}, crowd))
	if err != nil {
		return err
	}
	var t tally
	for _, a := range first {
		t.add(a)
	}
	d.out.note("← at once: %s", &t)
	d.out.check(t.fresh == 1 && t.other == 0, "exactly one new payment; all others are replays, or told to come back", &t)
	if _, err := d.expectNewRecord(ctx); err != nil {
		return err
	}

	final, err := d.comeBack(ctx, r, first)
	if err != nil {
		return err
	}
	t = tally{}
	var paid answer
	for _, a := range final {
		t.add(a)
		if !a.replayed() {
			paid = a
		}
	}
	d.out.note("← after those that were told to came back: %s", &t)
	same := !slices.ContainsFunc(final, func(a answer) bool { return a.status != 201 || a.body != paid.body })
	d.out.check(same && t.fresh == 1, fmt.Sprintf("all %d have the same 201, the same bytes", crowd), &t)
	d.expectPayment(paid)
	return nil
}

// sendAtOnce sends all requests at the same time and returns their answers in the same order.
func (d *demo) sendAtOnce(ctx context.Context, requests []request) ([]answer, error) {
	answers := make([]answer, len(requests))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, r := range requests {
		group.Go(func() error {
			var err error
			answers[i], err = d.client.send(groupCtx, r)
			return err
		})
	}
	return answers, group.Wait()
}

// comeBack repeats the request for each answer that is a 409 with Retry-After, as a client does,
// until no such answer is left. It returns the final answers.
func (d *demo) comeBack(ctx context.Context, r request, answers []answer) ([]answer, error) {
	answers = slices.Clone(answers)
	for {
		var busy []int
		pause := time.Duration(0)
		for i, a := range answers {
			if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); a.status == 409 && err == nil {
				busy = append(busy, i)
				pause = max(pause, time.Duration(seconds)*time.Second)
			}
		}
		if len(busy) == 0 {
			return answers, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting to come back: %w", ctx.Err())
		}
		again, err := d.sendAtOnce(ctx, slices.Repeat([]request{r}, len(busy)))
		if err != nil {
			return nil, err
		}
		for i, a := range again {
			answers[busy[i]] = a
		}
	}
}
