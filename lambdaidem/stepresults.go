package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// steps is the state of the steps that an attempt's handler runs; see the function Step. The
// methods of steps are safe for concurrent use, because the handler may run steps in several
// goroutines.
type steps struct {
	// saving serializes the calls of StepStore.SaveSteps. Each call overwrites all steps in
	// the record, so it must include the steps that the previous call has saved.
	saving sync.Mutex

	mu          sync.Mutex
	results     Steps                    // the steps in the record, or those of this attempt if it failed open; the map is replaced and never modified, because a store may still read it
	running     map[string]chan struct{} // the running calls of Step by name; each channel is closed when its call ends
	refusal     error                    // why no further step may run; nil while steps may run
	unreadable  map[string]bool          // the steps whose stored results could not be decoded; another deployment may be able to
	leftRunning bool                     // a step was still running when the handler returned
	unsaved     error                    // why the result of a step could not be stored; nil if all results were stored
	lostTo      *Record                  // the record of the attempt that has taken over, found by a save; nil if there is none
	cancel      context.CancelFunc       // ends the handler's context
	stop        context.CancelFunc       // ends the running call of SaveSteps; nil if none is running
}

// errHandlerReturned is the error of a step that runs after the handler has returned.
var errHandlerReturned = errors.New("the handler has returned; it must wait for the steps that it began")

// begin returns the stored result of the step with the given name. It first waits while another
// call runs the step. If isStored is false and err is nil, the caller must run the step and then
// call the method end. An error means that the step must not run. limit is Options.MaxStepBytes.
func (s *steps) begin(ctx context.Context, name string, limit int) (text []byte, isStored bool, err error) {
	for {
		s.mu.Lock()
		text, isStored = s.results[name]
		busy := s.running[name]
		switch size := stepBytes(s.results) + len(name); {
		case s.refusal != nil:
			err = s.refusal
		case isStored || busy != nil:
		case ctx.Err() != nil: // the handler's time is over
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
		if err != nil || isStored || busy == nil {
			return text, isStored, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// any reports whether the record has at least one step. If the attempt failed open, any reports
// whether a step has run in this attempt.
func (s *steps) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) > 0
}

// decoded records whether the stored result of the step with the given name could be decoded. If
// the handler calls the step several times, perhaps with different types, the last call counts.
func (s *steps) decoded(name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ok:
		delete(s.unreadable, name)
	case s.unreadable == nil:
		s.unreadable = map[string]bool{name: true}
	default:
		s.unreadable[name] = true
	}
}

// anyUnreadable reports whether the stored result of a step could not be decoded.
func (s *steps) anyUnreadable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unreadable) > 0
}

// end marks the step with the given name as no longer running, so that other calls that wait for
// this step continue. A caller of begin that was told to run the step must call end afterward,
// whether or not the step has succeeded.
func (s *steps) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running[name])
	delete(s.running, name)
}

// beginSave returns the steps to save: those already stored and the new step. It returns an error
// if no further step may be stored, for example because the handler has returned. If the handler
// returns during the save, the method close calls the function stop, which ends the save.
func (s *steps) beginSave(name string, text []byte, stop context.CancelFunc) (Steps, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil {
		return nil, fmt.Errorf("step %q ran, and its result was not stored: %w", name, s.refusal)
	}
	all := maps.Clone(s.results)
	if all == nil {
		all = Steps{}
	}
	all[name], s.stop = text, stop
	return all, nil
}

// fail records that the step with the given name has run, but that its result can't be stored
// because of the error cause. The attempt then ends as uncertain (see conclude), because a retry
// would run the step again. fail returns the error that Step returns.
func (s *steps) fail(name string, cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := Uncertain(fmt.Errorf("step %q ran, and its result could not be stored: %w: %w", name, ErrOutcomeUnknown, cause))
	if s.refusal == nil {
		s.refusal, s.unsaved = err, err
	}
	return err
}

// lost is called if the step with the given name has run, and another attempt has taken over the
// record, which is rec now. It ends the handler's context, and returns the error that Step returns.
func (s *steps) lost(name string, rec Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := fmt.Errorf("step %q ran, and its result was not stored: %w: another attempt has taken over", name, ErrLeaseLost)
	if s.refusal == nil {
		s.refusal, s.lostTo = err, &rec
		s.cancel()
	}
	return err
}

// close ends the use of steps, because the handler has returned: no further step may run or
// be stored, and a running save is stopped. It reports whether a step is still running.
func (s *steps) close() (running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == nil {
		s.refusal = errHandlerReturned
	}
	if s.stop != nil {
		s.stop() // a save must not outlive the guarded call
	}
	return len(s.running) > 0
}

