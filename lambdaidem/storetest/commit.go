package storetest

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// commitSteps test a lambdaidem.Transactor with attempts that have no lease: one transaction claims
// the record and completes it. Other stores pass without a test.
var commitSteps = []Step{
	{
		Name: "a record that has expired since refuses a claiming completion",
		Rule: "E4",
		Doc:  "Commit with a Claim MUST judge by Claim.Now whether the record has expired, and not by Result.At. It MUST return the record that refuses it, even if that record has expired since Claim.Now.",
		Run: onTransactor("a record that has expired since refuses a claiming completion", func(s *commitStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			done := s.completes("the completion", a, s.answer(time.Second, "first"))
			expiry := done.Expires.Sub(s.base)
			s.losesCommit("a commit of an attempt that began before the expiry", s.claim("b", expiry-time.Nanosecond), expiry+leaseLength, done)
			s.commits("a commit of an attempt that began at the expiry", s.claim("c", expiry), expiry+leaseLength)
		}),
	},
	{
		Name: "a claiming completion takes over a record that has expired since",
		Rule: "E4",
		Doc:  "Commit with Claim.Over MUST take over a record that has expired since Claim.Now, and MUST be refused by a record that had expired before, which counts as absent.",
		Run: onTransactor("a claiming completion takes over a record that has expired since", func(s *commitStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.losesCommit("a commit of an attempt that began at the expiry", s.takeover("b", lockTTL, a), lockTTL+leaseLength, absent)
			s.commits("a commit of an attempt that began before the expiry", s.takeover("b", lockTTL-time.Nanosecond, a), lockTTL+leaseLength)
		}),
	},
}

// commitStory is a story that can also commit transactions. A story tests the store with a sequence
// of calls for one record.
type commitStory struct {
	*story
	transactor lambdaidem.Transactor
}

// onTransactor returns a function for Step.Run. That function passes a new commitStory to the
// function test, and returns the first failure of the story. If the store has no transactions, it
// returns nil without calling test. The parameter name identifies the story's record.
func onTransactor(name string, test func(*commitStory)) func(context.Context, Env) error {
	return func(ctx context.Context, e Env) error {
		transactor, ok := e.Store.(lambdaidem.Transactor)
		if !ok || transactor.Begin(rand.Reader) == nil { // Begin returns nil if the store wraps a store without transactions
			return nil
		}
		s := &commitStory{e.story(ctx, name), transactor}
		test(s)
		return s.err
	}
}

// commits calls Commit with the claim c, and checks that this one transaction acquires and
// completes the record. elapsed is the time from the beginning of the story to the completion.
func (s *commitStory) commits(label string, c lambdaidem.Claim, elapsed time.Duration) {
	completion := s.completion(c, elapsed)
	wantRec := completed(claimed(*completion.Claim), completion.Result)
	s.check(label, "Commit", s.at(elapsed), wantRec, nil, func() (lambdaidem.Record, error) {
		_, err := s.commit(completion)
		return wantRec, err // a transaction need not return all fields of the record; check also reads the record
	})
}

// losesCommit calls Commit with the claim c, and checks that Commit changes nothing and returns
// ErrLeaseLost with the current record. elapsed is the time from the beginning of the story to the
// completion.
func (s *commitStory) losesCommit(label string, c lambdaidem.Claim, elapsed time.Duration, current lambdaidem.Record) {
	s.check(label, "Commit", c.Now, current, lambdaidem.ErrLeaseLost, func() (lambdaidem.Record, error) {
		return s.commit(s.completion(c, elapsed))
	})
}

// completion returns the completion of an attempt that began at c.Now. elapsed is the time from the
// beginning of the story to the completion.
func (s *commitStory) completion(c lambdaidem.Claim, elapsed time.Duration) *lambdaidem.Completion {
	result := s.answer(elapsed, "answer of "+c.Token)
	c.LeaseEnd, c.Expires = result.At, result.Expires
	return &lambdaidem.Completion{Lease: lambdaidem.Lease{ID: s.id, Token: c.Token, Expires: result.Expires}, Result: result, Claim: &c}
}

func (s *commitStory) commit(c *lambdaidem.Completion) (lambdaidem.Record, error) {
	tx := s.transactor.Begin(rand.Reader)
	tx.Seal(c.Result.Outcome)
	return tx.Commit(s.ctx, c)
}
