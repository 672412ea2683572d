package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lambdaidem/toolkit/internal/deadline"
)

// steps is what an attempt knows of its record's steps. Its methods are called
// from any goroutine of the handler.
type steps struct {
	// saving is held by the one save that is under way: each save has the steps of
	// the one before it.
	saving sync.Mutex

	mu      sync.Mutex
	stored  Steps                    // as the record has them; never written to, but replaced
	running map[string]chan struct{} // by name; closed when that call of Step ends
	over    error                    // why no further step runs
	left    bool                     // the handler has returned, and one still runs
	unsaved error                    // a step ran and could not be stored: the attempt is uncertain
	lostTo  *Record                  // the lease was lost: the record as it stood then
	handler *deadline.Context        // the handler's context
	stop    context.CancelFunc       // ends the save that is under way; nil: there is none
}

// errHandlerReturned is what a step learns that comes too late.
var errHandlerReturned = errors.New("the handler has returned; it must wait for the steps that it began")

// begin returns the stored result of a step, or notes that the caller runs it
// now. It waits for a call that runs it already.
func (s *steps) begin(ctx context.Context, name string, limit int) (text []byte, stored bool, err error) {
	for {
		s.mu.Lock()
		text, stored = s.stored[name]
		busy := s.running[name]
		switch size := stepBytes(s.stored) + len(name); {
		case s.over != nil:
			err = s.over
		case stored || busy != nil:
		case ctx.Err() != nil: // L5
			err = context.Cause(ctx)
		case size > limit:
			err = stepsTooLarge(size, limit)
		default:
			if s.running == nil {
				s.running = map[string]chan struct{}{}
			}
			s.running[name] = make(chan struct{})
		}
		s.mu.Unlock()
		if err != nil || stored || busy == nil {
			return text, stored, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// end notes that a step that began runs no more, however it ended.
func (s *steps) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running[name])
	delete(s.running, name)
}

// beginSave is the stored steps with one more, unless no step is stored any more.
// stop ends the save if the handler ends before it.
func (s *steps) beginSave(name string, text []byte, stop context.CancelFunc) (Steps, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return nil, fmt.Errorf("step %q ran, and its result was not stored: %w", name, s.over)
	}
	all := maps.Clone(s.stored)
	if all == nil {
		all = Steps{}
	}
	all[name], s.stop = text, stop
	return all, nil
}

// fail ends the attempt as uncertain, because a step ran whose result can't be
// stored (E5).
func (s *steps) fail(name string, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := Uncertain(fmt.Errorf("step %q ran, and its result could not be stored: %w: %w", name, ErrOutcomeUnknown, why))
	if s.over == nil {
		s.over, s.unsaved = err, err
	}
	return err
}

// lost ends the handler's context, because another attempt has the lease (E5).
func (s *steps) lost(name string, rec Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := fmt.Errorf("step %q ran, and its result was not stored: %w: another attempt has taken over", name, ErrLeaseLost)
	if s.over == nil {
		s.over, s.lostTo = err, &rec
		s.handler.Cancel()
	}
	return err
}

// close lets no further step run or be stored, since the handler has ended. It
// tells whether one is still running.
func (s *steps) close() (running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = errHandlerReturned
	}
	if s.stop != nil {
		s.stop() // X7
	}
	return len(s.running) > 0
}

// stepsRefused says why this attempt can have no steps; nil if it can.
func (a *attempt) stepsRefused() error {
	if a.g.opts.Optimistic {
		return errors.New("an optimistic attempt has no record to store it in before it ends (E4)")
	}
	if _, ok := a.g.store.(StepStore); !ok {
		return fmt.Errorf("a %T keeps no steps: it is no StepStore", a.g.store)
	}
	return nil
}

// saveStep stores the result of a step, for as long as there is time, even if the
// handler's context has ended (X3). What is unknown in the end, is uncertain.
func (a *attempt) saveStep(ctx context.Context, name string, text []byte) error {
	s := &a.steps
	s.saving.Lock()
	defer s.saving.Unlock()
	saving := a.finishContext(ctx)
	defer saving.Cancel()
	ctx = saving
	all, err := s.beginSave(name, text, saving.Cancel)
	if err != nil {
		return err
	}
	defer s.endSave()
	if size, limit := stepBytes(all), a.g.opts.MaxStepBytes; size > limit {
		return s.fail(name, stepsTooLarge(size, limit))
	}
	store := a.g.store.(StepStore) //nolint:forcetypeassert // stepsRefused has asked
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		rec, err := store.SaveSteps(ctx, a.lease(), all, a.g.opts.Clock())
		switch {
		case err == nil:
			s.mu.Lock()
			s.stored = all
			s.mu.Unlock()
			return nil
		case errors.Is(err, ErrLeaseLost):
			return s.lost(name, rec)
		case !mayMend(err) || !a.pause(ctx, pause):
			return s.fail(name, err)
		}
	}
}

func (s *steps) endSave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = nil
}

// mayMend tells whether the same save can succeed later.
func mayMend(err error) bool {
	switch reasonOf(err) {
	case ReasonTooLarge, ReasonEncoding, ReasonInvalid, ReasonForeign:
		return false
	default:
		return true
	}
}

// stepContext is the handler's context. It ends too when a step finds the lease
// lost (E5).
func (a *attempt) stepContext(ctx context.Context) *handlerContext {
	a.handling.a, a.steps.handler = a, &a.handling.Context
	a.handling.Begin(ctx, a.handlerEnd())
	return &a.handling
}

// conclude settles the record by how the handler ended, unless a step has decided
// that already: then whatever the handler returned is not the answer (E5).
func (a *attempt) conclude(ctx context.Context, w work) decision {
	running := a.steps.close()
	switch {
	case a.steps.unsaved != nil:
		return a.stepUnsaved(ctx)
	case a.steps.lostTo != nil:
		return a.stepLost(ctx)
	}
	a.steps.left = running
	return a.finish(ctx, w, w.ending())
}

// leavesStep tells whether an attempt that has died leaves a step behind that no
// record tells of: it can't be released then (X4).
func (a *attempt) leavesStep() bool { return a.steps.close() || a.steps.unsaved != nil }

// stepUnsaved decides a call one of whose steps could not be stored (X4).
func (a *attempt) stepUnsaved(ctx context.Context) decision {
	err := a.steps.unsaved
	if _, refused := errors.AsType[*StoreError](err); refused {
		a.note(ctx, EventStoreError, err)
	}
	a.note(ctx, EventUncertain, err)
	return decision{refusal: outcomeUnknown(err, max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter))}
}

// stepLost decides a call whose step found the lease lost (X6). What the record
// says by now is the answer.
func (a *attempt) stepLost(ctx context.Context) decision {
	rec := *a.steps.lostTo
	read := a.finishContext(ctx)
	defer read.Cancel()
	asked := time.Now()
	if now, err := a.g.store.Get(read, a.id, a.g.opts.Clock()); err == nil {
		rec = now
	}
	a.spent(asked)
	return a.lost(ctx, rec)
}

// stepBytes is what steps have of Options.MaxStepBytes: names and results.
func stepBytes(all Steps) int {
	n := 0
	for name, result := range all {
		n += len(name) + len(result)
	}
	return n
}

func stepsTooLarge(size, limit int) error {
	return fmt.Errorf("the record's steps would have %d bytes, names and results; Options.MaxStepBytes allows %d", size, limit)
}
