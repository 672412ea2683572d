package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// expirySteps test records that have expired, but that the database has not deleted yet.
var expirySteps = []Step{
	{
		Name: "an expired answer is not read",
		Rule: "L7",
		Doc:  "Expired in exactly the second of its expiry, and not a moment before.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired answer is not read")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			s.standsAt("a moment before the expiry", done.Expires.Add(-time.Nanosecond), done)
			s.standsAt("at the expiry", done.Expires, gone)
			s.standsAt("a day after the expiry", done.Expires.Add(24*time.Hour), gone)
			return s.err
		},
	},
	{
		Name: "an expired answer is locked afresh",
		Rule: "L7",
		Doc:  "In exactly the second of its expiry a plain acquire gets the record, as attempt 1 and without a trace of the old answer.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired answer is locked afresh")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a)) // makes attempt 2, so that a new attempt 1 is noticed
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
		Doc:  "A released record is kept until the second of its expiry; then the attempts count from 1 again.",
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
		Doc:  "Only an attempt in progress is kept by its lease: a completed or released record is gone at its expiry, though the lease's end that it keeps is to come.",
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
			t.standsAt("at the expiry", released.Expires, gone)
			return firstError(s, t)
		},
	},
	{
		Name: "an expired attempt is locked afresh",
		Rule: "L2",
		Doc:  "With its lease over and its expiry passed, an attempt that died is absent.",
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
		Doc:  "A record whose lease is live counts, however long it has expired. A lease is compared in milliseconds and is over in the millisecond that it names.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a live lease outlives the expiry")
			c := s.claim("a", 0)
			c.Expires = s.at(5 * time.Second)
			end := 10*time.Second + 500*time.Millisecond
			c.LeaseEnd = s.at(end)
			a := s.acquires("the first acquire", c)
			s.stands("at the expiry", 5*time.Second, a)
			s.refuses("an acquire in the second before the lease's end", s.claim("b", 10*time.Second), a)
			s.refuses("an acquire a moment before the lease's end", s.claim("b", end-time.Nanosecond), a)
			s.stands("at the lease's end", end, gone)
			s.acquires("an acquire at the lease's end", s.claim("b", end))
			return s.err
		},
	},
	{
		Name: "an attempt with a live lease may end after its expiry",
		Rule: "L7",
		Doc:  "A time to live that is shorter than the handler's run costs no answer.",
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
		Doc:  "With its lease over and its expiry passed, a record is absent for completion and release too, since the database may have deleted it.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired attempt is lost")
			s.acquires("the first acquire", s.claim("a", 0))
			s.losesRelease("the release at the expiry", "a", lockTTL, gone)
			s.losesCompletion("the completion at the expiry", "a", s.answer(lockTTL, "first"), gone)
			s.acquires("another attempt's acquire", s.claim("b", lockTTL))
			return s.err
		},
	},
	{
		Name: "an expired record is not taken over",
		Rule: "L7",
		Doc:  "For a takeover it is absent: nothing is created, and the next plain acquire begins afresh.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an expired record is not taken over")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.refuses("a takeover at the expiry", s.takeover("b", lockTTL, a), gone)
			s.acquires("a plain acquire", s.claim("b", lockTTL))

			t := e.story(ctx, "an expired record is not taken over, released")
			a = t.acquires("the first acquire", t.claim("a", 0))
			released := t.releases("the release", a, time.Second)
			t.refuses("a takeover at the expiry of the release", t.takeover("b", time.Second+releaseTTL, released), gone)
			return firstError(s, t)
		},
	},
	{
		Name: "a refusal does not show what has expired",
		Rule: "L7",
		Doc:  "Whoever is refused over a record that is gone gets the zero Record, never an answer whose time is over.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a refusal does not show what has expired")
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			expiry := done.Expires.Sub(s.base)
			s.refuses("a takeover of what was seen in progress", s.takeover("b", expiry, a), gone)
			s.losesCompletion("a completion with another token", "b", s.answer(expiry, "second"), gone)
			s.losesRelease("a release with another token", "b", expiry, gone)
			return s.err
		},
	},
	{
		Name: "an expired record still refuses what is older",
		Rule: "L7",
		Doc:  "It is not deleted before KeptAfterExpiry is over: a request that was made before the expiry may arrive until then.",
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
		Doc:  "Clocks differ: a call at an earlier moment than the one before it is judged by its own moment.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "time may run backwards")
			a := s.acquires("the first acquire", s.claim("a", 2*time.Second))
			done := s.completes("a completion by a clock that lags", a, s.answer(time.Second, "first"))
			s.standsAt("by a clock that is ahead", done.Expires, lambdaidem.Record{})
			s.refuses("an acquire by a clock that lags", s.claim("b", 0), done)
			return s.err
		},
	},
}