// stepsRefused returns an error if this attempt can't store steps, because Options.Optimistic is
// set or because the store is not a StepStore.
func (a *attempt) stepsRefused() error {
	if a.g.opts.Optimistic {
		return errors.New("Options.Optimistic is set, so there is no record to store the step in until the handler has returned")
	}
	if _, ok := a.g.store.(StepStore); !ok {
		return fmt.Errorf("a %T keeps no steps: it is no StepStore", a.g.store)
	}
	return nil
}

// saveStep stores the result of a step. It retries as long as the attempt has time, even after the
// handler's context has ended. If the attempt failed open, saveStep keeps the result in memory
// only.
//
// If another attempt has taken over the record, the error wraps ErrLeaseLost. If no further step
// may be stored, the error wraps steps.refusal. After any other failure, the attempt ends as
// uncertain.
func (a *attempt) saveStep(ctx context.Context, name string, text []byte) error {
	s := &a.steps
	s.saving.Lock()
	defer s.saving.Unlock()
	ctx, cancel := a.finishContext(ctx)
	defer cancel()
	all, err := s.beginSave(name, text, cancel)
	if err != nil {
		return err
	}
	defer s.endSave()
	if size, limit := stepBytes(all), a.g.opts.MaxStepBytes; size > limit {
		return s.fail(name, stepsTooLarge(size, limit))
	}
	if a.failedOpen { // there is no lease under which the store could keep the result
		s.keep(all)
		return nil
	}
	store := a.g.store.(StepStore) //nolint:forcetypeassert // stepsRefused has checked the type
	for try := 1; ; try++ {
		rec, err := store.SaveSteps(ctx, a.lease(), all, a.g.opts.Clock())
		switch {
		case err == nil:
			s.keep(all)
			return nil
		case errors.Is(err, ErrLeaseLost):
			return s.lost(name, rec)
		case !retryableSave(err) || !a.backOff(ctx, try):
			return s.fail(name, err)
		}
	}
}

// keep makes later calls of Step return the results in the parameter all.
func (s *steps) keep(all Steps) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = all
}

func (s *steps) endSave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = nil
}

// stepContext returns the context for the handler. The context ends at the handler's deadline,
// or earlier if a step finds that another attempt has taken over the record; see steps.lost.
func (a *attempt) stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within, cancel := withDeadline(ctx, a.handlerEnd())
	a.steps.cancel = cancel
	return a.inContext(within), cancel
}

// conclude ends the attempt after the handler has returned. Normally it calls finish, which
// completes the record, releases it or keeps the lease, depending on the outcome of the answer. In
// two cases, conclude discards the answer instead: the result of a step could not be stored, or a
// step found that another attempt has taken over the record.
func (a *attempt) conclude(ctx context.Context, w work) decision {
	running := a.steps.close()
	switch {
	case a.steps.unsaved != nil:
		a.inner.setHandler(handlerFailed)
		return a.stepUnsaved(ctx)
	case a.steps.lostTo != nil:
		a.inner.setHandler(handlerFailed)
		return a.stepLost(ctx)
	}
	a.steps.leftRunning = running
	return a.finish(ctx, w, w.ending())
}

// leavesStep ends the use of steps after a panic of the handler. It reports whether a step is still
// running or the result of a step could not be stored. In both cases the record must not be
// released, because a retry would run the step again.
func (a *attempt) leavesStep() bool { return a.steps.close() || a.steps.unsaved != nil }

// stepUnsaved refuses a call, because its handler ran a step whose result could not be stored.
// The attempt keeps its lease, so that no retry runs the handler before the lease ends.
func (a *attempt) stepUnsaved(ctx context.Context) decision {
	err := a.steps.unsaved
	if _, refused := errors.AsType[*StoreError](err); refused {
		a.report(ctx, EventStoreError, err)
	}
	a.report(ctx, EventUncertain, err)
	if a.failedOpen {
		return a.uncertainAfterFailOpen(ctx, ending{err: err, final: true})
	}
	return a.unknown(err)
}

// stepLost decides how to end a call after one of its steps has found that another attempt took
// over the record. It reads the record again, because the other attempt may have completed the
// record in the meantime.
func (a *attempt) stepLost(ctx context.Context) decision {
	rec := *a.steps.lostTo
	read, cancel := a.finishContext(ctx)
	defer cancel()
	start := time.Now()
	if current, err := a.g.store.Get(read, a.id, a.g.opts.Clock()); err == nil {
		rec = current
	}
	a.addStoreTime(start)
	return a.lost(ctx, rec, true)
}

// stepBytes returns the total size of the names and results of steps in bytes, which
// Options.MaxStepBytes limits.
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
