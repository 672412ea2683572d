package lambdaidem

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// MaxStepName is the maximum length of the name of a [Step], in bytes.
const MaxStepName = 128

// Step calls fn inside a guarded handler and stores fn's result in the handler's record. If the
// handler runs again, because its attempt was released or died, Step returns the stored result
// without calling fn.
//
//	charge, err := lambdaidem.Step(ctx, "charge", func(ctx context.Context) (Charge, error) {
//		return psp.Charge(ctx, order, lambdaidem.DownstreamKey(ctx, "charge"))
//	})
//
// ctx must be the handler's context or be derived from it. name identifies the step within the
// record, and must have 1 to [MaxStepName] bytes of UTF-8. If a call with the same name is running,
// Step waits for it and returns its result. Steps may run concurrently, in goroutines that the
// handler waits for, but not inside the fn of another step.
//
// Every call of the step returns a value that is decoded from the stored JSON; see [Do]. The names
// and results of all steps of a record together may have up to Options.MaxStepBytes. They survive
// releases and takeovers, and are deleted when the record is completed. While a record has steps,
// it refuses another payload with [ErrPayloadMismatch], even if it was released.
//
// If fn returns an error, Step stores nothing and returns that error. If the process dies after fn
// has returned and before its result is stored, the next attempt calls fn again. Pass
// [DownstreamKey] to the services that fn calls, so that they can recognize the second call.
//
// If fn calls [Do] and gets an error, fn should return that error. Otherwise later attempts would
// skip fn, although the call of Do may not have been carried out.
//
// While fn runs, no goroutine of the handler can enlist a write in the handler's transaction: a
// retry that skips fn would lack the writes that belong to fn.
//
// Besides the errors of fn, Step returns these errors:
//
//   - An error without a code if Step was not allowed to call fn. Its text gives the reason, such
//     as an invalid name, a T that JSON can't represent, a store that is not a [StepStore],
//     Options.Optimistic, or a ctx that has ended.
//   - [ErrStreaming] if T is a stream (an io.Reader). Step has not called fn.
//   - [ErrAnswerUnreadable] if a stored result does not fit T, because T has changed. Step has not
//     called fn. If the handler then fails, its failure is not stored, so that a retry runs the
//     handler again.
//   - [ErrOutcomeUnknown] if fn ran, but its result is too large or has no JSON, or it is unknown
//     whether the result was stored. Whatever the handler returns, the caller gets 503. No other
//     attempt runs before the lease has ended.
//   - [ErrLeaseLost] if fn ran, but another attempt has taken over the record. The handler's
//     context has ended. The caller receives the answer of the record, or 409 if the other attempt
//     is still running.
//
// After ErrOutcomeUnknown or ErrLeaseLost, every later call of Step in this attempt returns the
// same error, without calling its fn.
//
// Without a guard, or if the request runs unguarded, Step calls fn every time and stores nothing.
// If the handler runs without a lease because of Options.FailOpen, Step keeps the results only
// until the handler returns: a retry calls fn again.
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
	if within, _ := ctx.Value(stepKey{}).(*attempt); within == a {
		return none, fmt.Errorf("step %q did not run: it is within another step, which is stored whole or not at all", name)
	}
	text, isStored, err := a.steps.begin(ctx, name, a.g.opts.MaxStepBytes)
	if err != nil {
		return none, fmt.Errorf("step %q did not run: %w", name, err)
	}
	if isStored {
		value, err := decodeStep[T](name, text)
		a.steps.decoded(name, err == nil)
		return value, err
	}
	defer a.steps.end(name)
	value, err := runStep(ctx, a, fn)
	if err != nil {
		return value, err
	}
	if value, err = storeStep(ctx, a, name, value); err != nil {
		return none, err
	}
	return value, nil
}

// runStep calls fn and returns its results. Until fn returns, enlisting a write panics. Otherwise
// the write could be missing on a retry: if the retry finds the stored result of the step, it does
// not call fn, and so does not enlist the write again.
func runStep[T any](ctx context.Context, a *attempt, fn func(context.Context) (T, error)) (T, error) {
	a.enlist.pause()
	defer a.enlist.resume()
	return fn(context.WithValue(ctx, stepKey{}, a))
}

// storeStep stores value as the result of the step with the given name. It returns what Step
// returns: the value that is decoded from the stored JSON, so that this run and every later call of
// the step return equal values.
func storeStep[T any](ctx context.Context, a *attempt, name string, value T) (T, error) {
	settled := false
	defer func() {
		if !settled { // after a panic, make the attempt uncertain: fn has run, and a retry would run it again
			_ = a.steps.fail(name, errStoringDied)
		}
	}()
	text, value, err := storable(value)
	if err != nil {
		err = a.steps.fail(name, err)
	} else {
		err = a.saveStep(ctx, name, text)
	}
	settled = true
	return value, err
}

var errStoringDied = errors.New("the encoding of the result or the store panicked or called runtime.Goexit")

// stepKey is the context key for the attempt that runs a step. Only the context that a step's
// function receives has a value for this key. Step and TxOf return an error if they find the
// handler's attempt under this key, because they must not be called inside a step.
type stepKey struct{}

// checkStep returns an error if name is invalid, or if no result of type T can be stored.
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

// noJSON reports whether encoding/json refuses every value of type t. A step with a result of
// such a type is refused before its function runs. encoding/json may also refuse some values of
// other types, but this shows only after the function has run.
func noJSON(t reflect.Type) bool {
	if marshals(t) || marshals(reflect.PointerTo(t)) {
		return false
	}
	switch t.Kind() { //nolint:exhaustive // types of all other kinds have values that encoding/json accepts
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return t.Len() > 0 && noJSON(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if isWritten(f) && f.IsExported() && !strings.Contains(f.Tag.Get("json"), ",omit") && noJSON(f.Type) {
				return true
			}
		}
	}
	return false
}

// decodeStep decodes text, the stored result of a step.
func decodeStep[T any](name string, text []byte) (T, error) {
	value, err := replayed[T](text)
	if err != nil {
		var none T
		return none, fmt.Errorf("step %q: its stored result, %s, does not fit %v: %w: %w",
			name, jsonKind(text), reflect.TypeFor[T](), ErrAnswerUnreadable, err)
	}
	return value, nil
}

// jsonKind returns a description of the JSON type of text, such as "a JSON object", for an
// error.
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
