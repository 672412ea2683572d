package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// largeSteps test a store that is a [lambdaidem.Loader], that is, a store that can keep a large
// answer outside its record. Such a store must accept any answer that Lambda can return, up to
// 6 MB. Other stores pass without a test.
var largeSteps = []Step{
	{
		Name: "an answer of 6 MB comes back whole",
		Rule: "R3",
		Doc:  "Load of a Loader MUST return every byte of an answer of 6 MB, even if it can't be compressed.",
		Run: func(ctx context.Context, e Env) error {
			if _, ok := e.Store.(lambdaidem.Loader); !ok {
				return nil
			}
			const size = 6 << 20
			return keeps(ctx, e, "6 MB", map[string]lambdaidem.Result{
				"text":  value(strings.Repeat("payment ", size/len("payment "))),
				"bytes": value(noise(1, size)),
			})
		},
	},
	{
		Name: "a large answer is that of its own completion",
		Rule: "G3",
		Doc:  "Complete with a large answer MUST NOT change the stored answer if it is the second one under its token or its lease is lost, even if it has already written parts of its own answer.",
		Run: func(ctx context.Context, e Env) error {
			if _, ok := e.Store.(lambdaidem.Loader); !ok {
				return nil
			}
			const size = 600 << 10
			s := e.story(ctx, "a large answer is that of its own completion")
			a := s.acquires("the first acquire", s.claim("a", 0))
			b := s.acquires("the takeover", s.takeover("b", leaseLength, a))
			after := leaseLength + time.Second
			s.losesCompletion("the completion of the replaced attempt", "a", s.answer(after, noise(1, size)), b)
			done := s.completes("the completion", b, s.answer(after, noise(2, size)))
			s.complete("another completion under the same token", "b", s.answer(after, noise(3, size)), done, nil)
			s.losesCompletion("another completion of the replaced attempt", "a", s.answer(after, noise(4, size)), done)
			return s.err
		},
	},
	{
		Name: "an ended context loads nothing",
		Rule: "R3",
		Doc:  "Load with an ended context MUST return a StoreError with NotApplied and another reason than ReasonForeign: the answer still exists, and must not count as lost.",
		Run: func(ctx context.Context, e Env) error {
			loader, ok := e.Store.(lambdaidem.Loader)
			if !ok {
				return nil
			}
			s := e.story(ctx, "an ended context loads nothing")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.completes("the completion", a, s.answer(time.Second, noise(1, 600<<10)))
			if s.err != nil {
				return s.err
			}
			record, err := s.store.Get(ctx, s.id, s.at(time.Second))
			if err != nil || record.Result.Apart == nil { // Apart is nil if the store keeps even this answer in the record
				return err
			}
			s.rejectsEndedContext("load", func(ended context.Context) (lambdaidem.Record, error) {
				_, err := loader.Load(ended, record)
				if failure := (*lambdaidem.StoreError)(nil); errors.As(err, &failure) && failure.Reason == lambdaidem.ReasonForeign {
					return record, fmt.Errorf("ReasonForeign says that the answer is lost, but it was only not read; use another reason: %s", err.Error()) // %s, so that rejectsEndedContext does not find the StoreError in it
				}
				return record, err
			})
			return s.err
		},
	},
}

// noise returns random bytes, which can't be compressed and are not UTF-8. The same seed gives
// the same bytes.
func noise(seed byte, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never fails
	return string(b)
}
