package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// savedSteps test a store that is a lambdaidem.StepStore, which stores the results of a
// handler's steps. Other stores pass without a test, because the guard allows no steps with
// them.
var savedSteps = []Step{
	{
		Name: "steps are saved",
		Rule: "E5",
		Doc:  "They are there for every read, byte for byte, and nothing else of the record has changed; a save has all of them.",
		Run: onStepStore("steps are saved", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("the first save", a, time.Second, "charge", `{"id":"ch_1", "s":"\u00e9<&>漢"}`)
			a = s.saves("the second save", a, 2*time.Second, "mail ünd so", `9007199254740993`, "no text", "\xff\x00", "empty", "")
			s.refuses("another acquire", s.claim("b", 3*time.Second), a)
			s.acquire("the same acquire again", s.claim("a", 3*time.Second), a)
		}),
	},
	{
		Name: "a save is fenced",
		Rule: "E5",
		Doc:  "A save under a token that does not hold the record changes nothing: not before and not after a takeover.",
		Run: onStepStore("a save is fenced", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.losesSave("a save with another token", "b", time.Second, a)
			a = s.saves("a save", a, 2*time.Second, "charge", `1`)
			b := s.acquiresOver("the takeover", "b", leaseLength, a)
			s.losesSave("the old attempt's save", "a", leaseLength+time.Second, b)
		}),
	},
	{
		Name: "a late save succeeds",
		Rule: "L3",
		Doc:  "Passing its end loses no lease: an attempt that nobody replaced may save its steps however late.",
		Run: onStepStore("a late save succeeds", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.saves("the save long after the lease's end", a, leaseLength+30*time.Minute, "charge", `1`)
		}),
	},
	{
		Name: "no save after the attempt's end",
		Rule: "E5",
		Doc:  "Neither a released nor a completed record gets steps, nor one that is gone or was never there; and no save creates a record.",
		Run: onStepStore("no save after the attempt's end", func(s *stepStory) {
			s.losesSave("a save without a record", "a", 0, gone)
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			released := s.releases("the release", a, 2*time.Second)
			s.losesSave("a save after the release", "a", 3*time.Second, released)
			b := s.acquiresOver("the acquire over the released record", "b", 4*time.Second, released)
			done := s.completes("the completion", b, s.answer(5*time.Second, "first"))
			s.losesSave("a save after the completion", "b", 6*time.Second, done)
			s.lossAt("a save after the record's expiry", "b", done.Expires, gone)
		}),
	},
	{
		Name: "a takeover keeps the steps",
		Rule: "L6",
		Doc:  "A dead attempt's steps are the next one's, those too that it saved after it was seen: the reply has them.",
		Run: onStepStore("a takeover keeps the steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			seen := s.saves("the first save", a, time.Second, "charge", `1`)
			now := s.saves("a save after the record was seen", seen, leaseLength, "mail", `2`)
			c := s.takeover("b", leaseLength+time.Second, seen)
			want := claimed(c)
			want.Steps = now.Steps
			s.acquire("the takeover of what was seen", c, want)
			s.acquire("the same takeover again", s.takeover("b", leaseLength+2*time.Second, seen), want)
			s.saves("the next attempt's save", want, leaseLength+3*time.Second, "ship", `3`)
		}),
	},
	{
		Name: "a release keeps the steps",
		Rule: "L1",
		Doc:  "What a released record keeps of its attempts is their steps, for the attempt after it.",
		Run: onStepStore("a release keeps the steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			released := s.releases("the release", a, 2*time.Second)
			s.refuses("a plain acquire", s.claim("b", 3*time.Second), released)
			s.acquiresOver("the acquire over the released record", "b", 4*time.Second, released)
		}),
	},
	{
		Name: "a completion drops the steps",
		Rule: "E5",
		Doc:  "A replay needs none of them, and must not pay for them.",
		Run: onStepStore("a completion drops the steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			done := s.completes("the completion", a, s.answer(2*time.Second, "first"))
			s.refuses("another acquire", s.claim("b", 3*time.Second), done)
			s.complete("the same completion again", "a", s.answer(2*time.Second, "first"), done, nil)
		}),
	},
	{
		Name: "what has expired has no steps",
		Rule: "L7",
		Doc:  "A lock over an expired record begins afresh.",
		Run: onStepStore("what has expired has no steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			s.lossAt("a save after the expiry", "a", a.Expires, gone)
			s.acquires("the acquire after the expiry", s.claim("b", lockTTL))
		}),
	},
	{
		Name: "save again",
		Rule: "L4",
		Doc:  "A save that finds exactly its steps under its own token has succeeded.",
		Run: onStepStore("save again", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("the save", a, time.Second, "charge", `1`, "mail", `2`)
			s.save("the same save again", "a", 2*time.Second, a.Steps, a, nil)
		}),
	},
	{
		Name: "a save takes no step away",
		Rule: "E5",
		Doc:  "A save that comes late, of fewer steps or of others, changes nothing and is a StoreError that says so.",
		Run: onStepStore("a save takes no step away", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			first := s.saves("the first save", a, time.Second, "charge", `1`)
			both := s.saves("the second save", first, 2*time.Second, "mail", `2`)
			s.savesNot("the first save, late", "a", 3*time.Second, first.Steps, both)
			s.savesNot("a save of another result", "a", 3*time.Second, lambdaidem.Steps{"charge": []byte(`1`), "mail": []byte(`3`)}, both)
			s.savesNot("a save of another step", "a", 3*time.Second, lambdaidem.Steps{"charge": []byte(`1`), "ship": []byte(`2`)}, both)
		}),
	},
	{
		Name: "steps are their record's alone",
		Rule: "G3",
		Doc:  "Under one token too, a step of one record is none of another's.",
		Run: func(ctx context.Context, e Env) error {
			first, other := e.stepStory(ctx, "steps are their record's alone"), e.stepStory(ctx, "steps are their record's alone, another")
			if first == nil {
				return nil
			}
			a := first.acquires("the first record's acquire", first.claim("token", 0))
			b := other.acquires("the other record's acquire", other.claim("token", 0))
			a = first.saves("the first record's save", a, time.Second, "charge", `1`)
			other.stands("after the first record's save", time.Second, b)
			other.saves("the other record's save", b, 2*time.Second, "charge", `2`)
			first.stands("after the other record's save", 2*time.Second, a)
			return firstError(first.story, other.story)
		},
	},
	{
		Name: "steps are the store's own",
		Rule: "G3",
		Doc:  "What a caller does to the steps that it gave or got must not reach the record.",
		Run: onStepStore("steps are the store's own", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("the save", a, time.Second, "charge", `1`)
			given := copiedSteps(a.Steps)
			given["mail"] = []byte(`2`)
			want := a
			want.Steps = copiedSteps(given)
			for _, c := range []struct {
				what string
				call func() (lambdaidem.Record, error)
			}{
				{"a save", func() (lambdaidem.Record, error) {
					r, err := s.steps.SaveSteps(s.ctx, s.lease("a", time.Second), given, s.at(2*time.Second))
					scribbleSteps(given)
					return r, err
				}},
				{"a refused acquire", func() (lambdaidem.Record, error) { return s.store.Acquire(s.ctx, s.claim("b", 2*time.Second)) }},
				{"a read", func() (lambdaidem.Record, error) { return s.store.Get(s.ctx, s.id, s.at(2*time.Second)) }},
			} {
				if s.err != nil {
					return
				}
				got, err := c.call()
				if err != nil {
					s.err = fmt.Errorf("%s: unexpected error: %w", c.what, err)
					return
				}
				scribbleSteps(got.Steps)
				s.stands("after the caller wrote over what it gave to and got from "+c.what, 2*time.Second, want)
			}
		}),
	},
	{
		Name: "an ended context saves no steps",
		Rule: "X8",
		Doc:  "The error is a StoreError that says that nothing was written, and nothing was: the save can be tried again.",
		Run: onStepStore("an ended context saves no steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.surelyNot("save_steps", func(ended context.Context) (lambdaidem.Record, error) {
				return s.steps.SaveSteps(ended, s.lease("a", time.Second), lambdaidem.Steps{"charge": []byte(`1`)}, s.at(time.Second))
			})
			s.stands("after the save that was not made", time.Second, a)
			s.saves("the save with a context that lives", a, 2*time.Second, "charge", `1`)
		}),
	},
}

