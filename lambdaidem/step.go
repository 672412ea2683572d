package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxStepName is the longest name of a [Step], in bytes.
const MaxStepName = 128

// Step runs fn once per record and stores its result, inside a guarded handler
// (E5). A handler that is run again, after its attempt was released or died, gets
// the stored result instead: what the step did outside is not done twice.
//
//	charge, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (Charge, error) {
//		return psp.Charge(ctx, order, lambdaidem.DownstreamKey(ctx, "charge"))
//	})
//
// ctx is the handler's, or one derived from it. name is 1 to [MaxStepName] bytes
// of UTF-8 and names the step within its record: a second call with the same name
// returns the stored result and does not run fn. A call while another one with
// its name runs waits for that. Steps may run at the same time, from goroutines
// that the handler waits for; none may run inside another's fn.
//
// The result is kept as JSON, by the rules of [Do]: every caller's value has the
// same JSON. All steps of a record, names and results, may have
// Options.MaxStepBytes. They are kept until the record is completed, through
// releases and takeovers. A released record that has steps keeps its payload too:
// another one under its key is an [ErrPayloadMismatch] (F5).
//
// An fn that fails stores nothing, and its error is returned as it is. A process
// that dies between fn and the storing of its result leaves nothing either: fn
// runs again, with the same [DownstreamKey]. That is why an outside call should
// pass the key on: a step alone is at least once (G2).
//
// A call with a guard and a key of its own ([Do]) inside a guarded handler, in a
// step or not, is a record of its own and stays done as well.
//
// Errors, besides fn's:
//
//   - Before fn runs: a malformed name, a T that JSON can't carry, no room left,
//     a Step within a step, a store that is no [StepStore], a context that has
//     ended.
//   - [ErrAnswerUnreadable]: what is stored does not fit T, which has changed
//     since. fn does not run.
//   - [ErrOutcomeUnknown]: fn ran, and its result can't be stored: too large, no
//     JSON, or it is unknown whether it was. The attempt ends as uncertain
//     whatever the handler returns then: the caller gets 503, the lease is kept,
//     and its end decides (X4, L6). No further step runs.
//   - [ErrLeaseLost]: fn ran, and another attempt has taken over. The handler's
//     context has ended, and the caller gets what the record says (X6).
//
// Where no guard holds a lease (no guard at all, a request that passes unguarded,
// Options.FailOpen with a store that can't be reached) fn runs every time and
// nothing is stored.
func Step[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	var none T
	if err := checkStep[T](name); err != nil {
		return none, err
	}
	a := attemptOf(ctx)
	if a == nil {
		return fn(ctx)
	}
	if err := a.stepsRefused(); err != nil {
		return none, fmt.Errorf("step %q did not run: %w", name, err)
	}
	if a.open {
		return fn(ctx) // X5: there is no record to store it in
	}
	if within, _ := ctx.Value(stepKey{}).(*attempt); within == a {
		return none, fmt.Errorf("step %q did not run: it is within another step, which is stored whole or not at all", name)
	}
	text, stored, err := a.steps.begin(ctx, name, a.g.opts.MaxStepBytes)
	if err != nil {
		return none, fmt.Errorf("step %q did not run: %w", name, err)
	}
	if stored {
		return storedStep[T](name, text)
	}
	defer a.steps.end(name)
	value, err := fn(context.WithValue(ctx, stepKey{}, a))
	if err != nil {
		return value, err
	}
	if value, err = keepStep(ctx, a, name, value); err != nil {
		return none, err
	}
	return value, nil
}

// keepStep stores a step's result, and returns it as every later call gets it.
func keepStep[T any](ctx context.Context, a *attempt, name string, value T) (T, error) {
	settled := false
	defer func() {
		if !settled { // X4: a panic must not look as if nothing had happened
			_ = a.steps.fail(name, errKeepingDied)
		}
	}()
	text, value, err := storable(value)
	if _, stream := any(value).(io.Reader); stream { // behind an interface
		err = streamRefused(fmt.Sprintf("a result of type %T", value))
	}
	if err != nil {
		err = a.steps.fail(name, err)
	} else {
		err = a.saveStep(ctx, name, text)
	}
	settled = true
	return value, err
}

var errKeepingDied = errors.New("the encoding of the result or the store panicked or called runtime.Goexit")

// stepKey marks the context of a step's fn with the attempt that the step is of.
type stepKey struct{}

// checkStep says what is wrong with a step before anything of it runs.
func checkStep[T any](name string) error {
	switch {
	case name == "" || len(name) > MaxStepName:
		return fmt.Errorf("a step's name has %d bytes; it must have 1 to %d", len(name), MaxStepName)
	case !utf8.ValidString(name):
		return fmt.Errorf("the step's name %q is not UTF-8", name)
	case streams[T]():
		return streamRefused(fmt.Sprintf("the result of step %q, a %v,", name, reflect.TypeFor[T]()))
	case noJSON(reflect.TypeFor[T]()):
		return fmt.Errorf("step %q did not run: JSON can't carry its result, a %v", name, reflect.TypeFor[T]())
	}
	return nil
}

// noJSON tells whether no value of a type has JSON, whatever it holds: that is
// known before a step runs, and what it returns only then.
func noJSON(t reflect.Type) bool {
	if marshals(t) || marshals(reflect.PointerTo(t)) {
		return false
	}
	switch t.Kind() { //nolint:exhaustive // some value of every other kind has
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && noJSON(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if seen(f) && f.IsExported() && !strings.Contains(f.Tag.Get("json"), ",omit") && noJSON(f.Type) {
				return true
			}
		}
	}
	return false
}

// storedStep is the result of a step that was stored.
func storedStep[T any](name string, text []byte) (T, error) {
	value, err := rebuilt[T](text)
	if err != nil {
		var none T
		return none, fmt.Errorf("step %q: its stored result, %s, does not fit %v: %w: %w",
			name, jsonKind(text), reflect.TypeFor[T](), ErrAnswerUnreadable, err)
	}
	return value, nil
}

// jsonKind is the type of a JSON text, in words.
func jsonKind(text []byte) string {
	if len(text) == 0 {
		return "which is empty"
	}
	switch text[0] {
	case '{':
		return "a JSON object"
	case '[':
		return "a JSON array"
	case '"':
		return "a JSON string"
	case 't', 'f':
		return "a JSON boolean"
	case 'n':
		return "a JSON null"
	default:
		return "a JSON number"
	}
}

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
	unsaved error                    // a step ran and could not be stored: the attempt is uncertain
	lostTo  *Record                  // the lease was lost: the record as it stood then
	lose    context.CancelFunc       // ends the handler's context
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
		s.lose()
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
func (a *attempt) stepContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := a.handlerContext(ctx)
	a.steps.lose = cancel
	return ctx, cancel
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
	end := w.ending()
	if running && end.outcome == OutcomeReleased { // it would not be true that nothing happens
		end.outcome, end.err = OutcomeUncertain, errors.Join(errHandlerReturned, end.err)
	}
	return a.finish(ctx, w, end)
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
	read, cancel := a.finishContext(ctx)
	defer cancel()
	if now, err := a.g.store.Get(read, a.id, a.g.opts.Clock()); err == nil {
		rec = now
	}
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
