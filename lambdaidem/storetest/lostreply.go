package storetest

import (
	"context"
	"time"
)

// replySteps test repeated calls. If the guard gets no reply to a call, it repeats the call with
// the same fencing token. The repeated call must succeed and change nothing.
var replySteps = []Step{
	{
		Name: "acquire again",
		Rule: "L4",
		Doc:  "A repeated Acquire with the same token MUST change nothing and return the record: it is how the guard recognizes its own lease after a lost reply.",
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
		Doc:  "A repeated takeover with the same token MUST change nothing and return the record, with the attempt number of the first: it is how the guard recognizes its own lease after a lost reply.",
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
		Doc:  "Complete MUST succeed without a change if the record is already completed under the same token. The first result stays, even if the second call has another.",
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
		Doc:  "Release MUST succeed without a change if the record is already released under the same token.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "release again")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			s.release("the same release again", "a", time.Second, released, nil)
			return s.err
		},
	},
}
