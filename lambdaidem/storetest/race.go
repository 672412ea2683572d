package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// racers is the number of concurrent calls for one record.
const racers = 16

// raceSteps test concurrent calls for one record.
var raceSteps = []Step{
	{
		Name: "one acquire of many wins",
		Rule: "L2",
		Doc:  "Exactly one of many concurrent calls of Acquire MUST get the lease. All of them MUST return the winner's record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "one acquire of many wins")
			return s.oneWins(func(token string) lambdaidem.Claim { return s.claim(token, 0) })
		},
	},
	{
		Name: "one acquire of many over an expired record wins",
		Rule: "L7",
		Doc:  "Exactly one of many concurrent calls of Acquire MUST get the lease if the record has expired. All of them MUST return the winner's record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "one acquire of many over an expired record wins")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			if s.err != nil {
				return s.err
			}
			expiry := done.Expires.Sub(s.base)
			return s.oneWins(func(token string) lambdaidem.Claim { return s.claim(token, expiry) })
		},
	},
	{
		Name: "one takeover of many wins",
		Rule: "L6",
		Doc:  "Exactly one of many concurrent takeovers of the same record MUST get the lease, as attempt 2. All of them MUST return the winner's record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "one takeover of many wins")
			a := s.acquires("the first acquire", s.claim("a", 0))
			if s.err != nil {
				return s.err
			}
			return s.oneWins(func(token string) lambdaidem.Claim { return s.takeover(token, leaseLength, a) })
		},
	},
	{
		Name: "one completion of many stays",
		Rule: "G3",
		Doc:  "One result of many concurrent calls of Complete under the same token MUST be stored, and every call MUST return that result.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "one completion of many stays")
			inProgress := s.acquires("the first acquire", s.claim("a", 0))
			if s.err != nil {
				return s.err
			}
			got := make([]lambdaidem.Record, racers)
			err := race(func(i int) error {
				var err error
				got[i], err = s.store.Complete(ctx, s.lease("a", time.Second), s.answer(time.Second, fmt.Sprint("answer ", i)))
				return err
			})
			if err != nil {
				return fmt.Errorf("a concurrent call of Complete returned an error, want none: %w", err)
			}
			for i := range got {
				call := fmt.Sprintf("concurrent call %d of Complete", i)
				if got[i], err = s.loaded(got[i]); err != nil {
					return fmt.Errorf("%s returned a wrong answer: %w", call, err)
				}
				if err := mismatch(call, got[i], completed(inProgress, got[0].Result)); err != nil {
					return err
				}
			}
			s.reads("after all completions", time.Second, got[0])
			return s.err
		},
	},
	{
		Name: "completion or takeover",
		Rule: "L3",
		Doc:  "Exactly one of a late completion and many concurrent takeovers MUST succeed: either the answer is stored and no takeover gets the lease, or Complete returns ErrLeaseLost.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "completion or takeover")
			inProgress := s.acquires("the first acquire", s.claim("a", 0))
			if s.err != nil {
				return s.err
			}
			var finished lambdaidem.Record
			var finishErr error
			winners := make([]lambdaidem.Record, racers)
			err := race(func(i int) error {
				if i == 0 {
					finished, finishErr = s.store.Complete(ctx, s.lease("a", leaseLength), s.answer(leaseLength, "first"))
					if errors.Is(finishErr, lambdaidem.ErrLeaseLost) {
						return nil
					}
					return finishErr
				}
				c := s.takeover(fmt.Sprint("racer ", i), leaseLength, inProgress)
				r, err := s.store.Acquire(ctx, c)
				if owns(r, c) {
					winners[i] = r
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("a completion concurrent with takeovers, or one of them, returned an unexpected error: %w", err)
			}
			won := 0
			for i, r := range winners {
				if r.State == lambdaidem.Absent {
					continue
				}
				won++
				s.reads(fmt.Sprintf("after takeover %d got the lease", i), leaseLength, r)
			}
			if finishErr == nil {
				won++
				s.reads("after the completion", leaseLength, finished)
			}
			if won != 1 {
				return fmt.Errorf("%d of one completion and %d concurrent takeovers succeeded, want 1; make each write conditional on the token, in one atomic operation", won, racers-1)
			}
			return s.err
		},
	},
}

// oneWins calls Acquire concurrently with many claims, each with its own token. It checks that
// exactly one claim gets the lease, and that all calls return the record of that claim.
func (s *story) oneWins(claim func(token string) lambdaidem.Claim) error {
	claims := make([]lambdaidem.Claim, racers)
	got := make([]lambdaidem.Record, racers)
	err := race(func(i int) error {
		claims[i] = claim(fmt.Sprint("racer ", i))
		var err error
		got[i], err = s.store.Acquire(s.ctx, claims[i])
		return err
	})
	if err != nil {
		return fmt.Errorf("a concurrent call of Acquire returned an error, want none: %w", err)
	}
	winner, won := 0, 0
	for i := range got {
		if owns(got[i], claims[i]) {
			winner = i
			won++
		}
	}
	if won != 1 {
		return fmt.Errorf("%d of %d concurrent calls of Acquire got the lease, want 1; check the condition and write the record in one atomic operation", won, racers)
	}
	wantRec := claimed(claims[winner])
	for i := range got {
		if err := mismatch(fmt.Sprintf("concurrent call %d of Acquire", i), got[i], wantRec); err != nil {
			return err
		}
	}
	s.readsAt("after all acquires", wantRec.StartedAt, wantRec)
	return s.err
}

// owns reports whether the claim c got the lease. r is the record that Acquire returned for c.
func owns(r lambdaidem.Record, c lambdaidem.Claim) bool {
	return r.State == lambdaidem.InProgress && r.Token == c.Token
}

// race calls call(0), call(1) and so on, up to call(racers-1), each in its own goroutine. It waits
// for all of them, and returns their errors, joined.
func race(call func(i int) error) error {
	errs := make([]error, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	all.Wait()
	return errors.Join(errs...)
}