// stepStory is a story that also calls SaveSteps.
type stepStory struct {
	*story
	steps lambdaidem.StepStore
}

// stepStory returns a new stepStory about the record that the step refers to as name. It
// returns nil if the store is not a StepStore.
func (e Env) stepStory(ctx context.Context, name string) *stepStory {
	steps, ok := e.Store.(lambdaidem.StepStore)
	if !ok {
		return nil
	}
	return &stepStory{e.story(ctx, name), steps}
}

// onStepStore returns a function for Step.Run that calls tell with a new stepStory. If the
// store is not a StepStore, the function returns nil without a test.
func onStepStore(name string, tell func(*stepStory)) func(context.Context, Env) error {
	return func(ctx context.Context, e Env) error {
		s := e.stepStory(ctx, name)
		if s == nil {
			return nil
		}
		tell(s)
		return s.err
	}
}

// saves calls SaveSteps with the token of the record held, and checks that the steps are
// stored. more has the names and results of the added steps, alternating. saves returns the
// record that the store must now have.
func (s *stepStory) saves(what string, held lambdaidem.Record, after time.Duration, more ...string) lambdaidem.Record {
	want := held
	want.Steps = copiedSteps(held.Steps)
	for pair := range slices.Chunk(more, 2) {
		want.Steps[pair[0]] = []byte(pair[1])
	}
	s.save(what, held.Token, after, want.Steps, want, nil)
	return want
}

