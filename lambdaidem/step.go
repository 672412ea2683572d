package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
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
// No write can be enlisted while fn runs, neither by fn nor by other goroutines of
// the handler: a retry that skips fn would miss what it enlisted.
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
	value, err := runStep(ctx, a, fn)
	if err != nil {
		return value, err
	}
	if value, err = keepStep(ctx, a, name, value); err != nil {
		return none, err
	}
	return value, nil
}

// runStep runs a step's fn. No write can be enlisted meanwhile.
func runStep[T any](ctx context.Context, a *attempt, fn func(context.Context) (T, error)) (T, error) {
	a.enlist.pause()
	defer a.enlist.resume()
	return fn(context.WithValue(ctx, stepKey{}, a))
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
	case hiddenFrom(reflect.TypeFor[T](), false) != "":
		return fmt.Errorf("step %q did not run: its result, a %v, would lose a part: %s", name, reflect.TypeFor[T](), hiddenFrom(reflect.TypeFor[T](), false))
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
	value, err := replayed[T](text)
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
