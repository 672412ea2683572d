package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// contextSteps call the store with a context that has ended before the call.
var contextSteps = []Step{
	{
		Name: "an ended context acquires nothing",
		Rule: "X8",
		Doc:  "Acquire with an ended context MUST write nothing and return a StoreError with NotApplied.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an ended context acquires nothing")
			s.rejectsEndedContext("acquire", func(ended context.Context) (lambdaidem.Record, error) {
				return s.store.Acquire(ended, s.claim("a", 0))
			})
			s.reads("after the acquire with an ended context", 0, absent)

			a := s.acquires("the first acquire", s.claim("a", 0))
			s.rejectsEndedContext("acquire", func(ended context.Context) (lambdaidem.Record, error) {
				return s.store.Acquire(ended, s.takeover("b", leaseLength, a))
			})
			s.reads("after the takeover with an ended context", leaseLength, a)
			return s.err
		},
	},
	{
		Name: "an ended context completes nothing",
		Rule: "X8",
		Doc:  "Complete with an ended context MUST write nothing and return a StoreError with NotApplied, so that the guard can try again.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an ended context completes nothing")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.rejectsEndedContext("complete", func(ended context.Context) (lambdaidem.Record, error) {
				return s.store.Complete(ended, s.lease("a", time.Second), s.answer(time.Second, "first"))
			})
			s.reads("after the completion with an ended context", time.Second, a)
			s.completes("the completion with a live context", a, s.answer(2*time.Second, "first"))
			return s.err
		},
	},
	{
		Name: "an ended context releases nothing",
		Rule: "X8",
		Doc:  "Release with an ended context MUST write nothing and return a StoreError with NotApplied, so that the guard can try again.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an ended context releases nothing")
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.rejectsEndedContext("release", func(ended context.Context) (lambdaidem.Record, error) {
				return s.store.Release(ended, s.lease("a", time.Second), s.at(time.Second))
			})
			s.reads("after the release with an ended context", time.Second, a)
			s.releases("the release with a live context", a, 2*time.Second)
			return s.err
		},
	},
	{
		Name: "an ended context reads nothing",
		Rule: "X8",
		Doc:  "Get with an ended context MUST return a StoreError with NotApplied, so that the guard doesn't take a failed read for a missing record.",
		Run: func(ctx context.Context, e Env) error {
			s := e.story(ctx, "an ended context reads nothing")
			s.acquires("the first acquire", s.claim("a", 0))
			s.rejectsEndedContext("get", func(ended context.Context) (lambdaidem.Record, error) {
				return s.store.Get(ended, s.id, s.at(0))
			})
			return s.err
		},
	},
}

// rejectsEndedContext makes a call with a context that has ended. It checks that the error is a
// StoreError with the given Op and with NotApplied set: nothing was written.
func (s *story) rejectsEndedContext(op string, call func(context.Context) (lambdaidem.Record, error)) {
	if s.err != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := call(ctx)
	failure := (*lambdaidem.StoreError)(nil)
	switch {
	case err == nil:
		s.err = fmt.Errorf("%s with an ended context: no error, want a *lambdaidem.StoreError with NotApplied set", op)
	case !errors.As(err, &failure):
		s.err = fmt.Errorf("%s with an ended context: the error must be a *lambdaidem.StoreError: %w", op, err)
	case failure.Op != op:
		s.err = fmt.Errorf("%s with an ended context: Op of the StoreError is %q, want %q: %w", op, failure.Op, op, err)
	case !failure.NotApplied:
		s.err = fmt.Errorf("%s with an ended context: NotApplied of the StoreError is false; set it, because nothing was written: %w", op, err)
	}
}
