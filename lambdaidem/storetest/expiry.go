package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// expirySteps are the steps about records that have expired, but that the database has not deleted
// yet.
var expirySteps = []Step{
	{
		Name: "an expired answer is not read",
		Rule: "L7",
		Doc:  "Get MUST return a completed record until the second of its expiry, and the zero Record from that second on, even if the database has not deleted the item.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired answer is not read")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			s.readsAt("a moment before the expiry", done.Expires.Add(-time.Nanosecond), done)
			s.readsAt("at the expiry", done.Expires, absent)
			s.readsAt("a day after the expiry", done.Expires.Add(24*time.Hour), absent)
			return s.err
		},
	},
	{
		Name: "an expired answer is locked afresh",
		Rule: "L7",
		Doc:  "From the second of a completed record's expiry, an Acquire without claim.Over MUST succeed, as attempt 1 and without any field of the old answer.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired answer is locked afresh")
			a := s.acquires("the first acquire", s.claim("a", 0))
			// Let a record with attempt number 2 expire, because the last acquire must set the
			// number to 1 again. If the expired record had number 1, the test would not notice a
			// store that keeps the number.
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			done := s.completes("the completion", b, s.answer(2*leaseLength, "first"))
			expiry := done.Expires.Sub(s.base)
			s.refuses("an acquire a moment before the expiry", s.claim("c", expiry-time.Nanosecond), done)
			s.acquires("an acquire at the expiry", s.claim("c", expiry))
			return s.err
		},
	},
	{
		Name: "an expired release is locked afresh",
		Rule: "L7",
		Doc:  "From the second of a released record's expiry, an Acquire without claim.Over MUST succeed, as attempt 1. Before it, the record MUST be kept.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired release is locked afresh")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			expiry := released.Expires.Sub(s.base)
			s.refuses("an acquire a moment before the expiry", s.claim("b", expiry-time.Nanosecond), released)
			s.acquires("an acquire at the expiry", s.claim("b", expiry))
			return s.err
		},
	},
	{
		Name: "a finished record expires before its lease's end",
		Rule: "L7",
		Doc:  "A completed or released record MUST expire at its expiry, even if its LeaseEnd is later: a live lease keeps only a record in progress.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a finished record expires before its lease's end, completed")
			a := s.acquires("the first acquire", s.claim("a", 0))
			result := s.answer(time.Second, "first")
			result.Expires = s.at(5 * time.Second)
			done := s.completes("the completion", a, result)
			s.refuses("an acquire a moment before the expiry", s.claim("b", 5*time.Second-time.Nanosecond), done)
			s.acquires("an acquire at the expiry", s.claim("b", 5*time.Second))

			t := e.story(ctx, "a finished record expires before its lease's end, released")
			c := t.claim("a", 0)
			c.LeaseEnd = t.at(2 * releaseTTL)
			a = t.acquires("the first acquire", c)
			released := t.releases("the release", a, time.Second)
			t.readsAt("at the expiry", released.Expires, absent)
			return firstError(s, t)
		},
	},
	{
		Name: "an expired attempt is locked afresh",
		Rule: "L2",
		Doc:  "A record in progress whose lease has ended and whose expiry has passed counts as absent: an Acquire without claim.Over MUST succeed.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired attempt is locked afresh")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("an acquire a moment before the expiry", s.claim("b", lockTTL-time.Nanosecond), a)
			s.acquires("an acquire at the expiry", s.claim("b", lockTTL))
			return s.err
		},
	},
	{
		Name: "a live lease outlives the expiry",
		Rule: "L2",
		Doc:  "A record in progress MUST NOT count as expired while its lease is live. A lease is compared in milliseconds, and is over in the millisecond of its LeaseEnd.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a live lease outlives the expiry")
			c := s.claim("a", 0)
			c.Expires = s.at(5 * time.Second)
			end := 10*time.Second + 500*time.Millisecond
			c.LeaseEnd = s.at(end)
			a := s.acquires("the first acquire", c)
			s.reads("at the expiry", 5*time.Second, a)
			s.refuses("an acquire in the second before the lease's end", s.claim("b", 10*time.Second), a)
			s.refuses("an acquire a moment before the lease's end", s.claim("b", end-time.Nanosecond), a)
			s.reads("at the lease's end", end, absent)
			s.acquires("an acquire at the lease's end", s.claim("b", end))
			return s.err
		},
	},
	{
		Name: "an attempt with a live lease may end after its expiry",
		Rule: "L7",
		Doc:  "Complete and Release MUST succeed after the record's expiry while its lease is live. Otherwise a handler that runs longer than the TTL would lose its answer.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an attempt with a live lease may end after its expiry")
			c := s.claim("a", 0)
			c.Expires = s.at(5 * time.Second)
			a := s.acquires("the first acquire", c)
			s.completes("the completion after the expiry", a, s.answer(leaseLength-time.Millisecond, "first"))

			t := e.story(ctx, "an attempt with a live lease may end after its expiry, released")
			c = t.claim("a", 0)
			c.Expires = t.at(5 * time.Second)
			a = t.acquires("the first acquire", c)
			t.releases("the release after the expiry", a, leaseLength-time.Millisecond)
			return firstError(s, t)
		},
	},
	{
		Name: "an expired attempt is lost",
		Rule: "L7",
		Doc:  "If the lease has ended and the expiry has passed, Complete and Release MUST return ErrLeaseLost with the zero Record, as if the database had already deleted the item.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired attempt is lost")
			s.acquires("the first acquire", s.claim("a", 0))
			s.losesRelease("the release at the expiry", "a", lockTTL, absent)
			s.losesCompletion("the completion at the expiry", "a", s.answer(lockTTL, "first"), absent)
			s.acquires("another attempt's acquire", s.claim("b", lockTTL))
			return s.err
		},
	},
	{
		Name: "an expired record is not taken over",
		Rule: "L7",
		Doc:  "A takeover of an expired record MUST create nothing and return the zero Record. A plain Acquire then begins with attempt 1.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired record is not taken over")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("a takeover at the expiry", s.takeover("b", lockTTL, a), absent)
			s.acquires("a plain acquire", s.claim("b", lockTTL))

			t := e.story(ctx, "an expired record is not taken over, released")
			a = t.acquires("the first acquire", t.claim("a", 0))
			released := t.releases("the release", a, time.Second)
			t.refuses("a takeover at the expiry of the release", t.takeover("b", time.Second+releaseTTL, released), absent)
			return firstError(s, t)
		},
	},
	{
		Name: "a refusal does not show what has expired",
		Rule: "L7",
		Doc:  "A call that is refused because the record has expired MUST return the zero Record, never an expired answer.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a refusal does not show what has expired")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			expiry := done.Expires.Sub(s.base)
			s.refuses("a takeover of the record as it was in progress", s.takeover("b", expiry, a), absent)
			s.losesCompletion("a completion with another token", "b", s.answer(expiry, "second"), absent)
			s.losesRelease("a release with another token", "b", expiry, absent)
			return s.err
		},
	},
	{
		Name: "an expired record still refuses what is older",
		Rule: "L7",
		Doc:  "The store MUST keep an expired record for KeptAfterExpiry, and MUST judge a call by its own time: a request that was sent before the expiry may arrive until then.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired record still refuses what is older")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			expiry := done.Expires.Sub(s.base)
			for _, other := range []string{"one", "two", "three", "four"} { // these acquires may make a store delete expired records
				o := e.story(ctx, "an expired record still refuses what is older, "+other)
				o.acquires("the acquire of another record", o.claim("b", expiry+lambdaidem.KeptAfterExpiry-time.Second))
				s.err = firstError(s, o)
			}
			s.refuses("an acquire that was made before the expiry", s.claim("c", expiry-time.Nanosecond), done)
			s.acquires("an acquire that was made at the expiry", s.claim("c", expiry))
			return s.err
		},
	},
	{
		Name: "time may run backwards",
		Rule: "L7",
		Doc:  "The store MUST judge each call by the time of that call, even if an earlier call had a later time: the clocks of callers differ.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "time may run backwards")
			a := s.acquires("the first acquire", s.claim("a", 2*time.Second))
			done := s.completes("a completion by a clock that lags", a, s.answer(time.Second, "first"))
			s.readsAt("by a clock that is ahead", done.Expires, lambdaidem.Record{})
			s.refuses("an acquire by a clock that lags", s.claim("b", 0), done)
			return s.err
		},
	},
}
