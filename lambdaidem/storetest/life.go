package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// lifeSteps test the states of a record and the changes from one state to another.
var lifeSteps = []Step{
	{
		Name: "no record",
		Rule: "L1",
		Doc:  "Get MUST return the zero Record and no error if there is no record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "no record")
			s.reads("before any acquire", 0, lambdaidem.Record{})
			return s.err
		},
	},
	{
		Name: "first acquire",
		Rule: "L1",
		Doc:  "absent → in progress: an Acquire without claim.Over MUST create the record with the fields of the claim, as attempt 1.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "first acquire")
			s.acquires("the first acquire", s.claim("a", 0))
			return s.err
		},
	},
	{
		Name: "completion",
		Rule: "L1",
		Doc:  "in progress → completed: Complete MUST keep what Acquire wrote, and add the result, its time and the result's expiry.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "completion")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.completes("the completion", a, s.answer(time.Second, `{"id":"pay_1"}`))
			return s.err
		},
	},
	{
		Name: "release",
		Rule: "L1",
		Doc:  "in progress → released: Release MUST keep the attempt number, the fingerprint, the token and the invocation, and set the expiry, the last failure and Bound of the lease.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "release")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.releases("the release", a, time.Second)
			return s.err
		},
	},
	{
		Name: "release and again",
		Rule: "L1",
		Doc:  "released → in progress → completed: a takeover of a released record MUST get the next attempt number, and MUST erase the last failure of the release.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "release and again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			b := s.acquires("the acquire over the released record", s.takeover("b", 2*time.Second, released))
			s.completes("the completion", b, s.answer(3*time.Second, `{"id":"pay_1"}`))
			return s.err
		},
	},
	{
		Name: "a completed record never changes",
		Rule: "G3",
		Doc:  "No call may change a completed record before it expires, whatever its token: every replay must return the first answer.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a completed record never changes")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))

			after := leaseLength + time.Second // after the lease's end, so that only the state protects the record
			s.refuses("a plain acquire", s.claim("b", after), done)
			s.refuses("a plain acquire with its own token", s.claim("a", after), done)
			s.refuses("a takeover of the record as it was in progress", s.takeover("b", after, a), done)
			s.refuses("a takeover of the completed record itself", s.takeover("b", after, done), done)
			s.losesCompletion("a completion with another token", "b", s.answer(after, "second"), done)
			s.losesRelease("a release with another token", "b", after, done)
			s.losesRelease("a release with its own token", "a", after, done)
			s.complete("a second completion with its own token", "a", s.answer(after, "second"), done, nil)
			return s.err
		},
	},
}
