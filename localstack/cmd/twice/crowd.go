package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// crowd is how many requests are sent at once: so few that an account's first quota of
// 10 concurrent executions ("Lambda quotas") leaves room for the functions behind.
const crowd = 5

// atOnce sends one payment several times at the same time. Exactly one answer is
// a handler's own. Each of the others is its replay, or 409 with Retry-After if it came
// while the handler ran. Whether any comes so early can't be told from here.
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

// fresh returns the answer of the one that ran.
func fresh(answers []answer) answer {
	for _, a := range answers {
		if a.status == http.StatusCreated && !a.replayed() {
			return a
		}
	}
	return answer{}
}
