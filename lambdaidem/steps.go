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

// steps has the steps of an attempt's record. Its methods are safe for concurrent use
// by the goroutines of the handler.
type steps struct {
	// saving serializes saves. Each save writes all steps, so it must include those of
	// the save before it.
	saving sync.Mutex

	mu      sync.Mutex
	stored  Steps                    // the steps in the record; replaced on a change, because a store may read the old map
	running map[string]chan struct{} // the running calls of Step by name; each channel is closed when its call ends
	over    error                    // why no further step runs; nil while steps can run
	left    bool                     // a step was still running when the handler returned
	unsaved error                    // why the result of a step that ran could not be stored; nil if all were stored
	lostTo  *Record                  // the record when the lease was found lost; nil if it was not
	handler *deadline.Context        // the handler's context
	stop    context.CancelFunc       // ends the current save; nil if there is none
}

// errHandlerReturned is the error of a step that runs after the handler has returned.
var errHandlerReturned = errors.New("the handler has returned; it must wait for the steps that it began")

// begin returns the stored result of a step. If stored is false and err is nil, the
// caller must run the step and then call end. begin waits while another call runs the
// step.
func (s *steps) begin(ctx context.Context, name string, limit int) (text []byte, stored bool, err error) {
	for {
		s.mu.Lock()
		text, stored = s.stored[name]
		busy := s.running[name]
		switch size := stepBytes(s.stored) + len(name); {
		case s.over != nil:
			err = s.over
		case stored || busy != nil:
		case ctx.Err() != nil: // no time is left
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

// any reports whether the record has a step.
func (s *steps) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stored) > 0
}

// end must be called after a step has run, whether or not it has succeeded.
func (s *steps) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running[name])
	delete(s.running, name)
}

// beginSave returns a copy of the stored steps with one more, or an error if no further
// step can be stored. close calls stop if the handler returns before the save ends.
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

// fail makes the attempt uncertain, because a step ran whose result can't be stored. It
// returns the error for the step.
func (s *steps) fail(name string, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := Uncertain(fmt.Errorf("step %q ran, and its result could not be stored: %w: %w", name, ErrOutcomeUnknown, why))
	if s.over == nil {
		s.over, s.unsaved = err, err
	}
	return err
}

// lost ends the handler's context, because another attempt has taken over the record.
// It returns the error for the step.
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

// close prevents further steps from running or being stored, because the handler has
// ended. It reports whether a step is still running.
func (s *steps) close() (running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = errHandlerReturned
	}
	if s.stop != nil {
		s.stop() // a save must not outlive the call
	}
	return len(s.running) > 0
}

// stepsRefused returns an error if this attempt can't have steps.
func (a *attempt) stepsRefused() error {
	if a.g.opts.Optimistic {
		return errors.New("an optimistic attempt has no record to store it in before it ends (E4)")
	}
	if _, ok := a.g.store.(StepStore); !ok {
		return fmt.Errorf("a %T keeps no steps: it is no StepStore", a.g.store)
	}
	return nil
}

// saveStep stores the result of a step. It retries as long as the attempt has time, even
// after the handler's context has ended. If it is unknown whether the result was
// stored, the attempt becomes uncertain.
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
	store := a.g.store.(StepStore) //nolint:forcetypeassert // stepsRefused has checked the type
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

// mayMend reports whether a save that failed with err can succeed later.
func mayMend(err error) bool {
	switch reasonOf(err) {
	case ReasonTooLarge, ReasonEncoding, ReasonInvalid, ReasonForeign:
		return false
	default:
		return true
	}
}

// stepContext returns the handler's context. Besides its deadline, steps.lost ends it.
func (a *attempt) stepContext(ctx context.Context) *handlerContext {
	a.handling.a, a.steps.handler = a, &a.handling.Context
	a.handling.Begin(ctx, a.handlerEnd())
	return &a.handling
}

// conclude finishes the record after the handler has returned. If a step could not be
// stored or found the lease lost, that decides the call, whatever the handler returned.
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

// leavesStep reports whether an attempt whose handler died has run, or is still running,
// a step that is not in the record. Such an attempt must not be released, because a
// retry would repeat the step.
func (a *attempt) leavesStep() bool { return a.steps.close() || a.steps.unsaved != nil }

// stepUnsaved refuses a call that has run a step whose result could not be stored.
func (a *attempt) stepUnsaved(ctx context.Context) decision {
	err := a.steps.unsaved
	if _, refused := errors.AsType[*StoreError](err); refused {
		a.note(ctx, EventStoreError, err)
	}
	a.note(ctx, EventUncertain, err)
	return decision{refusal: outcomeUnknown(err, max(a.leaseEnd.Sub(a.g.opts.Clock()), a.g.opts.RetryAfter))}
}

// stepLost decides a call in which a step found the lease lost. It reads the record
// again, because the other attempt may have completed it since.
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

// stepBytes returns the size of the steps, to compare with Options.MaxStepBytes.
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
