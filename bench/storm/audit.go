package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// audit returns an error that names every problem of the storm, or nil.
func (s *storm) audit() error {
	fresh, body := s.fresh()
	err := errors.Join(
		s.auditRuns(fresh),
		s.auditWave("while the handler runs", s.during, func(a answer) bool {
			return a.is(http.StatusCreated, body) || !s.mode.waits && a.refused()
		}),
		s.auditWave("after the handler has finished", s.after, func(a answer) bool {
			return a.Replayed && a.is(http.StatusCreated, body)
		}),
		s.auditCalls(),
	)
	if err != nil {
		return fmt.Errorf("%s, %d processes: %w", s.mode.name, s.processes, err)
	}
	return nil
}

// fresh returns how many requests of the first wave received an answer that is no replay, and the
// body of the first such answer, or "" if there is none.
func (s *storm) fresh() (requests int, body string) {
	for _, m := range s.during {
		for _, a := range m.Answers {
			if a.Status == http.StatusCreated && !a.Replayed {
				requests += a.Times
				body = cmp.Or(body, a.Body)
			}
		}
	}
	return requests, body
}

// auditRuns checks that the handler ran once, and that one request received an answer that is no
// replay.
func (s *storm) auditRuns(fresh int) error {
	ofHandler := func(m measured) int { return m.Runs }
	runs := sum(s.during, ofHandler) + sum(s.after, ofHandler)
	if runs != 1 || fresh != 1 {
		return fmt.Errorf("the handler ran %d times, and %d answers are no replays; want 1 of each", runs, fresh)
	}
	return nil
}

// auditWave checks that each request received an answer, and that all answers are good. when says
// which wave it is, for error messages.
func (s *storm) auditWave(when string, wave []measured, good func(answer) bool) error {
	var problems []error
	all := 0
	for _, m := range wave {
		for _, a := range m.Answers {
			all += a.Times
			if !good(a.answer) {
				problems = append(problems, fmt.Errorf("%s, %d requests got %+v; failed calls of the store: %v", when, a.Times, a.answer, m.StoreErrors))
			}
		}
	}
	if all != s.settings.Requests {
		problems = append(problems, fmt.Errorf("%s, there are %d answers to %d requests", when, all, s.settings.Requests))
	}
	return errors.Join(problems...)
}

// auditCalls checks that no duplicate sent more requests to DynamoDB than its mode allows, and that
// the duplicates of the second wave sent only the operation with which their mode replays.
func (s *storm) auditCalls() error {
	var problems []error
	check := func(when string, calls, limit int) {
		if calls > limit {
			problems = append(problems, fmt.Errorf("%s, a duplicate needed %d requests to DynamoDB; want at most %d", when, calls, limit))
		}
	}
	for i, m := range s.during {
		if s.mode.waits {
			check("while the handler runs", m.MostSoon, s.mode.during)
		} else {
			check("while the handler runs", m.MostCalls, s.mode.during)
		}
		limit := s.mode.after
		if m.Runs > 0 {
			limit = s.mode.afterOwn
		}
		check("after the handler has finished", s.after[i].MostCalls, limit)
		for operation, n := range s.after[i].DuplicateCalls {
			if operation != s.mode.replaysBy {
				problems = append(problems, fmt.Errorf("after the handler has finished, the duplicates sent %d requests %s; want only %s", n, operation, s.mode.replaysBy))
			}
		}
	}
	return errors.Join(problems...)
}

func (a answer) is(status int, body string) bool {
	return a.Status == status && a.Body == body && a.Err == ""
}

// refused reports whether the answer is a correct refusal while another attempt is running.
func (a answer) refused() bool {
	seconds, err := strconv.Atoi(a.RetryAfter)
	return a.is(http.StatusConflict, string(lambdaidem.ErrInProgress)) && err == nil && time.Duration(seconds)*time.Second >= time.Second
}
