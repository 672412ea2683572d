package storetest

import (
	"context"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// holdSteps test a store that is a lambdaidem.Holder, which can remove the expiry of a record.
// Other stores pass without a test.
var holdSteps = []Step{
	{
		Name: "a record that is held does not expire",
		Rule: "L6",
		Doc:  "Hold MUST remove the expiry of a record in progress, set its lease end to HeldUntil, and change nothing else. A repeated call MUST succeed.",
		Run: onHolder("a record that is held does not expire", func(s *holdStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			held := heldFrom(a)
			s.holds("the hold", leaseLength, a, held)
			s.holds("the same hold again", leaseLength+time.Second, a, held)
			s.reads("a century later", century, held)
			s.refuses("a plain acquire a century later", s.claim("b", century), held)
			s.completes("the completion by the late attempt", held, s.answer(2*leaseLength, "first"))
		}),
	},
	{
		Name: "a record that is held can be taken over",
		Rule: "L6",
		Doc:  "A takeover of a held record MUST succeed if its claim has the record as Hold left it, and MUST be refused if the record was read before.",
		Run: onHolder("a record that is held can be taken over", func(s *holdStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			held := heldFrom(a)
			s.holds("the hold", leaseLength, a, held)
			s.refuses("a takeover of the record as it was read before the hold", s.takeover("b", 2*leaseLength, a), held)
			b := s.acquires("the takeover", s.takeover("b", 2*leaseLength, held))
			s.readsAt("at the expiry", b.Expires, absent)
		}),
	},
	{
		Name: "a hold changes no other record",
		Rule: "L6",
		Doc:  "Hold MUST change nothing and return the current record without an error if the record has another state, token or lease end than the one that was read, or has expired.",
		Run: onHolder("a hold changes no other record", func(s *holdStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			s.holds("a hold of the old attempt's record", leaseLength+time.Second, a, b)
			other := b
			other.Token = "a"
			s.holds("a hold of a record with another token", leaseLength+time.Second, other, b)
			earlier := b
			earlier.LeaseEnd = earlier.LeaseEnd.Add(-time.Millisecond)
			s.holds("a hold of a record with another lease end", leaseLength+time.Second, earlier, b)
			released := s.releases("the release", b, leaseLength+2*time.Second)
			s.holds("a hold of the record before its release", leaseLength+3*time.Second, b, released)
			s.holds("a hold of the released record", leaseLength+3*time.Second, released, released)
			c := s.acquires("the next acquire", s.takeover("c", leaseLength+4*time.Second, released))
			done := s.completes("the completion", c, s.answer(leaseLength+5*time.Second, "first"))
			s.holds("a hold of the record before its completion", leaseLength+6*time.Second, c, done)
			s.holds("a hold of the completed record", leaseLength+6*time.Second, done, done)
		}),
	},
	{
		Name: "a hold revives no expired record",
		Rule: "L7",
		Doc:  "Hold MUST change nothing and return no error if the record has expired.",
		Run: onHolder("a hold revives no expired record", func(s *holdStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.holds("a hold after the expiry", lockTTL, a, absent)
		}),
	},
}

// heldFrom returns the record that Holder.Hold must return for oldRec, a record in progress: the
// same record without an expiry, and with the lease end that HeldUntil returns.
func heldFrom(oldRec lambdaidem.Record) lambdaidem.Record {
	held := oldRec
	held.Expires, held.LeaseEnd = time.Time{}, lambdaidem.HeldUntil(oldRec)
	return held
}

// holdStory is a story that can also call Hold. A story tests the store with a sequence of calls
// for one record.
type holdStory struct {
	*story
	holder lambdaidem.Holder
}

// onHolder returns a function for Step.Run. That function passes a new holdStory to the function
// tell, and returns the first failure of the story. If the store is not a Holder, it returns nil
// without calling tell. The parameter name identifies the story's record.
func onHolder(name string, tell func(*holdStory)) func(context.Context, Env) error {
	return func(ctx context.Context, e Env) error {
		holder, ok := e.Store.(lambdaidem.Holder)
		if !ok {
			return nil
		}
		s := &holdStory{e.story(ctx, name), holder}
		tell(s)
		return s.err
	}
}

// holds calls Hold with oldRec, and checks that Hold returns wantRec, and that Get then returns it
// too. elapsed is the time from the beginning of the story to the call.
func (s *holdStory) holds(label string, elapsed time.Duration, oldRec, wantRec lambdaidem.Record) {
	s.check(label, "Hold", s.at(elapsed), wantRec, nil, func() (lambdaidem.Record, error) {
		return s.holder.Hold(s.ctx, oldRec, s.at(elapsed))
	})
}
