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
		Doc:  "SaveSteps MUST replace the record's steps by the given ones and change nothing else. Get and Acquire MUST return them byte for byte.",
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
		Doc:  "SaveSteps MUST change nothing and return ErrLeaseLost with the current record, unless the record is in progress under the lease's token.",
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
		Doc:  "SaveSteps MUST succeed after the end of the lease, however late, as long as the record has the lease's token. The end of a lease alone loses nothing.",
		Run: onStepStore("a late save succeeds", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.saves("the save long after the lease's end", a, leaseLength+30*time.Minute, "charge", `1`)
		}),
	},
	{
		Name: "no save after the attempt's end",
		Rule: "E5",
		Doc:  "SaveSteps MUST return ErrLeaseLost if the record is released, completed, expired or absent, and MUST NOT create a record.",
		Run: onStepStore("no save after the attempt's end", func(s *stepStory) {
			s.losesSave("a save without a record", "a", 0, absent)
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			released := s.releases("the release", a, 2*time.Second)
			s.losesSave("a save after the release", "a", 3*time.Second, released)
			b := s.acquiresOver("the acquire over the released record", "b", 4*time.Second, released)
			done := s.completes("the completion", b, s.answer(5*time.Second, "first"))
			s.losesSave("a save after the completion", "b", 6*time.Second, done)
			s.losesSaveAt("a save after the record's expiry", "b", done.Expires, absent)
		}),
	},
	{
		Name: "a takeover keeps the steps",
		Rule: "L6",
		Doc:  "A takeover MUST keep the record's steps and return them, including steps that were saved after claim.Over was read.",
		Run: onStepStore("a takeover keeps the steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			oldRec := s.saves("the first save", a, time.Second, "charge", `1`)
			newRec := s.saves("a save after the record was seen", oldRec, leaseLength, "mail", `2`)
			c := s.takeover("b", leaseLength+time.Second, oldRec)
			wantRec := claimed(c)
			wantRec.Steps = newRec.Steps
			s.acquire("the takeover of the record as it was first seen", c, wantRec)
			s.acquire("the same takeover again", s.takeover("b", leaseLength+2*time.Second, oldRec), wantRec)
			s.saves("the next attempt's save", wantRec, leaseLength+3*time.Second, "ship", `3`)
		}),
	},
	{
		Name: "a release keeps the steps",
		Rule: "L1",
		Doc:  "Release MUST keep the record's steps for the next attempt.",
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
		Doc:  "Complete MUST remove the record's steps, because a replay does not need them.",
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
		Doc:  "SaveSteps MUST return ErrLeaseLost after the record's expiry, and an Acquire after it MUST get a record without steps.",
		Run: onStepStore("what has expired has no steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("a save", a, time.Second, "charge", `1`)
			s.losesSaveAt("a save after the expiry", "a", a.Expires, absent)
			s.acquires("the acquire after the expiry", s.claim("b", lockTTL))
		}),
	},
	{
		Name: "save again",
		Rule: "L4",
		Doc:  "SaveSteps MUST succeed without a change if the record already has exactly these steps under the same token.",
		Run: onStepStore("save again", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("the save", a, time.Second, "charge", `1`, "mail", `2`)
			s.save("the same save again", "a", 2*time.Second, a.Steps, a, nil)
		}),
	},
	{
		Name: "a save takes no step away",
		Rule: "E5",
		Doc:  "SaveSteps MUST change nothing and return a StoreError with ReasonInvalid and NotApplied if the record has at least as many steps, and not the same: the save is a late one.",
		Run: onStepStore("a save takes no step away", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			first := s.saves("the first save", a, time.Second, "charge", `1`)
			both := s.saves("the second save", first, 2*time.Second, "mail", `2`)
			s.rejectsSave("the first save, late", "a", 3*time.Second, first.Steps, both)
			s.rejectsSave("a save of another result", "a", 3*time.Second, lambdaidem.Steps{"charge": []byte(`1`), "mail": []byte(`3`)}, both)
			s.rejectsSave("a save of another step", "a", 3*time.Second, lambdaidem.Steps{"charge": []byte(`1`), "ship": []byte(`2`)}, both)
		}),
	},
	{
		Name: "steps are their record's alone",
		Rule: "G3",
		Doc:  "SaveSteps MUST NOT change the steps of another record, even if both have the same token.",
		Run: func(ctx context.Context, e Env) error {
			first, other := e.stepStory(ctx, "steps are their record's alone"), e.stepStory(ctx, "steps are their record's alone, another")
			if first == nil {
				return nil
			}
			a := first.acquires("the first record's acquire", first.claim("token", 0))
			b := other.acquires("the other record's acquire", other.claim("token", 0))
			a = first.saves("the first record's save", a, time.Second, "charge", `1`)
			other.reads("after the first record's save", time.Second, b)
			other.saves("the other record's save", b, 2*time.Second, "charge", `2`)
			first.reads("after the other record's save", 2*time.Second, a)
			return firstError(first.story, other.story)
		},
	},
	{
		Name: "steps are the store's own",
		Rule: "G3",
		Doc:  "The store MUST copy steps when it stores and returns them: a caller that overwrites their memory must not change the record.",
		Run: onStepStore("steps are the store's own", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			a = s.saves("the save", a, time.Second, "charge", `1`)
			given := copiedSteps(a.Steps)
			given["mail"] = []byte(`2`)
			wantRec := a
			wantRec.Steps = copiedSteps(given)
			for _, c := range []struct {
				label string
				call  func() (lambdaidem.Record, error)
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
				gotRec, err := c.call()
				if err != nil {
					s.err = fmt.Errorf("%s returned an error, want none: %w", c.label, err)
					return
				}
				scribbleSteps(gotRec.Steps)
				s.reads("after the caller overwrote the steps that it passed to and got from "+c.label, 2*time.Second, wantRec)
			}
		}),
	},
	{
		Name: "an ended context saves no steps",
		Rule: "X8",
		Doc:  "SaveSteps with an ended context MUST write nothing and return a StoreError with NotApplied, so that the guard can try again.",
		Run: onStepStore("an ended context saves no steps", func(s *stepStory) {
			a := s.acquires("the first acquire", s.claim("a", 0))
			s.rejectsEndedContext("save_steps", func(ended context.Context) (lambdaidem.Record, error) {
				return s.steps.SaveSteps(ended, s.lease("a", time.Second), lambdaidem.Steps{"charge": []byte(`1`)}, s.at(time.Second))
			})
			s.reads("after the save with an ended context", time.Second, a)
			s.saves("the save with a live context", a, 2*time.Second, "charge", `1`)
		}),
	},
}

