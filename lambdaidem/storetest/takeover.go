package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// century is longer than any record may take to expire. So a record that can still be read after a
// century never expires.
const century = 100 * 365 * 24 * time.Hour

// takeoverSteps test takeovers. A takeover is a call of Acquire whose claim.Over is the record
// to replace, as it was read before.
var takeoverSteps = []Step{
	{
		Name: "takeover of a dead lease",
		Rule: "L6",
		Doc:  "A takeover of a record whose lease has ended MUST replace every field by the claim's, and MUST raise the attempt number by one.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover of a dead lease")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover at the lease's end", s.takeover("b", leaseLength, a))
			c := s.acquires("the next takeover", s.takeover("c", 3*leaseLength, b))
			s.completes("the third attempt's completion", c, s.answer(3*leaseLength+time.Second, "third"))
			return s.err
		},
	},
	{
		Name: "takeover of a released record",
		Rule: "L6",
		Doc:  "A takeover of a released record MUST succeed, even before the end of the released lease. It MUST store the claim's fingerprint and scope, because the client may have corrected its request.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover of a released record")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			claim := s.takeover("b", 2*time.Second, released)
			claim.Scope = "orders POST /payments user-1 corrected"
			b := s.acquires("the takeover", claim)
			s.refuses("a second takeover of the released record", s.takeover("c", 3*time.Second, released), b)
			return s.err
		},
	},
	{
		Name: "what binds a payload is the claim's and the release's",
		Rule: "E6",
		Doc:  "A takeover MUST set Bound to the claim's value and Release to the lease's, even if it is empty. Complete MUST keep it.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "what binds a payload")
			a := s.acquires("an acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			free := s.takeover("b", 2*time.Second, released)
			free.Bound = ""
			b := s.acquires("a takeover that binds nothing", free)
			s.refuses("another acquire", s.claim("c", 3*time.Second), b)
			released = s.releases("the second release", b, 4*time.Second)
			c := s.acquires("a takeover that binds", s.takeover("c", 5*time.Second, released))
			d := s.acquires("a takeover of a dead lease", s.takeover("d", 6*time.Second+leaseLength, c))
			s.completes("the completion", d, s.answer(7*time.Second+leaseLength, "first"))
			return s.err
		},
	},
	{
		Name: "takeover looks at the token",
		Rule: "L6",
		Doc:  "A takeover MUST be refused if the record has another token than claim.Over, even if the state and the lease end are the same: another attempt was faster.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover looks at the token")
			a := s.acquires("the first acquire", s.claim("a", 0))
			oldRec := a
			oldRec.Token = "z"
			s.refuses("a takeover of another token's record", s.takeover("b", leaseLength, oldRec), a)
			return s.err
		},
	},
	{
		Name: "takeover looks at the state",
		Rule: "L6",
		Doc:  "A takeover MUST be refused if the record has another state than claim.Over, even if the token and the lease end are the same: the record was released or completed in the meantime.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover looks at the state")
			a := s.acquires("the first acquire", s.claim("a", 0))
			oldRec := a
			oldRec.State = lambdaidem.Released
			s.refuses("a takeover of a released record that is in progress", s.takeover("b", time.Second, oldRec), a)
			released := s.releases("the release", a, 2*time.Second)
			s.refuses("a takeover of a dead lease that was released", s.takeover("b", leaseLength, a), released)

			t := e.story(ctx, "takeover looks at the state, completed")
			a = t.acquires("the first acquire", t.claim("a", 0))
			done := t.completes("the late completion", a, t.answer(leaseLength, "first"))
			t.refuses("a takeover of a dead lease that was completed", t.takeover("b", leaseLength, a), done)
			return firstError(s, t)
		},
	},
	{
		Name: "takeover looks at the lease end",
		Rule: "L6",
		Doc:  "A takeover MUST be refused if the lease end differs from claim.Over by a millisecond, even if the token and the state are the same.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover looks at the lease end")
			a := s.acquires("the first acquire", s.claim("a", 0))
			for _, difference := range []time.Duration{-time.Millisecond, time.Millisecond} {
				oldRec := a
				oldRec.LeaseEnd = oldRec.LeaseEnd.Add(difference)
				s.refuses("a takeover of another lease end", s.takeover("b", 2*leaseLength, oldRec), a)
			}
			released := s.releases("the release", a, 2*leaseLength)
			oldRec := released
			oldRec.LeaseEnd = oldRec.LeaseEnd.Add(time.Millisecond)
			s.refuses("a takeover of a released record with another lease end", s.takeover("b", 2*leaseLength, oldRec), released)
			return s.err
		},
	},
	{
		Name: "takeover creates nothing",
		Rule: "L6",
		Doc:  "A takeover MUST NOT create a record. If there is none any more, it MUST return the zero Record, and the guard makes a plain Acquire.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "takeover creates nothing")
			oldRec := claimed(s.claim("a", 0))
			s.refuses("a takeover of a record that does not exist", s.takeover("b", leaseLength, oldRec), absent)
			s.acquires("a plain acquire after it", s.claim("b", leaseLength+time.Second))
			return s.err
		},
	},
	{
		Name: "a held record does not expire",
		Rule: "L6",
		Doc:  "A record whose claim has a zero Expires (policy Hold) MUST NOT expire. Only a takeover, Complete or Release of its own attempt may change it, however late.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a held record does not expire")
			hold := s.claim("a", 0)
			hold.Expires = time.Time{}
			a := s.acquires("the held acquire", hold)
			s.reads("a century later", century, a)
			s.refuses("a plain acquire a century later", s.claim("b", century), a)

			takeover := s.takeover("b", 2*time.Minute, a)
			takeover.Expires = time.Time{}
			b := s.acquires("the held takeover", takeover)
			s.reads("a century after the takeover", century, b)
			s.completes("the completion", b, s.answer(3*time.Minute, "first")) // gives the record an expiry, so that the database deletes it after the run
			return s.err
		},
	},
	{
		Name: "a takeover sets or lifts the expiry",
		Rule: "L6",
		Doc:  "A takeover MUST set the expiry to the claim's. If it is zero (policy Hold), the record no longer expires, even if a release had set an expiry.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "a takeover sets or lifts the expiry")
			a := s.acquires("the first acquire", s.claim("a", 0))
			released := s.releases("the release", a, time.Second)
			hold := s.takeover("b", 2*time.Second, released)
			hold.Expires = time.Time{}
			b := s.acquires("the held takeover", hold)
			s.reads("a century later", century, b)
			c := s.acquires("the takeover under policy rerun", s.takeover("c", 2*leaseLength, b))
			s.readsAt("at the expiry of the last takeover", c.Expires, absent)
			return s.err
		},
	},
	{
		Name: "the end of a held record sets its expiry",
		Rule: "L6",
		Doc:  "Complete and Release MUST set the expiry of a record that had none (policy Hold).",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "the end of a held record sets its expiry, completed")
			hold := s.claim("a", 0)
			hold.Expires = time.Time{}
			a := s.acquires("the held acquire", hold)
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			s.readsAt("at the answer's expiry", done.Expires, absent)

			t := e.story(ctx, "the end of a held record sets its expiry, released")
			hold = t.claim("a", 0)
			hold.Expires = time.Time{}
			a = t.acquires("the held acquire", hold)
			released := t.releases("the release", a, time.Second)
			t.readsAt("at the release's expiry", released.Expires, absent)
			return firstError(s, t)
		},
	},
}
