package storetest

import (
	"context"
	"time"
)

// fencingSteps test the fencing token, a random text that identifies the attempt. An attempt may
// complete or release its record as long as the record has the attempt's token, even after the
// lease has ended.
var fencingSteps = []Step{
	{
		Name: "completion is fenced",
		Rule: "L3",
		Doc:  "Complete MUST change nothing and return ErrLeaseLost with the current record, unless the record is in progress under the lease's token.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "completion is fenced")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.losesCompletion("a completion with another token", "b", s.answer(time.Second, "second"), a)
			s.losesCompletion("a completion with another token after the lease's end", "b", s.answer(2*leaseLength, "second"), a)
			return s.err
		},
	},
	{
		Name: "release is fenced",
		Rule: "L3",
		Doc:  "Release MUST change nothing and return ErrLeaseLost with the current record, unless the record is in progress under the lease's token.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "release is fenced")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.losesRelease("a release with another token", "b", time.Second, a)
			s.losesRelease("a release with another token after the lease's end", "b", 2*leaseLength, a)
			return s.err
		},
	},
	{
		Name: "a late completion succeeds",
		Rule: "L3",
		Doc:  "Complete MUST succeed after the end of the lease, however late, as long as the record has the lease's token. The end of a lease alone loses nothing.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a late completion succeeds")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("an acquire after the lease's end", s.claim("b", leaseLength), a)
			s.completes("the completion long after the lease's end", a, s.answer(leaseLength+30*time.Minute, "first"))
			return s.err
		},
	},
	{
		Name: "a late release succeeds",
		Rule: "L3",
		Doc:  "Release MUST succeed after the end of the lease, however late, as long as the record has the lease's token. The end of a lease alone loses nothing.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a late release succeeds")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.releases("the release long after the lease's end", a, leaseLength+30*time.Minute)
			return s.err
		},
	},
	{
		Name: "a replaced attempt can't complete",
		Rule: "L3",
		Doc:  "After a takeover, Complete of the old attempt MUST return ErrLeaseLost with the new attempt's record, including its answer once there is one.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a replaced attempt can't complete")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			s.losesCompletion("the old attempt's completion", "a", s.answer(leaseLength+time.Second, "old"), b)
			done := s.completes("the new attempt's completion", b, s.answer(leaseLength+2*time.Second, "new"))
			s.losesCompletion("the old attempt's completion after the new one's", "a", s.answer(leaseLength+3*time.Second, "old"), done)
			return s.err
		},
	},
	{
		Name: "a replaced attempt can't release",
		Rule: "L3",
		Doc:  "After a takeover, Release of the old attempt MUST return ErrLeaseLost and leave the new attempt's record unchanged.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a replaced attempt can't release")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			s.losesRelease("the old attempt's release", "a", leaseLength+time.Second, b)
			released := s.releases("the new attempt's release", b, leaseLength+2*time.Second)
			s.losesRelease("the old attempt's release after the new one's", "a", leaseLength+3*time.Second, released)
			s.losesCompletion("the old attempt's completion after the new one's release", "a", s.answer(leaseLength+3*time.Second, "old"), released)
			return s.err
		},
	},
	{
		Name: "no completion after release",
		Rule: "L3",
		Doc:  "Complete MUST return ErrLeaseLost after a Release under the same token: the attempt has reported that it had no effect.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "no completion after release")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			s.losesCompletion("the completion", "a", s.answer(2*time.Second, "first"), released)
			return s.err
		},
	},
	{
		Name: "no release after completion",
		Rule: "L3",
		Doc:  "Release MUST return ErrLeaseLost after a Complete under the same token: a late clean-up must not release or delete a completed record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "no release after completion")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			s.losesRelease("the release", "a", 2*time.Second, done)
			return s.err
		},
	},
	{
		Name: "nothing to complete",
		Rule: "L3",
		Doc:  "Complete MUST return ErrLeaseLost with the zero Record if there is no record, and MUST NOT create one.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "nothing to complete")
			s.losesCompletion("a completion without a record", "a", s.answer(0, "first"), absent)
			return s.err
		},
	},
	{
		Name: "nothing to release",
		Rule: "L3",
		Doc:  "Release MUST return ErrLeaseLost with the zero Record if there is no record, and MUST NOT create one.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "nothing to release")
			s.losesRelease("a release without a record", "a", 0, absent)
			return s.err
		},
	},
}
