package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// crowd is the number of requests that are sent at the same time. It is small, because a new
// account's quota of 10 concurrent executions ("Lambda quotas") must also suffice for the
// functions that the payments trigger.
const crowd = 5

// atOnce sends one payment several times at the same time. Exactly one answer must come from a
// handler. Each other answer must be a replay, or a 409 with Retry-After if the request arrived
// while the handler ran. The suite can't control whether that happens.
func (s *suite) atOnce(ctx context.Context) {
	r := request{path: payment.path, key: s.keys + "-at-once", body: payment.body}
	answers := make([]answer, crowd)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = s.client.send(ctx, r) })
	}
	group.Wait()

	last := s.client.send(ctx, r)
	s.add("payment at once, afterwards", "201 (replay)", last, notReplay(fresh(answers), last))
	s.count(last, payment)

	var ran, replays, conflicts int
	var wrong []string
	for _, a := range answers {
		s.count(a, payment)
		switch {
		case a.err == nil && a.status == http.StatusConflict && a.code() == "idempotency_in_progress":
			conflicts++
			if a.header.Get("Retry-After") == "" {
				wrong = append(wrong, "a 409 has no Retry-After")
			}
		case a.replayed():
			replays++
			wrong = append(wrong, notReplay(last, a)...)
		default:
			ran++
			wrong = append(wrong, notFirst(a, http.StatusCreated, "")...)
		}
	}
	if ran != 1 {
		wrong = append(wrong, fmt.Sprintf("%d handlers answered, not 1", ran))
	}
	got := fmt.Sprintf("%d ran, %d replays, %d conflicts", ran, replays, conflicts)
	if conflicts == 0 {
		got += " (none was provoked)"
	}
	s.add(fmt.Sprintf("payment, %d times at once", crowd), "1 ran, else replay or 409", got, wrong)
}

// fresh returns the answer of the handler that ran, or an empty answer if there is none.
func fresh(answers []answer) answer {
	for _, a := range answers {
		if a.status == http.StatusCreated && !a.replayed() {
			return a
		}
	}
	return answer{}
}
