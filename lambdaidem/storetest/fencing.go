package storetest

import (
	"context"
	"time"
)

// fencingSteps test the fencing token: an attempt keeps its lease until another attempt's token
// has replaced its own, whatever the time is.
var fencingSteps = []Step{
	{
		Name: "completion is fenced",
		Rule: "L3",
		Doc:  "A completion under a token that does not hold the record changes nothing.",
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
		Doc:  "A release under a token that does not hold the record changes nothing.",
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
		Doc:  "Passing its end loses no lease: an attempt that nobody replaced may complete however late.",
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
		Doc:  "Passing its end loses no lease: an attempt that nobody replaced may release however late.",
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
		Doc:  "After a takeover the old attempt learns of the new one, and of its answer once there is one.",
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
		Doc:  "After a takeover the old attempt can't give the record away.",
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
		Doc:  "A release says that nothing happened. The attempt that said so can't complete any more.",
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
		Doc:  "A clean-up that comes late must not delete or release a completed record.",
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
		Doc:  "A completion of what is not there is a lost lease. It creates nothing.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "nothing to complete")
			s.losesCompletion("a completion without a record", "a", s.answer(0, "first"), gone)
			return s.err
		},
	},
	{
		Name: "nothing to release",
		Rule: "L3",
		Doc:  "A release of what is not there is a lost lease. It creates nothing.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "nothing to release")
			s.losesRelease("a release without a record", "a", 0, gone)
			return s.err
		},
	},
}

// replySteps repeat a call with the same token, as the guard does if the reply was lost. The
// repeated call must succeed and change nothing.
var replySteps = []Step{
	{
		Name: "acquire again",
		Rule: "L4",
		Doc:  "A plain acquire that is refused by its own token holds the lease; nothing is written twice.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "acquire again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.acquire("the same acquire again, later", s.claim("a", time.Second), a)
			return s.err
		},
	},
	{
		Name: "take over again",
		Rule: "L4",
		Doc:  "A takeover that is refused by its own token holds the lease, under the same attempt number.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "take over again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			s.acquire("the same takeover again, later", s.takeover("b", leaseLength+time.Second, a), b)
			s.acquire("a plain acquire with the same token", s.claim("b", leaseLength+2*time.Second), b)
			return s.err
		},
	},
	{
		Name: "complete again",
		Rule: "L4",
		Doc:  "A completion that finds the record completed under its own token has succeeded. The first result stays.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "complete again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			s.complete("the same completion again", "a", s.answer(time.Second, "first"), done, nil)
			s.complete("a completion with another result", "a", s.answer(2*time.Second, "second"), done, nil)
			return s.err
		},
	},
	{
		Name: "release again",
		Rule: "L4",
		Doc:  "A release that finds the record released under its own token has succeeded.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "release again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			s.release("the same release again", "a", time.Second, released, nil)
			return s.err
		},
	},
}