// losesSave calls SaveSteps and checks that it changes nothing, and returns ErrLeaseLost with
// the current record, standing.
func (s *stepStory) losesSave(what, token string, after time.Duration, standing lambdaidem.Record) {
	s.lossAt(what, token, s.at(after), standing)
}

// lossAt is like losesSave, for a call at the time now.
func (s *stepStory) lossAt(what, token string, now time.Time, standing lambdaidem.Record) {
	more := copiedSteps(standing.Steps)
	more["of a lost lease"] = []byte(`true`)
	s.saveAt(what, token, now, more, standing, lambdaidem.ErrLeaseLost)
}

// save calls SaveSteps and checks that it returns the record want and the error wantErr. after
// is the time of the call, from the beginning of the story.
func (s *stepStory) save(what, token string, after time.Duration, steps lambdaidem.Steps, want lambdaidem.Record, wantErr error) {
	s.saveAt(what, token, s.at(after), steps, want, wantErr)
}

// saveAt is like save, for a call at the time now.
func (s *stepStory) saveAt(what, token string, now time.Time, steps lambdaidem.Steps, want lambdaidem.Record, wantErr error) {
	s.check(what, now, want, wantErr, func() (lambdaidem.Record, error) {
		return s.steps.SaveSteps(s.ctx, lambdaidem.Lease{ID: s.id, Token: token, Expires: now.Add(releaseTTL)}, copiedSteps(steps), now)
	})
}

// savesNot calls SaveSteps and checks that it changes nothing, and returns a StoreError with
// ReasonInvalid and NotApplied.
func (s *stepStory) savesNot(what, token string, after time.Duration, steps lambdaidem.Steps, standing lambdaidem.Record) {
	if s.err != nil {
		return
	}
	_, err := s.steps.SaveSteps(s.ctx, s.lease(token, after), copiedSteps(steps), s.at(after))
	failure := (*lambdaidem.StoreError)(nil)
	if !errors.As(err, &failure) || failure.Reason != lambdaidem.ReasonInvalid || !failure.NotApplied {
		s.err = fmt.Errorf("%s: the error is %w, want a *lambdaidem.StoreError with ReasonInvalid and NotApplied", what, errOrNone(err))
	}
	s.stands(what, after, standing)
}

// acquiresOver calls Acquire to take over the record that was read as seen. It checks that the
// takeover gets the lease, and keeps the steps of that record. It returns the record that the
// store must now have.
func (s *stepStory) acquiresOver(what, token string, after time.Duration, seen lambdaidem.Record) lambdaidem.Record {
	c := s.takeover(token, after, seen)
	want := claimed(c)
	want.Steps = seen.Steps
	s.acquire(what, c, want)
	return want
}

var errNone = errors.New("none")

// errOrNone returns err, or errNone if err is nil, so that a message can show it.
func errOrNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// copiedSteps returns a deep copy of steps. It is never nil.
func copiedSteps(steps lambdaidem.Steps) lambdaidem.Steps {
	own := make(lambdaidem.Steps, len(steps)+1)
	for name, result := range steps {
		own[name] = slices.Clone(result)
	}
	return own
}

// scribbleSteps overwrites the results of steps, and deletes all steps except "charge" from the
// map.
func scribbleSteps(steps lambdaidem.Steps) {
	for name, result := range steps {
		for i := range result {
			result[i] = '#'
		}
		if name != "charge" {
			delete(steps, name)
		}
	}
}

// stepsText returns steps as one line of text for a message.
func stepsText(steps lambdaidem.Steps) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		all = append(all, name+"="+excerpt(steps[name]))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