// stepStory is a story that also calls SaveSteps.
type stepStory struct {
	*story
	steps lambdaidem.StepStore
}

// stepStory returns a stepStory, which makes a test's calls to the store for the record with the
// given name. It returns nil if the store is not a StepStore.
func (e Env) stepStory(ctx context.Context, name string) *stepStory {
	steps, ok := e.Store.(lambdaidem.StepStore)
	if !ok {
		return nil
	}
	return &stepStory{e.story(ctx, name), steps}
}

// onStepStore returns a function for Step.Run. The returned function calls tell with a new
// stepStory about the record with the given name, and returns the story's error. If the store is
// not a StepStore, the returned function returns nil without calling tell.
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

// saves calls SaveSteps for rec, a record in progress, with the steps of rec and the new steps in
// pairs: the name of a step, its result, the name of the next step, and so on. saves checks that
// all these steps are stored, and returns the record that the store must now have.
func (s *stepStory) saves(label string, rec lambdaidem.Record, elapsed time.Duration, pairs ...string) lambdaidem.Record {
	wantRec := rec
	wantRec.Steps = copiedSteps(rec.Steps)
	for pair := range slices.Chunk(pairs, 2) {
		wantRec.Steps[pair[0]] = []byte(pair[1])
	}
	s.save(label, rec.Token, elapsed, wantRec.Steps, wantRec, nil)
	return wantRec
}

// losesSave calls SaveSteps with the given token, and with the steps of the store's current record
// and one further step. It checks that the call changes nothing and returns ErrLeaseLost with the
// current record.
func (s *stepStory) losesSave(label, token string, elapsed time.Duration, current lambdaidem.Record) {
	s.losesSaveAt(label, token, s.at(elapsed), current)
}

// losesSaveAt is like losesSave, but makes the call at the absolute time callTime.
func (s *stepStory) losesSaveAt(label, token string, callTime time.Time, current lambdaidem.Record) {
	steps := copiedSteps(current.Steps)
	steps["of a lost lease"] = []byte(`true`)
	s.saveAt(label, token, callTime, steps, current, lambdaidem.ErrLeaseLost)
}

// save calls SaveSteps and checks that it returns wantRec and wantErr. elapsed is the time from the
// beginning of the story to the call.
func (s *stepStory) save(label, token string, elapsed time.Duration, steps lambdaidem.Steps, wantRec lambdaidem.Record, wantErr error) {
	s.saveAt(label, token, s.at(elapsed), steps, wantRec, wantErr)
}

// saveAt calls SaveSteps at the absolute time callTime, and checks that it returns wantRec and
// wantErr.
func (s *stepStory) saveAt(label, token string, callTime time.Time, steps lambdaidem.Steps, wantRec lambdaidem.Record, wantErr error) {
	s.check(label, "SaveSteps", callTime, wantRec, wantErr, func() (lambdaidem.Record, error) {
		return s.steps.SaveSteps(s.ctx, lambdaidem.Lease{ID: s.id, Token: token, Expires: callTime.Add(releaseTTL)}, copiedSteps(steps), callTime)
	})
}

// rejectsSave calls SaveSteps and checks that it changes nothing and returns a StoreError with
// ReasonInvalid and with NotApplied set.
func (s *stepStory) rejectsSave(label, token string, elapsed time.Duration, steps lambdaidem.Steps, current lambdaidem.Record) {
	if s.err != nil {
		return
	}
	_, err := s.steps.SaveSteps(s.ctx, s.lease(token, elapsed), copiedSteps(steps), s.at(elapsed))
	failure := (*lambdaidem.StoreError)(nil)
	if !errors.As(err, &failure) || failure.Reason != lambdaidem.ReasonInvalid || !failure.NotApplied {
		s.err = fmt.Errorf("%s: SaveSteps must return a *lambdaidem.StoreError with ReasonInvalid and NotApplied; its error is: %w", label, errOrNone(err))
	}
	s.reads(label, elapsed, current)
}

// acquiresOver calls Acquire to take over oldRec, a record that an earlier call returned.
// acquiresOver checks that the claim gets the lease, and that the record keeps its
// steps. It returns the record that the store must now have.
func (s *stepStory) acquiresOver(label, token string, elapsed time.Duration, oldRec lambdaidem.Record) lambdaidem.Record {
	c := s.takeover(token, elapsed, oldRec)
	wantRec := claimed(c)
	wantRec.Steps = oldRec.Steps
	s.acquire(label, c, wantRec)
	return wantRec
}

var errNone = errors.New("nil")

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

// scribbleSteps overwrites all results in steps, and deletes all steps except "charge" from the
// map. A caller that reuses the map and its byte slices might do the same. The stored record must
// not change.
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
