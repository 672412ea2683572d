package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// lockSteps test claims for a new record (claim.Over is nil) if there is a record already. If that
// record refuses the claim, Acquire must return the complete record, because the guard decides from
// that record alone what to do.
var lockSteps = []Step{
	{
		Name: "a live lease refuses",
		Rule: "L2",
		Doc:  "While a lease is live, Acquire MUST refuse every other claim, and return the complete record: the guard needs its fingerprint, lease end and attempt.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a live lease refuses")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("another acquire at once", s.claim("b", 0), a)
			s.refuses("another acquire later", s.claim("c", 30*time.Second), a)
			return s.err
		},
	},
	{
		Name: "a dead lease refuses a plain acquire",
		Rule: "L2",
		Doc:  "An Acquire without claim.Over MUST NOT take a record whose lease has ended. The attempt may have had effects, so only a takeover, which raises the attempt number, may take the record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a dead lease refuses a plain acquire")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("an acquire at the lease's end", s.claim("b", leaseLength), a)
			s.refuses("an acquire long after it", s.claim("c", leaseLength+30*time.Minute), a)
			return s.err
		},
	},
	{
		Name: "a released record refuses a plain acquire",
		Rule: "L2",
		Doc:  "An Acquire without claim.Over MUST NOT take a released record, because it would lose the attempt number. Only a takeover may.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a released record refuses a plain acquire")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			s.refuses("an acquire", s.claim("b", 2*time.Second), released)
			s.refuses("an acquire with the released token", s.claim("a", 2*time.Second), released)
			s.refuses("an acquire after the released lease's end", s.claim("c", leaseLength+time.Second), released)
			return s.err
		},
	},
	{
		Name: "a completed record answers",
		Rule: "L2",
		Doc:  "An Acquire that a completed record refuses MUST return the record with its complete answer, which the guard replays.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a completed record answers")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, `{"id":"pay_1"}`))
			s.refuses("an acquire", s.claim("b", 2*time.Second), done)
			s.refuses("an acquire after the first lease's end", s.claim("c", leaseLength+time.Second), done)
			return s.err
		},
	},
	{
		Name: "lease ends and moments are kept in milliseconds",
		Rule: "L5",
		Doc:  "The store MUST keep LeaseEnd, StartedAt and CompletedAt in whole milliseconds, truncating finer times of the caller.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "lease ends and moments are kept in milliseconds")
			c := s.claim("a", 123_456_789*time.Nanosecond)
			c.LeaseEnd = s.at(leaseLength + 999*time.Millisecond)
			a := s.acquires("the first acquire", c)

			c = s.takeover("b", 2*leaseLength+987_654_321*time.Nanosecond, a)
			c.LeaseEnd = s.at(3*leaseLength + time.Millisecond)
			b := s.acquires("the takeover", c)
			s.completes("the completion", b, s.answer(2*leaseLength+1234*time.Millisecond, "first"))
			return s.err
		},
	},
	{
		Name: "a claim's texts are kept",
		Rule: "L2",
		Doc:  "The store MUST return the fingerprint and the scope byte for byte, even if they are empty or not ASCII.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a claim's texts are kept")
			c := s.claim("a", 0)
			c.Fingerprint, c.Scope = "", ""
			s.acquires("an acquire with empty texts", c)

			t := e.story(ctx, "a claim's texts are kept, unusual ones")
			c = t.claim("a", 0)
			c.Scope = `zahlungen POST /é/{id} https://issuer.example|"sub":'ü' 漢` + "\t"
			a := t.acquires("an acquire with unusual texts", c)
			t.refuses("another acquire", t.claim("b", time.Second), a)
			return firstError(s, t)
		},
	},
	{
		Name: "records are apart",
		Rule: "G3",
		Doc:  "Ids MUST be compared byte by byte, including letter case, and no call may change another record than its own, even if both have the same token.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "records are apart")
			upper, longer := *s, *s
			s.id += "a"
			upper.id += "A"
			longer.id += "ab"

			a := s.acquires("the first record's acquire", s.claim("token", 0))
			b := upper.acquires("the second record's acquire", upper.claim("token", 0))
			c := longer.acquires("the third record's acquire", longer.claim("token", 0))
			done := s.completes("the first record's completion", a, s.answer(time.Second, "first"))
			upper.reads("after the first record's completion", time.Second, b)
			released := upper.releases("the second record's release", b, 2*time.Second)
			s.reads("after the second record's release", 3*time.Second, done)
			longer.reads("after both", 3*time.Second, c)
			longer.completes("the third record's completion", c, longer.answer(4*time.Second, "third"))
			s.reads("after the third record's completion", 5*time.Second, done)
			upper.reads("after the third record's completion", 5*time.Second, released)
			return firstError(s, &upper, &longer)
		},
	},
}

// firstError returns the error of the first story in the list that failed, or nil if none failed. A
// story tests the store with a sequence of calls for one record.
func firstError(stories ...*story) error {
	for _, s := range stories {
		if s.err != nil {
			return s.err
		}
	}
	return nil
}

// absent is what a store must return if there is no record, or if the record has expired.
var absent = lambdaidem.Record{}
